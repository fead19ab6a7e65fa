//! In which order samples come: the batches of an epoch, written out before the first one is made.
//!
//! An order is a function of (seed, epoch) and of the sets it is asked for, so a batch can be asked for by its number, by any
//! thread, in a run that was resumed.

use crate::draw::{Draw, Purpose};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// How the samples of an epoch are chosen and ordered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// One after the other, for evaluation; no batch is ever dropped.
    Sequential,
    /// Every sample once per pass, shuffled anew for each pass; the passes of an epoch are one stream, so that only the end of
    /// the epoch can be a short batch.
    Shuffled {
        /// Passes per epoch, at least 1.
        passes: usize,
    },
    /// Only these samples, shuffled, once each.
    Among(Vec<u32>),
    /// Every class (by given label) as often as every other, to within one.
    ///
    /// Classes take turns in shuffled rounds; each goes through its own samples in a shuffled order, and starts again with a
    /// new one when they are used up. Classes without samples are passed over.
    Balanced {
        /// Samples per epoch; if not set, as many as show every sample at least once: classes in use x largest class.
        length: Option<usize>,
    },
    /// A batch of labelled samples beside one of unlabelled samples.
    ///
    /// Each set is gone through in shuffled order, batch by batch. A set that is used up before the epoch ends starts again with a
    /// new order (its last batch may be short unless short ones are dropped). An empty set gives empty parts.
    Pair {
        /// Samples whose labels are trusted.
        labelled: Vec<u32>,
        /// The others.
        unlabelled: Vec<u32>,
        /// Size of the unlabelled part of a batch, if it is not that of the labelled one.
        unlabelled_batch: Option<usize>,
        /// Which set's pass is an epoch.
        until: Until,
    },
}

/// When an epoch over two sets ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    /// When the labelled set is used up, as published loops of DivideMix's kind have it.
    #[default]
    Labelled,
    /// When the unlabelled set is used up: where it is all samples, and the labelled set a choice among them (ANNE).
    Unlabelled,
    /// When the set with more batches is used up.
    Longer,
}

/// Part of a batch: samples, and for each how often it came before in the same epoch.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Planned {
    pub samples: Vec<u32>,
    pub again: Vec<u32>,
}

/// The samples of an epoch, cut into batches.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Schedule {
    /// One stream, or two for a pair.
    parts: Vec<Vec<Planned>>,
}

impl Schedule {
    /// Number of batches.
    pub fn len(&self) -> usize {
        self.parts.first().map_or(0, Vec::len)
    }

    /// The parts of a batch: one, or two for a pair.
    pub fn batch(&self, number: usize) -> impl Iterator<Item = &Planned> {
        self.parts.iter().filter_map(move |part| part.get(number))
    }
}

/// What an order needs to know about the data and the settings.
pub(super) struct Given<'a> {
    pub labels: &'a [u32],
    pub seed: u64,
    pub epoch: u64,
    pub batch: usize,
    pub drop_last: bool,
}

