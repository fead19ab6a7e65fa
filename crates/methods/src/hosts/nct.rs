//! NCT, nested co-teaching (Chen et al., CVPR workshops 2021 and TNNLS 2022): compressed features, then an exchange of small-loss samples.
//!
//! **Alone**, cross-entropy on the first $k$ channels, $P(k) \propto e^{-(k/\sigma)^2}$, one $k$ per batch ([`crate::kit::nested`]).
//! **Together**, norms frozen: each network scores half of a batch by its first $K$ channels, and learns what its peer kept of the other
//! half. $K$ is chosen after every epoch; networks are judged, and saved, with it.
//!
//! Equations, settings and departures: docs/book/src/methods/nct.md.

use super::parts::Rate;
use super::parts::small_loss::{self, Forget};
use super::prelude::*;
use crate::host::SubBatch;
use crate::kit::loss::{cross_entropy, cross_entropy_rows};
use crate::kit::nested::{choose_width, draw_masks, right_by_width};
use crate::kit::small_loss::{easiest, pick};
use negscale_nets::{Mode, Network, Pass};

/// The card.
pub const CARD: Card = Card {
    id: "nct",
    about: "two networks with nested dropout, then each on the samples of small loss of the other",
    paper: "Chen et al., CVPR workshops 2021",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: None, prediction: false },
    predicted_by: PredictedBy::Sum,
    beliefs: Beliefs::Predictions,
    cost: "6 alone, 4 - 3R together, R the share forgotten",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(Nct::new(read("nct", table)?, facts)?)),
};

/// The largest share that is forgotten.
const MOST: f64 = 0.8;

settings! {
    /// Settings of the method.
    Settings;
    protocol: Protocol = Protocol::Blind, Protocol::MEANING;
    rate: Rate = Rate::Estimate, Rate::MEANING;
    alone: Milestone = Milestone::Share(0.5) => milestone, "epochs in which each network learns by itself, or their share of all epochs";
    sigma: f64 = 0.0 => not_negative, "scale of the widths drawn, in channels: larger keeps more; 0: by the number of classes";
    view: View = View::Weak, "view used in training: plain, weak, strong, ...";
    masked_tap: bool = false, "whether plug-ins see only the channels that reach the classifier";
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.rate = self.rate.settle(self.protocol, facts)?;
        self.check()?;
        require("batch", facts.batch as f64, facts.batch >= 2, "must be at least 2: it is cut in halves")?;
        let by_classes = facts.classes as f64 * if facts.kind == ItemKind::Images { 1.0 } else { 3.0 };
        let sigma = if self.sigma > 0.0 { self.sigma } else { by_classes };
        Ok(Self { sigma, ..self })
    }
}

/// A tenth of the rate at 200, 300 and 400 of 450 epochs, both stages together.
fn regime(_: ItemKind) -> Regime {
    let at = [0.44, 0.67, 0.89].map(Milestone::Share).to_vec();
    Regime::new(128, Sgd { lr: 0.1, ..Sgd::default() }, Shape::Steps { at, factor: 0.1 })
}

struct Nct {
    settings: Settings,
    alone: usize,
    batch: usize,
    forget: Forget,
}

impl Nct {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let settings = settings.checked(facts)?;
        let alone = settings.alone.epochs(facts.epochs);
        Ok(Self { settings, alone, batch: facts.batch, forget: Forget::default() })
    }

    /// A loss with its tap: what a network makes of samples under a mask.
    fn fit(&self, net: &Network, of: &SubBatch, pass: Pass) -> Result<Objective> {
        let Output { features, logits } = net.forward(of.views[0].clone(), &pass)?;
        let loss = cross_entropy(logits.clone(), &of.given);
        let features = match pass.keep[1] {
            Some(kept) if self.settings.masked_tap => features.narrow(1, 0, kept),
            _ => features,
        };
        Ok(Objective::new(loss).with_tap(Tap::new(Output { features, logits }, of)))
    }
}

impl Host for Nct {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        let both = small_loss::together(self.batch, self.settings.view);
        if context.epoch.number < self.alone {
            return Ok(Plan::new([0, 1].map(|net| Phase { trains: vec![net], ..both.clone() }).to_vec()));
        }
        let mut plan = Plan::new(vec![both]);
        let rate = self.forget.learn_rate(self.settings.rate, context, self.alone)?;
        self.forget.set(rate.min(MOST), &mut plan);
        Ok(plan)
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        let (networks, view, together) = (context.networks, &batch.views[0], batch.trains.len() > 1);
        let (net, mut draw) = (networks.net(batch.net()), context.draw(batch, 0));
        let [first, features] = draw_masks(&mut draw, self.settings.sigma, net, together);
        let pass = |net| networks.next_pass(net).keeping(first, features);
        if !together {
            return self.fit(net, &batch.labelled, pass(batch.net()));
        }
        let rows: Vec<usize> = (0..batch.len()).collect();
        let halves = rows.split_at(batch.len() / 2);
        let labels = |rows: &[usize]| rows.iter().map(|&row| batch.given[row]).collect::<Vec<_>>();
        let choose = |net: usize, half: &[usize]| -> Result<Vec<usize>> {
            let logits = networks.watch(net, &pick(view, half))?.logits;
            let losses = values(cross_entropy_rows(logits, &labels(half)))?;
            Ok(easiest(&losses, self.forget.share())?.into_iter().map(|at| half[at]).collect())
        };
        let (by_a, by_b) = (choose(0, halves.0)?, choose(1, halves.1)?);
        small_loss::enter(context, &batch.samples, &[&[by_a.as_slice(), &by_b].concat()], &self.forget)?;
        // Exchanged: the peer decides.
        let learn = |net: usize, rows: &[usize]| {
            let frozen = Pass { mode: Mode::Frozen, ..pass(net) };
            let samples = rows.iter().map(|&row| batch.samples[row]).collect();
            let part = SubBatch { samples, given: labels(rows), views: vec![pick(view, rows)] };
            self.fit(networks.net(net), &part, frozen)
        };
        let (mut a, b) = (learn(0, &by_b)?, learn(1, &by_a)?);
        a.taps.extend(b.taps);
        Ok(Objective { loss: a.loss + b.loss, ..a })
    }

    fn widths(&mut self, context: &mut HostContext) -> Result<Vec<Option<usize>>> {
        let choose = |net| {
            let (scan, given) = context.scan_held_out(net)?;
            let right = right_by_width(&scan.features, given, &context.networks.net(net).classifier()?)?;
            Ok(Some(choose_width(&right, given.len())))
        };
        (0..2).map(choose).collect()
    }

    fn reads_predictions(&self) -> bool {
        self.settings.rate == Rate::Estimate
    }

    keeps!(forget);
}
