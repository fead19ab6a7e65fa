//! What can go wrong, each message saying what, where and what to do about it.
//!
//! Messages are complete, so what lies beneath is no `source` as well, which would be printed twice; `r#source` keeps a field from
//! being taken for one.

use std::path::{Path, PathBuf};

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of the crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system could not read or write.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        r#source: std::io::Error,
    },
    /// A folder for results cannot be used; the text says which and why.
    #[error("{0}")]
    Folder(std::io::Error),
    /// A line of `metrics.jsonl`, not the last one, is no record.
    #[error("{}, line {line}: not a record of an epoch ({source}). Restore the line or delete it", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What the parser said.
        r#source: serde_json::Error,
    },
    /// A record could not be written as JSON.
    #[error(
        "the record of epoch {epoch} cannot be written as JSON: {source}. This is a defect, please report it"
    )]
    Encode {
        /// Which epoch.
        epoch: u64,
        /// What the encoder said.
        r#source: serde_json::Error,
    },
    /// The counts of a matrix are not as many as its cells.
    #[error(
        "a matrix of {classes} classes needs {classes} x {classes} counts, but {given} were given: pass them row by row"
    )]
    Matrix {
        /// Number of classes.
        classes: usize,
        /// Number of counts given.
        given: usize,
    },
    /// The bytes of a thumbnail do not fit its shape.
    #[error(
        "a thumbnail of {width} x {height} pixels and {channels} channels does not fit {given} bytes: \
         pass height x width x channels bytes, row by row, with 1 to 4 channels and at least one pixel"
    )]
    Thumbnail {
        /// Pixels per row.
        width: u32,
        /// Number of rows.
        height: u32,
        /// Bytes per pixel.
        channels: u8,
        /// Number of bytes given.
        given: usize,
    },
    /// A thumbnail could not be encoded.
    #[error("the thumbnail of item {index} could not be encoded: {source}. Leave it out to show the rest")]
    Png {
        /// Which item.
        index: usize,
        /// What the encoder said.
        r#source: png::EncodingError,
    },
    /// A row of a table has not as many cells as there are columns.
    #[error(
        "the table `{table}` has {columns} columns, but a row of {given} cells was given: pass one cell per column"
    )]
    Row {
        /// Title of the table.
        table: String,
        /// Number of columns.
        columns: usize,
        /// Number of cells given.
        given: usize,
    },
    /// A folder holds no run.
    #[error("{}: there is no run here (no settings.toml); give a run's folder", folder.display())]
    NoRun {
        /// Which folder.
        folder: PathBuf,
    },
    /// A run has no results yet.
    #[error(
        "{}: the run is not finished ({done} of {epochs} epochs are recorded); run its command again to resume",
        folder.display()
    )]
    Unfinished {
        /// Which folder.
        folder: PathBuf,
        /// Epochs on record.
        done: u64,
        /// Epochs it is to have.
        epochs: u64,
    },
    /// None of several runs is finished.
    #[error("none of {count} runs is finished, so there is nothing to compare. {notes}")]
    NoFinishedRun {
        /// How many folders.
        count: usize,
        /// What is the matter with each.
        notes: String,
    },
    /// A file is not what a run writes.
    #[error("{}: {problem}. The run is damaged: train it again with --fresh, or restore the file", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A run has no such figure.
    #[error("{}: the run has no figure `{name}`; it has {known}", folder.display())]
    Figure {
        /// Which run.
        folder: PathBuf,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The page could not be put together.
    #[error("the report could not be put together: {0}. This is a defect, please report it")]
    Template(String),
}

impl From<askama::Error> for Error {
    fn from(error: askama::Error) -> Self {
        Self::Template(error.to_string())
    }
}

impl Error {
    /// An error of the system at `path`.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }
}
