//! What can go wrong, in words that say what to do.

use std::io;
use std::path::{Path, PathBuf};

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
        r#source: io::Error,
    },
    /// A file that is not what it should be.
    #[error("{}{}: {problem}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Format {
        /// The file.
        path: PathBuf,
        /// The line, where there is one.
        line: Option<u64>,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// A request that cannot be met.
    #[error("{0}")]
    Refused(String),
}

impl Error {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }

    pub(crate) fn format(path: &Path, line: Option<u64>, problem: impl Into<String>) -> Self {
        Self::Format { path: path.to_owned(), line, problem: problem.into() }
    }
}
