//! `corrected.csv`: the labels as they would be if the audit were believed.
//!
//! Columns: `index, path, label, given, changed`, a row for every sample in the order of the data. `label` is the suggestion where
//! the label is flagged and the suggestion is more likely right than wrong by the model's own calibrated word, else the label as given; `changed` is `true` or `false`. The file can be
//! trained on (`--labels corrected.csv`), also when its rows were sorted or shuffled: they are joined by `index` and `path`. What a
//! spreadsheet would take for a formula is guarded as in `audit.csv`, and read back as it was.

use crate::table::{Cells, system};
use crate::{Audit, Finding, Verdict};
use crate::{Error, Result};
use negscale_atomic_file::write_atomic;
use std::io::{self, Write};
use std::path::Path;

pub(crate) const CORRECTED_COLUMNS: [&str; 5] = ["index", "path", "label", "given", "changed"];

/// The least probability of a suggestion that is taken over.
const LEAST_SURE: f32 = 0.6;

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
    /// Expected share of these whose new label is right.
    pub expected_precision: Option<f64>,
    /// Expected share of right labels among all, before and after.
    pub right: [f64; 2],
}

impl Audit {
    /// What a correction changes and what is expected of it; `rate` is the estimated share of wrong labels.
    #[must_use]
    pub fn correction(&self, rate: f64) -> Correction {
        let changed: Vec<&Finding> = self.findings.iter().filter(|finding| finding.is_corrected()).collect();
        let sum = |of: fn(&Finding) -> f32| changed.iter().map(|f| f64::from(of(f))).sum::<f64>();
        let (gained, lost) = (sum(|f| f.verdict.suggested_probability), sum(|f| f.verdict.given_probability));
        let all = self.findings.len().max(1) as f64;
        Correction {
            changed: changed.len(),
            expected_precision: (!changed.is_empty()).then(|| gained / changed.len() as f64),
            right: [1.0 - rate, (1.0 - rate + (gained - lost) / all).min(1.0)],
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
