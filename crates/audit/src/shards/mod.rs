//! An audit of data larger than memory, in parts that may run on many machines.
//!
//! 1. Models are fitted to a [`Sample`] of the rows and kept as a file; both are the caller's, behind [`RowScorer`].
//! 2. [`score_shard`] scores the rows of one of N shards and leaves two files: scores, and a [`Manifest`] with counts.
//! 3. [`Shards`] reads the manifests, adds the counts, and writes lists and tables.
//!
//! # The same bytes for any number of shards
//! A product of matrices may round differently for another number of rows. So rows are scored in blocks of [`block_rows`] that are
//! counted from the first row of all, and a shard is a run of whole blocks ([`shard_range`]). Counts are whole numbers, sums of scores among them
//! (in units of 2^-32): adding them in any order gives the same.
//!
//! # Memory
//! Two times [`WAVE`] blocks for each thread, of at most 4 MiB each unless a row is longer than 64 KiB: while one half is scored, the
//! other is read. What a scorer needs for a block comes on top, once for each thread. Labels are the caller's, 4 bytes a row.
//!
//! # Files
//! `shard-K-of-N.scores` is an `.npy` file of records, one for each row in the order of rows: `score` and `suggested_probability` (f4),
//! `given` and `suggested` (u4), `flag` (u1), little-endian and packed, 17 bytes. `numpy.load` reads it. The first record belongs
//! to row `rows.start` of `shard-K-of-N.json`, the manifest, which has the hash of the scores. Scores are written first and each file
//! is written whole or not at all, so a process that is killed costs its shard and nothing else.

mod counts;
mod manifest;
mod merge;
mod record;
mod sample;
mod score;
mod tables;
mod truth;

pub use counts::{CellCounts, Counts, GroupCounts, UNIT};
pub use manifest::{MadeBy, Manifest, hash_file};
pub use merge::{Shards, TopRow};
pub use sample::{Sample, SampleSettings, text_id};
pub use score::{ScoredShard, WAVE, Work, score_shard};
pub use truth::Compared;

use crate::{Error, Result};
use std::ops::Range;

/// What is believed about the label of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowScore {
    /// How suspicious the label is, from 0 to 1.
    pub score: f32,
    /// The believed class.
    pub suggested: u32,
    /// Believed probability of that class.
    pub suggested_probability: f32,
    /// Whether the label is held to be wrong.
    pub flag: bool,
}

/// Models that were fitted and do not change any more.
pub trait RowScorer: Sync {
    /// How many classes.
    fn classes(&self) -> usize;

    /// Fills `out`, which is empty, with a score for every row of a block. By the id a scorer knows whether a row was in its sample
    /// ([`Sample::contains`]) and which fold's model did not see it ([`Sample::fold`]). What it finds must depend on nothing but its
    /// arguments.
    ///
    /// # Errors
    /// Whatever keeps it from scoring; the shard is then left as it was.
    fn score(&self, rows: &[f32], ids: &[u64], given: &[u32], out: &mut Vec<RowScore>) -> Result<()>;
}

/// Rows that can be had by their numbers.
pub trait RowSource: Sync {
    /// How many rows.
    fn rows(&self) -> u64;

    /// Numbers of a row.
    fn dim(&self) -> usize;

    /// The label of every row.
    fn given(&self) -> &[u32];

    /// What a row is known by, wherever it stands: its number, or [`text_id`] of its id.
    fn id(&self, row: u64) -> u64 {
        row
    }

    /// Fills `out` with rows that follow one another. They are asked for from front to back.
    ///
    /// # Errors
    /// If they cannot be read: [`Error::Rows`] with the words for it.
    fn read_rows(&self, rows: Range<u64>, out: &mut Vec<f32>) -> Result<()>;
}

/// The most bytes of a block, unless a row is longer than 64 KiB.
const BLOCK_BYTES: u64 = 4 << 20;

/// Rows of a block for rows of so many numbers: a power of two from 64 to 8,192.
#[must_use]
pub fn block_rows(dim: usize) -> u64 {
    let fitting = BLOCK_BYTES / (4 * dim.max(1) as u64);
    let power = 1 << fitting.max(1).ilog2();
    power.clamp(64, 8192)
}

/// Which of how many shards, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardNumber {
    number: u32,
    of: u32,
}

impl ShardNumber {
    /// Shard `number` of `of`.
    ///
    /// # Errors
    /// If the number is not from 1 to `of`.
    pub fn new(number: u32, of: u32) -> Result<Self> {
        if number == 0 || number > of {
            let value = format!("{number}/{of}");
            return Err(Error::Range { setting: "shard", value, wanted: "K/N with K from 1 to N" });
        }
        Ok(Self { number, of })
    }

    /// Which one.
    #[must_use]
    pub fn number(self) -> u32 {
        self.number
    }

    /// Of how many.
    #[must_use]
    pub fn of(self) -> u32 {
        self.of
    }
}

impl std::fmt::Display for ShardNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} of {}", self.number, self.of)
    }
}

impl std::str::FromStr for ShardNumber {
    type Err = Error;

    /// From `K/N`.
    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        let wrong = || Error::Range { setting: "shard", value: text.into(), wanted: "K/N, such as 2/8" };
        let (number, of) = parts.ok_or_else(wrong)?;
        Self::new(number, of)
    }
}

/// The rows of a shard: whole blocks, as many in each as can be; none where there are more shards than blocks.
#[must_use]
pub fn shard_range(rows: u64, block: u64, shard: ShardNumber) -> Range<u64> {
    let block = block.max(1);
    let blocks = u128::from(rows.div_ceil(block));
    // Below the number of blocks, so it fits again.
    let cut = |number: u32| (blocks * u128::from(number) / u128::from(shard.of)) as u64;
    let row = |block_number: u64| block_number.saturating_mul(block).min(rows);
    row(cut(shard.number - 1))..row(cut(shard.number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_whole_blocks_that_cover_all_rows_once() {
        for (rows, of) in [(0, 1), (0, 3), (1, 4), (1000, 1), (1000, 3), (1000, 7), (1000, 99), (640, 10)] {
            let mut next = 0;
            for number in 1..=of {
                let range = shard_range(rows, 64, ShardNumber::new(number, of).unwrap());
                assert_eq!(range.start, next);
                assert!(range.start.is_multiple_of(64) || range.start == rows, "{range:?}");
                assert!(range.end - range.start <= (rows.div_ceil(64).div_ceil(u64::from(of))) * 64);
                next = range.end;
            }
            assert_eq!(next, rows);
        }
    }

    #[test]
    fn blocks_fit_four_mebibytes_unless_rows_are_long() {
        assert_eq!(
            [1, 128, 129, 512, 768, 16_384, 1 << 20].map(block_rows),
            [8192, 8192, 4096, 2048, 1024, 64, 64]
        );
        assert_eq!(block_rows(0), 8192);
    }

    #[test]
    fn a_shard_is_named_by_two_numbers() {
        let shard: ShardNumber = "2/8".parse().unwrap();
        assert_eq!((shard.number(), shard.of(), shard.to_string()), (2, 8, "2 of 8".into()));
        for text in ["0/3", "4/3", "1/0", "1", "a/b", "-1/2"] {
            assert!(text.parse::<ShardNumber>().unwrap_err().to_string().contains("K/N"), "{text}");
        }
    }
}
