//! An audit of predictions and labels, in one call.

use crate::verdict::Source;
use crate::{
    Audit, Error, FLAG_BELOW, HiddenLabelModel, MIN_EXPONENT_COUNTING, MIN_EXPONENT_RANKING, NoiseEstimate,
    Result, Verdict,
};

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
}

/// Ranks labels by how likely they are to be wrong, given predictions for the same samples.
///
/// `pred_probs` holds a row of C probabilities for each sample (N x C, row after row); `labels` holds N class numbers below C. Predictions
/// should come from models that did not train on the sample they predict (cross-validation), or that resisted memorising wrong labels:
/// a network that has memorised its labels agrees with all of them.
///
/// The score is the probability that the label is wrong by the [model of hidden labels](HiddenLabelModel). A label is flagged if its score is
/// above one half; then its suggestion is the likeliest other class.
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
    crate::hidden_labels::check(pred_probs, labels, classes)?;
    check_sums(pred_probs, classes)?;
    let counting = HiddenLabelModel::fit(pred_probs, labels, classes, MIN_EXPONENT_COUNTING)?;
    let ranking = counting.with_exponent_from(pred_probs, MIN_EXPONENT_RANKING)?;
    let verdict = |((alternative, score), &given): ((crate::hidden_labels::Alternative, f64), &u32)| {
        let is_flagged = 1.0 - score < FLAG_BELOW;
        let is_changed = is_flagged || alternative.probability > alternative.given;
        let (suggested, suggested_probability) = if is_changed {
            (alternative.class, alternative.probability)
        } else {
            (given, alternative.given)
        };
        Verdict {
            given,
            suggested,
            clean_probability: 1.0 - score,
            source: Source::HiddenLabels,
            score,
            suggested_probability: suggested_probability as f32,
            given_probability: alternative.given as f32,
        }
    };
    let judged = ranking.alternatives().into_iter().zip(ranking.scores()).zip(labels);
    let verdicts: Vec<Verdict> = judged.map(verdict).collect();
    let names: Vec<String> = (0..classes).map(|class| class.to_string()).collect();
    Ok(Ranking {
        audit: Audit::new(&verdicts, &names, FLAG_BELOW)?,
        estimate: NoiseEstimate::new(pred_probs, labels, classes, &counting)?,
    })
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
