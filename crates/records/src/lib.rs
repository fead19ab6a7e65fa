//! Records and statistics that several crates share.
//!
//! | module | what it holds |
//! |---|---|
//! | [`EpochRecord`] | what is known after one epoch: a line of `metrics.jsonl` |
//! | [`statistics`] | mean, deviation and interval over repeated runs; paired differences; the largest of a row |
//! | [`cells`] | text that is safe to open in a spreadsheet |
//! | [`nearest()`] | which name was probably meant |

/// The snippets of the README are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod cells;
mod epoch;
mod nearest;
pub mod statistics;

pub use epoch::EpochRecord;
pub use nearest::{did_you_mean, nearest};
