//! What can be chosen by a word in the settings.

use serde::{Deserialize, Serialize};

/// How sums over pairs become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reduction {
    /// Means over what the paper sums: entries of $F^\top F - I$, unrelated pairs, related pairs.
    #[default]
    Mean,
    /// The paper to the letter. At a batch of 128 the global term is near $10^6$ beside a cross-entropy
    /// of 2, so the weights must be tiny for training to survive.
    Sum,
}

/// Where the unrelated pairs of a batch come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PairSource {
    /// The class tree: $D > \eta_{\max}$.
    #[default]
    Tree,
    /// As many pairs as the tree gives, drawn uniformly from all pairs of the batch (the paper's
    /// ablation "random selection").
    Random,
}

/// What a similarity is, in SNOP's local term and in DCSA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Similarity {
    /// The cosine $s$ itself, from -1 to 1.
    #[default]
    Cosine,
    /// $(1 + s)/2$, from 0 to 1: what a "normalised similarity" may also mean. Orthogonal features are then half similar.
    Half,
}

/// Which unrelated pairs the local term acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LocalShape {
    /// All of them (the paper): the square pushes similar pairs apart, and pulls pairs with negative similarity together.
    #[default]
    Square,
    /// Those above $-1/(C - 1)$, the cosine of the classes of a clean network with $C$ classes: they are pushed down to it, and none
    /// is pulled up from below.
    OneSided,
}

/// What the sum of the local term is divided by with `reduction = "mean"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LocalDivisor {
    /// $P$, the number of unrelated pairs.
    #[default]
    Pairs,
    /// $P^2$, as the global term.
    Entries,
}

/// Where the similarities come from that $\\delta$ is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DeltaFeatures {
    /// The features of the batch as they are now.
    #[default]
    Batch,
    /// The features of the same samples as a frozen pass at the start of the epoch found them.
    Epoch,
}

/// Whose word a sample's confidence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Confidence {
    /// The network's: the softmax probability of the class that it predicts (the paper). A memorised wrong label is confident.
    #[default]
    Prediction,
    /// The ledger's: the probability that the given label is right.
    Clean,
}

/// Which labels decide the pair sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Targets {
    /// The labels as given, $\tilde y$ (the paper).
    #[default]
    Given,
    /// The labels that the host currently believes.
    Refurbished,
}

/// What is subtracted from the features before they are normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Centre {
    /// Nothing: for features that can be negative.
    #[default]
    None,
    /// The running mean of the class means, for features that cannot be negative (after a ReLU), whose
    /// cosines would otherwise never fall below 0.
    ClassBalanced,
}
