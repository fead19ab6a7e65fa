//! Cross-entropy on the labels as given: what everybody does who does not know that labels are wrong.
//!
//! $L = -\frac{1}{B}\sum_i \log p(\tilde y_i \mid x_i)$, $\tilde y_i$ the given label, $x_i$ a weak view of sample $i$. It says nothing of
//! its own about labels.
//!
//! Equations, settings and departures: docs/book/src/methods/cross-entropy.md.

use super::prelude::*;
use crate::kit::loss::cross_entropy;

/// The card.
pub const CARD: Card = Card {
    id: "cross-entropy",
    about: "cross-entropy on the labels as given; the baseline",
    paper: "-",
    provenance: Provenance::Standard,
    nets: 1,
    heads: Heads { projection: None, prediction: false },
    predicted_by: PredictedBy::First,
    beliefs: Beliefs::Predictions,
    cost: "3",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| {
        Ok(Box::new(CrossEntropy { settings: read("cross-entropy", table)?, batch: facts.batch }))
    },
};

settings! {
    /// Settings of the method.
    Settings;
    view: View = View::Weak, "view used in training: plain, weak, strong, ...";
}

/// As the reference code of CIFAR-N has it, with a tenth of the epochs; a network without norms wants smaller steps.
pub(super) fn regime(kind: ItemKind) -> Regime {
    let lr = if kind == ItemKind::Images { 0.1 } else { 0.02 };
    let schedule = Shape::Steps { at: vec![Milestone::Share(0.6)], factor: 0.1 };
    Regime { epochs: 10, ..Regime::new(128, Sgd { lr, ..Sgd::default() }, schedule) }
}

struct CrossEntropy {
    settings: Settings,
    batch: usize,
}

impl Host for CrossEntropy {
    fn plan(&mut self, _: &mut HostContext) -> Result<Plan> {
        Ok(Plan::alone(vec![self.settings.view], self.batch))
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        let out = context.networks.train(0, &batch.views[0])?;
        let loss = cross_entropy(out.logits.clone(), &batch.given);
        Ok(Objective::new(loss).with_tap(Tap::new(out, batch)))
    }
}
