//! DMLP, "Naive" form (Tu et al., CVPR 2023): labels purified with the help of a few true ones, then plain cross-entropy on them.
//!
//! Features and purification are those of `hosts/parts/purification.rs` and [`crate::kit::purify`]. Then a fresh network learns
//! $L = -\frac1B \sum_i \log p(\hat y_i \mid x_i)$, $\hat y_i$ the purified label (the true one where it was told), $x_i$ a weak view. **It
//! is told 1,000 true labels**, at most a tenth of the samples; no other method but the second form is.
//!
//! Equations, settings and departures: docs/book/src/methods/dmlp-naive.md.

use super::cross_entropy;
use super::parts::PurifiedSettings;
use super::parts::purification::Purifying;
use super::prelude::*;
use crate::kit::loss;

/// The card.
pub const CARD: Card = Card {
    id: "dmlp-naive",
    about: "labels corrected in closed form with the help of 1,000 true labels, then cross-entropy",
    paper: "Tu et al., CVPR 2023",
    provenance: Provenance::PaperAndCode,
    nets: 1,
    heads: Heads { projection: Some(Projection::Relu), prediction: false },
    predicted_by: PredictedBy::First,
    beliefs: Beliefs::Own,
    cost: "3 (6 in epochs that learn features)",
    settings: || table(&PurifiedSettings::default()),
    meanings: PurifiedSettings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(Naive::new(read("dmlp-naive", table)?, facts)?)),
};

/// That of cross-entropy; pictures need as many epochs again for their features.
fn regime(kind: ItemKind) -> Regime {
    let plain = cross_entropy::regime(kind);
    Regime { epochs: if kind == ItemKind::Images { 2 * plain.epochs } else { plain.epochs }, ..plain }
}

struct Naive {
    purifying: Purifying,
    batch: usize,
}

impl Naive {
    fn new(settings: PurifiedSettings, facts: &Facts) -> Result<Self> {
        Ok(Self { purifying: Purifying::new(settings, facts)?, batch: facts.batch })
    }
}

impl Host for Naive {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        if let Some(plan) = self.purifying.plan(context)? {
            return Ok(plan);
        }
        self.purifying.shift(context);
        let plan = Plan::alone(vec![View::Weak], self.batch);
        Ok(self.purifying.complete(plan, context))
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        if let Some(objective) = self.purifying.objective(batch, context) {
            return objective;
        }
        let out = context.networks.train(0, &batch.views[0])?;
        let given = self.purifying.of(&batch.samples);
        let loss = loss::cross_entropy(out.logits.clone(), &given);
        let tap = self.purifying.tap(Tap { given, ..Tap::new(out, batch) }, batch.given.clone());
        Ok(Objective::new(loss).with_tap(tap))
    }

    fn state(&self) -> HostState {
        let mut state = HostState::default();
        self.purifying.save(&mut state);
        state
    }

    fn restore(&mut self, mut state: HostState) -> Result<()> {
        self.purifying.restore(&mut state)
    }
}
