//! What can go wrong.

/// What can go wrong while an encoder is loaded or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file of weights is not what it should be.
    #[error("{what} cannot be used as an encoder: {problem}")]
    Weights {
        /// The file.
        what: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// An item cannot be encoded.
    #[error("item {item} cannot be encoded: {problem}")]
    Item {
        /// Which of the items that were handed over.
        item: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
