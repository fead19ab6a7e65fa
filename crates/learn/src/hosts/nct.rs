//! NCT, nested co-teaching (Chen et al., CVPR workshops 2021 and TNNLS 2022): compressed features, then an exchange of easy samples.
//!
//! **Alone**, each network by cross-entropy on the labels as given, with nested dropout: one width $k$ per batch,
//! $P(k) \propto e^{-(k/\sigma)^2}$, and only the first $k$ channels of the features reach the classifier ([`crate::kit::nested`]).
//! Networks are judged, and saved, with the first $K$ channels, $K$ chosen after every epoch on the samples held out, by their labels
//! as given.
//!
//! **Together**, with frozen norms: each batch is cut in halves A and B. Network a scores A, b scores B (evaluation mode, first $K$
//! channels); of each half the $\lfloor (1 - R)\, |\cdot| \rfloor$ samples of smallest loss are kept. Network a then learns from what is
//! kept of B, b from what is kept of A, by cross-entropy with a width drawn for both. $R$ is the noise rate, at most 0.8, without
//! a ramp. How often a label is kept, in a running mean over epochs, is the probability that it is clean.
//!
//! VGG has a second nested layer, after its first hidden one: alone, a coin decides which of the two is masked; together, both are.
//! Nested dropout takes the place of a network's own.
//!
//! # Where this differs from the paper
//! $K$ is chosen on noisy samples held out (setting `validation`; without any, on the training samples), not on test or clean ones,
//! and the second stage begins with the networks as the first leaves them, not with the best on these. $\sigma$ is by default the number of
//! classes, which gives both values published for CIFAR, and three times that for feature vectors. The classifier keeps its bias. One schedule serves both stages, as
//! published: the second begins at the rate at which the first ends. Half of a short run is spent together (published: a fifth). The published $R$ is 0.2; here it is [estimated](super::Rate).

use super::easy::{self, EasySettings, Forget};
use super::{
    Batch, Beliefs, Card, Facts, Host, Judges, Kind, Objective, Plan, Protocol, Provenance, Rate, Regime,
    State, Tap, Turn,
};
use crate::Result;
use crate::kit::loss::{cross_entropy, cross_entropy_rows};
use crate::kit::nested::{choose_width, draw_masks, right_by_width};
use crate::kit::small_loss::{easiest, pick};
use crate::nets::{Heads, Mode, Network, Output, Pass, Samples};
use crate::optim::Sgd;
use crate::schedule::{Milestone, Shape};
use crate::settings::{self, require};
use crate::trainer::{Scene, values};
use negscale_data::View;
use serde::{Deserialize, Serialize};

/// The card.
pub const CARD: Card = Card {
    id: "nct",
    about: "two networks with nested dropout, then each on the samples of small loss of the other",
    paper: "Chen et al., CVPR workshops 2021",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: None, prediction: false },
    judges: Judges::Sum,
    beliefs: Beliefs::Predictions,
    cost: "6 alone, 4 - 3R together, R the share forgotten",
    settings: || settings::table(&Settings::default()),
    meanings: &[
        EasySettings::PROTOCOL,
        Rate::MEANING,
        ("alone", "epochs in which each network learns by itself, or their share of all epochs"),
        ("sigma", "scale of the widths drawn, in channels: larger keeps more; 0: by the number of classes"),
        ("view", "how samples are shown in training: plain, weak, strong, ..."),
        ("masked_tap", "whether plug-ins see only the channels that reach the classifier"),
    ],
    regime,
    build: |table, facts| Ok(Box::new(Nct::new(settings::read("nct", table)?, facts)?)),
};

/// The largest share that is forgotten.
const MOST: f64 = 0.8;

/// Settings of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the card says what they mean
pub struct Settings {
    pub protocol: Protocol,
    pub rate: Rate,
    pub alone: Milestone,
    pub sigma: f64,
    pub view: View,
    pub masked_tap: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            protocol: Protocol::Blind,
            rate: Rate::Estimate,
            alone: Milestone::Share(0.5),
            sigma: 0.0,
            view: View::Weak,
            masked_tap: false,
        }
    }
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.rate = self.rate.settle(self.protocol, facts)?;
        self.alone.check("alone")?;
        require("sigma", self.sigma, self.sigma >= 0.0, "must be above 0, or 0 for the default")?;
        require("batch", facts.batch as f64, facts.batch >= 2, "must be at least 2: it is cut in halves")?;
        let by_classes = facts.classes as f64 * if facts.kind == Kind::Images { 1.0 } else { 3.0 };
        let sigma = if self.sigma > 0.0 { self.sigma } else { by_classes };
        Ok(Self { sigma, ..self })
    }
}

