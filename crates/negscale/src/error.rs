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
    #[error(
        "{what} of sample {sample} of the batch is {value}: NegScale needs finite numbers (has training diverged? lower the learning rate, or check the input for NaN)"
    )]
    NotFinite {
        /// Which input.
        what: &'static str,
        /// Position in the batch.
        sample: usize,
        /// The value found.
        value: f64,
    },
    /// A label names no class of the tree.
    #[error(
        "label {label} of sample {sample} of the batch: the class tree `{tree}` has {classes} classes, so labels run from 0 to {last}"
    )]
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
    /// A label below 0, where a tensor can hold one.
    #[error(
        "label {label} of sample {sample} of the batch is negative: leave samples without a label out of the batch"
    )]
    NegativeLabel {
        /// Position in the batch.
        sample: usize,
        /// The label.
        label: i64,
    },
    /// A confidence outside [0, 1].
    #[error(
        "confidence {value} of sample {sample} of the batch is not in [0, 1]: hand over the softmax probability of the predicted class, not a logit"
    )]
    Confidence {
        /// Position in the batch.
        sample: usize,
        /// The confidence.
        value: f64,
    },
    /// `targets = refurbished` without refurbished labels.
    #[error(
        "settings say targets = \"refurbished\", but the batch carries no refurbished labels: hand them over by `BatchLabels::with_refurbished`, or set targets = \"given\""
    )]
    NoRefurbished,
    /// A setting needs something that the batch does not carry.
    #[error(
        "settings say {setting}, but the batch carries no {lacks}: hand it over by `BatchLabels::{by}`, or change the setting"
    )]
    Lacking {
        /// The setting and its value.
        setting: &'static str,
        /// What is missing.
        lacks: &'static str,
        /// How to hand it over.
        by: &'static str,
    },
    /// No class tree of that name comes with the crate.
    #[error("no built-in class tree is called `{name}`{}: choose one of {known}, or load a tree of your own from a file", suggestion(.nearest))]
    UnknownTree {
        /// The name asked for.
        name: String,
        /// The built-in name most like it, if any is close.
        nearest: Option<String>,
        /// All built-in names.
        known: String,
    },
    /// A class tree breaks a rule that every tree must keep.
    #[error("class tree `{tree}`{}: {problem}", place(.line, .node))]
    Tree {
        /// Name of the tree.
        tree: String,
        /// Line of the text it was read from, counted from 1, if it was read from text.
        line: Option<usize>,
        /// The node in question, if it is one node's fault.
        node: Option<String>,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Classes of the data that the tree does not know.
    #[error("class tree `{tree}` lacks {} of the data's classes: {hint}; rename them in the data, add them to the tree, or use the flat tree, which claims no relation", .absent.len())]
    AbsentClasses {
        /// Name of the tree.
        tree: String,
        /// The classes it lacks, as the data spells them.
        absent: Vec<String>,
        /// The same classes with the nearest name of the tree where one is close.
        hint: String,
    },
    /// An id in a list of WordNet synsets.
    #[error("class tree `{tree}`, class {position} (counted from 0), synset `{id}`: {problem}")]
    Synset {
        /// Name of the tree.
        tree: String,
        /// The id as given.
        id: String,
        /// Its position in the list, which is the class index.
        position: usize,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A WordNet data file that cannot be read.
    #[error("WordNet noun file, line {line}: {problem} (expected is the file `data.noun` of WordNet 3.0)")]
    WordNet {
        /// Line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A class whose mean feature cannot be had.
    #[error("class {class} (`{name}`): {problem}")]
    ClassMean {
        /// Index of the class.
        class: usize,
        /// Name of the class.
        name: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A device did not hand over its numbers.
    #[error("could not read the tensor from its device: {reason}")]
    Device {
        /// What the device said.
        reason: String,
    },
}

fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

fn place(line: &Option<usize>, node: &Option<String>) -> String {
    let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
    let node = node.as_ref().map(|node| format!(", node `{node}`")).unwrap_or_default();
    line + &node
}
