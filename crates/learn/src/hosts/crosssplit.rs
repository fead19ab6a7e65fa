//! CrossSplit (Kim et al., ICML 2023): each network sees the labels of one half, and its peer, which never saw them, softens them.
//!
//! The samples are cut once into halves $D_a$, $D_b$. Network a has $D_a$ labelled and $D_b$ unlabelled, b the other way round. Nothing is
//! selected: a label counts as much as the peer agrees with it. Per turn, the peer's $J_i = \mathrm{JSD}(p_b(x_i), e(\tilde y_i))$ on plain samples
//! ([`crate::kit::jsd`]) gives $J_{min}$ and $J_{max}$ of every class, by given label. Per batch, with two weak and two strong views:
//!
//! - $q = \frac12 (p_b(x^{w1}) + p_b(x^{w2}))$ and $w = \mathrm{clip}\big((\mathrm{JSD}(e(\tilde y), q) - J_{min}[\tilde y]) / (J_{max}[\tilde y] - J_{min}[\tilde y])\big)$;
//! - $\beta = \gamma (w - \frac12) + \frac12$, $\gamma$ 0.6 in the first $2 \delta$ epochs after warm-up, 0.8 up to $3 \delta$, then 1;
//! - $t_x = [\, \beta q + (1 - \beta)\, e(\tilde y) \,]_T$ and $t_u = [\, \frac12 (p_a(u^{w1}) + p_a(u^{w2})) \,]_T$;
//! - the loss of [contrasted](crate::hosts::ContrastSettings) methods on strong views.
//!
//! **Ledger.** Clean probability: $1 - w$ of the plain sample, by the network that never saw its label (both networks' mean with
//! `split = "none"`). Targets: $t_x$; where the peer's word weighs more than the label, $q$.
//!
//! # Where this differs from paper and code
//! The authors' code builds its loaders from all samples, so that both networks see all labels: `split = "none"`. The paper's halves are the
//! default, and then each network warms up on its own half too (the code: on all). Of $\lambda_u$, warm-up and $\delta$ the published
//! numbers are for 300 epochs; here the latter two are shares. The code keeps the best epoch.

use super::contrasted::{self, Contrasted, contrast_meanings, tap};
use super::divided::Taught;
use super::halves::prefer;
pub use super::halves::{Split, gamma};
use super::{
    Batch, Beliefs, Card, ContrastSettings, Facts, Host, Judges, Kind, Objective, Plan, Provenance, Regime,
    State,
};
use crate::kit::jsd::{class_ranges, label_jsds, place, soften};
use crate::kit::target::{co_guess, refine};
use crate::ledger::Samples;
use crate::nets::{Heads, Projection};
use crate::schedule::Milestone;
use crate::trainer::{Scene, values};
use crate::{Result, settings};
use negscale_data::{Order, View};
use serde::{Deserialize, Serialize};

/// The card.
pub const CARD: Card = Card {
    id: "crosssplit",
    about: "each network has the labels of one half, softened by its peer, which never saw them",
    paper: "Kim et al., ICML 2023",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: Some(Projection::LinearNorm), prediction: false },
    judges: Judges::Sum,
    beliefs: Beliefs::Own,
    cost: "17; 32 without the split",
    settings: || settings::table(&Settings::default()),
    meanings: contrast_meanings![
        ("split", "disjoint: a half for each network (paper); none: all samples for both (authors' code)"),
        (
            "warm_up_on_all",
            "whether networks warm up on all labels (authors' code) instead of those they are given"
        ),
        (
            "delta",
            "epochs, or their share: gamma is 0.6 for two of these after warm-up, 0.8 for one more, then 1"
        ),
    ],
    regime,
    build: |table, facts| Ok(Box::new(CrossSplit::new(settings::read("crosssplit", table)?, facts)?)),
};

/// Settings of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the card says what they mean
pub struct Settings {
    #[serde(flatten)]
    pub contrast: ContrastSettings,
    pub split: Split,
    pub warm_up_on_all: bool,
    pub delta: Milestone,
}

impl Default for Settings {
    fn default() -> Self {
        let delta = Milestone::Share(10.0 / 300.0);
        Self { contrast: ContrastSettings::default(), split: Split::Disjoint, warm_up_on_all: false, delta }
    }
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.contrast = self.contrast.checked(facts, 0.1)?;
        self.delta.check("delta")?;
        Ok(self)
    }
}

/// A cosine down to a fiftieth.
fn regime(kind: Kind) -> Regime {
    contrasted::regime(if kind == Kind::Images { 0.1 } else { 0.05 }, None, 0.02)
}