impl Given<'_> {
    /// A shuffled copy; `stream` tells apart the orders of an epoch.
    fn shuffled(&self, samples: &[u32], stream: u64) -> Vec<u32> {
        let mut draw = Draw::new(self.seed, Purpose::Order, self.epoch, stream);
        draw.permutation(samples.len()).into_iter().map(|at| samples[at as usize]).collect()
    }

    /// Cuts into batches. Dropping short ones keeps one that is all there is: a set that shrinks during training (or was small
    /// from the start) must not turn into an epoch that teaches nothing.
    fn cut<'a>(&self, samples: &'a [u32], batch: usize) -> impl Iterator<Item = &'a [u32]> {
        let least = if self.drop_last { batch.min(samples.len()) } else { 1 };
        samples.chunks(batch).filter(move |chunk| chunk.len() >= least)
    }

    /// The first `wanted` batches of a set, which is gone through as often as that takes.
    fn passes(&self, set: &[u32], batch: usize, which: u64, wanted: usize) -> Result<Vec<Vec<u32>>> {
        if set.is_empty() {
            return Ok(vec![Vec::new(); wanted]);
        }
        check_length(wanted.saturating_mul(batch.min(set.len())))?;
        let mut batches: Vec<Vec<u32>> = Vec::with_capacity(wanted);
        for pass in 0.. {
            if batches.len() >= wanted {
                break;
            }
            let order = self.shuffled(set, which << 32 | pass);
            batches.extend(self.cut(&order, batch).take(wanted - batches.len()).map(<[u32]>::to_vec));
        }
        Ok(batches)
    }

    fn balanced(&self, length: Option<usize>) -> Result<Vec<u32>> {
        let classes = self.labels.iter().max().map_or(0, |&most| most as usize + 1);
        let mut members = vec![Vec::new(); classes];
        for (sample, &label) in self.labels.iter().enumerate() {
            members[label as usize].push(sample as u32);
        }
        members.retain(|class| !class.is_empty());
        let largest = members.iter().map(Vec::len).max().unwrap_or(0);
        let length = if members.is_empty() { 0 } else { length.unwrap_or(members.len() * largest) };
        check_length(length)?;
        let mut turn = Draw::new(self.seed, Purpose::Order, self.epoch, u64::MAX);
        let mut orders: Vec<Vec<u32>> = vec![Vec::new(); members.len()];
        let mut restarts = vec![0u64; members.len()];
        let mut stream = Vec::with_capacity(length);
        while stream.len() < length {
            for class in turn.permutation(members.len()) {
                let class = class as usize;
                if orders[class].is_empty() {
                    orders[class] = self.shuffled(&members[class], (class as u64) << 32 | restarts[class]);
                    restarts[class] += 1;
                }
                stream.extend(orders[class].pop());
            }
        }
        stream.truncate(length);
        Ok(stream)
    }

    /// The batches of an epoch.
    pub fn schedule(&self, order: &Order) -> Result<Schedule> {
        let all: Vec<u32> = (0..self.labels.len() as u32).collect();
        let one = |stream: &[u32]| vec![self.cut(stream, self.batch).map(<[u32]>::to_vec).collect()];
        let parts: Vec<Vec<Vec<u32>>> = match order {
            Order::Sequential => vec![all.chunks(self.batch).map(<[u32]>::to_vec).collect()],
            Order::Shuffled { passes } => {
                check_positive("passes", *passes)?;
                check_length(passes.saturating_mul(all.len()))?;
                one(&(0..*passes as u64).flat_map(|pass| self.shuffled(&all, pass)).collect::<Vec<_>>())
            }
            Order::Among(samples) => {
                self.check_samples(samples)?;
                one(&self.shuffled(samples, 0))
            }
            Order::Balanced { length } => one(&self.balanced(*length)?),
            Order::Pair { labelled, unlabelled, unlabelled_batch, until } => {
                self.check_samples(labelled)?;
                self.check_samples(unlabelled)?;
                let second = unlabelled_batch.unwrap_or(self.batch);
                check_positive("unlabelled_batch", second)?;
                let full = |set: &[u32], batch| self.cut(set, batch).count();
                let wanted = match until {
                    Until::Labelled => full(labelled, self.batch),
                    Until::Unlabelled => full(unlabelled, second),
                    Until::Longer => full(labelled, self.batch).max(full(unlabelled, second)),
                };
                vec![
                    self.passes(labelled, self.batch, 0, wanted)?,
                    self.passes(unlabelled, second, 1, wanted)?,
                ]
            }
        };
        let mut counts = HashMap::new();
        Ok(Schedule { parts: parts.into_iter().map(|part| count_again(part, &mut counts)).collect() })
    }

    fn check_samples(&self, samples: &[u32]) -> Result<()> {
        match samples.iter().find(|&&sample| sample as usize >= self.labels.len()) {
            None => Ok(()),
            Some(outside) => Err(Error::Setting {
                what: "sample",
                value: outside.to_string(),
                requirement: format!("there are {} items, numbered from 0", self.labels.len()),
            }),
        }
    }
}

pub(super) fn check_positive(what: &'static str, value: usize) -> Result<()> {
    if value > 0 {
        return Ok(());
    }
    Err(Error::Setting { what, value: value.to_string(), requirement: "must be at least 1".into() })
}

/// Most samples in an epoch, because an epoch is written out before it starts.
const LONGEST_EPOCH: usize = 1 << 28;

fn check_length(length: usize) -> Result<()> {
    if length <= LONGEST_EPOCH {
        return Ok(());
    }
    Err(Error::Setting {
        what: "samples per epoch",
        value: length.to_string(),
        requirement: format!("must be at most {LONGEST_EPOCH}: ask for more epochs instead"),
    })
}

/// Counts, for every place in a stream, how often its sample came before.
fn count_again(batches: Vec<Vec<u32>>, counts: &mut HashMap<u32, u32>) -> Vec<Planned> {
    let mut count = |&sample: &u32| {
        let count = counts.entry(sample).or_insert(0);
        *count += 1;
        *count - 1
    };
    batches
        .into_iter()
        .map(|samples| Planned { again: samples.iter().map(&mut count).collect(), samples })
        .collect()
}
