//! RoLR (Chen et al., AAAI 2023): robust label refurbishment, the paper's default host.
//!
//! Every sample keeps a soft target that mixes its given label $\tilde y_i$ with what two networks predict; how much of each is
//! the peer's word on whether the label is clean. Nothing is thrown away.
//!
//! Warm-up: each network by cross-entropy on the labels as given (weak view), with the mean negative entropy
//! $\sum_c p_c \log p_c$ added under asymmetric noise. Then, per epoch and network, a mixture of two Gaussians over the losses of a
//! scan gives $w_i$, the probability that the label is clean; network b is trained with a's $w$, then a with b's. Per batch:
//!
//! - $q_i = \frac12 (p_a(x^w_i) + p_b(x^w_i))$, the peer in evaluation mode, raised to the exponent $T$ and normalised;
//! - $t_i = w_i\, e(\tilde y_i) + (1 - w_i)\, q_i$;
//! - $L = -\frac1B \sum_i \sum_c t_{ic} \log p(x^s_i)_c + \lambda_p\, \mathrm{KL}(u \,\|\, \bar p)$, $u$ uniform, $\bar p$ the mean prediction on
//!   the strong views $x^s$.
//!
//! # Where this differs from the paper
//! The paper's body was not at hand: this follows the authors' code, with its evident intent where it fails to run (the clean
//! probability is that of the sample; the entropy is over classes). Epochs and warm-up are shares of whatever length is asked for.

use super::peers::{self, Peers};
use super::{
    Batch, Beliefs, Card, Facts, Host, Judges, Kind, Objective, Plan, Protocol, Provenance, Regime, State,
    Tap, Turn,
};
use crate::kit::loss::{prior_penalty, soft_cross_entropy};
use crate::kit::target::{co_guess, refine, sharpen};
use crate::ledger::Samples;
use crate::nets::{Heads, Output};
use crate::optim::Sgd;
use crate::schedule::{Milestone, Shape};
use crate::trainer::{Scene, first_largest, values};
use crate::{Result, settings};
use burn::tensor::Tensor;
use negscale_data::{Order, View};
use serde::{Deserialize, Serialize};

/// Meanings of RoLR's settings, and of those that a method has besides.
macro_rules! meanings {
    ($($own:expr),* $(,)?) => {
        &[
            ("protocol", "blind: one setting for all noise; tuned: the published one for the noise at hand"),
            ("warm_up", "epochs of warm-up, or their share of all epochs"),
            ("warm_up_batch", "samples per batch in warm-up"),
            ("guess_view", "view that targets are guessed from"),
            ("train_view", "view that is learnt from: strong, or weak where strong views destroy too much"),
            ("passes", "passes over the data per epoch after warm-up"),
            ("lambda_p", "weight of the uniform prior"),
            ("exponent", "exponent T of the guessed targets; 1 leaves them alone"),
            ("confidence_penalty", "weight of the negative entropy in warm-up"),
            ("scan_view", "view in which losses are measured: weak (authors' code) or plain"),
            ("recent_losses", "how many epochs' losses the mixture sees as a mean; 1: the last"),
            $($own),*
        ]
    };
}
pub(super) use meanings;

/// The card.
pub const CARD: Card = Card {
    id: "rolr",
    about: "two networks; labels refurbished by the peer's clean probability",
    paper: "Chen et al., AAAI 2023",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: None, prediction: false },
    judges: Judges::Sum,
    beliefs: Beliefs::Own,
    cost: "22",
    settings: || settings::table(&Settings::default()),
    meanings: meanings![],
    regime,
    build: |table, facts| Ok(Box::new(RoLR::new(settings::read("rolr", table)?, facts)?)),
};

/// Settings of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the card says what they mean
pub struct Settings {
    pub protocol: Protocol,
    pub warm_up: Milestone,
    pub warm_up_batch: usize,
    pub guess_view: View,
    pub train_view: View,
    pub passes: usize,
    pub lambda_p: f64,
    pub exponent: f64,
    pub confidence_penalty: f64,
    pub scan_view: View,
    pub recent_losses: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            protocol: Protocol::Blind,
            warm_up: Milestone::Share(0.2),
            warm_up_batch: 64,
            guess_view: View::Weak,
            train_view: View::Strong,
            passes: 2,
            lambda_p: 1.0,
            exponent: 1.0,
            confidence_penalty: 0.0,
            scan_view: View::Weak,
            recent_losses: 1,
        }
    }
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        if self.protocol == Protocol::Tuned {
            let (kind, rate) = facts.noise_kind();
            self.confidence_penalty = if kind.starts_with("asym") || kind == "pairflip" { 1.0 } else { 0.0 };
            self.lambda_p = if kind.starts_with("sym") && rate >= 0.8 { 2.0 } else { 1.0 };
            self.recent_losses = if rate >= 0.9 { 5 } else { 1 };
        }
        settings::require("rolr.passes", self.passes as f64, self.passes >= 1, "must be at least 1")?;
        settings::require(
            "rolr.warm_up_batch",
            self.warm_up_batch as f64,
            self.warm_up_batch >= 1,
            "must be at least 1",
        )?;
        settings::require(
            "rolr.recent_losses",
            self.recent_losses as f64,
            self.recent_losses >= 1,
            "must be at least 1",
        )?;
        settings::require("rolr.lambda_p", self.lambda_p, self.lambda_p >= 0.0, "must be 0 or larger")?;
        settings::require("rolr.exponent", self.exponent, self.exponent > 0.0, "must be above 0")?;
        let penalty = self.confidence_penalty;
        settings::require("rolr.confidence_penalty", penalty, penalty >= 0.0, "must be 0 or larger")?;
        Ok(self)
    }
}

