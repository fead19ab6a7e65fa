//! Co-teaching (Han et al., NeurIPS 2018): each network learns from its peer's small-loss samples.
//!
//! $L_a = \frac1n \sum_{i \in I_b} \ell^a_i$ and $L_b = \frac1n \sum_{i \in I_a} \ell^b_i$, $I$ the $n = \lfloor (1 - R) B \rfloor$ samples
//! of smallest loss by each network. The share to forget, $R$, grows from 0 to the noise rate ([`crate::kit::small_loss`]). Parameters are
//! apart: a step along $L_a + L_b$ is a step of each.
//!
//! Equations, settings and departures: docs/book/src/methods/co-teaching.md.

use super::parts::small_loss::{self, Forget, SmallLossSettings};
use super::prelude::*;
use crate::kit::loss::cross_entropy_rows;
use crate::kit::small_loss::{easiest, mean_of};

/// The card.
pub const CARD: Card = Card {
    id: "co-teaching",
    about: "two networks; each learns from the samples of small loss of the other",
    paper: "Han et al., NeurIPS 2018",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: None, prediction: false },
    predicted_by: PredictedBy::Sum,
    beliefs: Beliefs::Predictions,
    cost: "6",
    settings: || table(&SmallLossSettings::default()),
    meanings: SmallLossSettings::MEANINGS,
    regime: |kind| small_loss::regime(kind, 0.03),
    build: |table, facts| Ok(Box::new(CoTeaching::new(read("co-teaching", table)?, facts)?)),
};

struct CoTeaching {
    settings: SmallLossSettings,
    batch: usize,
    forget: Forget,
}

impl CoTeaching {
    fn new(settings: SmallLossSettings, facts: &Facts) -> Result<Self> {
        Ok(Self { settings: settings.checked(facts)?, batch: facts.batch, forget: Forget::default() })
    }
}

impl Host for CoTeaching {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        let mut plan = Plan::new(vec![small_loss::together(self.batch, self.settings.view)]);
        self.forget.decide(&self.settings, context, &mut plan)?;
        Ok(plan)
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        let (view, given) = (&batch.views[0], &batch.given);
        let outputs = [context.networks.train(0, view)?, context.networks.train(1, view)?];
        let losses = outputs.each_ref().map(|out| cross_entropy_rows(out.logits.clone(), given));
        let choose = |net: usize| easiest(&values(losses[net].clone())?, self.forget.share());
        let (small_a, small_b) = (choose(0)?, choose(1)?);
        small_loss::enter(context, &batch.samples, &[&small_a, &small_b], &self.forget)?;
        // Exchanged: the peer decides.
        let [a, b] = losses;
        let (a, b) = (mean_of(a, &small_b), mean_of(b, &small_a));
        let objective =
            Objective::new(a.clone() + b.clone()).with_term("fit net 1", &a).with_term("fit net 2", &b);
        Ok(small_loss::tapped(objective, outputs, batch))
    }

    fn reads_predictions(&self) -> bool {
        self.settings.rate == super::parts::Rate::Estimate
    }

    keeps!(forget);
}
