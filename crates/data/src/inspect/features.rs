//! Feature vectors: how their columns are spread, and which rows are no numbers.
//!
//! Means and variances are gathered per block of rows and joined in the order of rows, with
//! $M = M_a + M_b + \delta^2 n_a n_b / n$ for the sums of squared deviations, $\delta = \bar x_b - \bar x_a$ (Chan et al. 1979),
//! so the result does not depend on the number of threads.

use super::duplicates::{Print, print_of};
use super::{Failure, Unreadable};
use crate::FeatureStore;
use rayon::prelude::*;
use serde::Serialize;

/// Feature vectors.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Features {
    /// Numbers per vector.
    pub dim: usize,
    /// Rows of finite numbers only. The figures below are about these.
    pub finite: usize,
    /// Rows with a NaN.
    pub nan: usize,
    /// Rows with an infinity and no NaN.
    pub infinite: usize,
    /// The first few rows with a NaN or an infinity.
    pub not_finite: Vec<usize>,
    /// Smallest and largest value.
    pub values: Option<Range>,
    /// Smallest and largest mean of a column.
    pub means: Option<Range>,
    /// Smallest and largest standard deviation of a column (of the sample: divided by n).
    pub deviations: Option<Range>,
    /// Columns that have one value only and so tell nothing.
    pub constant: usize,
    /// The first few of them.
    pub constant_first: Vec<usize>,
}

/// From the smallest to the largest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

/// Rows per block, and blocks at work at a time: memory stays bounded however many rows there are.
const BLOCK: usize = 512;
const AT_ONCE: usize = 64;

#[derive(Clone)]
struct Column {
    mean: f64,
    squares: f64,
    low: f32,
    high: f32,
}

struct Tally {
    features: Features,
    columns: Vec<Column>,
    unreadable: Unreadable,
    prints: Vec<Print>,
}

impl Tally {
    fn new(dim: usize) -> Self {
        let column = Column { mean: 0.0, squares: 0.0, low: f32::INFINITY, high: f32::NEG_INFINITY };
        Self {
            features: Features { dim, ..Features::default() },
            columns: vec![column; dim],
            unreadable: Unreadable::default(),
            prints: Vec::new(),
        }
    }

    fn add(&mut self, index: usize, row: &[f32], bytes: &mut Vec<u8>, examples: usize) {
        bytes.clear();
        bytes.extend(row.iter().flat_map(|x| x.to_le_bytes()));
        self.prints.push((print_of(bytes), index));
        let nan = row.iter().any(|x| x.is_nan());
        if nan || row.iter().any(|x| x.is_infinite()) {
            self.features.nan += usize::from(nan);
            self.features.infinite += usize::from(!nan);
            if self.features.not_finite.len() < examples {
                self.features.not_finite.push(index);
            }
            return;
        }
        self.features.finite += 1;
        let n = self.features.finite as f64;
        for (column, &x) in self.columns.iter_mut().zip(row) {
            let delta = f64::from(x) - column.mean;
            column.mean += delta / n;
            column.squares += delta * (f64::from(x) - column.mean);
            (column.low, column.high) = (column.low.min(x), column.high.max(x));
        }
    }

    /// Of two in order of rows.
    fn join(&mut self, later: Self, examples: usize) {
        let (a, b) = (self.features.finite as f64, later.features.finite as f64);
        if b > 0.0 {
            for (column, other) in self.columns.iter_mut().zip(&later.columns) {
                let delta = other.mean - column.mean;
                column.mean += delta * b / (a + b);
                column.squares += other.squares + delta * delta * a * b / (a + b);
                (column.low, column.high) = (column.low.min(other.low), column.high.max(other.high));
            }
        }
        self.features.finite += later.features.finite;
        self.features.nan += later.features.nan;
        self.features.infinite += later.features.infinite;
        let room = examples.saturating_sub(self.features.not_finite.len());
        self.features.not_finite.extend(later.features.not_finite.into_iter().take(room));
        self.unreadable.join(later.unreadable, examples);
        self.prints.extend(later.prints);
    }
}

/// Reads every vector once.
pub(super) fn look(store: &dyn FeatureStore, examples: usize) -> (Features, Unreadable, Vec<Print>) {
    let (rows, dim) = (store.len(), store.dim());
    let mut all = Tally::new(dim);
    let blocks: Vec<usize> = (0..rows).step_by(BLOCK).collect();
    for some in blocks.chunks(AT_ONCE) {
        let tallies: Vec<Tally> = some
            .par_iter()
            .map(|&start| {
                let (mut tally, mut row, mut bytes) = (Tally::new(dim), vec![0.0; dim], Vec::new());
                for index in start..rows.min(start + BLOCK) {
                    match store.read(index, &mut row) {
                        Ok(()) => tally.add(index, &row, &mut bytes, examples),
                        Err(error) => {
                            let failure = || Failure { index, origin: None, reason: error.to_string() };
                            tally.unreadable.add(examples, failure);
                        }
                    }
                }
                tally
            })
            .collect();
        tallies.into_iter().for_each(|tally| all.join(tally, examples));
    }
    let Tally { mut features, columns, unreadable, prints } = all;
    let n = features.finite as f64;
    if features.finite > 0 {
        features.values =
            range(columns.iter().flat_map(|column| [f64::from(column.low), f64::from(column.high)]));
        features.means = range(columns.iter().map(|column| column.mean));
        features.deviations = range(columns.iter().map(|column| (column.squares / n).sqrt()));
    }
    // of a single row, every column would be constant
    if features.finite > 1 {
        let constant = columns.iter().enumerate().filter(|(_, column)| column.low == column.high);
        let constant: Vec<usize> = constant.map(|(at, _)| at).collect();
        features.constant = constant.len();
        features.constant_first = constant.into_iter().take(examples).collect();
    }
    (features, unreadable, prints)
}

fn range(values: impl Iterator<Item = f64>) -> Option<Range> {
    values.fold(None, |range, x| match range {
        None => Some(Range { low: x, high: x }),
        Some(Range { low, high }) => Some(Range { low: low.min(x), high: high.max(x) }),
    })
}
