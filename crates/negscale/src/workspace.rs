//! Buffers of the plug-in, and what it knows of earlier batches.

use crate::features::FeatureBuffers;
use crate::pairs::PairSets;
use crate::rows::Row;
use crate::{Balance, ClassAnchor, ClassMeans, Real, dcsa, snop};
use serde::{Deserialize, Serialize};

/// What the plug-in knows of earlier batches. Part of a training run's state: save it with a checkpoint, hand it back on resume.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Memory {
    /// Running class means of `centre = "class-balanced"`.
    pub class_means: ClassMeans,
    /// Class means that are held where they were, with `anchor`; none until they are [remembered](ClassAnchor::remember).
    pub anchor: Option<ClassAnchor>,
    /// Lengths of gradients so far, with `balance`.
    pub balance: Balance,
}

/// Buffers that grow to the largest batch seen and are then reused.
#[derive(Debug, Default)]
pub struct Workspace<T> {
    pub(crate) pairs: PairSets<T>,
    pub(crate) doubt: Vec<T>,
    pub(crate) gamma: Vec<T>,
    pub(crate) rows: Vec<Row>,
    pub(crate) snop: snop::Buffers<T>,
    pub(crate) dcsa: dcsa::Buffers<T>,
    pub(crate) features: FeatureBuffers<T>,
    pub(crate) frozen: FeatureBuffers<T>,
    pub(crate) memory: Memory,
}

impl<T: Real> Workspace<T> {
    /// An empty workspace.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is known of earlier batches, to be saved with a checkpoint.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The same, to be changed: to take up a checkpoint, to hear of the host's gradient, to remember class means.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// The gradient of the latest batch of [features](crate::NegScale::loss_and_gradient), to keep: the next batch makes a new one.
    pub fn take_gradient(&mut self) -> Vec<T> {
        std::mem::take(&mut self.features.gradient)
    }

    /// Centre subtracted from the latest batch; empty without centring.
    pub fn centre(&self) -> &[T] {
        &self.features.centre
    }
}
