//! How good an audit is, where the truth is known.
//!
//! A label is *wrong* if given and true class differ. Samples with equal scores form groups; $g = 1, 2, \dots$ runs over the
//! groups, most suspicious first. After group $g$, $n_g$ samples have been listed, $h_g$ of them wrong; $W$ are wrong in all.
//!
//! | measure | definition | without value if |
//! |---|---|---|
//! | average precision | $\sum_g \frac{h_g - h_{g-1}}{W} \cdot \frac{h_g}{n_g}$ | nothing is wrong |
//! | precision at $k$ | expected share of wrong ones among the first $k$, equals in random order | $k = 0$ or $k > N$ |
//! | clean AUC | $P(w_c > w_f) + \frac12 P(w_c = w_f)$ over pairs of a clean label $c$ and a wrong one $f$ | all or none are wrong |
//! | AUC | the same for the place in the list | all or none are wrong |
//! | flag precision | wrong among flagged | nothing is flagged |
//! | flag recall | flagged among wrong | nothing is wrong |
//! | suggestion accuracy | true class suggested, among wrong | nothing is wrong |
//! | noise, estimated | mean of $1 - w$ | there is no sample |
//! | noise, true | $W/N$ | there is no sample |

use crate::Audit;
use crate::{Error, Result};
use serde::Serialize;

/// Measures of an audit; `None` where a measure has no value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Measures {
    /// Average precision of the order.
    pub average_precision: Option<f64>,
    /// AUC of the order.
    pub auc: Option<f64>,
    /// AUC of the clean probability.
    pub clean_auc: Option<f64>,
    /// Share of wrong labels among flagged ones.
    pub flag_precision: Option<f64>,
    /// Share of flagged labels among wrong ones.
    pub flag_recall: Option<f64>,
    /// Share of wrong labels whose true class is suggested.
    pub suggestion_accuracy: Option<f64>,
    /// Noise rate by clean probabilities.
    pub noise_estimated: Option<f64>,
    /// Share of flagged labels.
    pub noise_flagged: Option<f64>,
    /// Noise rate by the truth.
    pub noise_true: Option<f64>,
}

impl Audit {
    /// Judges the audit by the true classes, in the order of samples.
    pub fn measure(&self, truth: &[u32]) -> Result<Measures> {
        let (ranks, wrong) = self.ranked(truth)?;
        let (mut flagged, mut hits, mut right, mut doubt) = (0, 0, 0, 0.0);
        for (finding, &is_wrong) in self.findings.iter().zip(&wrong) {
            flagged += usize::from(finding.flag);
            hits += usize::from(finding.flag && is_wrong);
            right += usize::from(is_wrong && finding.verdict.suggested == truth[finding.index]);
            doubt += 1.0 - finding.verdict.clean_probability;
        }
        let (all, faults) = (wrong.len(), wrong.iter().filter(|&&is_wrong| is_wrong).count());
        let clean: Vec<f64> = self.findings.iter().map(|finding| finding.verdict.clean_probability).collect();
        let is_clean: Vec<bool> = wrong.iter().map(|is_wrong| !is_wrong).collect();
        Ok(Measures {
            average_precision: average_precision(&ranks, &wrong),
            auc: area_under_curve(&ranks, &wrong),
            clean_auc: area_under_curve(&clean, &is_clean),
            flag_precision: share(hits as f64, flagged),
            flag_recall: share(hits as f64, faults),
            suggestion_accuracy: share(right as f64, faults),
            noise_estimated: share(doubt, all),
            noise_flagged: share(flagged as f64, all),
            noise_true: share(faults as f64, all),
        })
    }

    /// Precision among the `k` most suspicious labels.
    pub fn precision_at(&self, k: usize, truth: &[u32]) -> Result<Option<f64>> {
        let (ranks, wrong) = self.ranked(truth)?;
        Ok(precision_at(&ranks, &wrong, k))
    }

    /// A score for each finding, larger if more suspicious and equal within groups, and whether its label is wrong.
    fn ranked(&self, truth: &[u32]) -> Result<(Vec<f64>, Vec<bool>)> {
        if truth.len() != self.findings.len() {
            let problem = format!("{} true labels for {} samples", truth.len(), self.findings.len());
            return Err(Error::Samples { what: "audit", problem });
        }
        let pairs = self.findings.iter().map(|f| (-(f.group as f64), f.verdict.given != truth[f.index]));
        Ok(pairs.unzip())
    }
}

fn share(part: f64, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part / whole as f64)
}

/// Average precision of scores (larger comes first) at finding the hits. Scores must not be NaN.
pub fn average_precision(scores: &[f64], is_hit: &[bool]) -> Option<f64> {
    let groups = groups(scores, is_hit);
    let all: usize = groups.iter().map(|group| group.hits).sum();
    let (mut listed, mut found, mut sum) = (0, 0, 0.0);
    for group in groups {
        listed += group.size;
        found += group.hits;
        sum += group.hits as f64 * (found as f64 / listed as f64);
    }
    share(sum, all)
}

/// Expected share of hits among the `k` largest scores when equals come in random order. Scores must not be NaN.
pub fn precision_at(scores: &[f64], is_hit: &[bool], k: usize) -> Option<f64> {
    if k == 0 || k > scores.len() {
        return None;
    }
    let (mut left, mut found) = (k, 0.0);
    for group in groups(scores, is_hit) {
        let taken = group.size.min(left);
        found += taken as f64 * group.hits as f64 / group.size as f64;
        left -= taken;
    }
    share(found, k)
}

/// Probability that a hit scores more than a miss, equals counting half. Scores must not be NaN.
pub fn area_under_curve(scores: &[f64], is_hit: &[bool]) -> Option<f64> {
    let groups = groups(scores, is_hit);
    let (mut hits, mut misses, mut won) = (0.0, 0.0, 0.0);
    for group in groups {
        let (own_hits, own_misses) = (group.hits as f64, (group.size - group.hits) as f64);
        won += own_misses * (hits + 0.5 * own_hits);
        hits += own_hits;
        misses += own_misses;
    }
    (hits > 0.0 && misses > 0.0).then(|| won / (hits * misses))
}

/// Samples of equal score.
struct Group {
    size: usize,
    hits: usize,
}

/// Groups of equal scores, largest first.
fn groups(scores: &[f64], is_hit: &[bool]) -> Vec<Group> {
    let mut pairs: Vec<(f64, bool)> =
        scores.iter().map(|score| score + 0.0).zip(is_hit.iter().copied()).collect();
    pairs.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let chunks = pairs.chunk_by(|a, b| a.0 == b.0);
    chunks.map(|c| Group { size: c.len(), hits: c.iter().filter(|(_, is_hit)| *is_hit).count() }).collect()
}
