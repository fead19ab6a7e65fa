//! Co-teaching (Han et al., NeurIPS 2018): each network learns from the samples that its peer finds easy.
//!
//! Both see the same batch of $B$. With $\ell^a_i, \ell^b_i$ the cross-entropy of sample $i$ by networks a and b, and $I_a, I_b$ the
//! $n = \lfloor (1 - R) B \rfloor$ samples of smallest $\ell^a$ and of smallest $\ell^b$:
//!
//! $$ L_a = \frac1n \sum_{i \in I_b} \ell^a_i, \qquad L_b = \frac1n \sum_{i \in I_a} \ell^b_i. $$
//!
//! The share to forget, $R$, grows from 0 to the noise rate: see [`crate::kit::small_loss`]. The exchange is the point: an error in
//! the choice of one network is not what that network itself learns next. The probability that a label is clean is the share of the
//! two networks that keep it, in a running mean over epochs.
//!
//! # Where this differs from the paper
//! The noise rate is an oracle in the paper; here it is [estimated](super::Rate) unless told otherwise. The ramp is one of
//! 5 epochs (10 of 200 in the paper). Authors' code trains from its epoch 1 on, so that its first epoch already forgets a ninth of the rate;
//! here the first forgets nothing. It divides the mean over kept samples by their number once more, which Adam hides; here it is the
//! plain mean. The step is one along $L_a + L_b$: parameters are apart, so this is a step of each.

use super::easy::{self, EasySettings, Forget};
use super::{Batch, Beliefs, Card, Facts, Host, Judges, Objective, Plan, Provenance, Rate, State};
use crate::kit::loss::cross_entropy_rows;
use crate::kit::small_loss::{easiest, mean_of};
use crate::nets::Heads;
use crate::trainer::{Scene, values};
use crate::{Result, settings};

/// The card.
pub const CARD: Card = Card {
    id: "co-teaching",
    about: "two networks; each learns from the samples of small loss of the other",
    paper: "Han et al., NeurIPS 2018",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: None, prediction: false },
    judges: Judges::Sum,
    beliefs: Beliefs::Predictions,
    cost: "6",
    settings: || settings::table(&EasySettings::default()),
    meanings: &[
        EasySettings::PROTOCOL,
        Rate::MEANING,
        EasySettings::RAMP,
        EasySettings::EXPONENT,
        EasySettings::VIEW,
    ],
    regime: |kind| easy::regime(kind, 0.03),
    build: |table, facts| Ok(Box::new(CoTeaching::new(settings::read("co-teaching", table)?, facts)?)),
};

struct CoTeaching {
    settings: EasySettings,
    batch: usize,
    forget: Forget,
}

impl CoTeaching {
    fn new(settings: EasySettings, facts: &Facts) -> Result<Self> {
        Ok(Self { settings: settings.checked(facts)?, batch: facts.batch, forget: Forget::default() })
    }
}

impl Host for CoTeaching {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        let mut plan = Plan::new(vec![easy::together(self.batch, self.settings.view)]);
        self.forget.decide(&self.settings, scene, &mut plan)?;
        Ok(plan)
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        let (view, given) = (&batch.views[0], &batch.given);
        let outputs = [scene.team.train(0, view)?, scene.team.train(1, view)?];
        let losses = outputs.each_ref().map(|out| cross_entropy_rows(out.logits.clone(), given));
        let choose = |net: usize| easiest(&values(losses[net].clone())?, self.forget.share());
        let (easy_a, easy_b) = (choose(0)?, choose(1)?);
        easy::enter(scene, &batch.samples, &[&easy_a, &easy_b], &self.forget)?;
        // Exchanged: the peer decides.
        let [a, b] = losses;
        let (a, b) = (mean_of(a, &easy_b), mean_of(b, &easy_a));
        let objective =
            Objective::new(a.clone() + b.clone()).with_term("fit net 1", &a).with_term("fit net 2", &b);
        Ok(easy::tapped(objective, outputs, given))
    }

    fn state(&self) -> State {
        self.forget.state()
    }

    fn restore(&mut self, state: State) -> Result<()> {
        self.forget.restore(&state);
        Ok(())
    }
}
