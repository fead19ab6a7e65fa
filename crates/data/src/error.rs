//! What can go wrong, each message saying what, where and what to do about it.
//!
//! Messages are complete: what lies beneath (the system's words, for instance) stands in them. So it is no `source` as well,
//! which whoever prints the chain of sources would print a second time; `r#source` keeps a field from being taken for one.

use crate::readable::Failure;
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
    /// A file does not hold what its format promises.
    #[error("{}{}: {problem}", path.display(), place.as_deref().map(|p| format!(", {p}")).unwrap_or_default())]
    Format {
        /// Which file.
        path: PathBuf,
        /// Where in it, e.g. "line 7" or "record 12".
        place: Option<String>,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Labels do not fit the items or the classes.
    #[error("dataset `{dataset}`: {problem}")]
    Labels {
        /// Name of the dataset.
        dataset: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A dataset that is in none of the folders.
    #[error("dataset `{name}` was not found. {looked_for}")]
    Missing {
        /// Name of the dataset.
        name: String,
        /// Which files in which folders were looked for.
        looked_for: String,
    },
    /// An item that cannot be read.
    #[error("dataset `{dataset}`, item {item}{}: {source}", place_unless_said(origin, source))]
    Item {
        /// Name of the dataset.
        dataset: String,
        /// Number of the item, from 0.
        item: usize,
        /// Where it came from, if that is known.
        origin: Option<String>,
        /// What went wrong.
        r#source: Box<Error>,
    },
    /// Pictures that cannot be read.
    #[error("{}", crate::readable::tell(failures, *items))]
    Unreadable {
        /// All of them.
        failures: Vec<Failure>,
        /// How many pictures there are.
        items: usize,
    },
    /// The program itself failed while it read items: a panic, caught.
    #[error("dataset `{dataset}`, {place}: failed inside the program: this is a defect, please report it")]
    Defect {
        /// Name of the dataset.
        dataset: String,
        /// What was being read.
        place: String,
    },
    /// A setting outside its range.
    #[error("{what} = {value}: {requirement}")]
    Setting {
        /// Name of the setting.
        what: &'static str,
        /// The value given.
        value: String,
        /// What is required of it.
        requirement: String,
    },
    /// Something could not be fetched.
    #[error("cannot get {what}: {problem}")]
    Fetch {
        /// A dataset, an address or a package.
        what: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A file has another checksum than it should.
    #[error("{}: {kind} is {found} and should be {expected}: damaged or not what it claims to be", path.display())]
    Checksum {
        /// Which file.
        path: PathBuf,
        /// Kind of checksum.
        kind: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
}

/// The place in brackets, where the message that follows does not begin with it.
fn place_unless_said(place: &Option<String>, message: &Error) -> String {
    let message = message.to_string();
    place.iter().filter(|place| !message.starts_with(*place)).map(|place| format!(" ({place})")).collect()
}

impl Error {
    /// A system error at a path.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { path: path.as_ref().to_owned(), source }
    }

    /// What is wrong, without the file's name in front.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Io { source, .. } => source.to_string(),
            Self::Format { place: None, problem, .. } => problem.clone(),
            Self::Format { place: Some(place), problem, .. } => format!("{place}: {problem}"),
            other => other.to_string(),
        }
    }

    /// A broken file.
    pub fn format(
        path: impl AsRef<Path>,
        place: impl Into<Option<String>>,
        problem: impl Into<String>,
    ) -> Self {
        Self::Format { path: path.as_ref().to_owned(), place: place.into(), problem: problem.into() }
    }
}
