//! Flags by group: how many labels of each class, or from each source, are flagged, and from which score on.
//!
//! # Intervals
//! Of $n$ labels of a group $k$ are flagged. Their share $k / n$ has a sampling error, for which Wilson's interval $[l, u]$ stands (95 %), and shares the
//! doubt about the estimate of all labels, whose rate $r$ lies between $a$ and $b$. Both together: from $l\, a / r$ to $u\, b / r$. Where nothing is
//! flagged, $r = 0$: from 0 to the larger of $u$ and $b$.

use crate::{Audit, Finding};

/// Quantile 0.975 of the normal distribution.
const NORMAL: f64 = 1.96;

/// The flags of a group of labels.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GroupFlags {
    /// How many labels.
    pub labels: usize,
    /// How many of them are flagged.
    pub flagged: usize,
    /// The least suspicious flagged one: its score, and the probability that its label is right.
    pub least: Option<(f64, f64)>,
}

impl GroupFlags {
    /// The share that is flagged.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.labels > 0 { self.flagged as f64 / self.labels as f64 } else { 0.0 }
    }

    /// The 95 % interval of the share of wrong labels, from that of all labels: their rate and its interval.
    #[must_use]
    pub fn interval(&self, rate: f64, interval: [f64; 2]) -> [f64; 2] {
        let [low, high] = wilson(self.flagged as f64, self.labels as f64);
        if rate <= 0.0 {
            return [0.0, high.max(interval[1]).clamp(0.0, 1.0)];
        }
        [low * interval[0] / rate, high * interval[1] / rate].map(|end| end.clamp(0.0, 1.0))
    }
}

/// Wilson's 95 % interval for `part` of `all`.
fn wilson(part: f64, all: f64) -> [f64; 2] {
    if all <= 0.0 {
        return [0.0, 1.0];
    }
    let (share, z2) = (part / all, NORMAL * NORMAL);
    let middle = (share + z2 / (2.0 * all)) / (1.0 + z2 / all);
    let reach = NORMAL / (1.0 + z2 / all) * (share * (1.0 - share) / all + z2 / (4.0 * all * all)).sqrt();
    [(middle - reach).max(0.0), (middle + reach).min(1.0)]
}

impl Audit {
    /// Flags by given class.
    #[must_use]
    pub fn by_class(&self) -> Vec<GroupFlags> {
        self.by_group(self.class_names.len(), |finding| finding.verdict.given as usize)
    }

    /// Flags by groups: `group_of` says which of so many a label belongs to; labels outside of them are left out.
    #[must_use]
    pub fn by_group(&self, groups: usize, group_of: impl Fn(&Finding) -> usize) -> Vec<GroupFlags> {
        let mut found = vec![GroupFlags::default(); groups];
        for finding in &self.findings {
            let Some(group) = found.get_mut(group_of(finding)) else { continue };
            group.labels += 1;
            if finding.flag {
                group.flagged += 1;
                // The most suspicious come first, so that the last flagged one is the least suspicious.
                group.least = Some((finding.verdict.score, f64::from(finding.verdict.given_probability)));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::verdict::Source;

    fn verdict(given: u32, score: f64) -> Verdict {
        Verdict {
            given,
            suggested: 1 - given,
            clean_probability: 1.0 - score,
            source: Source::HiddenLabels,
            score,
            suggested_probability: score as f32,
            given_probability: (1.0 - score) as f32,
        }
    }

    #[test]
    fn flags_are_counted_by_class_with_the_least_suspicious_one_of_each() {
        let verdicts =
            [verdict(0, 0.75), verdict(0, 0.25), verdict(0, 0.875), verdict(1, 0.5), verdict(1, 0.125)];
        let names = ["a".to_owned(), "b".into(), "c".into()];
        let audit = Audit::flagging(&verdicts, &names, 3).unwrap();
        let found = audit.by_class();
        assert_eq!(found[0], GroupFlags { labels: 3, flagged: 2, least: Some((0.75, 0.25)) });
        assert_eq!(found[1], GroupFlags { labels: 2, flagged: 1, least: Some((0.5, 0.5)) });
        assert_eq!((found[2], found[2].share()), (GroupFlags::default(), 0.0));
        let sources = audit.by_group(2, |finding| finding.index % 2);
        assert_eq!(
            sources.iter().map(|group| (group.labels, group.flagged)).collect::<Vec<_>>(),
            [(3, 2), (2, 1)]
        );
        assert_eq!(audit.by_group(1, |_| 7)[0].labels, 0);
    }

    #[test]
    fn intervals_hold_the_share_and_are_wider_for_fewer_labels_and_for_a_doubtful_estimate() {
        let group = |labels, flagged| GroupFlags { labels, flagged, least: None };
        let sure = group(1000, 100).interval(0.1, [0.1, 0.1]);
        // As printed in tables of Wilson's interval for 100 of 1,000.
        assert!((sure[0] - 0.0829).abs() < 2e-4 && (sure[1] - 0.1202).abs() < 2e-4, "{sure:?}");
        let few = group(10, 1).interval(0.1, [0.1, 0.1]);
        assert!(few[0] < sure[0] && few[1] > sure[1] && few[0] > 0.0, "{few:?}");
        let doubtful = group(1000, 100).interval(0.1, [0.05, 0.2]);
        assert!((doubtful[0] - sure[0] / 2.0).abs() < 1e-12 && (doubtful[1] - sure[1] * 2.0).abs() < 1e-12);
        let clean = group(1000, 0).interval(0.0, [0.0, 0.04]);
        assert_eq!(clean, [0.0, 0.04]);
        assert!(group(5, 0).interval(0.0, [0.0, 0.04])[1] > 0.3, "five labels say little");
        assert_eq!(group(10, 10).interval(0.5, [0.4, 0.9])[1], 1.0);
    }
}
