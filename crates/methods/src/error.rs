//! What can go wrong, in words that say what to do.
//!
//! Messages are complete, so what lies beneath is no `source` as well, which would be printed twice; `r#source` keeps a field from
//! being taken for one.

use negscale_records::nearest;
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that nothing has.
    #[error("there is no {what} `{name}`; nearest: {}; all: {}", nearest.join(", "), all.join(", "))]
    Unknown {
        /// What was asked for.
        what: &'static str,
        /// By which name.
        name: String,
        /// The names most like it, best first.
        nearest: Vec<String>,
        /// All names there are.
        all: Vec<String>,
    },
    /// Settings that cannot be read.
    #[error("{}: {problem}", written(place))]
    Settings {
        /// Which table or file.
        place: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        r#source: std::io::Error,
    },
    /// A loss that is not finite.
    #[error(
        "the loss is {value} in epoch {epoch}, batch {batch}: training diverged; lower `optimiser.lr` (it is {lr})"
    )]
    Diverged {
        /// The epoch, from 1.
        epoch: usize,
        /// The batch, from 1.
        batch: usize,
        /// The loss.
        value: f64,
        /// Learning rate of the step.
        lr: f64,
    },
    /// Training was asked to stop.
    #[error("training was asked to stop")]
    Interrupted,
    /// A checkpoint that is damaged or belongs to another run.
    #[error("checkpoint {origin}: {problem}")]
    Checkpoint {
        /// Where it came from.
        origin: String,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// A device that is not there.
    #[error("device `{name}`: {problem}")]
    Device {
        /// The name asked for.
        name: String,
        /// Why not, and what would do.
        problem: String,
    },
    /// Something of the data.
    #[error(transparent)]
    Data(#[from] negscale_data::Error),
    /// Something about the plug-in or the class tree.
    #[error(transparent)]
    NegScale(#[from] negscale::Error),
    /// Something about features or labels whose similarity is measured.
    #[error(transparent)]
    Similarity(#[from] negscale_similarity::Error),
    /// Something of networks, optimisers or model files.
    #[error(transparent)]
    Nets(negscale_nets::Error),
    /// Something of the ledger or the audit.
    #[error(transparent)]
    Audit(#[from] negscale_audit::Error),
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
}

impl From<negscale_nets::Error> for Error {
    fn from(error: negscale_nets::Error) -> Self {
        match error {
            negscale_nets::Error::Interrupted => Self::Interrupted,
            other => Self::Nets(other),
        }
    }
}

impl From<negscale_nets::optim::Error> for Error {
    fn from(error: negscale_nets::optim::Error) -> Self {
        Self::Nets(error.into())
    }
}

impl Error {
    /// No such name: says which ones there are, nearest first.
    pub fn unknown<'a>(what: &'static str, name: &str, all: impl IntoIterator<Item = &'a str>) -> Self {
        let all: Vec<&str> = all.into_iter().collect();
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let nearest = owned(nearest(name, all.iter().copied()));
        Self::Unknown { what, name: name.into(), nearest, all: owned(all) }
    }
}

/// Where settings are written. A flag is its own name: the setting behind it is nothing that its user wrote.
fn written(place: &str) -> String {
    match place.strip_prefix("in ").filter(|place| place.starts_with("--")) {
        Some(flag) => flag.split(", `").next().unwrap_or(flag).to_owned(),
        None => format!("settings {place}"),
    }
}
