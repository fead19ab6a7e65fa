//! Which labels are wrong and what they should be, for every host alike.
//!
//! **Clean probability** $w_i$: the host's own where it has set one. Else the posterior of the low component of a mixture of two
//! Gaussians ([`gmm`](crate::gmm)) that is fitted to one loss per sample, over all samples with a loss: the last one seen,
//! or the mean of those kept ([`LossSummary`]). A sample without a loss gets 0.5: nothing is known.
//!
//! **Score**: how suspicious the label is by the [model of noise](crate::NoiseModel) fitted to the ledger's predictions, or $1 - w_i$ where
//! nobody has looked. It orders better than $w_i$, which host and mixture drive to 0 or 1.
//!
//! **Suggestion**: the likeliest other class by that model. Where nobody has looked, $\arg\max_c t_{ic}$ of the believed target; among equals the
//! given label, else the first. (A target that prefers nothing accuses nobody.)

use crate::gmm::{self, GmmSettings};
use crate::{Ledger, NoiseEstimate, NoiseModel, Result};
use serde::{Deserialize, Serialize};

/// One loss per sample from those of recent epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossSummary {
    /// That of the last epoch in which the sample was seen.
    #[default]
    Last,
    /// The mean over the epochs kept in which it was seen.
    Mean,
}

/// Settings of the default verdict.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VerdictSettings {
    /// Which loss the mixture sees.
    pub losses: LossSummary,
    /// The mixture.
    pub mixture: GmmSettings,
}

/// Where a clean probability comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The host set it.
    Host,
    /// The mixture of losses.
    Mixture,
    /// The model of hidden labels.
    HiddenLabels,
    /// Nowhere: the sample has no loss, and the probability is 0.5.
    Nothing,
}

/// What is believed about one label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// The label as given.
    pub given: u32,
    /// The believed class.
    pub suggested: u32,
    /// Probability that the given label is right.
    pub clean_probability: f64,
    /// Where that comes from.
    pub source: Source,
    /// How suspicious the label is, from 0 to 1.
    pub score: f64,
    /// Believed probability of the believed class.
    pub suggested_probability: f32,
    /// Believed probability of the given class.
    pub given_probability: f32,
}

impl Ledger {
    /// The verdict on every sample, in order, by a model fitted to this ledger's predictions, and how many labels are wrong; the clean probability is
    /// the host's. Samples are judged once for both.
    pub fn judge_by(
        &self,
        model: &NoiseModel,
        settings: &VerdictSettings,
    ) -> Result<(Vec<Verdict>, NoiseEstimate)> {
        let mut verdicts = self.verdicts(settings)?;
        let alternatives = model.alternatives();
        for (verdict, found) in verdicts.iter_mut().zip(&alternatives) {
            let by_model = Verdict::of_alternative(found, verdict.given);
            *verdict =
                Verdict { clean_probability: verdict.clean_probability, source: verdict.source, ..by_model };
        }
        Ok((verdicts, NoiseEstimate::by_alternatives(model, &alternatives)))
    }

    /// The verdict on every sample, in order, scored by clean probabilities.
    pub fn verdicts(&self, settings: &VerdictSettings) -> Result<Vec<Verdict>> {
        let judged = self.judge_losses(settings)?;
        let verdicts = judged.into_iter().enumerate().map(|(i, judged)| {
            let given = self.given[i];
            let target = &self.targets[i * self.classes..(i + 1) * self.classes];
            let given_probability = target[given as usize];
            let (mut suggested, mut suggested_probability) = (given, given_probability);
            for (class, &t) in (0..).zip(target) {
                if t > suggested_probability {
                    (suggested, suggested_probability) = (class, t);
                }
            }
            let (clean_probability, source) = match (self.clean(i), judged) {
                (Some(w), _) => (f64::from(w), Source::Host),
                (None, Some(w)) => (w, Source::Mixture),
                (None, None) => (0.5, Source::Nothing),
            };
            Verdict {
                given,
                suggested,
                clean_probability,
                source,
                score: 1.0 - clean_probability,
                suggested_probability,
                given_probability,
            }
        });
        Ok(verdicts.collect())
    }

    /// The loss of a sample that stands for its recent epochs.
    pub fn loss(&self, sample: usize, summary: LossSummary) -> Option<f64> {
        let mut seen = self.losses(sample).flatten().map(f64::from);
        match summary {
            LossSummary::Last => seen.next_back(),
            LossSummary::Mean => {
                let (sum, count) = seen.fold((0.0, 0u32), |(sum, count), loss| (sum + loss, count + 1));
                (count > 0).then(|| sum / f64::from(count))
            }
        }
    }

    /// What the mixture says of every sample with a loss; nothing at all if the host has spoken on every sample.
    fn judge_losses(&self, settings: &VerdictSettings) -> Result<Vec<Option<f64>>> {
        let mut judged = vec![None; self.len()];
        if self.clean.iter().all(|w| !w.is_nan()) {
            return Ok(judged);
        }
        let known = (0..self.len()).filter_map(|i| self.loss(i, settings.losses).map(|loss| (i, loss)));
        let (samples, losses): (Vec<usize>, Vec<f64>) = known.unzip();
        if !losses.is_empty() {
            for (i, w) in samples.into_iter().zip(gmm::clean_probabilities(&losses, &settings.mixture)?) {
                judged[i] = Some(w);
            }
        }
        Ok(judged)
    }
}
