//! What the threads know of an epoch: how each of its batches is made.

use super::batch::{Batch, BatchPart, Count};
use super::cache::{Moment, Source};
use super::order::{Planned, Schedule};
use crate::views::{Scratch, View};
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// An epoch.
pub(super) struct Epoch {
    pub source: Arc<Source>,
    pub labels: Arc<[u32]>,
    pub dataset: String,
    pub views: Vec<View>,
    pub unlabelled_views: Option<Vec<View>>,
    pub seed: u64,
    pub number: u64,
    pub schedule: Schedule,
    pub count: Arc<Count>,
    /// Whether nobody waits for its batches any more.
    pub left: AtomicBool,
}

impl Epoch {
    /// Makes a batch; half a one if the epoch is left meanwhile.
    pub fn make(&self, number: usize, scratch: &mut Scratch) -> Result<Batch> {
        let counted = self.count.one_more();
        let mut planned = self.schedule.batch(number);
        let labelled = planned.next().map(|part| self.part(part, &self.views, scratch)).transpose()?;
        let views = self.unlabelled_views.as_ref().unwrap_or(&self.views);
        let unlabelled = planned.next().map(|part| self.part(part, views, scratch)).transpose()?;
        Ok(Batch {
            epoch: self.number,
            number,
            labelled: labelled.unwrap_or_default(),
            unlabelled,
            _counted: counted,
        })
    }

    fn part(&self, planned: &Planned, views: &[View], scratch: &mut Scratch) -> Result<BatchPart> {
        let size = planned.samples.len() * self.source.width();
        let mut part = BatchPart {
            samples: planned.samples.clone(),
            given: planned.samples.iter().map(|&sample| self.labels[sample as usize]).collect(),
            views: views.iter().map(|_| Vec::with_capacity(size)).collect(),
        };
        for (row, (&sample, &again)) in planned.samples.iter().zip(&planned.again).enumerate() {
            // Large pictures take long: somebody who has stopped listening should not wait for the whole batch.
            if row % 16 == 0 && self.left.load(Relaxed) {
                break;
            }
            let moment = Moment { seed: self.seed, epoch: self.number, again: again as u64 };
            self.source.show(sample, views, moment, scratch, &mut part.views).map_err(|error| {
                Error::Item {
                    dataset: self.dataset.clone(),
                    item: sample as usize,
                    origin: self.source.origin(sample as usize),
                    source: Box::new(error),
                }
            })?;
        }
        Ok(part)
    }

    /// The error for a panic inside a store.
    pub fn broken(&self, number: usize) -> Error {
        let samples: Vec<u32> = self.schedule.batch(number).flat_map(|part| part.samples.clone()).collect();
        let (least, most) = (samples.iter().min(), samples.iter().max());
        let place =
            format!("batch {number} (items between {} and {})", least.unwrap_or(&0), most.unwrap_or(&0));
        Error::Defect { dataset: self.dataset.clone(), place }
    }
}
