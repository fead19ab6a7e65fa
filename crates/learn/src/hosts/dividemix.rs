//! DivideMix (Li, Socher and Hoi, ICLR 2020): divide by loss, then learn from the wrong labels' samples without their labels.
//!
//! Warm-up: each network by cross-entropy on the labels as given, with the mean negative entropy added under asymmetric noise.
//! Then, per epoch, a mixture of two Gaussians over each network's losses on plain samples gives $w_i$, the probability that a label
//! is clean. Samples with $w_i > \tau$ by network b are labelled for network a, the others unlabelled, and the other way round; a is
//! trained first, then b, with the changed a for its peer. Per batch, with two weak views each of labelled samples $x$ and unlabelled
//! ones $u$, $[\,\cdot\,]_T$ raised to $1/T$ and normalised, the peer in evaluation mode:
//!
//! - $r = [\, w\, e(\tilde y) + (1 - w)\, \frac12 (p_a(x^1) + p_a(x^2)) \,]_T$;
//! - $q = [\, \frac14 (p_a(u^1) + p_a(u^2) + p_b(u^1) + p_b(u^2)) \,]_T$;
//! - the loss of [`crate::kit::semi`] on the mixed pool $[x^1, x^2, u^1, u^2]$ with targets $[r, r, q, q]$, $\lambda_u$ growing from 0.
//!
//! At rates of 0.9 and above the mixture sees the mean losses of the last five epochs (protocol `tuned`).
//!
//! # Where this differs from the paper
//! It follows the authors' code where the two differ (batches of 64 + 64 after warm-up). Warm-up and ramp are shares of whatever length
//! is asked for: published were 10 (CIFAR-10) or 30 (CIFAR-100) and 16 of 300 epochs. A division with fewer than two labelled samples,
//! where the code fails, takes the $\lceil N/C \rceil$ of largest $w$. A batch never has one sample alone. Plug-ins are handed unmixed
//! first views, in the passes that guess (vectors), or the mixed samples under the label of their larger part (pictures).

use super::divided::{Divided, given, meanings};
use super::{
    Batch, Beliefs, Card, Facts, Host, Judges, Kind, Objective, Plan, Protocol, Provenance, Regime,
    SemiSettings, State, Tap,
};
use crate::nets::{Heads, Output};
use crate::optim::Sgd;
use crate::schedule::{Milestone, Shape};
use crate::settings::require;
use crate::trainer::Scene;
use crate::{Result, settings};
use burn::tensor::Tensor;
use negscale_data::View;
use serde::{Deserialize, Serialize};

/// The card.
pub const CARD: Card = Card {
    id: "dividemix",
    about: "two networks divide samples by loss for each other; doubtful labels are guessed anew",
    paper: "Li et al., ICLR 2020",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: None, prediction: false },
    judges: Judges::Sum,
    beliefs: Beliefs::Own,
    cost: "36s + 2, s the share held to be clean",
    settings: || settings::table(&Settings::default()),
    meanings: meanings![
        ("tau", "labels of a larger clean probability are used"),
        ("recent_losses", "how many epochs' losses the mixture sees as a mean; 1: the last"),
        ("scan_view", "view in which losses are measured"),
        (
            "tap",
            "what plug-ins see: unmixed first views (a backward pass more), or mixed samples; auto: mixed for pictures"
        ),
    ],
    regime,
    build: |table, facts| Ok(Box::new(DivideMix::new(settings::read("dividemix", table)?, facts)?)),
};

/// What plug-ins are handed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tapped {
    /// Unmixed for feature vectors; mixed for pictures, where a backward pass of its own costs half a step.
    Auto,
    /// First views, unmixed.
    Unmixed,
    /// The mixed samples, each under the given label of its larger part.
    Mixed,
}

/// Settings of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the card says what they mean
pub struct Settings {
    #[serde(flatten)]
    pub semi: SemiSettings,
    pub tau: f64,
    pub recent_losses: usize,
    pub scan_view: View,
    pub tap: Tapped,
}

