//! What can go wrong, in words that say what to do.
//!
//! Messages are complete, so what lies beneath is no `source` as well, which would be printed twice; `r#source` keeps a field from
//! being taken for one.

use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        r#source: std::io::Error,
    },
    /// A setting of something other than a network outside its range.
    #[error("setting `{setting}` = {value}: {wanted}")]
    Range {
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// Numbers about samples that cannot be used.
    #[error("{what}: {problem}")]
    Samples {
        /// Which numbers.
        what: &'static str,
        /// Which sample, what is wrong with it and what to do.
        problem: String,
    },
    /// It was told to stop.
    #[error("stopped before the end")]
    Stopped,
    /// A ledger file that is damaged or not one.
    #[error("ledger {}: {problem}", path.display())]
    Ledger {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A model of an audit that is damaged or not one.
    #[error("{}: {problem}", path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Rows that could not be read, in the words of whoever reads them.
    #[error("{problem}")]
    Rows {
        /// Which file and row, what is wrong and what to do.
        problem: String,
    },
    /// Shards of an audit that are damaged or do not belong together.
    #[error("{}: {problem}", path.display())]
    Shard {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
}
