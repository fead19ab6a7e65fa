//! The list of labels to look at: `audit.csv`, most suspicious first, and how good the list is where the truth is known.
//!
//! # Order
//! Sample $i$ comes before sample $j$ if its [score](Verdict) is larger; if these are equal, if its clean
//! probability $w$ is smaller; then, if the believed probability of its given class is smaller (hosts that only say clean or wrong leave
//! many equal); if these are equal too, if its index is smaller. Samples that differ by index alone are one *group*: measures
//! treat them as tied.
//!
//! # Flag
//! As many of the most suspicious labels as the [estimate](crate::NoiseEstimate) says are wrong; so flags and estimate are one statement. Or, where somebody
//! wants it so, all labels with $w < \tau$.

use crate::{Error, Result, Verdict};
use std::cmp::Ordering;

/// The clean probability below which a label is flagged by default.
pub const FLAG_BELOW: f64 = 0.5;

/// One line of an audit.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Number of the sample.
    pub index: usize,
    /// What is believed about its label.
    pub verdict: Verdict,
    /// Distance between the given and the suggested class in the class tree, if there is one.
    pub tree_distance: Option<u32>,
    /// Whether the label is held to be wrong.
    pub flag: bool,
    /// Number of its group of equals, the most suspicious being 0.
    pub group: usize,
}

/// Findings on every label, most suspicious first.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    pub(crate) class_names: Vec<String>,
    pub(crate) findings: Vec<Finding>,
}

impl Audit {
    /// Ranks verdicts (one per sample, in order), flagging clean probabilities below `flag_below`.
    pub fn new(verdicts: &[Verdict], class_names: &[String], flag_below: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&flag_below) {
            let value = flag_below.to_string();
            return Err(Error::Range { setting: "flag_below", value, wanted: "must be in [0, 1]" });
        }
        Self::ranked_by(verdicts, class_names, |_, verdict| verdict.clean_probability < flag_below)
    }

    /// Ranks verdicts (one per sample, in order), flagging so many of the most suspicious ones. A label that is not flagged and whose own
    /// class is the likeliest is its own suggestion.
    pub fn flagging(verdicts: &[Verdict], class_names: &[String], count: usize) -> Result<Self> {
        let mut audit = Self::ranked_by(verdicts, class_names, |place, _| place < count)?;
        for finding in &mut audit.findings {
            finding.flag = finding.verdict.settle(finding.flag);
        }
        Ok(audit)
    }

    fn ranked_by(
        verdicts: &[Verdict],
        class_names: &[String],
        is_flagged: impl Fn(usize, &Verdict) -> bool,
    ) -> Result<Self> {
        let classes = class_names.len();
        let wrong = |problem| Err(Error::Samples { what: "audit", problem });
        for (i, verdict) in verdicts.iter().enumerate() {
            if verdict.given.max(verdict.suggested) as usize >= classes {
                return wrong(format!("sample {i} has a label that none of the {classes} class names fits"));
            }
            if !(0.0..=1.0).contains(&verdict.clean_probability) {
                let w = verdict.clean_probability;
                return wrong(format!("sample {i} has clean probability {w}, which is outside [0, 1]"));
            }
            if !(0.0..=1.0).contains(&verdict.score) {
                return wrong(format!("sample {i} has score {}, which is outside [0, 1]", verdict.score));
            }
        }
        let mut order: Vec<usize> = (0..verdicts.len()).collect();
        order.sort_by(|&i, &j| compare(&verdicts[i], &verdicts[j])); // stable: equals stay in the order of their indices
        let mut findings: Vec<Finding> = Vec::with_capacity(order.len());
        for (place, index) in order.into_iter().enumerate() {
            let verdict = verdicts[index];
            let group = findings.last().map_or(0, |last| {
                last.group + usize::from(compare(&last.verdict, &verdict) != Ordering::Equal)
            });
            let flag = is_flagged(place, &verdict);
            findings.push(Finding { index, verdict, tree_distance: None, flag, group });
        }
        Ok(Self { class_names: class_names.to_vec(), findings })
    }

    /// The score from which labels are flagged: that of the least suspicious flagged one.
    #[must_use]
    pub fn cut_off(&self) -> Option<f64> {
        self.findings.iter().rfind(|finding| finding.flag).map(|finding| finding.verdict.score)
    }

    /// How many labels are flagged.
    #[must_use]
    pub fn flagged(&self) -> usize {
        self.findings.iter().filter(|finding| finding.flag).count()
    }

    /// With these names of the classes.
    pub fn with_class_names(mut self, names: &[String]) -> Result<Self> {
        if names.len() != self.class_names.len() {
            let problem = format!("{} names for {} classes", names.len(), self.class_names.len());
            return Err(Error::Samples { what: "class names", problem });
        }
        self.class_names = names.to_vec();
        Ok(self)
    }

    /// With distances between classes, such as those in a class tree: `distance(given, suggested)`.
    #[must_use]
    pub fn with_distances(mut self, distance: impl Fn(usize, usize) -> u32) -> Self {
        for finding in &mut self.findings {
            let Verdict { given, suggested, .. } = finding.verdict;
            finding.tree_distance = Some(distance(given as usize, suggested as usize));
        }
        self
    }

    /// All findings, most suspicious first.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Names of the classes.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }
}

impl Verdict {
    /// Whether a suspicious label is flagged: with one class there is nothing else to suggest. A label that is not, and whose own class is the
    /// likeliest, becomes its own suggestion.
    pub(crate) fn settle(&mut self, is_suspicious: bool) -> bool {
        let flag = is_suspicious && self.suggested != self.given;
        if !flag && self.suggested_probability <= self.given_probability {
            self.suggested = self.given;
            self.suggested_probability = self.given_probability;
        }
        flag
    }
}

/// The more suspicious one is less. Minus zero is zero here.
fn compare(a: &Verdict, b: &Verdict) -> Ordering {
    let key = |v: &Verdict| (v.score + 0.0, v.clean_probability + 0.0, v.given_probability + 0.0);
    let ((s_a, w_a, t_a), (s_b, w_b, t_b)) = (key(a), key(b));
    s_b.total_cmp(&s_a).then(w_a.total_cmp(&w_b)).then(t_a.total_cmp(&t_b))
}
