//! DMLP, "Naive" form (Tu et al., CVPR 2023): labels purified with the help of a few true ones, then plain cross-entropy on them.
//!
//! Features and purification are those of `hosts/purified.rs` and [`crate::kit::purify`]. Then, with $\hat y_i$ the purified label (the true one where
//! it was told) and $x_i$ a weak view, a fresh network learns $L = -\frac1B \sum_i \log p(\hat y_i \mid x_i)$. Plug-ins attach to its features.
//!
//! **It is told 1,000 true labels**, at most a tenth of the samples; no other method but the second form is.
//!
//! # Where this differs from the paper and the authors' code
//! The code ends with the purification, whose departures are listed there; how features and networks were trained is not released, so that
//! SimCLR on the harness network and the harness's own cross-entropy stand in.

use super::purified::{MEANINGS, Purifying};
use super::{
    Batch, Beliefs, Card, Facts, Host, Judges, Kind, Objective, Plan, Provenance, PurifiedSettings, Regime,
    State, Tap, Turn, cross_entropy,
};
use crate::kit::loss;
use crate::nets::{Heads, Projection};
use crate::trainer::Scene;
use crate::{Result, settings};
use negscale_data::{Order, View};

/// The card.
pub const CARD: Card = Card {
    id: "dmlp-naive",
    about: "labels purified by closed form and 1,000 true labels that it is told, then cross-entropy",
    paper: "Tu et al., CVPR 2023",
    provenance: Provenance::PaperAndCode,
    nets: 1,
    heads: Heads { projection: Some(Projection::Relu), prediction: false },
    judges: Judges::First,
    beliefs: Beliefs::Own,
    cost: "3 (6 in epochs that learn features)",
    settings: || settings::table(&PurifiedSettings::default()),
    meanings: MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(Naive::new(settings::read("dmlp-naive", table)?, facts)?)),
};

/// That of cross-entropy; pictures need as many epochs again for their features.
fn regime(kind: Kind) -> Regime {
    let plain = cross_entropy::regime(kind);
    Regime { epochs: if kind == Kind::Images { 2 * plain.epochs } else { plain.epochs }, ..plain }
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
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        if let Some(plan) = self.purifying.plan(scene)? {
            return Ok(plan);
        }
        self.purifying.shift(scene);
        let plan = Plan::new(vec![Turn {
            trains: vec![0],
            views: vec![View::Weak],
            unlabelled_views: None,
            order: Order::Shuffled { passes: 1 },
            batch: self.batch,
            drop_last: true,
        }]);
        Ok(self.purifying.complete(plan, scene))
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        if let Some(objective) = self.purifying.objective(batch, scene) {
            return objective;
        }
        let out = scene.team.train(0, &batch.views[0])?;
        let given = self.purifying.of(&batch.samples);
        let loss = loss::cross_entropy(out.logits.clone(), &given);
        let tap = Tap { features: out.features, logits: out.logits, given, believed: None };
        Ok(Objective::new(loss).with_tap(self.purifying.tap(tap, batch.given.clone())))
    }

    fn state(&self) -> State {
        let mut state = State::default();
        self.purifying.save(&mut state);
        state
    }

    fn restore(&mut self, mut state: State) -> Result<()> {
        self.purifying.restore(&mut state);
        Ok(())
    }
}
