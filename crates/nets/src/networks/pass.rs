//! How a network is run.

use serde::{Deserialize, Serialize};

/// What batch norm and dropout do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Statistics of the batch, which also move the running ones; dropout on.
    Train,
    /// As training, but the running statistics stay: for a host's extra passes.
    Rehearse,
    /// Running statistics, and no gradient for the norms' scale and shift; dropout on. For fine-tuning with frozen norms.
    Frozen,
    /// Running statistics; dropout off.
    Evaluate,
}

/// How a network is run: the mode, and what dropout masks are drawn from.
///
/// A mask is a function of (seed, layer, step): the same pass drops the same values, on any number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// What batch norm and dropout do.
    pub mode: Mode,
    /// Seed of the dropout masks.
    pub seed: u64,
    /// Step of the training; another step draws other masks.
    pub step: u64,
    /// Nested dropout: only the first so many channels reach the next layer, of the first hidden layer (VGG's first dense
    /// layer, no other network has it) and of the features. It takes the place of a network's own dropout.
    pub keep: [Option<usize>; 2],
}

impl Pass {
    /// A training step.
    pub fn train(seed: u64, step: u64) -> Self {
        Self { mode: Mode::Train, seed, step, keep: [None; 2] }
    }

    /// A training step that leaves the running statistics alone.
    pub fn rehearse(seed: u64, step: u64) -> Self {
        Self { mode: Mode::Rehearse, ..Self::train(seed, step) }
    }

    /// A training step with frozen norms.
    pub fn frozen(seed: u64, step: u64) -> Self {
        Self { mode: Mode::Frozen, ..Self::train(seed, step) }
    }

    /// Evaluation.
    pub fn evaluate() -> Self {
        Self { mode: Mode::Evaluate, ..Self::train(0, 0) }
    }

    /// The same pass with nested dropout: see [`Pass::keep`].
    pub fn keeping(self, first: Option<usize>, features: Option<usize>) -> Self {
        Self { keep: [first, features], ..self }
    }

    pub(super) fn drops(&self) -> bool {
        self.mode != Mode::Evaluate && self.keep == [None; 2]
    }
}