struct CrossSplit {
    settings: Settings,
    delta: usize,
    shared: Contrasted,
    /// Least and largest $J$ of every class, by the peer of the network whose turn it is.
    ranges: Vec<[f64; 2]>,
}

impl CrossSplit {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let settings = settings.checked(facts)?;
        let shared = Contrasted::new(settings.contrast.clone(), facts);
        Ok(Self { delta: settings.delta.epochs(facts.epochs), shared, ranges: Vec::new(), settings })
    }

    /// Lets the peer judge the labels that a network is shown, and keeps what a turn of that network needs.
    fn judge(&mut self, net: usize, scene: &Scene) -> Result<()> {
        let peer = 1 - net;
        let (labels, classes) = (scene.ledger.given(), scene.ledger.classes());
        let d = label_jsds(&scene.scan(peer, View::Plain)?.probabilities(), labels, classes)?;
        let ranges = class_ranges(&d, labels, classes)?;
        let clean = |(&d, &label): (&f64, &u32)| (1.0 - place(d, ranges[label as usize])) as f32;
        self.shared.divided.peers.clean[peer] = d.iter().zip(labels).map(clean).collect();
        // As they can be saved.
        self.ranges = ranges.into_iter().map(|range| range.map(|d| f64::from(d as f32))).collect();
        Ok(())
    }
}

impl Host for CrossSplit {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        if let Some(mut plan) = self.shared.divided.warm_up(scene) {
            if !self.settings.warm_up_on_all {
                for (net, turn) in plan.turns.iter_mut().enumerate() {
                    turn.order = Order::Among(self.settings.split.list(net, scene));
                }
            }
            return Ok(plan);
        }
        // The first network's turn comes first: what it needs is kept last.
        [1, 0].into_iter().try_for_each(|net| self.judge(net, scene))?;
        let divided = &self.shared.divided;
        let unlabelled = divided.unlabelled_batch(divided.batch / 2);
        let turn = |net| {
            let (clean, batches) = (&divided.peers.clean[1 - net], [divided.batch, unlabelled]);
            let division = self.settings.split.divide(net, clean, batches, scene);
            divided.turn(net, division, unlabelled, &self.shared.views)
        };
        let mut plan = Plan::new(vec![turn(0), turn(1)]);
        plan.notes.insert("held to be clean".into(), self.settings.split.enter(&divided.peers, scene)?);
        Ok(plan)
    }

    fn renew(&mut self, turn: usize, plan: &mut Plan, scene: &mut Scene) -> Result<()> {
        if !plan.warming_up {
            self.judge(turn, scene)?;
            let clean = self.settings.split.enter(&self.shared.divided.peers, scene)?;
            plan.notes.insert("held to be clean".into(), clean);
        }
        Ok(())
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        if let Some(objective) = self.shared.divided.warm_up_loss(batch, scene) {
            return objective;
        }
        let (net, team, divided) = (batch.net(), scene.team, &self.shared.divided);
        let (mut taught, mut kept) = (Taught::default(), Vec::new());
        let q = self.shared.ask(1 - net, &batch.labelled, scene)?;
        let gamma = gamma(scene.epoch.number - divided.warm_up, self.delta);
        let said = values(q.clone())?;
        let weights = soften(&said, &batch.given, &self.ranges, gamma);
        let mut rows = divided.settle(refine(&weights, &batch.given, q), &mut taught)?;
        prefer(&mut rows, &said, &weights);
        scene.ledger.set_targets(Samples::These(&batch.samples), &rows)?;
        let mut given = batch.given.clone();
        if scene.tapped {
            kept.push(team.rehearse(net, &batch.views[0])?);
        }
        for part in batch.parts().into_iter().skip(1) {
            let keep = scene.tapped && self.shared.settings.tap_unlabelled;
            let (own, first) = self.shared.guess(net, part, scene, keep)?;
            divided.settle(co_guess(&own), &mut taught)?;
            given.extend(&part.given);
            kept.extend(first);
        }
        Ok(tap(self.shared.fit(batch, scene, &taught)?, kept, given, taught.believed))
    }

    fn state(&self) -> State {
        let mut state = self.shared.divided.peers.state();
        let ranges = self.ranges.as_flattened().iter().map(|&d| d as f32).collect();
        state.floats.insert("ranges".into(), ranges);
        state
    }

    fn restore(&mut self, mut state: State) -> Result<()> {
        let ranges = state.floats.remove("ranges").unwrap_or_default();
        self.ranges = ranges.chunks_exact(2).map(|range| [range[0].into(), range[1].into()]).collect();
        self.shared.divided.peers.restore(state);
        Ok(())
    }
}
