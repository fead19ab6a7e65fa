//! What instance-dependent noise sees of an item: a row of numbers.
//!
//! Pictures are laid out channel first, as the published code does. Every number is (x - offset) * factor, with one pair per
//! channel or per feature: (0, 1) raw, (0, 1/255) unit, (255 mean, 1/(255 sd)) normalised. For CIFAR the means and deviations
//! are those of the published code; for other data they are measured over all items, in an order that threads cannot change.

use super::spec::NoiseInput;
use super::{cifar, no_fit};
use crate::{Dataset, FeatureStore, ImageStore, Items, Result, Shape};
use rayon::prelude::*;

/// Rows of equal length made from a data set's items.
pub(super) struct Rows<'a> {
    dataset: &'a Dataset,
    /// Pictures' shape; nothing for features.
    shape: Option<Shape>,
    len: usize,
    scale: Vec<(f64, f64)>,
}

impl<'a> Rows<'a> {
    /// Rows of a data set that is not empty, if they are no longer than `limit`.
    pub(super) fn new(dataset: &'a Dataset, input: NoiseInput, limit: usize) -> Result<Self> {
        let (shape, len, parts) = match dataset.items() {
            Items::Images(store) => {
                let shape = store.shape().map_or_else(|| store.load(0).map(|image| image.shape), Ok)?;
                (Some(shape), shape.len(), shape.channels)
            }
            Items::Features(store) => (None, store.dim(), store.dim()),
        };
        if len == 0 {
            return Err(no_fit(dataset, "`ins` needs items with at least one number each"));
        }
        if len > limit {
            let problem = format!(
                "`ins` needs a matrix of {len} x {} numbers, more than 1 GiB: use smaller items or fewer classes",
                dataset.classes().len()
            );
            return Err(no_fit(dataset, problem));
        }
        let mut rows = Self { dataset, shape, len, scale: vec![(0.0, 1.0); parts] };
        rows.scale = match (dataset.items(), input) {
            (_, NoiseInput::Raw) => return Ok(rows),
            (Items::Images(_), NoiseInput::Unit) => vec![(0.0, 1.0 / 255.0); parts],
            (Items::Images(store), NoiseInput::Normalised) => {
                let customary = cifar::channels_of(dataset.classes());
                let small = (32, 32, 3);
                match customary.filter(|_| shape.is_some_and(|s| (s.width, s.height, s.channels) == small)) {
                    Some(channels) => {
                        channels.iter().map(|(mean, sd)| (255.0 * mean, 1.0 / (255.0 * sd))).collect()
                    }
                    None => rows.measure_images(store.as_ref())?,
                }
            }
            (Items::Features(store), input) => rows.measure_features(store.as_ref(), input)?,
        };
        Ok(rows)
    }

    /// Numbers per row.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Writes the row of an item.
    pub(super) fn read(&self, index: usize, out: &mut [f64]) -> Result<()> {
        match self.dataset.items() {
            Items::Images(store) => {
                let pixels = self.pixels(store.as_ref(), index)?;
                let plane = self.len / self.scale.len();
                for (channel, &(offset, factor)) in self.scale.iter().enumerate() {
                    let values = pixels[channel..].iter().step_by(self.scale.len());
                    for (out, &x) in out[channel * plane..].iter_mut().zip(values) {
                        *out = (f64::from(x) - offset) * factor;
                    }
                }
            }
            Items::Features(store) => {
                let mut row = vec![0.0; self.len];
                self.features(store.as_ref(), index, &mut row)?;
                for ((out, x), (offset, factor)) in out.iter_mut().zip(row).zip(&self.scale) {
                    *out = (f64::from(x) - offset) * factor;
                }
            }
        }
        Ok(())
    }

    fn pixels(&self, store: &dyn ImageStore, index: usize) -> Result<Vec<u8>> {
        let image = store.load(index)?;
        if Some(image.shape) == self.shape && image.pixels.len() == self.len {
            return Ok(image.pixels);
        }
        let size = |s: Shape| format!("{} x {} with {} channels", s.width, s.height, s.channels);
        let first = self.shape.map(size).unwrap_or_default();
        let problem = format!(
            "`ins` needs pictures of one size: item {index} is {}, the others {first}; bring them to one size first",
            size(image.shape)
        );
        Err(no_fit(self.dataset, problem))
    }

    fn features(&self, store: &dyn FeatureStore, index: usize, row: &mut [f32]) -> Result<()> {
        store.read(index, row)?;
        match row.iter().position(|x| !x.is_finite()) {
            None => Ok(()),
            Some(at) => {
                let problem =
                    format!("feature {at} of item {index} is {}: `ins` needs finite numbers", row[at]);
                Err(no_fit(self.dataset, problem))
            }
        }
    }

    /// Mean and deviation of every channel, by whole numbers, which add up the same in any order.
    fn measure_images(&self, store: &dyn ImageStore) -> Result<Vec<(f64, f64)>> {
        let channels = self.scale.len();
        let nothing = || vec![(0u64, 0u64); channels];
        let add = |mut sums: Vec<(u64, u64)>, index| -> Result<_> {
            for (at, &x) in self.pixels(store, index)?.iter().enumerate() {
                let (sum, squares) = &mut sums[at % channels];
                (*sum, *squares) = (*sum + u64::from(x), *squares + u64::from(x) * u64::from(x));
            }
            Ok(sums)
        };
        let join = |a: Vec<(u64, u64)>, b: Vec<(u64, u64)>| {
            Ok(a.iter().zip(b).map(|(a, b)| (a.0 + b.0, a.1 + b.1)).collect())
        };
        let sums = (0..store.len()).into_par_iter().try_fold(nothing, add).try_reduce(nothing, join)?;
        let n = (store.len() * (self.len / channels)) as f64;
        let scale = |(sum, squares): (u64, u64)| {
            let mean = sum as f64 / n;
            (mean, inverse((squares as f64 / n - mean * mean).max(0.0).sqrt()))
        };
        Ok(sums.into_iter().map(scale).collect())
    }

    /// Least and greatest, or mean and deviation, of every feature, item by item.
    fn measure_features(&self, store: &dyn FeatureStore, input: NoiseInput) -> Result<Vec<(f64, f64)>> {
        let mut low = vec![f64::INFINITY; self.len];
        let mut high = vec![f64::NEG_INFINITY; self.len];
        let mut mean = vec![0.0; self.len];
        let mut square = vec![0.0; self.len];
        let mut row = vec![0.0; self.len];
        for index in 0..store.len() {
            self.features(store, index, &mut row)?;
            for (at, &x) in row.iter().enumerate() {
                let x = f64::from(x);
                (low[at], high[at]) = (low[at].min(x), high[at].max(x));
                let apart = x - mean[at];
                mean[at] += apart / (index + 1) as f64;
                square[at] += apart * (x - mean[at]);
            }
        }
        let n = store.len() as f64;
        let scale = |at: usize| match input {
            NoiseInput::Normalised => (mean[at], inverse((square[at] / n).sqrt())),
            _ => (low[at], inverse(high[at] - low[at])),
        };
        Ok((0..self.len).map(scale).collect())
    }
}

/// 1/x; 1 where all values are the same, which are then 0 whatever they are multiplied by.
fn inverse(x: f64) -> f64 {
    if x > 0.0 { 1.0 / x } else { 1.0 }
}
