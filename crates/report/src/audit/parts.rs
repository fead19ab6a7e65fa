//! What the page of an audit is made from, part by part. Shares and probabilities are fractions; NaN is shown as a dash.

use crate::thumbnail::Thumbnail;

/// A share with its interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// The share.
    pub rate: f64,
    /// Its lower and upper end.
    pub interval: [f64; 2],
}

/// The labels of one class.
#[derive(Debug, Clone, Default)]
pub struct ClassRow {
    /// The class, as given.
    pub class: usize,
    /// How many labels name it.
    pub labels: usize,
    /// How many of these look wrong.
    pub flagged: usize,
    /// The estimated share of these that is wrong.
    pub share: f64,
    /// The score of the least suspicious flagged label of this class.
    pub threshold: Option<f64>,
    /// What is known at that score, in a few words; may be empty.
    pub why: String,
}

/// A class that is given where another is probable.
#[derive(Debug, Clone, Default)]
pub struct ConfusionRow {
    /// The class as given.
    pub given: usize,
    /// The probable class.
    pub probably: usize,
    /// How many labels.
    pub count: usize,
    /// The share of the given class's labels.
    pub share: f64,
    /// Distance between the two in the class tree.
    pub tree_distance: Option<u32>,
}

/// The labels from one source.
#[derive(Debug, Clone, Default)]
pub struct SourceRow {
    /// Its name.
    pub source: String,
    /// How many labels come from it.
    pub labels: usize,
    /// How many of these look wrong.
    pub flagged: usize,
    /// The estimated share of these that is wrong.
    pub share: f64,
    /// The interval of that share.
    pub interval: Option<[f64; 2]>,
}

/// A label that looks wrong.
#[derive(Debug, Clone, Default)]
pub struct WorstLabel {
    /// Number of the sample.
    pub index: usize,
    /// Where it came from, if it has a name.
    pub path: Option<String>,
    /// Class it is labelled as.
    pub given: usize,
    /// Class it looks like; the given one if none fits better.
    pub suggested: usize,
    /// Probability that the label is wrong.
    pub score: f64,
    /// Probability of the suggested class.
    pub suggested_probability: f64,
    /// Why it looks wrong, in short sentences.
    pub reasons: Vec<String>,
    /// True class, where known.
    pub truth: Option<usize>,
    /// What it looks like.
    pub thumbnail: Option<Thumbnail>,
    /// For a row of a table: names and values of a few features.
    pub values: Vec<(String, String)>,
}

/// Something to do.
#[derive(Debug, Clone, Default)]
pub struct NextStep {
    /// What for.
    pub words: String,
    /// The command; may be empty.
    pub command: String,
}

/// What corrected labels would change.
#[derive(Debug, Clone, Default)]
pub struct Correction {
    /// The file with the corrected labels.
    pub file: String,
    /// How many labels it changes.
    pub changed: usize,
    /// The expected share of these changes that is right.
    pub expected_precision: Option<f64>,
    /// Why that is not known, as the end of a sentence.
    pub unknown: Option<String>,
    /// How many labels are expected to be right as given.
    pub right_before: Option<f64>,
    /// How many are expected to be right after the correction.
    pub right_after: Option<f64>,
}

/// A sample of a group of near-duplicates.
#[derive(Debug, Clone, Default)]
pub struct Member {
    /// Number of the sample in its split.
    pub index: usize,
    /// Where it came from, if it has a name.
    pub path: Option<String>,
    /// Class it is labelled as.
    pub label: usize,
    /// Its split, as `train` or `test`; may be empty.
    pub split: String,
    /// What it looks like.
    pub thumbnail: Option<Thumbnail>,
}

/// A sample that fits no class.
#[derive(Debug, Clone, Default)]
pub struct Outlier {
    /// Number of the sample.
    pub index: usize,
    /// Where it came from, if it has a name.
    pub path: Option<String>,
    /// Class it is labelled as.
    pub label: usize,
    /// How strange it is; larger is stranger.
    pub score: f64,
    /// What it looks like.
    pub thumbnail: Option<Thumbnail>,
}

/// Who gave labels.
#[derive(Debug, Clone, Default)]
pub struct AnnotatorRow {
    /// Name.
    pub name: String,
    /// How many labels.
    pub labels: usize,
    /// Estimated share of right ones.
    pub accuracy: f64,
    /// Share that agrees with the consensus of the others.
    pub agreement: f64,
}

/// How labels were judged.
#[derive(Debug, Clone, Default)]
pub struct Judging {
    /// How it went, in sentences.
    pub words: Vec<String>,
    /// Whose predictions were pooled.
    pub experts: Vec<Expert>,
    /// Exponent of the model of hidden labels.
    pub exponent: Option<f64>,
    /// How long it took.
    pub seconds: Option<f64>,
}

/// A model whose predictions were pooled with others.
#[derive(Debug, Clone, Default)]
pub struct Expert {
    /// What it is.
    pub name: String,
    /// Its weight in the pool.
    pub weight: f64,
    /// A few words on it; may be empty.
    pub note: String,
}
