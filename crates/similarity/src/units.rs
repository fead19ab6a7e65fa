//! Features of length 1.

use crate::{Error, Result};
use rayon::prelude::*;

/// Features that are known to be finite, with what makes their lengths 1. The numbers themselves stay where they are.
///
/// A feature vector of zeros has no direction: such samples are left out of all pairs and counted ([`zeros`](Self::zeros)).
#[derive(Debug, Clone)]
pub struct Units<'a> {
    values: &'a [f32],
    dim: usize,
    /// 1/|f_i|, or 0 for a vector of zeros.
    inverse: Vec<f64>,
}

impl<'a> Units<'a> {
    /// Rows of `dim` numbers, one for every sample. Refuses NaN and infinity.
    pub fn new(values: &'a [f32], dim: usize) -> Result<Self> {
        if dim == 0 || !values.len().is_multiple_of(dim) {
            let got = format!("there are {} numbers", values.len());
            return Err(Error::size("features", got, format!("they are to be rows of {dim}")));
        }
        if let Some(at) = values.par_iter().position_first(|value| !value.is_finite()) {
            let (sample, place, value) = (at / dim, at % dim, values[at]);
            return Err(Error::NotFinite { what: "feature", sample, place, value });
        }
        let inverse = |row: &[f32]| {
            let square: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            if square > 0.0 { 1.0 / square.sqrt() } else { 0.0 }
        };
        Ok(Self { values, dim, inverse: values.par_chunks(dim).map(inverse).collect() })
    }

    /// How many samples.
    pub fn len(&self) -> usize {
        self.inverse.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.inverse.is_empty()
    }

    /// Numbers per sample d.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Samples whose features are all 0.
    pub fn zeros(&self) -> usize {
        self.inverse.iter().filter(|&&inverse| inverse == 0.0).count()
    }

    /// Whether the features of a sample are all 0.
    pub fn is_zero(&self, sample: usize) -> bool {
        self.inverse.get(sample) == Some(&0.0)
    }

    /// Whether the sample has a direction.
    pub(crate) fn has_direction(&self, sample: usize) -> bool {
        self.inverse[sample] != 0.0
    }

    /// Its features as they came.
    pub(crate) fn row(&self, sample: usize) -> &'a [f32] {
        &self.values[sample * self.dim..][..self.dim]
    }

    /// 1 / its length; 0 without a direction.
    pub(crate) fn inverse(&self, sample: usize) -> f64 {
        self.inverse[sample]
    }

    /// The unit feature of a sample.
    pub(crate) fn unit(&self, sample: usize) -> impl Iterator<Item = f64> + use<'a> {
        let inverse = self.inverse[sample];
        self.row(sample).iter().map(move |&x| f64::from(x) * inverse)
    }
}
