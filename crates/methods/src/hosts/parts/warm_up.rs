//! A warm-up that may depend on the task.

use crate::kit::purify::Auto;
use negscale_nets::schedule::Milestone;
use serde::{Deserialize, Serialize};

/// How long labels are believed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WarmUp {
    /// So long.
    Set(Milestone),
    /// As the method decides by the task.
    Auto(Auto),
}

impl WarmUp {
    /// What is set, or what the method decides.
    pub(crate) fn or(self, auto: impl FnOnce() -> Milestone) -> Milestone {
        match self {
            Self::Set(milestone) => milestone,
            Self::Auto(_) => auto(),
        }
    }
}

impl Default for WarmUp {
    fn default() -> Self {
        Self::Auto(Auto::Auto)
    }
}
