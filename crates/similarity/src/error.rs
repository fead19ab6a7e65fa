//! What can go wrong, each message saying what, where and what to do about it.

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of the crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two inputs disagree in size.
    #[error("{what}: {got}, but {need}: give one for every sample, in the same order")]
    Size {
        /// Which input.
        what: &'static str,
        /// What came.
        got: String,
        /// What is needed.
        need: String,
    },
    /// A value is NaN or infinite.
    #[error(
        "{what} of sample {sample} (counted from 0), place {place}, is {value}: has training diverged, or is the file damaged?"
    )]
    NotFinite {
        /// Which input.
        what: &'static str,
        /// Number of the sample.
        sample: usize,
        /// Place in its row.
        place: usize,
        /// The value found.
        value: f32,
    },
    /// A label names no class of the tree.
    #[error(
        "{what} {label} of sample {sample} (counted from 0) is not a class: the class tree `{tree}` has {classes}, numbered from 0"
    )]
    Label {
        /// Which labels.
        what: &'static str,
        /// Number of the sample.
        sample: usize,
        /// The label.
        label: u32,
        /// Name of the tree.
        tree: String,
        /// Number of its classes.
        classes: usize,
    },
    /// The plug-in refused its input.
    #[error(transparent)]
    NegScale(#[from] negscale::Error),
}

impl Error {
    pub(crate) fn size(what: &'static str, got: impl Into<String>, need: impl Into<String>) -> Self {
        Self::Size { what, got: got.into(), need: need.into() }
    }
}
