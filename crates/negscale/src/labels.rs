//! What goes into the plug-in besides features.

/// Labels and confidences of a batch: what a training step hands to the plug-in besides features.
///
/// ```
/// # let (labels, confidence, believed) = ([3, 5], [0.5f32, 0.7], [3, 3]);
/// use negscale::BatchLabels;
///
/// let batch = BatchLabels::new(&labels, &confidence).with_step(1200).with_refurbished(&believed);
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct BatchLabels<'a, T> {
    /// Labels as given, one per sample.
    pub labels: &'a [usize],
    /// Softmax probability of the predicted class, one per sample; a constant of the gradient.
    pub confidence: &'a [T],
    /// Labels that the host believes; needed with `targets = "refurbished"`.
    pub refurbished: Option<&'a [usize]>,
    /// Whether the host is still warming up.
    pub warming_up: bool,
    /// Number of the training step; decides the draw of random pairs.
    pub step: u64,
    /// Probability that each given label is right; needed with `confidence = "clean"`, used by the anchor of class means.
    pub clean: Option<&'a [T]>,
    /// Raw features of the same samples at the start of the epoch, B x d; needed with `delta_features = "epoch"`.
    pub frozen: Option<&'a [T]>,
}

impl<'a, T> BatchLabels<'a, T> {
    /// Labels and confidences of a batch of step 0, after warm-up, without refurbished labels.
    pub fn new(labels: &'a [usize], confidence: &'a [T]) -> Self {
        Self { labels, confidence, refurbished: None, warming_up: false, step: 0, clean: None, frozen: None }
    }

    /// Adds the labels that the host believes.
    #[must_use]
    pub fn with_refurbished(self, refurbished: &'a [usize]) -> Self {
        Self { refurbished: Some(refurbished), ..self }
    }

    /// Adds the probability that each given label is right.
    #[must_use]
    pub fn with_clean(self, clean: &'a [T]) -> Self {
        Self { clean: Some(clean), ..self }
    }

    /// Adds raw features of the same samples at the start of the epoch.
    #[must_use]
    pub fn with_frozen(self, frozen: &'a [T]) -> Self {
        Self { frozen: Some(frozen), ..self }
    }

    /// Says whether the host is still warming up.
    #[must_use]
    pub fn with_warming_up(self, warming_up: bool) -> Self {
        Self { warming_up, ..self }
    }

    /// Says which training step this is.
    #[must_use]
    pub fn with_step(self, step: u64) -> Self {
        Self { step, ..self }
    }
}
