//! What methods of two networks share that learn from samples of small loss: how much is forgotten, and who was kept.

use super::{Facts, Meaning, Objective, Plan, Protocol, Rate, State, Tap, Turn};
use crate::Result;
use crate::kit::small_loss::forget_rate;
use crate::ledger::Samples;
use crate::nets::Output;
use crate::optim::Adam;
use crate::schedule::{Milestone, Shape};
use crate::settings::require;
use crate::trainer::Scene;
use negscale_data::{Order, View};
use serde::{Deserialize, Serialize};

/// Settings that Co-teaching and JoCoR share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the cards say what they mean
pub struct EasySettings {
    pub protocol: Protocol,
    pub rate: Rate,
    pub ramp: Milestone,
    pub exponent: f64,
    pub view: View,
}

impl Default for EasySettings {
    fn default() -> Self {
        Self {
            protocol: Protocol::Blind,
            rate: Rate::Estimate,
            ramp: Milestone::Share(0.3),
            exponent: 1.0,
            view: View::Plain,
        }
    }
}

impl EasySettings {
    pub(super) const PROTOCOL: Meaning =
        ("protocol", "blind: one setting for all noise; tuned: the published one for the noise at hand");
    pub(super) const RAMP: Meaning =
        ("ramp", "epochs in which the share to forget grows to the noise rate, or their share of all epochs");
    pub(super) const EXPONENT: Meaning = ("exponent", "exponent c of that growth");
    pub(super) const VIEW: Meaning =
        ("view", "how samples are shown in training: plain (published), weak, ...");

    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.rate = self.rate.settle(self.protocol, facts)?;
        self.ramp.check("ramp")?;
        require("exponent", self.exponent, self.exponent > 0.0, "must be above 0")?;
        Ok(self)
    }
}

/// Adam, with a line down to 0 from two fifths on and hardly any momentum along it, as published.
pub(super) fn regime(_: super::Kind) -> super::Regime {
    let schedule = Shape::Linear { start: Milestone::Share(0.4), momentum: Some(0.1) };
    super::Regime { epochs: 20, batch: 128, optimiser: Adam::default().into(), schedule: schedule.into() }
}

/// How much of a batch is forgotten in this epoch.
#[derive(Debug, Default)]
pub(super) struct Forget(f64);

impl Forget {
    /// Decides on the share for an epoch that begins, and notes it.
    pub fn decide(&mut self, settings: &EasySettings, scene: &Scene, plan: &mut Plan) -> Result<()> {
        let rate = settings.rate.now(scene.ledger)?;
        let points = settings.ramp.epochs(scene.epoch.of);
        self.set(rate, forget_rate(scene.epoch.number, rate, points, settings.exponent), plan);
        Ok(())
    }

    /// Takes a share, given the noise rate it comes from.
    pub fn set(&mut self, rate: f64, forget: f64, plan: &mut Plan) {
        self.0 = forget;
        plan.notes.insert("noise rate assumed".into(), rate);
        plan.notes.insert("share forgotten".into(), forget);
    }

    pub fn share(&self) -> f64 {
        self.0
    }

    /// For [`Host::state`](super::Host::state).
    pub fn state(&self) -> State {
        // All 64 bits: rounded to fewer, the share of a batch that is kept may come to one sample less.
        let bits = self.0.to_bits();
        let mut state = State::default();
        state.whole.insert("forget".into(), vec![(bits >> 32) as u32, bits as u32]);
        state
    }

    /// For [`Host::restore`](super::Host::restore).
    pub fn restore(&mut self, state: &State) {
        if let Some(&[high, low]) = state.whole.get("forget").map(Vec::as_slice) {
            self.0 = f64::from_bits(u64::from(high) << 32 | u64::from(low));
        }
    }
}

/// A turn that trains both networks on the same batches.
pub(super) fn together(batch: usize, view: View) -> Turn {
    Turn {
        trains: vec![0, 1],
        views: vec![view],
        unlabelled_views: None,
        order: Order::Shuffled { passes: 1 },
        batch,
        drop_last: true,
    }
}

/// Enters the share of judges that kept each sample as the probability that its label is clean.
pub(super) fn enter(scene: &mut Scene, samples: &[u32], kept: &[&[usize]]) -> Result<()> {
    let mut clean = vec![0.0; samples.len()];
    for &row in kept.iter().flat_map(|rows| rows.iter()) {
        clean[row] += 1.0 / kept.len() as f32;
    }
    scene.ledger.set_clean(Samples::These(samples), &clean)
}

/// With a tap for every network: its features of the whole batch, since pairs need not be clean.
pub(super) fn tapped(
    objective: Objective,
    outputs: impl IntoIterator<Item = Output>,
    given: &[u32],
) -> Objective {
    outputs.into_iter().fold(objective, |objective, Output { features, logits }| {
        objective.with_tap(Tap { features, logits, given: given.to_vec(), believed: None })
    })
}
