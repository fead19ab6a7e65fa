//! A batch, whose numbers belong to whoever takes it.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Samples of one kind in a batch.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct BatchPart {
    /// Numbers of the samples in the data set.
    pub samples: Vec<u32>,
    /// Their given labels.
    pub given: Vec<u32>,
    /// For each view asked for, the numbers of all samples, sample after sample, each of the loader's
    /// [`item_shape`](super::Loader::item_shape). A tensor can take a view over as it is.
    pub views: Vec<Vec<f32>>,
}

impl BatchPart {
    /// How many samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }
}

/// A batch. The labelled (or only) part is reached directly.
#[derive(Debug)]
pub struct Batch {
    /// The epoch.
    pub epoch: u64,
    /// Its number in the epoch, from 0.
    pub number: usize,
    /// The labelled (or only) part.
    pub labelled: BatchPart,
    /// The unlabelled part of a pair.
    pub unlabelled: Option<BatchPart>,
    pub(super) _counted: Counted,
}

impl Deref for Batch {
    type Target = BatchPart;

    fn deref(&self) -> &BatchPart {
        &self.labelled
    }
}

impl DerefMut for Batch {
    fn deref_mut(&mut self) -> &mut BatchPart {
        &mut self.labelled
    }
}

/// How many batches there are, and the most there were at one time.
#[derive(Debug, Default)]
pub(super) struct Count {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Count {
    /// One more, until what is returned is dropped.
    pub fn one_more(self: &Arc<Self>) -> Counted {
        let now = self.now.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(now, Relaxed);
        Counted(self.clone())
    }

    /// The most there were at one time.
    pub fn most(&self) -> usize {
        self.most.load(Relaxed)
    }
}

/// A batch that counts.
#[derive(Debug)]
pub(super) struct Counted(Arc<Count>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Relaxed);
    }
}
