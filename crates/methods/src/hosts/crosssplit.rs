//! CrossSplit (Kim et al., ICML 2023): each network sees the labels of one half, and its peer, which never saw them, softens them.
//!
//! $t_x = [\, \beta q + (1 - \beta)\, e(\tilde y) \,]_T$, $q$ the peer's prediction, $\beta$ by where its divergence from the label lies
//! among those of the class ([`crate::kit::jsd`]); then the loss of [contrasted](crate::hosts::parts::ContrastSettings) methods on strong views.
//! The peer judges labels before each network's phase. Plug-ins have a pass of their own.
//!
//! Equations, settings and departures: docs/book/src/methods/crosssplit.md.

use super::parts::ContrastSettings;
use super::parts::contrast::{self, Contrasted, tap};
use super::parts::half_split::prefer;
pub use super::parts::half_split::{LabelSplit, gamma};
use super::parts::semi_supervised::Taught;
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
    predicted_by: PredictedBy::Sum,
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
    split: LabelSplit = LabelSplit::Disjoint, "disjoint: a half for each network (paper); none: all samples for both (authors' code)";
    warm_up_on_all: bool = false, "whether networks warm up on all labels (authors' code) instead of those of their half";
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
fn regime(kind: ItemKind) -> Regime {
    contrast::regime(if kind == ItemKind::Images { 0.1 } else { 0.05 }, None, 0.02)
}

struct CrossSplit {
    settings: Settings,
    delta: usize,
    shared: Contrasted,
    /// Least and largest $J$ of every class, by the peer of the network whose phase it is.
    ranges: Vec<[f64; 2]>,
}

impl CrossSplit {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let settings = settings.checked(facts)?;
        let shared = Contrasted::new(settings.contrast.clone(), facts);
        Ok(Self { delta: settings.delta.epochs(facts.epochs), shared, ranges: Vec::new(), settings })
    }

    /// Lets the peer judge the labels that a network is shown, and keeps what a phase of that network needs.
    fn judge(&mut self, net: usize, context: &HostContext) -> Result<()> {
        let peer = 1 - net;
        let (labels, classes) = (context.ledger.given(), context.ledger.classes());
        let d = label_jsds(&context.scan(peer, View::Plain)?.probabilities(), labels, classes)?;
        let ranges = class_ranges(&d, labels, classes)?;
        let clean = |(&d, &label): (&f64, &u32)| (1.0 - place(d, ranges[label as usize])) as f32;
        self.shared.divided.peers.clean[peer] = d.iter().zip(labels).map(clean).collect();
        // As they can be saved.
        self.ranges = ranges.into_iter().map(|range| range.map(|d| f64::from(d as f32))).collect();
        Ok(())
    }
}

impl Host for CrossSplit {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        if let Some(mut plan) = self.shared.divided.warm_up(context) {
            if !self.settings.warm_up_on_all {
                for (net, phase) in plan.phases.iter_mut().enumerate() {
                    phase.order = Order::Among(self.settings.split.list(net, context));
                }
            }
            return Ok(plan);
        }
        // The first network's phase comes first: what it needs is kept last.
        [1, 0].into_iter().try_for_each(|net| self.judge(net, context))?;
        let divided = &self.shared.divided;
        let unlabelled = divided.unlabelled_batch(divided.batch / 2);
        let phase = |net| {
            let (clean, batches) = (&divided.peers.clean[1 - net], [divided.batch, unlabelled]);
            let division = self.settings.split.divide(net, clean, batches, context);
            divided.phase(net, division, unlabelled, &self.shared.views)
        };
        let mut plan = Plan::new(vec![phase(0), phase(1)]);
        plan.notes.insert("held to be clean".into(), self.settings.split.enter(&divided.peers, context)?);
        Ok(plan)
    }

    fn replan(&mut self, phase: usize, plan: &mut Plan, context: &mut HostContext) -> Result<()> {
        if !plan.warming_up {
            self.judge(phase, context)?;
            let clean = self.settings.split.enter(&self.shared.divided.peers, context)?;
            plan.notes.insert("held to be clean".into(), clean);
        }
        Ok(())
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        if let Some(objective) = self.shared.divided.warm_up_loss(batch, context) {
            return objective;
        }
        let (net, networks, divided) = (batch.net(), context.networks, &self.shared.divided);
        let (mut taught, mut kept) = (Taught::default(), Vec::new());
        let q = self.shared.ask(1 - net, &batch.labelled, context)?;
        let gamma = gamma(context.epoch.number - divided.warm_up, self.delta);
        let said = values(q.clone())?;
        let weights = soften(&said, &batch.given, &self.ranges, gamma);
        let mut rows = divided.settle(refine(&weights, &batch.given, q), &mut taught)?;
        prefer(&mut rows, &said, &weights);
        context.ledger.set_targets(ledger::SampleIndices::These(&batch.samples), &rows)?;
        let mut given = batch.given.clone();
        if context.tapped {
            kept.push(networks.rehearse(net, &batch.views[0])?);
        }
        for part in batch.parts().into_iter().skip(1) {
            let keep = context.tapped && self.shared.settings.tap_unlabelled;
            let (own, first) = self.shared.guess(net, part, context, keep)?;
            divided.settle(co_guess(&own), &mut taught)?;
            given.extend(&part.given);
            kept.extend(first);
        }
        Ok(tap(self.shared.fit(batch, context, &taught)?, kept, batch, given, taught.believed))
    }

    fn state(&self) -> HostState {
        let mut state = self.shared.divided.peers.state();
        let ranges = self.ranges.as_flattened().iter().map(|&d| d as f32).collect();
        state.floats.insert("ranges".into(), ranges);
        state
    }

    fn restore(&mut self, mut state: HostState) -> Result<()> {
        let ranges = state.take_floats("ranges")?;
        self.ranges = ranges.chunks_exact(2).map(|range| [range[0].into(), range[1].into()]).collect();
        self.shared.divided.peers.restore(state)
    }
}
