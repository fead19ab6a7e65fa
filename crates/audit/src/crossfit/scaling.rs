//! Columns made comparable before models see them.
//!
//! Embeddings come in one unit for all columns, and how far a column spreads says how much it matters: all are divided by one number, the
//! root of their mean variance. The columns of a table may be years and grams: where the largest deviation is more than
//! [`MANY_UNITS`] times the smallest, every column is divided by its own.

use super::Rows;

/// Deviations that are further apart than this are of different units.
const MANY_UNITS: f64 = 100.0;

/// What is taken off a column, and what it is multiplied by.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    pub(super) means: Vec<f32>,
    pub(super) factors: Vec<f32>,
}

impl Scaling {
    /// That of some rows.
    pub fn of(rows: &Rows) -> Self {
        let (dim, count) = (rows.dim(), rows.len().max(1) as f64);
        let mut means = vec![0.0f64; dim];
        for row in rows.values.chunks_exact(dim) {
            means.iter_mut().zip(row).for_each(|(mean, &x)| *mean += f64::from(x));
        }
        means.iter_mut().for_each(|mean| *mean /= count);
        let mut variances = vec![0.0f64; dim];
        for row in rows.values.chunks_exact(dim) {
            for ((variance, mean), &x) in variances.iter_mut().zip(&means).zip(row) {
                *variance += (f64::from(x) - mean).powi(2) / count;
            }
        }
        let moving: Vec<f64> = variances.iter().copied().filter(|v| *v > 0.0).collect();
        let least = moving.iter().copied().fold(f64::INFINITY, f64::min);
        let most = moving.iter().copied().fold(0.0, f64::max);
        let typical = moving.iter().sum::<f64>() / dim as f64;
        let own = most > MANY_UNITS * MANY_UNITS * least;
        let factor = |variance: &f64| match (own, *variance > 0.0) {
            (_, false) => 0.0,
            (true, true) => variance.sqrt().recip() as f32,
            (false, true) => typical.sqrt().recip() as f32,
        };
        Self {
            means: means.iter().map(|&m| m as f32).collect(),
            factors: variances.iter().map(factor).collect(),
        }
    }

    /// Rows with it.
    pub fn apply(&self, values: &[f32]) -> Vec<f32> {
        let mut scaled = values.to_vec();
        for row in scaled.chunks_exact_mut(self.means.len()) {
            for ((x, mean), factor) in row.iter_mut().zip(&self.means).zip(&self.factors) {
                *x = (*x - mean) * factor;
            }
        }
        scaled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unit_keeps_proportions_and_many_units_are_made_equal() {
        let alike = [1.0, 10.0, 3.0, 30.0, 5.0, 50.0];
        let scaled = Scaling::of(&Rows::new(&alike, 2).unwrap()).apply(&alike);
        assert!((scaled[1] / scaled[0] - 10.0).abs() < 1e-4, "{scaled:?}");
        let apart = [1.0, 1e4, 7.0, 3.0, 3e4, 7.0, 5.0, 5e4, 7.0];
        let scaled = Scaling::of(&Rows::new(&apart, 3).unwrap()).apply(&apart);
        assert!((scaled[1] - scaled[0]).abs() < 1e-4, "{scaled:?}");
        assert_eq!([scaled[2], scaled[5]], [0.0; 2], "a constant column says nothing");
    }
}
