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
    /// No network of this name.
    #[error("there is no network `{name}`; nearest: {}; all: {}", nearest.join(", "), crate::names().join(", "))]
    UnknownNet {
        /// The name asked for.
        name: String,
        /// The names most like it, best first.
        nearest: Vec<&'static str>,
    },
    /// The network cannot take this input.
    #[error("network `{net}` cannot take {input}: {reason}")]
    Input {
        /// Name of the network.
        net: String,
        /// The input, as a person would say it.
        input: String,
        /// Why not, and what would do.
        reason: String,
    },
    /// A setting outside its range.
    #[error("network `{net}`: {setting} is {value}; {wanted}")]
    Setting {
        /// Name of the network.
        net: String,
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// A head was used that the network was built without.
    #[error("network `{net}` has no {head} head; ask for it in `heads` when the network is built")]
    NoHead {
        /// Name of the network.
        net: String,
        /// Name of the head.
        head: &'static str,
    },
    /// Weights that do not belong to the network.
    #[error("{origin} does not fit network `{net}`: {}", problems.join("; "))]
    Weights {
        /// Name of the network.
        net: String,
        /// Where the weights came from.
        origin: String,
        /// Every key that is missing, unexpected or of another shape.
        problems: Vec<String>,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        r#source: std::io::Error,
    },
    /// A file that is not in the safetensors format.
    #[error("{origin} is not a readable safetensors file: {source}")]
    Format {
        /// Where the bytes came from.
        origin: String,
        /// What is wrong.
        r#source: safetensors::SafeTensorError,
    },
    /// Values could not be taken out of a tensor.
    #[error("values of `{path}` are not 32-bit floats: {reason}")]
    Values {
        /// Path of the parameter.
        path: String,
        /// What the tensor library said.
        reason: String,
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
    /// Something of the data.
    #[error(transparent)]
    Data(#[from] negscale_data::Error),
    /// Something of an optimiser, a schedule or a running mean of weights.
    #[error(transparent)]
    Optim(#[from] crate::optim::Error),
    /// Numbers about samples that cannot be used.
    #[error("{what}: {problem}")]
    Samples {
        /// Which numbers.
        what: &'static str,
        /// Which sample, what is wrong with it and what to do.
        problem: String,
    },
    /// A model, or the file of one, that cannot be used.
    #[error("model {origin}: {problem}")]
    Model {
        /// Its file, or what it is called.
        origin: String,
        /// What is wrong and what to do.
        problem: String,
    },
}
