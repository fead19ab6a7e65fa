//! What can go wrong with optimisers, schedules and running means of weights.

/// Result with this module's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of optimisers, schedules and running means of weights.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting outside its range.
    #[error("setting `{name}` = {value}: {requirement}")]
    Setting {
        /// Name of the setting as in a settings file.
        name: &'static str,
        /// The value given.
        value: String,
        /// What is required of it.
        requirement: &'static str,
    },
    /// A saved state that does not belong to this optimiser and network.
    #[error("state of the optimiser, `{name}`: {problem}")]
    State {
        /// Name of the array or counter.
        name: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Two networks that should have the same parameters do not.
    #[error(
        "parameter `{name}` of the running mean: {problem}; the mean must be made from the network that it follows"
    )]
    Mismatch {
        /// Path of the parameter.
        name: String,
        /// What differs.
        problem: String,
    },
    /// A device did not hand over its numbers.
    #[error("could not read `{name}` from its device: {reason}")]
    Device {
        /// What was read.
        name: String,
        /// What the device said.
        reason: String,
    },
}

/// Checks that a setting is a finite number that meets a requirement.
pub(crate) fn require(
    name: &'static str,
    value: f64,
    fits: impl FnOnce(f64) -> bool,
    requirement: &'static str,
) -> Result<()> {
    if value.is_finite() && fits(value) {
        Ok(())
    } else {
        Err(Error::Setting { name, value: value.to_string(), requirement })
    }
}
