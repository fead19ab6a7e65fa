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
pub(super) struct InputRows<'a> {
    dataset: &'a Dataset,
    /// Pictures' shape; nothing for features.
    shape: Option<Shape>,
    len: usize,
    scale: Vec<(f64, f64)>,
}

impl<'a> InputRows<'a> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Image;
    use std::borrow::Cow;
    use std::sync::Arc;

    struct Pictures(Vec<Image>);

    impl ImageStore for Pictures {
        fn len(&self) -> usize {
            self.0.len()
        }
        fn load(&self, index: usize) -> Result<Image> {
            Ok(self.0[index].clone())
        }
        fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>> {
            Ok(Cow::Borrowed(&self.0[index].pixels))
        }
    }

    struct Table(Vec<[f32; 2]>);

    impl FeatureStore for Table {
        fn len(&self) -> usize {
            self.0.len()
        }
        fn dim(&self) -> usize {
            2
        }
        fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
            out.copy_from_slice(&self.0[index]);
            Ok(())
        }
    }

    fn row(dataset: &Dataset, input: NoiseInput, index: usize) -> Vec<f64> {
        let rows = InputRows::new(dataset, input, 1 << 20).unwrap();
        let mut out = vec![f64::NAN; rows.len()];
        rows.read(index, &mut out).unwrap();
        out
    }

    fn assert_near(a: &[f64], b: &[f64]) {
        assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9), "{a:?} and {b:?}");
    }

    #[test]
    fn pictures_are_laid_out_channel_first_and_scaled() {
        let shape = Shape { width: 2, height: 1, channels: 3 };
        let pictures = [[0, 10, 7, 100, 30, 7], [50, 20, 7, 50, 20, 7]];
        let pictures = pictures.map(|pixels| Image { shape, pixels: pixels.to_vec() }).to_vec();
        let items = Items::Images(Arc::new(Pictures(pictures)));
        let data = Dataset::new("d", vec!["a".into()], items, vec![0, 0], None).unwrap();
        assert_near(&row(&data, NoiseInput::Raw, 0), &[0.0, 100.0, 10.0, 30.0, 7.0, 7.0]);
        let unit = [0.0, 100.0, 10.0, 30.0, 7.0, 7.0].map(|x| x / 255.0);
        assert_near(&row(&data, NoiseInput::Unit, 0), &unit);
        // Red 0, 100, 50, 50: mean 50, variance 1250; green 10, 30, 20, 20: mean 20, variance 50; blue constant.
        let (red, green) = (50.0 / 1250f64.sqrt(), 10.0 / 50f64.sqrt());
        assert_near(&row(&data, NoiseInput::Normalised, 0), &[-red, red, -green, green, 0.0, 0.0]);
    }

    #[test]
    fn cifar_pictures_are_normalised_by_published_figures() {
        let shape = Shape { width: 32, height: 32, channels: 3 };
        let image = Image { shape, pixels: (0..3072).map(|at| (at % 251) as u8).collect() };
        let items = Items::Images(Arc::new(Pictures(vec![image.clone()])));
        let hundred = cifar::CIFAR100_SUPERCLASSES.iter().flat_map(|(_, members)| members.map(String::from));
        for (classes, mean, sd) in [
            (cifar::CIFAR10.map(String::from).to_vec(), [0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]),
            (hundred.collect(), [0.507, 0.487, 0.441], [0.267, 0.256, 0.276]),
        ] {
            let data = Dataset::new("c", classes, items.clone(), vec![0], None).unwrap();
            let expected: Vec<f64> = (0..3072)
                .map(|at| (at / 1024, f64::from(image.pixels[at % 1024 * 3 + at / 1024]) / 255.0))
                .map(|(channel, x)| (x - mean[channel]) / sd[channel])
                .collect();
            assert_near(&row(&data, NoiseInput::Normalised, 0), &expected);
        }
    }

    #[test]
    fn features_are_scaled_column_by_column() {
        let items = Items::Features(Arc::new(Table(vec![[1.0, 5.0], [3.0, 5.0], [5.0, 5.0]])));
        let data = Dataset::new("t", vec!["a".into()], items, vec![0; 3], None).unwrap();
        assert_near(&row(&data, NoiseInput::Raw, 2), &[5.0, 5.0]);
        assert_near(&row(&data, NoiseInput::Unit, 1), &[0.5, 0.0]);
        assert_near(&row(&data, NoiseInput::Normalised, 2), &[2.0 / (8.0f64 / 3.0).sqrt(), 0.0]);
    }
}
