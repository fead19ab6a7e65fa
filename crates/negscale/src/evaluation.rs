//! What the plug-in reports: value, gradient, and what the value is made of.

/// The pairs of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PairLists {
    /// $P_{neg}$.
    pub unrelated: Vec<(usize, usize)>,
    /// $P_{sim}$.
    pub related: Vec<(usize, usize)>,
}

/// Why a term has the value it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TermState {
    /// Computed.
    Active,
    /// Zero: there is no pair that the term is about.
    NoPairs,
    /// Zero: switched off, or weight 0.
    Off,
    /// Zero: the host is warming up.
    WarmUp,
}

/// Record of one evaluation.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Terms {
    /// SNOP's global term, reduced, without weights.
    pub global: f64,
    /// SNOP's local term, reduced, without weights.
    pub local: f64,
    /// DCSA, reduced, without its weight.
    pub dcsa: f64,
    /// The [anchor of class means](crate::anchor), without its weight; 0 as long as nothing is remembered.
    pub anchor: f64,
    /// Whether SNOP was computed.
    pub snop_state: TermState,
    /// Whether DCSA was computed.
    pub dcsa_state: TermState,
    /// P, the number of unrelated pairs.
    pub unrelated_pairs: usize,
    /// Q, the number of related pairs.
    pub related_pairs: usize,
    /// Related pairs above their cap.
    pub capped_pairs: usize,
    /// Unrelated pairs of equal features, which have no direction.
    pub identical_pairs: usize,
    /// Samples whose feature vector is zero, which have no direction and get no gradient.
    pub zero_features: usize,
    /// What value and gradient were multiplied by: 1, unless [`balance`](crate::balance) is set.
    pub scale: f64,
}

/// How long the gradient of each term is at the features, with its weights but without the factor of a [balance](crate::balance).
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct GradientLengths {
    /// SNOP's global term.
    pub global: f64,
    /// SNOP's local term.
    pub local: f64,
    /// DCSA.
    pub dcsa: f64,
    /// Share of the square of their sum that is on features not above 0: lost to a classifier behind a ReLU. 0 without a gradient.
    pub inactive: f64,
}

/// Value and gradient. The gradient lives in the workspace until its next use.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Evaluation<'w, T> {
    /// $\lambda(\text{global} + \text{local}) + \mu\,\text{dcsa}$, and the anchor where it is on; times the scale of a balance.
    pub value: f64,
    /// What the value is made of.
    pub terms: Terms,
    /// From [`loss_and_gradient`](crate::NegScale::loss_and_gradient): gradient of the features, B x d. From
    /// [`loss_and_gradient_from_cosines`](crate::NegScale::loss_and_gradient_from_cosines): $\Gamma$, B x B.
    pub gradient: &'w [T],
}
