//! Datasets known by name: what they are, which files they consist of, how to get them, and which of them are here.

mod status;
mod table;

pub use status::{Listing, State, Status, list};
pub use table::ENTRIES;

use crate::{Error, Result};
use negscale_records::did_you_mean;
use serde::Serialize;

/// A known dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// What users call it.
    pub name: &'static str,
    /// One line on what it is.
    pub title: &'static str,
    /// Number of classes (0 for weights of an encoder).
    pub classes: usize,
    /// Training items (0 where it is a test set only).
    pub train: usize,
    /// Test items (0 where there are none).
    pub test: usize,
    /// How to get it.
    pub how: How,
    /// Its licence, or what is known of it.
    pub licence: &'static str,
    /// File layouts it comes in; any one of them, complete, will do.
    pub forms: &'static [Form],
}

/// How to get a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// It is inside the program.
    Embedded,
    /// [`crate::fetch::get`] fetches it.
    Fetch,
    /// Only a person can get it, for instance because a licence has to be agreed to.
    ByHand {
        /// Where to get it.
        source: &'static str,
        /// Which files to put where, in a folder that is looked in.
        put: &'static str,
    },
}

/// A file layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Form {
    /// What it is called.
    pub name: &'static str,
    /// Folders it may be in, relative to a folder that is looked in.
    pub folders: &'static [&'static str],
    /// What must be there.
    pub pieces: &'static [Piece],
}

/// A part of a layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Piece {
    /// A file of exactly so many bytes.
    Sized(&'static str, u64),
    /// A file of any size but 0.
    File(&'static str),
    /// A folder with something in it.
    Folder(&'static str),
}

/// The known dataset of that name.
pub fn entry(name: &str) -> Result<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let known: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
        Error::Setting {
            what: "dataset",
            value: name.to_owned(),
            requirement: format!(
                "there is no known dataset of that name; {}known datasets are {}",
                did_you_mean(name, known.iter().copied()),
                known.join(", ")
            ),
        }
    })
}
