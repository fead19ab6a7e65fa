//! Learning rate and momentum as a pure function of the moment in training, so that a resumed run needs no state for them.
//!
//! Each shape multiplies the optimiser's learning rate $\eta$. Epochs count from 0; with $e$ the epoch and $E$ the number of epochs:
//!
//! | shape | learning rate |
//! |---|---|
//! | constant | $\eta$ |
//! | steps | $\eta f^k$, $k$ = milestones at or before $e$ (PyTorch's `MultiStepLR`) |
//! | last | $\eta f$ for the last $k$ epochs ($e \ge E - k$), else $\eta$ |
//! | cosine | $\eta (\phi + (1 - \phi)(1 + \cos(\pi e / T)) / 2)$ for $e \le T$ (`CosineAnnealingLR`), then $\eta \phi$ |
//! | linear | $\eta (E - e) / (E - s)$ from epoch $s$ on, else $\eta$ |
//! | one-cycle | up to $\eta$ and down again, per step (`OneCycleLR`, cosine) |
//!
//! **Milestones** are whole numbers (epochs) or shares of $E$ (numbers with a point, in [0, 1]), so that a shortened run keeps its shape.
//!
//! **Warm-up** stands in front: the rate rises linearly over a number of steps, and the shape's own epochs begin with the
//! first whole epoch after it. Step $i$ (from 0) of $W$ has $\eta (i + 1) / W$, so no step is lost at rate 0.
//!
//! # Where this differs from published code
//! PyTorch's cosine rises again after its period; training code that runs past it (UNICON, epochs 280 to 350) ends at a growing
//! rate. Here it stays at the floor.

use crate::optim::{Error, Pace, Result, require};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// A moment in training: step `step` of `steps` of epoch `epoch` of `epochs`, all counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Epoch, from 0.
    pub epoch: usize,
    /// Epochs in all.
    pub epochs: usize,
    /// Step within the epoch, from 0.
    pub step: usize,
    /// Steps per epoch.
    pub steps: usize,
}

impl Moment {
    /// The first step of an epoch of one step, for schedules that change between epochs only.
    pub fn epoch(epoch: usize, epochs: usize) -> Self {
        Self { epoch, epochs, step: 0, steps: 1 }
    }

    /// Steps since training began.
    fn steps_done(self) -> usize {
        self.epoch * self.steps + self.step
    }
}

/// A number of epochs: whole, or a share of all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Milestone {
    /// So many epochs.
    Epoch(usize),
    /// This share of all epochs, in [0, 1]; rounded to whole epochs.
    Share(f64),
}

impl Milestone {
    /// Whole epochs out of `epochs`.
    pub fn epochs(self, epochs: usize) -> usize {
        match self {
            Milestone::Epoch(epoch) => epoch,
            Milestone::Share(share) => (share * epochs as f64).round() as usize,
        }
    }

    /// Refuses a share outside [0, 1]; `name` is the setting's.
    pub fn check(self, name: &'static str) -> Result<()> {
        match self {
            Milestone::Epoch(_) => Ok(()),
            Milestone::Share(share) => require(
                name,
                share,
                |share| (0.0..=1.0).contains(&share),
                "a milestone is a whole number of epochs, or a share of all epochs in [0, 1]",
            ),
        }
    }
}

/// How the learning rate goes, in a settings file `kind = "steps"` and so on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Shape {
    /// The same all the time.
    #[default]
    Constant,
    /// Multiplied by `factor` at every milestone.
    Steps {
        /// When, ascending.
        at: Vec<Milestone>,
        /// By what, above 0.
        #[serde(default = "tenth")]
        factor: f64,
    },
    /// Multiplied by `factor` for the last epochs.
    Last {
        /// How many.
        epochs: Milestone,
        /// By what, above 0.
        #[serde(default = "tenth")]
        factor: f64,
    },
    /// Half a cosine down to a floor, where it stays.
    Cosine {
        /// Length of the half wave; without it, all epochs.
        #[serde(default)]
        period: Option<Milestone>,
        /// The floor, as a share of the learning rate.
        #[serde(default)]
        floor: f64,
        /// Move at every step and not only between epochs.
        #[serde(default)]
        per_step: bool,
    },
    /// Constant, then a line that would reach zero after the last epoch.
    Linear {
        /// Where the line begins.
        start: Milestone,
        /// Momentum (beta1 of Adam) from there on.
        #[serde(default)]
        momentum: Option<f64>,
    },
    /// Up to the learning rate and down to almost nothing, at every step; the momentum goes the other way.
    OneCycle {
        /// Share of the steps that go up.
        #[serde(default = "rise")]
        rise: f64,
        /// The first rate is the learning rate divided by this.
        #[serde(default = "start_divisor")]
        start_divisor: f64,
        /// The last rate is the first divided by this.
        #[serde(default = "end_divisor")]
        end_divisor: f64,
        /// Lowest (at the peak) and highest momentum; without it the momentum does not move.
        #[serde(default)]
        momentum: Option<[f64; 2]>,
    },
}

fn tenth() -> f64 {
    0.1
}
fn rise() -> f64 {
    0.3
}
fn start_divisor() -> f64 {
    25.0
}
fn end_divisor() -> f64 {
    1e4
}

/// A shape with a warm-up in front.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Schedule {
    /// Steps of linear warm-up; 0: none.
    #[serde(default)]
    pub warm_up: usize,
    /// What follows.
    #[serde(flatten)]
    pub shape: Shape,
}

