//! JoCoR (Wei et al., CVPR 2020): two networks, one loss; samples on which both are right and agree are easy.
//!
//! With $p, q$ what the two networks predict for sample $i$ and $\tilde y_i$ its given label,
//!
//! $$ \ell_i = (1 - \lambda)\,(-\log p_{i \tilde y_i} - \log q_{i \tilde y_i})
//!    + \lambda\,(\mathrm{KL}(p_i \| q_i) + \mathrm{KL}(q_i \| p_i)), $$
//!
//! gradients through both arguments of both terms. Of a batch of $B$ the $n = \lfloor (1 - R) B \rfloor$ samples of smallest $\ell_i$ are kept;
//! $L$ is their mean, and both networks take a step along it. $R$ grows from 0 to the noise rate: see [`crate::kit::small_loss`].
//! The probability that a label is clean is how often it is kept, in a running mean over epochs.
//!
//! # Where this differs from the paper
//! The noise rate is an oracle in the paper (half the nominal rate for asymmetric noise, which is the actual one); here it is
//! [estimated](super::Rate) unless told otherwise. The ramp is one of 5 epochs (10 of 200 in the paper) and begins with nothing
//! forgotten, where the authors' code begins with a ninth of the rate. Plug-ins have their full weight on each network, as with
//! every other method.

use super::divided::FEW_CLASSES;
use super::easy::{self, EasySettings, Forget};
use super::{Batch, Beliefs, Card, Facts, Host, Judges, Objective, Plan, Protocol, Provenance, Rate, State};
use crate::Result;
use crate::kit::loss::joint_rows;
use crate::kit::small_loss::{easiest, mean_of};
use crate::nets::Heads;
use crate::settings::{self, require};
use crate::trainer::{Scene, values};
use serde::{Deserialize, Serialize};

/// The card.
pub const CARD: Card = Card {
    id: "jocor",
    about: "two networks with one loss that rewards agreement; both learn from the samples where it is small",
    paper: "Wei et al., CVPR 2020",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: None, prediction: false },
    judges: Judges::Sum,
    beliefs: Beliefs::Predictions,
    cost: "6",
    settings: || settings::table(&Settings::default()),
    meanings: &[
        EasySettings::PROTOCOL,
        Rate::MEANING,
        EasySettings::RAMP,
        EasySettings::EXPONENT,
        EasySettings::VIEW,
        ("lambda", "weight of agreement between the networks, from 0 (none) to below 1"),
    ],
    regime: |kind| easy::regime(kind, 0.1),
    build: |table, facts| Ok(Box::new(JoCoR::new(settings::read("jocor", table)?, facts)?)),
};

/// Settings of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the card says what they mean
pub struct Settings {
    #[serde(flatten)]
    pub easy: EasySettings,
    pub lambda: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { easy: EasySettings::default(), lambda: 0.65 }
    }
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        let (kind, rate) = facts.noise_kind();
        if self.easy.protocol == Protocol::Tuned {
            let is_heavy = kind.starts_with("sym") && rate >= 0.65;
            self.lambda = match (facts.classes <= FEW_CLASSES, is_heavy) {
                (true, false) => 0.9,
                (true, true) => 0.65,
                (false, _) => 0.85,
            };
        }
        self.easy = self.easy.checked(facts)?;
        require("lambda", self.lambda, (0.0..1.0).contains(&self.lambda), "must be in [0, 1)")?;
        Ok(self)
    }
}

struct JoCoR {
    settings: Settings,
    batch: usize,
    forget: Forget,
}

impl JoCoR {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        Ok(Self { settings: settings.checked(facts)?, batch: facts.batch, forget: Forget::default() })
    }
}

impl Host for JoCoR {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        let easy = &self.settings.easy;
        let mut plan = Plan::new(vec![easy::together(self.batch, easy.view)]);
        self.forget.decide(easy, scene, &mut plan)?;
        Ok(plan)
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        let (view, given) = (&batch.views[0], &batch.given);
        let [a, b] = [scene.team.train(0, view)?, scene.team.train(1, view)?];
        let losses = joint_rows(a.logits.clone(), b.logits.clone(), given, self.settings.lambda);
        let kept = easiest(&values(losses.clone())?, self.forget.share())?;
        easy::enter(scene, &batch.samples, &[&kept], &self.forget)?;
        let joint = mean_of(losses, &kept);
        let objective = Objective::new(joint.clone()).with_term("joint", &joint);
        Ok(easy::tapped(objective, [a, b], given))
    }

    fn state(&self) -> State {
        self.forget.state()
    }

    fn restore(&mut self, state: State) -> Result<()> {
        self.forget.restore(&state);
        Ok(())
    }
}
