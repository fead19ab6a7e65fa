//! What a person decides about a row, as a line of the record.

use serde::{Deserialize, Serialize};

/// What is to become of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It has this label, by name: the given one, the suggested one or any other.
    Label(String),
    /// It is no sample of any class, and nothing should be trained on it.
    Drop,
    /// The reviewer cannot tell.
    Unsure,
}

/// A line of `review.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "lowercase", deny_unknown_fields)]
pub enum Line {
    /// The first one: what is reviewed.
    Review {
        /// Of this format: 1.
        version: u32,
        /// Fingerprint of the audited data, so that no record is applied to other rows.
        data: String,
    },
    /// A decision.
    Decision(Decided),
    /// A step is taken back.
    Undo {
        /// Milliseconds since the beginning of 1970.
        time: u64,
        /// Whose.
        reviewer: String,
        /// Its number.
        step: u64,
    },
}

/// A decision with its circumstances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// Milliseconds since the beginning of 1970.
    pub time: u64,
    /// Whose.
    pub reviewer: String,
    /// Decisions of one number were made at once, and are taken back at once.
    pub step: u64,
    /// The row, counted from 0 as in the audit's files.
    pub row: u64,
    /// What held before: an earlier decision of the same reviewer, or the label as given.
    pub before: Decision,
    /// What holds now.
    pub after: Decision,
    /// How long the row was looked at; a group's time is divided among its rows.
    pub milliseconds: u64,
    /// Whether the audit flagged the label.
    pub flagged: bool,
    /// Whether the audit's evidence was seen before.
    pub informed: bool,
}
