//! Which labels are wrong, what they should be, and how many there are. No tensors and no networks: predictions and labels are
//! enough.
//!
//! | module | what it holds |
//! |---|---|
//! | [`rank()`] | an audit of predictions and labels, in one call |
//! | [`annotators`] | several labels for each sample: their consensus, and how good every annotator is |
//! | [`crossfit`] | predictions for rows of numbers by models that did not see the row's label |
//! | [`neighbours`] | rows of numbers that are near each other: nearest neighbours, near-copies, outliers |
//! | [`shards`] | an audit of data larger than memory: a sample to fit to, shards to score, their counts and lists put together |
//! | [`ledger`] | what is believed of every label during training: targets, clean probabilities, losses, predictions |
//! | [`NoiseModel`] | the model of hidden true labels behind the score |
//! | [`NoiseEstimate`] | how many labels are wrong, and what they were mistaken for |
//! | [`Verdict`], [`Audit`] | one label's verdict; all labels ranked, most suspicious first |
//! | [`gmm`] | a mixture of two Gaussians over losses |

/// The snippets of the README are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod annotators;
mod correction;
pub mod crossfit;
mod error;
mod estimate;
mod findings;
mod flags;
pub mod gmm;
pub mod ledger;
mod means;
mod measures;
pub mod neighbours;
mod noise_model;
mod predictions;
mod rank;
pub mod shards;
mod table;
mod verdict;

pub use correction::Correction;
pub use error::{Error, Result};
pub use estimate::{NoiseEstimate, confident_rate};
pub use findings::{Audit, FLAG_BELOW, Finding};
pub use flags::GroupFlags;
pub use ledger::Ledger;
pub use means::{mixture, rate_by_means};
pub use measures::{Measures, area_under_curve, average_precision, precision_at};
pub use noise_model::{Alternative, Meaning, NoiseModel, Transition};
pub use predictions::{Entry, KEPT_CLASSES, Predictions};
pub use rank::{Ranking, rank};
pub use table::{Cells, MoreColumns};
pub use verdict::{LossSummary, Source, Verdict, VerdictSettings};
