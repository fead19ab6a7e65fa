//! CrossSplit (Kim et al., ICML 2023): each network sees the labels of one half, and its peer, which never saw them, softens them.
//!
//! $t_x = [\, \beta q + (1 - \beta)\, e(\tilde y) \,]_T$, $q$ the peer's prediction, $\beta$ by where its divergence from the label lies
//! among those of the class ([`crate::kit::jsd`]); then the loss of [contrasted](crate::hosts::ContrastSettings) methods on strong views.
//! The peer judges labels before each network's turn. Plug-ins have a pass of their own.
//!
//! Equations, settings and departures: docs/book/methods/crosssplit.md.

use super::ContrastSettings;
use super::contrasted::{self, Contrasted, tap};
use super::divided::Taught;
use super::halves::prefer;
pub use super::halves::{Split, gamma};
use super::prelude::*;
use crate::kit::jsd::{class_ranges, label_jsds, place, soften};
use crate::kit::target::{co_guess, refine};

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
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(CrossSplit::new(read("crosssplit", table)?, facts)?)),
};

settings! {
    /// Settings of the method.
    Settings over contrast: ContrastSettings;
    split: Split = Split::Disjoint, "disjoint: a half for each network (paper); none: all samples for both (authors' code)";
    warm_up_on_all: bool = false, "whether networks warm up on all labels (authors' code) instead of those they are given";
    delta: Milestone = Milestone::Share(10.0 / 300.0) => milestone, "epochs, or their share: gamma is 0.6 for two of these after warm-up, 0.8 for one more, then 1";
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.contrast = self.contrast.checked(facts, 0.1)?;
        self.check()?;
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
        scene.ledger.set_targets(ledger::Samples::These(&batch.samples), &rows)?;
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
        let ranges = state.take_floats("ranges")?;
        self.ranges = ranges.chunks_exact(2).map(|range| [range[0].into(), range[1].into()]).collect();
        self.shared.divided.peers.restore(state)
    }
}