impl From<Shape> for Schedule {
    fn from(shape: Shape) -> Self {
        Self { warm_up: 0, shape }
    }
}

impl Schedule {
    /// The schedule itself, if all its numbers are in range.
    pub fn checked(self) -> Result<Self> {
        let is_momentum = |m: f64| (0.0..1.0).contains(&m);
        match &self.shape {
            Shape::Constant => {}
            Shape::Steps { at, factor } => {
                at.iter().try_for_each(|milestone| milestone.check("at"))?;
                require("factor", *factor, |f| f > 0.0, "must be a finite number above 0")?;
            }
            Shape::Last { epochs, factor } => {
                epochs.check("epochs")?;
                require("factor", *factor, |f| f > 0.0, "must be a finite number above 0")?;
            }
            Shape::Cosine { period, floor, per_step: _ } => {
                if let Some(period) = period {
                    period.check("period")?;
                }
                require("floor", *floor, |f| (0.0..=1.0).contains(&f), "is a share of the rate, in [0, 1]")?;
            }
            Shape::Linear { start, momentum } => {
                start.check("start")?;
                if let Some(momentum) = momentum {
                    require("momentum", *momentum, is_momentum, "must be in [0, 1)")?;
                }
            }
            Shape::OneCycle { rise, start_divisor, end_divisor, momentum } => {
                require("rise", *rise, |r| (0.0..=1.0).contains(&r), "is a share of the steps, in [0, 1]")?;
                require("start_divisor", *start_divisor, |d| d >= 1.0, "must be 1 or larger")?;
                require("end_divisor", *end_divisor, |d| d >= 1.0, "must be 1 or larger")?;
                if let Some([low, high]) = momentum {
                    require("momentum", *low, is_momentum, "must be in [0, 1)")?;
                    require("momentum", *high, is_momentum, "must be in [0, 1)")?;
                    if low > high {
                        let value = format!("[{low}, {high}]");
                        let requirement = "wants the lower number first";
                        return Err(Error::Setting { name: "momentum", value, requirement });
                    }
                }
            }
        }
        Ok(self)
    }

    /// Learning rate and momentum of one step, for an optimiser whose setting is `lr`.
    pub fn pace(&self, lr: f64, now: Moment) -> Pace {
        let done = now.steps_done();
        // Whole epochs that the warm-up takes.
        let ahead = self.warm_up.div_ceil(now.steps.max(1));
        let own = Moment {
            epoch: now.epoch.saturating_sub(ahead),
            epochs: now.epochs.saturating_sub(ahead),
            step: if now.epoch < ahead { 0 } else { now.step },
            steps: now.steps,
        };
        let pace = self.shape.pace(lr, own);
        if done < self.warm_up {
            Pace { lr: pace.lr * ((done + 1) as f64 / self.warm_up as f64), ..pace }
        } else {
            pace
        }
    }
}

impl Shape {
    fn pace(&self, lr: f64, now: Moment) -> Pace {
        let Moment { epoch, epochs, .. } = now;
        let steady = |lr| Pace { lr, momentum: None };
        match *self {
            Shape::Constant => steady(lr),
            Shape::Steps { ref at, factor } => {
                let passed = at.iter().filter(|milestone| milestone.epochs(epochs) <= epoch).count();
                steady(lr * factor.powi(passed as i32))
            }
            Shape::Last { epochs: last, factor } => {
                let is_last = epoch + last.epochs(epochs) >= epochs;
                steady(if is_last { lr * factor } else { lr })
            }
            Shape::Cosine { period, floor, per_step } => {
                let period = period.map_or(epochs, |period| period.epochs(epochs)).max(1) as f64;
                let within = if per_step { now.step as f64 / now.steps.max(1) as f64 } else { 0.0 };
                let way = ((epoch as f64 + within) / period).min(1.0);
                steady(lr * (floor + (1.0 - floor) * (1.0 + (PI * way).cos()) / 2.0))
            }
            Shape::Linear { start, momentum } => {
                let start = start.epochs(epochs);
                if epoch < start {
                    return steady(lr);
                }
                let left = epochs.saturating_sub(epoch) as f64 / epochs.saturating_sub(start).max(1) as f64;
                Pace { lr: lr * left, momentum }
            }
            Shape::OneCycle { rise, start_divisor, end_divisor, momentum } => {
                let total = (now.epochs * now.steps) as f64;
                let (peak, end) = (rise * total - 1.0, total - 1.0);
                let at = (now.steps_done() as f64).min(end);
                let (first, last) = (lr / start_divisor, lr / start_divisor / end_divisor);
                let up = at <= peak;
                let way = if up { part(at, peak) } else { part(at - peak, end - peak) };
                let (from, to) = if up { (first, lr) } else { (lr, last) };
                let momentum = momentum.map(|[low, high]| {
                    let (from, to) = if up { (high, low) } else { (low, high) };
                    anneal(from, to, way)
                });
                Pace { lr: anneal(from, to, way), momentum }
            }
        }
    }
}

/// `at / of`, where a way of no length has been gone.
fn part(at: f64, of: f64) -> f64 {
    if of > 0.0 { at / of } else { 1.0 }
}

/// From `from` (way 0) to `to` (way 1) along half a cosine.
fn anneal(from: f64, to: f64, way: f64) -> f64 {
    to + (from - to) / 2.0 * (1.0 + (PI * way).cos())
}
