//! What a host sees of a batch.

use crate::nets::Samples;
use std::ops::Deref;

/// Which epoch, counted from 0, of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch {
    /// Its number, from 0.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

/// Samples of one kind in a batch.
#[derive(Debug, Clone)]
pub struct Part {
    /// Numbers of the samples.
    pub samples: Vec<u32>,
    /// Their given labels.
    pub given: Vec<u32>,
    /// One tensor for each view of the turn.
    pub views: Vec<Samples>,
}

impl Part {
    /// How many samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }
}

/// A batch of a turn. The labelled (or only) part is reached directly.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Number of the turn in the plan.
    pub turn: usize,
    /// Number of the batch in the turn, from 0.
    pub step: usize,
    /// Batches of the turn.
    pub steps: usize,
    /// The labelled (or only) part.
    pub labelled: Part,
    /// The unlabelled part, if the turn's order is a pair.
    pub unlabelled: Option<Part>,
}

impl Deref for Batch {
    type Target = Part;

    fn deref(&self) -> &Part {
        &self.labelled
    }
}
