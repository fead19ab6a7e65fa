//! What a host sees of a batch.

use negscale_nets::Samples;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// Which epoch, counted from 0, of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    /// Its number, from 0.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

/// Samples of one kind in a batch.
#[derive(Debug, Clone)]
pub struct SubBatch {
    /// Numbers of the samples.
    pub samples: Vec<u32>,
    /// Their given labels.
    pub given: Vec<u32>,
    /// One tensor for each view of the phase.
    pub views: Vec<Samples>,
}

impl SubBatch {
    /// How many samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }
}

/// A batch of a phase. The labelled (or only) part is reached directly.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Number of the phase in the plan.
    pub phase: usize,
    /// The networks that take a step.
    pub trains: Vec<usize>,
    /// Number of the batch in the phase, from 0.
    pub step: usize,
    /// Batches of the phase.
    pub steps: usize,
    /// The labelled (or only) part.
    pub labelled: SubBatch,
    /// The unlabelled part, if the phase's order is a pair.
    pub unlabelled: Option<SubBatch>,
}

impl Batch {
    /// The network that is trained, or the first of several.
    pub fn net(&self) -> usize {
        self.trains.first().copied().unwrap_or(0)
    }

    /// The labelled part and, if it has samples, the unlabelled one.
    pub fn parts(&self) -> Vec<&SubBatch> {
        let unlabelled = self.unlabelled.iter().filter(|part| !part.is_empty());
        std::iter::once(&self.labelled).chain(unlabelled).collect()
    }
}

impl Deref for Batch {
    type Target = SubBatch;

    fn deref(&self) -> &SubBatch {
        &self.labelled
    }
}