impl Default for Settings {
    fn default() -> Self {
        let semi = SemiSettings::default();
        Self { semi, tau: 0.5, recent_losses: 1, scan_view: View::Plain, tap: Tapped::Auto }
    }
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.semi = self.semi.checked(facts)?;
        if self.tap == Tapped::Auto {
            self.tap = if facts.kind == Kind::Images { Tapped::Mixed } else { Tapped::Unmixed };
        }
        let (kind, rate) = facts.noise_kind();
        if self.semi.protocol == Protocol::Tuned && kind.starts_with("sym") {
            let is_heavy = rate >= 0.85;
            (self.tau, self.recent_losses) = if is_heavy { (0.6, 5) } else { (0.5, 1) };
        }
        require("tau", self.tau, (0.0..1.0).contains(&self.tau), "must be in [0, 1)")?;
        require("recent_losses", self.recent_losses as f64, self.recent_losses >= 1, "must be at least 1")?;
        Ok(self)
    }
}

/// A tenth of the rate in the second half. The published rate is for pictures; short runs of small networks without norms take
/// larger steps.
pub(super) fn regime(kind: Kind) -> Regime {
    let lr = if kind == Kind::Images { 0.02 } else { 0.05 };
    let schedule = Shape::Steps { at: vec![Milestone::Share(0.5)], factor: 0.1 };
    Regime {
        epochs: 20,
        batch: 64,
        optimiser: Sgd { lr, ..Sgd::default() }.into(),
        schedule: schedule.into(),
    }
}

pub(super) struct DivideMix {
    settings: Settings,
    pub divided: Divided,
}

impl DivideMix {
    pub fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        Ok(Self::of_checked(settings.checked(facts)?, facts))
    }

    pub fn of_checked(settings: Settings, facts: &Facts) -> Self {
        Self { divided: Divided::new(settings.semi.clone(), facts), settings }
    }
}

impl Host for DivideMix {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        if let Some(plan) = self.divided.warm_up(scene) {
            return Ok(plan);
        }
        let Settings { scan_view, recent_losses, tau, .. } = self.settings;
        let peers = &mut self.divided.peers;
        // Both before any update.
        (0..2).try_for_each(|net| peers.judge_losses(net, scene, scan_view, recent_losses))?;
        let is_clean = peers.clean.each_ref().map(|w| w.iter().map(|&w| f64::from(w) > tau).collect());
        self.divided.plan(scene, &is_clean, [View::Weak, View::Weak])
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        if let Some(objective) = self.divided.warm_up_loss(batch, scene) {
            return objective;
        }
        let (net, team, parts) = (batch.net(), scene.team, batch.parts());
        // Guesses are constants. Plug-ins may see the gradient of the passes over first views; all else is let go of at once.
        let is_unmixed = scene.tapped && self.settings.tap == Tapped::Unmixed;
        let (mut own, mut firsts) = (Vec::new(), Vec::new());
        for part in &parts {
            let mut guesses = Vec::new();
            for (number, view) in part.views.iter().enumerate() {
                let Output { features, logits } = team.train(net, view)?;
                guesses.push(logits.clone().detach());
                if is_unmixed && number == 0 {
                    firsts.push((features, logits));
                }
            }
            own.push(guesses);
        }
        let taught = self.divided.teach(batch, scene, &own)?;
        let (objective, mixed) = self.divided.fit(batch, scene, &taught.targets)?;
        if !scene.tapped {
            return Ok(objective);
        }
        Ok(objective.with_tap(if is_unmixed {
            let (features, logits) = firsts.into_iter().unzip();
            let (features, logits) = (Tensor::cat(features, 0), Tensor::cat(logits, 0));
            Tap { features, logits, given: given(&parts), believed: Some(taught.believed) }
        } else {
            let twice: Vec<_> = parts.iter().flat_map(|&part| [part, part]).collect();
            let (features, logits) = (mixed.features, mixed.logits);
            Tap { features, logits, given: given(&twice), believed: None }
        }))
    }

    fn state(&self) -> State {
        self.divided.peers.state()
    }

    fn restore(&mut self, state: State) -> Result<()> {
        self.divided.peers.restore(state);
        Ok(())
    }
}