/// A rate of 0.02 throughout, a tenth of it in the last fifth.
pub(super) fn regime(_: Kind) -> Regime {
    let schedule = Shape::Last { epochs: Milestone::Share(0.2), factor: 0.1 };
    Regime { epochs: 20, batch: 128, optimiser: Sgd::default().into(), schedule: schedule.into() }
}

/// The method, which CCL builds on.
pub(super) struct RoLR {
    pub settings: Settings,
    pub warm_up: usize,
    batch: usize,
    pub peers: Peers,
}

/// What a batch is taught.
pub(super) struct Refurbished {
    /// $q$.
    pub guess: Tensor<2>,
    /// $t$.
    pub target: Tensor<2>,
    /// The likeliest class of each sample by $t$.
    pub believed: Vec<u32>,
}

impl RoLR {
    pub fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let settings = settings.checked(facts)?;
        let warm_up = settings.warm_up.epochs(facts.epochs);
        Ok(Self { warm_up, batch: facts.batch, settings, peers: Peers::default() })
    }

    /// Whether the pass that is learnt from can serve for the guess too: both see the samples as they are.
    fn shares_pass(&self) -> bool {
        [self.settings.guess_view, self.settings.train_view] == [View::Plain; 2]
    }

    /// Targets of a batch, also entered into the ledger, from the logits of the network itself and of its peer.
    pub fn refurbish(&self, batch: &Batch, scene: &mut Scene, said: [Tensor<2>; 2]) -> Result<Refurbished> {
        let guess = sharpen(co_guess(&said), 1.0 / self.settings.exponent);
        let word = self.peers.word(1 - batch.net(), &batch.samples);
        let target = refine(&word, &batch.given, guess.clone());
        let rows = values(target.clone())?;
        scene.ledger.set_targets(Samples::These(&batch.samples), &rows)?;
        let believed = rows.chunks(rows.len() / batch.len()).map(first_largest).collect();
        Ok(Refurbished { guess, target, believed })
    }

    /// $L$ of the logits that are learnt from.
    pub fn cost(&self, logits: Tensor<2>, target: Tensor<2>) -> Objective {
        let (fit, prior) = (soft_cross_entropy(logits.clone(), target), prior_penalty(logits));
        let loss = fit.clone() + prior.clone() * self.settings.lambda_p;
        Objective::new(loss).with_term("fit", &fit).with_term("prior", &prior)
    }
}

impl Host for RoLR {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        if scene.epoch.number < self.warm_up {
            return Ok(peers::warm_up(self.settings.warm_up_batch, self.settings.guess_view));
        }
        let Settings { scan_view, guess_view, train_view, recent_losses, passes, .. } = self.settings;
        // Both before any update.
        (0..2).try_for_each(|net| self.peers.judge_losses(net, scene, scan_view, recent_losses))?;
        let views = if self.shares_pass() { vec![train_view] } else { vec![guess_view, train_view] };
        let turn = |net| Turn {
            trains: vec![net],
            views: views.clone(),
            unlabelled_views: None,
            order: Order::Shuffled { passes },
            batch: self.batch,
            drop_last: true,
        };
        let mut plan = Plan::new(vec![turn(1), turn(0)]);
        plan.notes.insert("held to be clean".into(), self.peers.enter(scene)?);
        Ok(plan)
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        let net = batch.net();
        let team = scene.team;
        if scene.epoch.number < self.warm_up {
            return peers::warm_up_loss(batch, team, self.settings.confidence_penalty);
        }
        let (peer, weak) = (1 - net, &batch.views[0]);
        let shared = if self.shares_pass() { Some(team.train(net, weak)?) } else { None };
        let own = match &shared {
            Some(out) => out.logits.clone().detach(),
            None => team.guess(net, weak)?,
        };
        let said = [own, team.watch(peer, weak)?.logits];
        let Refurbished { target, believed, .. } = self.refurbish(batch, scene, said)?;
        let out = match shared {
            Some(out) => out,
            None => team.train(net, &batch.views[1])?,
        };
        let objective = self.cost(out.logits.clone(), target);
        let Output { features, logits } = out;
        Ok(objective.with_tap(Tap { features, logits, given: batch.given.clone(), believed: Some(believed) }))
    }

    fn state(&self) -> State {
        self.peers.state()
    }

    fn restore(&mut self, state: State) -> Result<()> {
        self.peers.restore(state);
        Ok(())
    }
}
