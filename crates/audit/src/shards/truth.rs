//! How good scores of shards are, where true labels are known.
//!
//! All rows are visited once. For the average precision ([`measures`](crate::average_precision)) scores are kept in four bytes a row: a score from 0 to 1
//! has at most 30 bits as `f32`, ordered as the score is, and one more says whether the label is wrong.

use super::record::Record;
use super::{RowScore, Shards};
use crate::correction::is_corrected;
use crate::{Error, Result};
use serde::Serialize;

/// Scores compared with true labels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Compared {
    /// Labels that are wrong.
    pub wrong: u64,
    /// The share of them among all.
    pub noise: f64,
    /// Average precision of the order by score.
    pub average_precision: Option<f64>,
    /// Share of wrong labels among flagged ones.
    pub flag_precision: Option<f64>,
    /// Share of flagged labels among wrong ones.
    pub flag_recall: Option<f64>,
    /// Share of wrong labels whose true class is suggested.
    pub suggestion_accuracy: Option<f64>,
    /// Labels that are right as given.
    pub right_before: u64,
    /// Labels that are right after the correction.
    pub right_after: u64,
    /// Share of right labels that the correction leaves as they are.
    pub right_kept: Option<f64>,
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

impl Shards {
    /// Compares all rows with their true labels, in the order of rows.
    ///
    /// # Errors
    /// If there is not one for every row, or a file of scores is missing or damaged.
    pub fn compare(&self, truth: &[u32]) -> Result<Compared> {
        let rows = self.counts().all().rows;
        if truth.len() as u64 != rows {
            let problem = format!("{} true labels for {rows} rows", truth.len());
            return Err(Error::Samples { what: "true labels", problem });
        }
        let mut order: Vec<u32> = Vec::with_capacity(truth.len());
        let (mut wrong, mut flagged, mut hits, mut suggested, mut after, mut kept) = (0, 0, 0, 0, 0, 0);
        self.visit(|row, &Record { given, score: of }| {
            let RowScore { score, suggested: class, suggested_probability, flag } = of;
            let truth = truth[row as usize];
            let is_wrong = given != truth;
            let label = if is_corrected(flag, given, class, suggested_probability) { class } else { given };
            wrong += u64::from(is_wrong);
            flagged += u64::from(flag);
            hits += u64::from(flag && is_wrong);
            suggested += u64::from(is_wrong && class == truth);
            after += u64::from(label == truth);
            kept += u64::from(!is_wrong && label == truth);
            order.push(score.to_bits() << 1 | u32::from(is_wrong));
            Ok(())
        })?;
        order.sort_unstable_by(|a, b| b.cmp(a));
        let (mut listed, mut found, mut sum) = (0u64, 0u64, 0.0);
        for equals in order.chunk_by(|a, b| a >> 1 == b >> 1) {
            let own = equals.iter().map(|packed| u64::from(packed & 1)).sum::<u64>();
            listed += equals.len() as u64;
            found += own;
            sum += own as f64 * (found as f64 / listed as f64);
        }
        Ok(Compared {
            wrong,
            noise: share(wrong, rows).unwrap_or(0.0),
            average_precision: (wrong > 0).then(|| sum / wrong as f64),
            flag_precision: share(hits, flagged),
            flag_recall: share(hits, wrong),
            suggestion_accuracy: share(suggested, wrong),
            right_before: rows - wrong,
            right_after: after,
            right_kept: share(kept, rows - wrong),
        })
    }

    /// Labels and flagged labels by groups: `of` is the group of every row, below `groups`.
    ///
    /// # Errors
    /// As [`compare`](Self::compare).
    pub fn by_group(&self, groups: usize, of: &[u32]) -> Result<Vec<(u64, u64)>> {
        let rows = self.counts().all().rows;
        if of.len() as u64 != rows {
            let problem = format!("{} for {rows} rows", of.len());
            return Err(Error::Samples { what: "sources", problem });
        }
        let mut counts = vec![(0, 0); groups];
        self.visit(|row, record| {
            if let Some((labels, flagged)) = counts.get_mut(of[row as usize] as usize) {
                *labels += 1;
                *flagged += u64::from(record.score.flag);
            }
            Ok(())
        })?;
        Ok(counts)
    }
}
