//! An audit of predictions and labels, in one call.

use crate::verdict::Source;
use crate::{Alternative, Audit, Error, NoiseEstimate, NoiseModel, Predictions, Result, Verdict};

/// What [`rank`] finds.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ranking {
    /// Every label, most suspicious first, with a suggestion.
    pub audit: Audit,
    /// How many labels are wrong, and what they were mistaken for.
    pub estimate: NoiseEstimate,
}

impl Ranking {
    /// Labels that were ranked, with an estimate of how many are wrong.
    #[must_use]
    pub fn new(audit: Audit, estimate: NoiseEstimate) -> Self {
        Self { audit, estimate }
    }

    /// Ranks labels by a model of noise.
    ///
    /// As many labels are flagged as the estimate says are wrong, the most suspicious ones; none if nothing can be judged.
    ///
    /// # Errors
    /// If there are fewer names than classes.
    pub fn by(model: &NoiseModel, class_names: &[String]) -> Result<Self> {
        let alternatives = model.alternatives();
        let estimate = NoiseEstimate::by_alternatives(model, &alternatives);
        let verdicts: Vec<Verdict> = alternatives
            .iter()
            .zip(model.beliefs().given())
            .map(|(found, &given)| Verdict::of_alternative(found, given))
            .collect();
        let audit = Audit::flagging(&verdicts, class_names, estimate.wrong_labels())?;
        Ok(Self { audit, estimate })
    }
}

impl NoiseEstimate {
    /// The estimate by a model that has judged its samples already.
    pub(crate) fn by_alternatives(model: &NoiseModel, alternatives: &[Alternative]) -> Self {
        let careful: Vec<f64> = alternatives.iter().map(|found| 1.0 - found.given).collect();
        Self::of(model, &careful)
    }
}

impl Verdict {
    /// What a model of noise says of a label.
    pub(crate) fn of_alternative(found: &Alternative, given: u32) -> Self {
        Self {
            given,
            suggested: found.class,
            clean_probability: found.given,
            source: Source::HiddenLabels,
            score: found.score,
            suggested_probability: found.probability as f32,
            given_probability: found.given as f32,
        }
    }
}

/// Ranks labels by how likely they are to be wrong, given predictions for the same samples.
///
/// `pred_probs` holds a row of C probabilities for each sample (N x C, row after row); `labels` holds N class numbers below C. Predictions
/// should come from models that did not train on the sample they predict (cross-validation), or that resisted memorising wrong labels:
/// a network that has memorised its labels agrees with all of them. Which of the two they are is found out ([`NoiseModel::fit`]).
///
/// As many labels are flagged as the estimate says are wrong. A flagged label's suggestion is the likeliest other class.
///
/// ```
/// let pred_probs = [0.9, 0.1, 0.8, 0.2, 0.2, 0.8, 0.1, 0.9, 0.95, 0.05, 0.1, 0.9f32];
/// let labels = [0, 0, 1, 1, 1, 1];
/// let ranking = negscale_audit::rank(&pred_probs, &labels)?;
/// let worst = &ranking.audit.findings()[0];
/// assert_eq!((worst.index, worst.verdict.given, worst.verdict.suggested), (4, 1, 0));
/// # Ok::<(), negscale_audit::Error>(())
/// ```
///
/// # Errors
/// If the sizes do not fit, a label is not below C, or a row is not a probability distribution.
pub fn rank(pred_probs: &[f32], labels: &[u32]) -> Result<Ranking> {
    let classes = pred_probs.len() / labels.len().max(1);
    let names: Vec<String> = (0..classes).map(|class| class.to_string()).collect();
    let predictions = Predictions::new(pred_probs, labels, classes)?;
    check_sums(pred_probs, classes)?;
    Ranking::by(&NoiseModel::fit(&predictions), &names)
}

/// Refuses rows that do not sum to 1.
pub(crate) fn check_sums(pred_probs: &[f32], classes: usize) -> Result<()> {
    for (sample, row) in pred_probs.chunks(classes.max(1)).enumerate() {
        let sum: f64 = row.iter().map(|&p| f64::from(p)).sum();
        if (sum - 1.0).abs() > 1e-3 {
            let problem =
                format!("those of sample {sample} sum to {sum:.4}, not to 1: give probabilities, not logits");
            return Err(Error::Samples { what: "predictions", problem });
        }
    }
    Ok(())
}
