//! What goes into the plug-in besides features, and what it reports.

/// What a training step hands to the plug-in besides features.
#[derive(Debug, Clone, Copy)]
pub struct Tap<'a, T> {
    /// Labels as given, one per sample.
    pub labels: &'a [usize],
    /// Softmax probability of the predicted class, one per sample; a constant of the gradient.
    pub confidence: &'a [T],
    /// Labels that the host believes; needed with `targets = "refurbished"`.
    pub refurbished: Option<&'a [usize]>,
    /// Whether the host is still warming up.
    pub warming_up: bool,
    /// Number of the batch; decides the draw of random pairs.
    pub batch: u64,
}

impl<'a, T> Tap<'a, T> {
    /// Labels and confidences; everything else at rest.
    pub fn new(labels: &'a [usize], confidence: &'a [T]) -> Self {
        Self { labels, confidence, refurbished: None, warming_up: false, batch: 0 }
    }
}

/// The pairs of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairLists {
    /// $P_{neg}$.
    pub unrelated: Vec<(usize, usize)>,
    /// $P_{sim}$.
    pub related: Vec<(usize, usize)>,
}

/// Why a term has the value it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TermState {
    /// Computed.
    Active,
    /// Zero: the batch holds no pair that the term speaks of.
    NoPairs,
    /// Zero: switched off, or weight 0.
    Off,
    /// Zero: the host is warming up.
    WarmUp,
}

/// Record of one evaluation.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Terms {
    /// SNOP's global term, reduced, without weights.
    pub global: f64,
    /// SNOP's local term, reduced, without weights.
    pub local: f64,
    /// DCSA, reduced, without its weight.
    pub dcsa: f64,
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
}

/// Value and gradient. The gradient lives in the workspace until its next use.
#[derive(Debug, Clone, Copy)]
pub struct Evaluation<'w, T> {
    /// $\lambda(\text{global} + \text{local}) + \mu\,\text{dcsa}$.
    pub value: f64,
    /// What the value is made of.
    pub terms: Terms,
    /// From [`NegScale::phi`](crate::NegScale::phi): $\Gamma$, B x B. From [`NegScale::from_features`](crate::NegScale::from_features): gradient of the features, B x d.
    pub gradient: &'w [T],
}
