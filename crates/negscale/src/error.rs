//! What can go wrong, each message saying what, where and what to do about it.

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of the crate.
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
    /// Two inputs of a batch disagree in size.
    #[error("{what}: got {got} values, need {need} ({why})")]
    Size {
        /// Which input.
        what: &'static str,
        /// How many values came.
        got: usize,
        /// How many are needed.
        need: usize,
        /// Where the needed number comes from.
        why: String,
    },
    /// A value is NaN or infinite.
    #[error("{what} of sample {sample} of the batch is {value}: NegScale needs finite numbers (has training diverged? lower the learning rate, or check the input for NaN)")]
    NotFinite {
        /// Which input.
        what: &'static str,
        /// Position in the batch.
        sample: usize,
        /// The value found.
        value: f64,
    },
    /// A label names no class of the tree.
    #[error("label {label} of sample {sample} of the batch: the class tree `{tree}` has {classes} classes, so labels run from 0 to {last}")]
    Label {
        /// Position in the batch.
        sample: usize,
        /// The label.
        label: usize,
        /// Name of the tree.
        tree: String,
        /// Number of classes of the tree.
        classes: usize,
        /// Largest valid label.
        last: usize,
    },
    /// A confidence outside [0, 1].
    #[error("confidence {value} of sample {sample} of the batch is not in [0, 1]: hand over the softmax probability of the predicted class, not a logit")]
    Confidence {
        /// Position in the batch.
        sample: usize,
        /// The confidence.
        value: f64,
    },
    /// `targets = refurbished` without refurbished labels.
    #[error("settings say targets = \"refurbished\", but the batch carries no refurbished labels: hand them over in `Tap::refurbished`, or set targets = \"given\"")]
    NoRefurbished,
}
