//! A batch, in memory that goes back to where it came from.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Samples of one kind in a batch.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Part {
    /// Numbers of the samples in the data set.
    pub samples: Vec<u32>,
    /// Their given labels.
    pub given: Vec<u32>,
    /// For each view asked for, all samples' numbers, sample after sample.
    pub views: Vec<Vec<f32>>,
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

/// What a batch is made of.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub first: Part,
    pub second: Option<Part>,
}

/// Used memory waiting to be used again, and how much there is in all.
#[derive(Debug, Default)]
pub(super) struct Pool {
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    idle: Vec<Buffers>,
    live: usize,
    most: usize,
}

impl Pool {
    fn with<T>(&self, act: impl FnOnce(&mut Shelf) -> T) -> T {
        act(&mut self.shelf.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Memory of an old batch, or none yet.
    pub fn take(self: &Arc<Self>) -> Held {
        let buffers = self.with(|shelf| {
            shelf.live += 1;
            shelf.most = shelf.most.max(shelf.live);
            shelf.idle.pop()
        });
        Held { buffers: buffers.unwrap_or_default(), pool: self.clone() }
    }

    /// The most batches that were in memory at one time, in use or being made.
    pub fn most(&self) -> usize {
        self.with(|shelf| shelf.most)
    }
}

/// Buffers that return to their pool.
#[derive(Debug)]
pub(super) struct Held {
    pub buffers: Buffers,
    pool: Arc<Pool>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let buffers = std::mem::take(&mut self.buffers);
        self.pool.with(|shelf| {
            shelf.live -= 1;
            shelf.idle.push(buffers);
        });
    }
}

/// A batch: the labelled (or only) part directly, the unlabelled one by [`Batch::unlabelled`].
///
/// Its memory is used again after it is dropped, so a batch should not be kept longer than it is needed.
#[derive(Debug)]
pub struct Batch {
    /// The epoch.
    pub epoch: u64,
    /// Its number in the epoch, from 0.
    pub number: usize,
    pub(super) held: Held,
}

impl Batch {
    /// The unlabelled part of a pair.
    pub fn unlabelled(&self) -> Option<&Part> {
        self.held.buffers.second.as_ref()
    }
}

impl Deref for Batch {
    type Target = Part;

    fn deref(&self) -> &Part {
        &self.held.buffers.first
    }
}

impl DerefMut for Batch {
    fn deref_mut(&mut self) -> &mut Part {
        &mut self.held.buffers.first
    }
}
