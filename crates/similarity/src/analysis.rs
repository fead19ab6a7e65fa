//! Everything that was measured, as `analysis.json` holds it.

use crate::change::Change;
use crate::drift::Drift;
use crate::kendall::{Agreement, Orders};
use crate::label_noise::LabelNoise;
use crate::pairs::{ByRelation, Pairs, Spread};
use crate::perturbation::{Bound, Perturbation};
use serde::{Deserialize, Serialize};

/// A run (or a file of features) that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// Its folder or file.
    pub name: String,
    /// Training method with plug-in, if it is a run.
    pub method: Option<String>,
    /// Its noise, as in its settings.
    pub noise: Option<String>,
    /// Accuracy on the test set after the last epoch ("Acc" of Table 1), if it is there to read.
    pub accuracy: Option<f64>,
    /// Mean and spread of similarity over all pairs (Table 1, Figures 2 and 3).
    pub similarity: Pairs<Spread>,
    /// Mean cosine of every two classes, by true labels where known, else by given ones (Figure 1).
    pub class_means: Vec<Vec<Option<f64>>>,
    /// How samples order the classes; absent without logits.
    pub orders: Option<Orders>,
    /// Mean change of similarity per step, of every epoch in which it was recorded (setting `probe`).
    #[serde(default)]
    pub steps: Vec<ByRelation<f64>>,
    /// The change that one gradient step would make, to first order; absent without a classifier.
    #[serde(default)]
    pub drift: Option<Drift>,
}

/// What was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Name of the data, or the file of labels.
    pub data: String,
    /// Which part: `train`, `test`, or `file`.
    pub split: String,
    /// Samples.
    pub samples: usize,
    /// Samples without a direction (all features 0), left out of all pairs.
    pub skipped: usize,
    /// Share of wrong labels, where the truth is known.
    pub wrong: Option<f64>,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Name of the class tree.
    pub tree: String,
    /// Classes up to this distance are related.
    pub eta_min: u32,
    /// Classes beyond this distance are unrelated.
    pub eta_max: u32,
}

/// `analysis.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// Version of this form: 1.
    pub version: u32,
    /// What was looked at.
    pub target: Target,
    /// What true labels say about the noise and the class tree, where they are known.
    #[serde(default)]
    pub label_noise: Option<LabelNoise>,
    /// The same by the run's beliefs.
    #[serde(default)]
    pub believed_noise: Option<LabelNoise>,
    /// The run.
    pub run: Subject,
    /// A clean run to compare with: the same samples and pairs ("Small Clean", "Large Clean").
    pub clean: Option<Subject>,
    /// What changed against the clean run.
    pub change: Option<Pairs<Change>>,
    /// How alike the two runs order the classes.
    pub agreement: Option<Agreement>,
    /// How far the features moved, after the best rotation.
    pub perturbation: Option<Perturbation>,
    /// The paper's bounds.
    pub bound: Option<Bound>,
}
