//! Settings of the optimisers, with PyTorch's meanings.

use super::error::{Error, Result, require};
use serde::{Deserialize, Serialize};

/// Stochastic gradient descent: see [`negscale_kernels::update::Sgd`] for the formula.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sgd {
    /// Learning rate.
    pub lr: f64,
    /// Share of the velocity that is kept; 0: no velocity.
    pub momentum: f64,
    /// Look ahead along the velocity.
    pub nesterov: bool,
    /// Weight decay, added to the gradient.
    pub weight_decay: f64,
    /// Whether parameters of rank 1 decay too: scales and shifts of batch norm, and all biases. Published training code
    /// lets everything decay, so that is the default.
    pub decay_norms: bool,
}

impl Default for Sgd {
    fn default() -> Self {
        Self { lr: 0.02, momentum: 0.9, nesterov: false, weight_decay: 5e-4, decay_norms: true }
    }
}

/// Adam: see [`negscale_kernels::update::Adam`] for the formula. Weight decay is added to the gradient, or taken from the
/// parameter if the [`OptimiserSettings`] is `adam-w`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Adam {
    /// Learning rate.
    pub lr: f64,
    /// Share of the first moment that is kept; a schedule may change it during training.
    pub beta1: f64,
    /// Share of the second moment that is kept.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// As in [`Sgd::decay_norms`].
    pub decay_norms: bool,
}

impl Default for Adam {
    fn default() -> Self {
        Self { lr: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0, decay_norms: true }
    }
}

/// Which optimiser, in a settings file `kind = "sgd"`, `"adam"` or `"adam-w"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OptimiserSettings {
    /// Stochastic gradient descent.
    Sgd(Sgd),
    /// Adam, weight decay into the gradient.
    Adam(Adam),
    /// Adam, weight decay into the parameter.
    AdamW(Adam),
}

impl Default for OptimiserSettings {
    fn default() -> Self {
        OptimiserSettings::Sgd(Sgd::default())
    }
}

impl From<Sgd> for OptimiserSettings {
    fn from(sgd: Sgd) -> Self {
        OptimiserSettings::Sgd(sgd)
    }
}

impl From<Adam> for OptimiserSettings {
    fn from(adam: Adam) -> Self {
        OptimiserSettings::Adam(adam)
    }
}

const RATE: &str = "a learning rate is a finite number, 0 or larger";
const SHARE: &str = "must be in [0, 1)";
const DECAY: &str = "weight decay is a finite number, 0 or larger";

fn is_share(value: f64) -> bool {
    (0.0..1.0).contains(&value)
}

impl OptimiserSettings {
    /// The rule itself, if all its numbers are in range.
    pub fn checked(self) -> Result<Self> {
        match &self {
            OptimiserSettings::Sgd(Sgd { lr, momentum, nesterov, weight_decay, decay_norms: _ }) => {
                require("lr", *lr, |v| v >= 0.0, RATE)?;
                require("momentum", *momentum, is_share, SHARE)?;
                require("weight_decay", *weight_decay, |v| v >= 0.0, DECAY)?;
                if *nesterov && *momentum == 0.0 {
                    let requirement = "needs a momentum above 0; set momentum = 0.9, or nesterov = false";
                    return Err(Error::Setting { name: "nesterov", value: "true".into(), requirement });
                }
            }
            OptimiserSettings::Adam(adam) | OptimiserSettings::AdamW(adam) => {
                require("lr", adam.lr, |v| v >= 0.0, RATE)?;
                require("beta1", adam.beta1, is_share, SHARE)?;
                require("beta2", adam.beta2, is_share, SHARE)?;
                require("epsilon", adam.epsilon, |v| v > 0.0, "must be a finite number above 0")?;
                require("weight_decay", adam.weight_decay, |v| v >= 0.0, DECAY)?;
            }
        }
        Ok(self)
    }

    /// Learning rate as set.
    pub fn lr(&self) -> f64 {
        match self {
            OptimiserSettings::Sgd(sgd) => sgd.lr,
            OptimiserSettings::Adam(adam) | OptimiserSettings::AdamW(adam) => adam.lr,
        }
    }

    /// Momentum of SGD, or beta1 of Adam, as set.
    pub fn momentum(&self) -> f64 {
        match self {
            OptimiserSettings::Sgd(sgd) => sgd.momentum,
            OptimiserSettings::Adam(adam) | OptimiserSettings::AdamW(adam) => adam.beta1,
        }
    }

    /// Name as in a settings file.
    pub fn name(&self) -> &'static str {
        match self {
            OptimiserSettings::Sgd(_) => "sgd",
            OptimiserSettings::Adam(_) => "adam",
            OptimiserSettings::AdamW(_) => "adam-w",
        }
    }

    /// Weight decay of a parameter of this rank.
    pub(super) fn weight_decay(&self, rank: usize) -> f64 {
        let (decay, norms) = match self {
            OptimiserSettings::Sgd(sgd) => (sgd.weight_decay, sgd.decay_norms),
            OptimiserSettings::Adam(adam) | OptimiserSettings::AdamW(adam) => {
                (adam.weight_decay, adam.decay_norms)
            }
        };
        if rank == 1 && !norms { 0.0 } else { decay }
    }
}

/// How fast to go now: what a [`Schedule`](crate::schedule::Schedule) says and an optimiser obeys.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Learning rate.
    pub lr: f64,
    /// Momentum of SGD or beta1 of Adam; `None`: as in the optimiser's settings.
    pub momentum: Option<f64>,
}
