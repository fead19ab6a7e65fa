//! Cross-entropy on the labels as given: what everybody does who does not know that labels are wrong.
//!
//! $L = -\frac{1}{B}\sum_i \log p(\tilde y_i \mid x_i)$, $\tilde y_i$ the given label, $x_i$ a weak view of sample $i$.
//!
//! It says nothing of its own about labels: which ones are wrong is read off its losses (mixture of two Gaussians), what
//! they should be off its predictions.

use super::{
    Batch, Beliefs, Card, Facts, Host, Judges, Kind, Objective, Plan, Provenance, Regime, Tap, Turn,
};
use crate::kit::loss::cross_entropy;
use crate::nets::Heads;
use crate::optim::Sgd;
use crate::schedule::{Milestone, Shape};
use crate::trainer::Scene;
use crate::{Result, settings};
use negscale_data::{Order, View};
use serde::{Deserialize, Serialize};

/// The card.
pub const CARD: Card = Card {
    id: "cross-entropy",
    about: "cross-entropy on the labels as given; the baseline",
    paper: "-",
    provenance: Provenance::Standard,
    nets: 1,
    heads: Heads { projection: None, prediction: false },
    judges: Judges::First,
    beliefs: Beliefs::Predictions,
    cost: "3",
    settings: || settings::table(&Settings::default()),
    meanings: &[("view", "how samples are shown in training: plain, weak, strong, ...")],
    regime,
    build: |table, facts| Ok(Box::new(CrossEntropy::new(settings::read("cross-entropy", table)?, facts))),
};

/// Settings of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How samples are shown in training.
    pub view: View,
}

impl Default for Settings {
    fn default() -> Self {
        Self { view: View::Weak }
    }
}

/// As the reference code of CIFAR-N has it, with a tenth of the epochs; a network without norms wants smaller steps.
pub(super) fn regime(kind: Kind) -> Regime {
    let lr = if kind == Kind::Images { 0.1 } else { 0.02 };
    let schedule = Shape::Steps { at: vec![Milestone::Share(0.6)], factor: 0.1 };
    Regime {
        epochs: 10,
        batch: 128,
        optimiser: Sgd { lr, ..Sgd::default() }.into(),
        schedule: schedule.into(),
    }
}

struct CrossEntropy {
    settings: Settings,
    batch: usize,
}

impl CrossEntropy {
    fn new(settings: Settings, facts: &Facts) -> Self {
        Self { settings, batch: facts.batch }
    }
}

impl Host for CrossEntropy {
    fn plan(&mut self, _: &mut Scene) -> Result<Plan> {
        Ok(Plan::new(vec![Turn {
            trains: vec![0],
            views: vec![self.settings.view],
            unlabelled_views: None,
            order: Order::Shuffled { passes: 1 },
            batch: self.batch,
            drop_last: true,
        }]))
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        let out = scene.team.train(0, &batch.views[0])?;
        let loss = cross_entropy(out.logits.clone(), &batch.given);
        let tap =
            Tap { features: out.features, logits: out.logits, given: batch.given.clone(), believed: None };
        Ok(Objective::new(loss).with_tap(tap))
    }
}
