//! A warm-up that may depend on the number of classes.

use crate::kit::purify::Auto;
use crate::settings::FEW_CLASSES;
use negscale_nets::schedule::Milestone;
use serde::{Deserialize, Serialize};

/// How long labels are believed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WarmUp {
    /// So long.
    Set(Milestone),
    /// By the number of classes.
    Auto(Auto),
}

impl WarmUp {
    /// Half of the epochs, as published for a hundred classes. With few a network is sure sooner, and learns wrong labels by then.
    pub(crate) fn settle(self, classes: usize) -> Milestone {
        match self {
            Self::Set(milestone) => milestone,
            Self::Auto(_) => Milestone::Share(if classes <= FEW_CLASSES { 0.2 } else { 0.5 }),
        }
    }
}

impl Default for WarmUp {
    fn default() -> Self {
        Self::Auto(Auto::Auto)
    }
}
