//! Looking through the labels that an audit doubts.
//!
//! | module | what it holds |
//! |---|---|
//! | [`samples`] | the doubted labels of an audit's folder, with a few that it does not doubt mixed in |
//! | [`evidence`] | likeliest classes, nearest neighbours, where classes are in the tree |
//! | [`decision`] | what a person decides, as a line of the record |
//! | [`record`] | `review.jsonl`: lines that are on the disk before anybody is told that they are |
//! | [`session`] | who has decided what, what comes next, and undoing it |
//! | [`statistics`] | how often flags were right, what they miss, how far two reviewers agree |
//! | [`export`] | corrected labels, also as Parquet, and tasks for Label Studio |
//! | [`content`] | the picture or the columns of a row |
//! | [`server`] | the page, on this machine only |

/// Snippets of the README are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod content;
pub mod decision;
mod error;
pub mod evidence;
pub mod export;
mod parquet;
pub mod record;
pub mod samples;
pub mod server;
pub mod session;
pub mod statistics;

pub use error::{Error, Result};
pub use session::Session;

/// Name of the record in an audit's folder.
pub const RECORD: &str = "review.jsonl";
/// The folder in an audit's folder into which a review is exported.
pub const EXPORTED: &str = "review";