/// A tenth of the rate at 200, 300 and 400 of 450 epochs, both stages together.
fn regime(_: Kind) -> Regime {
    let at = [0.44, 0.67, 0.89].map(Milestone::Share).to_vec();
    let schedule = Shape::Steps { at, factor: 0.1 };
    Regime {
        epochs: 20,
        batch: 128,
        optimiser: Sgd { lr: 0.1, ..Sgd::default() }.into(),
        schedule: schedule.into(),
    }
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
    fn fit(&self, net: &Network, samples: Samples, given: Vec<u32>, pass: Pass) -> Result<Objective> {
        let Output { features, logits } = net.forward(samples, &pass)?;
        let loss = cross_entropy(logits.clone(), &given);
        let features = match pass.keep[1] {
            Some(kept) if self.settings.masked_tap => features.narrow(1, 0, kept),
            _ => features,
        };
        Ok(Objective::new(loss).with_tap(Tap { features, logits, given, believed: None }))
    }
}

impl Host for Nct {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        let both = easy::together(self.batch, self.settings.view);
        if scene.epoch.number < self.alone {
            return Ok(Plan::new([0, 1].map(|net| Turn { trains: vec![net], ..both.clone() }).to_vec()));
        }
        let mut plan = Plan::new(vec![both]);
        let rate = self.forget.learn_rate(self.settings.rate, scene, self.alone)?;
        self.forget.set(rate.min(MOST), &mut plan);
        Ok(plan)
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        let (team, view, together) = (scene.team, &batch.views[0], batch.trains.len() > 1);
        let (net, mut draw) = (team.net(batch.net()), scene.draw(batch, 0));
        let [first, features] = draw_masks(&mut draw, self.settings.sigma, net, together);
        let pass = |net| team.next_pass(net).keeping(first, features);
        if !together {
            return self.fit(net, view.clone(), batch.given.clone(), pass(batch.net()));
        }
        let rows: Vec<usize> = (0..batch.len()).collect();
        let halves = rows.split_at(batch.len() / 2);
        let labels = |rows: &[usize]| rows.iter().map(|&row| batch.given[row]).collect::<Vec<_>>();
        let choose = |net: usize, half: &[usize]| -> Result<Vec<usize>> {
            let logits = team.watch(net, &pick(view, half))?.logits;
            let losses = values(cross_entropy_rows(logits, &labels(half)))?;
            Ok(easiest(&losses, self.forget.share())?.into_iter().map(|at| half[at]).collect())
        };
        let (by_a, by_b) = (choose(0, halves.0)?, choose(1, halves.1)?);
        easy::enter(scene, &batch.samples, &[&[by_a.as_slice(), &by_b].concat()], &self.forget)?;
        // Exchanged: the peer decides.
        let learn = |net: usize, rows: &[usize]| {
            let frozen = Pass { mode: Mode::Frozen, ..pass(net) };
            self.fit(team.net(net), pick(view, rows), labels(rows), frozen)
        };
        let (mut a, b) = (learn(0, &by_b)?, learn(1, &by_a)?);
        a.taps.extend(b.taps);
        Ok(Objective { loss: a.loss + b.loss, ..a })
    }

    fn widths(&mut self, scene: &mut Scene) -> Result<Vec<Option<usize>>> {
        let choose = |net| {
            let (scan, given) = scene.look_at_held_out(net)?;
            let right = right_by_width(&scan.features, given, &scene.team.net(net).classifier()?)?;
            Ok(Some(choose_width(&right, given.len())))
        };
        (0..2).map(choose).collect()
    }

    fn state(&self) -> State {
        self.forget.state()
    }

    fn restore(&mut self, state: State) -> Result<()> {
        self.forget.restore(&state);
        Ok(())
    }
}
