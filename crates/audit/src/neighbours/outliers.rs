//! Rows that are far from all others.
//!
//! With $m_i$ the mean distance of row i's k nearest neighbours and $t_i$ the median of m over these neighbours, the score is $\ln(m_i / t_i)$: a row
//! is measured by how dense its neighbours lie, so that a loose cluster beside a dense one is no heap of outliers. The median
//! rather than the mean lets a few outliers beside each other be found. $t_i$ is at least a tenth of the median of all m, so
//! that a row beside copies is not far away for having no copy.
//!
//! A row is flagged if its score is above median + c s and above $\ln$ of the least ratio. The deviation s is (q - median) / 1.2816 with q the score
//! that nine of ten rows do not exceed, and no more than twice 1.4826 MAD (the median absolute deviation): both are
//! the standard deviation where scores are normal. In few dimensions they are not: rows at the edge of a Gaussian cluster have larger scores, of
//! which the median deviation knows nothing and q does. It bounds s where more than a tenth of the rows are
//! outliers. With c = 6, Gaussian clusters of 100 to 10,000 rows have at most 3 outliers in a thousand in up to 5 dimensions and none from 10 on.

use super::copies::median;
use super::{Metric, Neighbours};
use crate::{Error, Result};
use rayon::prelude::*;

/// When a row is an outlier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutlierSettings {
    /// Deviations above the median (c).
    pub deviations: f64,
    /// The least ratio of a row's distance to that of its neighbours: where all rows are alike, the smallest difference is many deviations.
    pub least_ratio: f64,
}

impl Default for OutlierSettings {
    fn default() -> Self {
        Self { deviations: 6.0, least_ratio: 1.25 }
    }
}

/// How far each row is from others.
#[derive(Debug, Clone, PartialEq)]
pub struct Outliers {
    scores: Vec<f32>,
    bar: f32,
}

impl Outliers {
    /// For each row the logarithm of how much farther it is from its neighbours than they are from theirs.
    #[must_use]
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// The score above which a row is an outlier.
    #[must_use]
    pub fn bar(&self) -> f32 {
        self.bar
    }

    /// Whether a row is an outlier.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn is_outlier(&self, row: usize) -> bool {
        self.scores[row] > self.bar
    }

    /// Outliers, the farthest first, equal scores by index.
    #[must_use]
    pub fn flagged(&self) -> Vec<u32> {
        let mut flagged: Vec<u32> =
            (0..self.scores.len() as u32).filter(|&row| self.is_outlier(row as usize)).collect();
        flagged.sort_by(|&a, &b| self.scores[b as usize].total_cmp(&self.scores[a as usize]));
        flagged
    }
}

/// How far each row is from the others, given its neighbours among them ([`nearest`](super::nearest)).
///
/// # Errors
/// If neighbours are not rows themselves (as with [`nearest_in`](super::nearest_in)), or a setting is out of range.
pub fn outliers(near: &Neighbours, settings: &OutlierSettings) -> Result<Outliers> {
    let range = |setting, value: f64, wanted| Err(Error::Range { setting, value: value.to_string(), wanted });
    if !(settings.deviations >= 0.0 && settings.deviations.is_finite()) {
        return range("deviations", settings.deviations, "give a number from 0, such as 6");
    }
    if !(settings.least_ratio >= 1.0 && settings.least_ratio.is_finite()) {
        return range("least_ratio", settings.least_ratio, "give a ratio from 1, such as 1.25");
    }
    if (0..near.len()).any(|row| near.indices(row).iter().any(|&other| other as usize >= near.len())) {
        let problem = "neighbours of one set in another say nothing of outliers: call `nearest`".into();
        return Err(Error::Samples { what: "neighbours", problem });
    }
    let is_cosine = matches!(near.metric(), Metric::Cosine { .. });
    let mean = |row: usize| {
        let lengths = near.distances(row).iter().map(|&distance| {
            let distance = f64::from(distance);
            if is_cosine { (2.0 * distance).sqrt() } else { distance }
        });
        lengths.sum::<f64>() / near.width().max(1) as f64
    };
    let means: Vec<f64> = (0..near.len()).into_par_iter().with_min_len(1024).map(mean).collect();
    // Where most rows have copies, those that have none say what is usual.
    let mut positive: Vec<f64> = means.iter().copied().filter(|&mean| mean > 0.0).collect();
    let usual = median(&mut positive).unwrap_or(1.0);
    let score = |row: usize| {
        let mut others: Vec<f64> = near.indices(row).iter().map(|&other| means[other as usize]).collect();
        let typical = median(&mut others).unwrap_or(usual).max(0.1 * usual);
        // No nearer than a thousandth, so that copies have a logarithm.
        (means[row].max(1e-3 * usual) / typical).ln() as f32
    };
    let scores: Vec<f32> = (0..near.len()).into_par_iter().with_min_len(1024).map(score).collect();
    let mut wide: Vec<f64> = scores.iter().map(|&score| score.into()).collect();
    let middle = median(&mut wide).unwrap_or(0.0);
    let tenth = wide.len() / 10;
    let high = match wide.len() {
        0 => 0.0,
        len => *wide.select_nth_unstable_by(len - 1 - tenth, f64::total_cmp).1,
    };
    wide.iter_mut().for_each(|score| *score = (*score - middle).abs());
    let deviation = ((high - middle) / 1.2816).min(2.0 * 1.4826 * median(&mut wide).unwrap_or(0.0));
    let bar = (middle + settings.deviations * deviation).max(settings.least_ratio.ln());
    Ok(Outliers { scores, bar: bar as f32 })
}
