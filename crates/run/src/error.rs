//! What can go wrong in a run.
//!
//! Messages are complete: they say what happened, where, and what to do.

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run was stopped, and can be resumed.
    #[error("stopped by signal {0}; run the same command again to resume")]
    Stopped(usize),
    /// Something of settings, training methods or the trainer.
    #[error(transparent)]
    Methods(#[from] negscale_methods::Error),
    /// Something of networks or model files.
    #[error(transparent)]
    Nets(#[from] negscale_nets::Error),
    /// Something of the audit.
    #[error(transparent)]
    Audit(#[from] negscale_audit::Error),
    /// Something of the data.
    #[error(transparent)]
    Data(#[from] negscale_data::Error),
    /// Something of encoders or their weights.
    #[error(transparent)]
    Encoders(#[from] negscale_encoders::Error),
    /// Something of reports or of what earlier runs left.
    #[error(transparent)]
    Report(#[from] negscale_report::Error),
    /// Something of features or labels whose similarity is measured.
    #[error(transparent)]
    Similarity(#[from] negscale_similarity::Error),
    /// Something of the class tree or the plug-in.
    #[error(transparent)]
    NegScale(#[from] negscale::Error),
    /// What the system said.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Anything else, with what was being done.
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

impl Error {
    /// Whether whoever read our output has closed it, as `head` does.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        let is_closed = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
        match self {
            Self::Io(error) => is_closed(error),
            Self::Other(error) => error.downcast_ref::<std::io::Error>().is_some_and(is_closed),
            _ => false,
        }
    }
}

impl From<toml::de::Error> for Error {
    fn from(error: toml::de::Error) -> Self {
        Self::Other(error.into())
    }
}

impl From<toml::ser::Error> for Error {
    fn from(error: toml::ser::Error) -> Self {
        Self::Other(error.into())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Other(error.into())
    }
}

/// Ends a function with an error of this text.
macro_rules! bail {
    ($($text:tt)*) => { return Err(anyhow::anyhow!($($text)*).into()) };
}
pub(crate) use bail;
