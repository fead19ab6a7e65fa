//! `corrected.csv`: the labels as they would be if the audit were believed.
//!
//! Columns: `index, path, label, given, changed`, a row for every sample in the order of the data. `label` is the suggestion where
//! the label is flagged and the suggestion is more likely right than wrong by the model's own calibrated word, else the label as given; `changed` is `true` or `false`. The file can be
//! trained on (`--labels corrected.csv`), also when its rows were sorted or shuffled: they are joined by `index` and `path`. What a
//! spreadsheet would take for a formula is guarded as in `audit.csv`, and read back as it was.
//!
//! # What is expected of it
//! The mean probability of the suggestions that are taken over, by the model: right as long as the model's picture of the noise is. Where labels may all be
//! right, that picture is one of overlapping classes, and the number means nothing. So it is told only if at least [`FEWEST`] labels change and the estimate's interval
//! does not begin near 0, that is below a quarter of where it ends.

use crate::table::{Cells, system};
use crate::{Audit, Finding, Verdict};
use crate::{Error, Result};
use negscale_atomic_file::write_atomic;
use std::io::{self, Write};
use std::path::Path;

pub(crate) const CORRECTED_COLUMNS: [&str; 5] = ["index", "path", "label", "given", "changed"];

/// Of fewer changes nothing is expected: one more or less would be another share.
pub const FEWEST: usize = 20;
/// An interval that begins below this share of its end begins near 0.
const NEAR_ZERO: f64 = 0.25;

/// The least probability of a suggestion that is taken over.
const LEAST_SURE: f32 = 0.7;

impl Finding {
    /// Whether `corrected.csv` has the suggestion in place of the label: it is flagged, and the suggestion is clearly more likely right than
    /// wrong.
    #[must_use]
    pub fn is_corrected(&self) -> bool {
        let Verdict { given, suggested, suggested_probability, .. } = self.verdict;
        is_corrected(self.flag, given, suggested, suggested_probability)
    }
}

/// Whether a label is replaced by the suggestion.
pub(crate) fn is_corrected(flag: bool, given: u32, suggested: u32, probability: f32) -> bool {
    flag && suggested != given && probability > LEAST_SURE
}

/// What `corrected.csv` changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correction {
    /// Labels that are changed.
    pub changed: usize,
    /// Expected share of these whose new label is right, where that is known.
    pub expected_precision: Option<f64>,
    /// Why it is not known although labels change, as the end of a sentence.
    pub unknown: Option<&'static str>,
    /// Expected share of right labels among all as given.
    pub right_before: f64,
    /// Expected share of right labels among all after the correction, where that is known.
    pub right_after: Option<f64>,
}

impl Audit {
    /// What a correction changes and what is expected of it; `rate` and `interval` are the estimated share of wrong labels.
    #[must_use]
    pub fn correction(&self, rate: f64, interval: [f64; 2]) -> Correction {
        let changed: Vec<&Finding> = self.findings.iter().filter(|finding| finding.is_corrected()).collect();
        let sum = |of: fn(&Finding) -> f32| changed.iter().map(|f| f64::from(of(f))).sum::<f64>();
        let (gained, lost) = (sum(|f| f.verdict.suggested_probability), sum(|f| f.verdict.given_probability));
        let all = self.findings.len().max(1) as f64;
        let unknown = match changed.len() {
            0 => None,
            1..FEWEST => Some("too few labels change to say"),
            _ if interval[0] < NEAR_ZERO * interval[1] => Some(
                "the estimate's interval begins near 0 compared with where it ends, so perhaps hardly any label is wrong",
            ),
            _ => None,
        };
        let is_known = unknown.is_none();
        Correction {
            changed: changed.len(),
            expected_precision: (is_known && !changed.is_empty()).then(|| gained / changed.len() as f64),
            unknown,
            right_before: 1.0 - rate,
            right_after: is_known.then(|| (1.0 - rate + (gained - lost) / all).min(1.0)),
        }
    }

    /// The labels to train on, in the order of samples.
    pub fn corrected(&self) -> Vec<u32> {
        let mut labels = vec![0; self.findings.len()];
        for finding in &self.findings {
            let verdict = &finding.verdict;
            labels[finding.index] = if finding.is_corrected() { verdict.suggested } else { verdict.given };
        }
        labels
    }

    /// Writes the corrected labels, whole or not at all; `path_of` tells where a sample is from, if it has a place.
    pub fn save_corrected(
        &self,
        to: impl AsRef<Path>,
        path_of: impl Fn(usize) -> Option<String>,
    ) -> Result<()> {
        let to = to.as_ref();
        write_atomic(to, |file| self.write_corrected(file, path_of))
            .map_err(|source| Error::File { path: to.to_owned(), source })
    }

    fn write_corrected(&self, to: impl Write, path_of: impl Fn(usize) -> Option<String>) -> io::Result<()> {
        let mut given = vec![0; self.findings.len()];
        self.findings.iter().for_each(|finding| given[finding.index] = finding.verdict.given);
        let mut table = csv::Writer::from_writer(to);
        table.write_record(CORRECTED_COLUMNS).map_err(system)?;
        for (index, (label, given)) in self.corrected().into_iter().zip(given).enumerate() {
            let name = |class: u32| Cells::Guarded.text(&self.class_names[class as usize]);
            // Rows without a place of their own have an empty one.
            let path = path_of(index).map_or(String::new(), |path| Cells::Guarded.text(&path).into_owned());
            let changed = if label == given { "false" } else { "true" };
            let row = [&index.to_string(), &path, &*name(label), &name(given), changed];
            table.write_record(row).map_err(system)?;
        }
        table.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Source;

    /// So many labels that are changed, and 70 that are not.
    fn audit(changed: usize) -> Audit {
        let verdict = |at: usize| {
            let score = if at < changed { 0.9 } else { 0.1 };
            Verdict {
                given: 0,
                suggested: 1,
                clean_probability: 1.0 - score,
                source: Source::HiddenLabels,
                score,
                suggested_probability: score as f32,
                given_probability: (1.0 - score) as f32,
            }
        };
        let verdicts: Vec<Verdict> = (0..changed + 70).map(verdict).collect();
        Audit::flagging(&verdicts, &["a".into(), "b".into()], changed).unwrap()
    }

    #[test]
    fn precision_is_expected_only_where_many_labels_change_and_some_are_surely_wrong() {
        let known = audit(30).correction(0.3, [0.2, 0.4]);
        assert!((known.expected_precision.unwrap() - 0.9).abs() < 1e-6 && known.unknown.is_none());
        // 30 of 100 gain 0.8 each.
        assert!((known.right_after.unwrap() - 0.94).abs() < 1e-6, "{known:?}");
        let few = audit(FEWEST - 1).correction(0.3, [0.2, 0.4]);
        assert_eq!((few.changed, few.expected_precision, few.right_after), (FEWEST - 1, None, None));
        assert!(few.unknown.unwrap().contains("too few"));
        let clean = audit(30).correction(0.04, [0.04, 0.23]);
        assert!(clean.expected_precision.is_none() && clean.unknown.unwrap().contains("near 0"));
        let none = audit(0).correction(0.0, [0.0, 0.04]);
        assert_eq!((none.changed, none.unknown, none.right_after), (0, None, Some(1.0)));
    }
}
