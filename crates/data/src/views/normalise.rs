//! From 8-bit values to the numbers a network sees: (x / 255 - mean) / std, by channel.

use super::canvas::Picture;
use crate::known::cifar::{CIFAR10_CHANNELS, CIFAR100_CHANNELS};
use crate::{Error, ImageStore, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Sums of values and of their squares by channel, and how many pixels.
type Sums = (Vec<u64>, Vec<u128>, u64);

/// Mean and standard deviation of each channel, of values between 0 and 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normalise {
    /// One mean per channel.
    pub mean: Vec<f32>,
    /// One standard deviation per channel.
    pub std: Vec<f32>,
}

impl Normalise {
    fn of(channels: &[(f64, f64)]) -> Self {
        let (mean, std) = channels.iter().map(|&(mean, std)| (mean as f32, std as f32)).unzip();
        Self { mean, std }
    }

    /// The constants published code uses for CIFAR-10. Its deviations are means of the pictures' own, hence smaller than
    /// those over all pixels.
    pub fn cifar10() -> Self {
        Self::of(&CIFAR10_CHANNELS)
    }

    /// The constants published code uses for CIFAR-100.
    pub fn cifar100() -> Self {
        Self::of(&CIFAR100_CHANNELS)
    }

    /// Fashion-MNIST.
    pub fn fashion_mnist() -> Self {
        Self::of(&[(0.2860, 0.3530)])
    }

    /// Values between 0 and 1, not shifted.
    pub fn none(channels: usize) -> Self {
        Self { mean: vec![0.0; channels], std: vec![1.0; channels] }
    }

    /// Measured over all pixels of all pictures, in whole numbers, so that no order of summing can matter. Grey pictures
    /// count for every channel when colour is asked for, colours by their brightness when grey is.
    pub fn measure(store: &dyn ImageStore, channels: usize) -> Result<Self> {
        if channels != 1 && channels != 3 {
            return Err(Error::Setting {
                what: "channels",
                value: channels.to_string(),
                requirement: "must be 1 (grey) or 3 (colour)".into(),
            });
        }
        let none = || Ok((vec![0u64; channels], vec![0u128; channels], 0u64));
        let add = |sums: Result<Sums>, index: usize| {
            let (mut sums, mut squares, count) = sums?;
            let image = super::resize::convert(store.load(index)?, channels)?;
            for (c, (sum, square)) in sums.iter_mut().zip(&mut squares).enumerate() {
                let values = image.pixels.iter().skip(c).step_by(channels).map(|&x| x as u64);
                let (one, two) = values.fold((0, 0), |(one, two), x| (one + x, two + x * x));
                *sum += one;
                *square += two as u128;
            }
            Ok((sums, squares, count + (image.pixels.len() / channels) as u64))
        };
        let join = |a: Result<Sums>, b: Result<Sums>| {
            let ((mut sums, mut squares, count), other) = (a?, b?);
            sums.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
            squares.iter_mut().zip(other.1).for_each(|(square, more)| *square += more);
            Ok((sums, squares, count + other.2))
        };
        let (sums, squares, count) = (0..store.len()).into_par_iter().fold(none, add).reduce(none, join)?;
        if count == 0 {
            return Err(Error::Setting {
                what: "normalise",
                value: "measure".into(),
                requirement: "needs at least one picture: give mean and std, or a data set that is not empty"
                    .into(),
            });
        }
        let n = count as f64;
        let mean: Vec<f64> = sums.iter().map(|&s| s as f64 / n).collect();
        let std = squares.iter().zip(&mean).map(|(&s, m)| (s as f64 / n - m * m).max(0.0).sqrt());
        // A channel of one level has deviation 0; dividing by one level's step instead keeps its numbers finite.
        let std = std.map(|s| (s.max(1.0) / 255.0) as f32).collect();
        Ok(Self { mean: mean.iter().map(|m| (m / 255.0) as f32).collect(), std })
    }

    /// The 256 numbers of each channel, once and for all.
    pub(super) fn tables(&self, channels: usize) -> Result<Vec<[f32; 256]>> {
        let sizes = self.mean.len() == channels && self.std.len() == channels;
        let values =
            self.mean.iter().all(|m| m.is_finite()) && self.std.iter().all(|s| s.is_normal() && *s > 0.0);
        if !sizes || !values {
            return Err(Error::Setting {
                what: "normalise",
                value: format!("mean {:?}, std {:?}", self.mean, self.std),
                requirement: format!(
                    "needs {channels} finite means and {channels} standard deviations above 0"
                ),
            });
        }
        let table =
            |(mean, std): (&f32, &f32)| std::array::from_fn(|level| (level as f32 / 255.0 - mean) / std);
        Ok(self.mean.iter().zip(&self.std).map(table).collect())
    }
}

/// Writes the numbers of all pixels, row by row, the channels of a pixel side by side: as pictures have them, and as the
/// networks' kernels read them.
pub(super) fn write_numbers(picture: Picture, tables: &[[f32; 256]], out: &mut [f32]) {
    if let [red, green, blue] = tables {
        let places = out.as_chunks_mut::<3>().0;
        for ([r, g, b], pixel) in places.iter_mut().zip(picture.pixels().as_chunks::<3>().0) {
            *r = red[pixel[0] as usize];
            *g = green[pixel[1] as usize];
            *b = blue[pixel[2] as usize];
        }
    } else if let [grey] = tables {
        for (place, &value) in out.iter_mut().zip(picture.pixels()) {
            *place = grey[value as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Image, Shape};
    use std::borrow::Cow;

    struct Two;

    impl ImageStore for Two {
        fn len(&self) -> usize {
            2
        }
        fn load(&self, index: usize) -> Result<Image> {
            let shape = Shape { width: 1, height: 1, channels: 3 };
            Ok(Image { shape, pixels: [[0, 10, 7], [255, 30, 7]][index].to_vec() })
        }
        fn bytes(&self, _: usize) -> Result<Cow<'_, [u8]>> {
            Ok(Cow::Borrowed(&[]))
        }
    }

    #[test]
    fn measured_moments_are_those_of_all_pixels() {
        let measured = Normalise::measure(&Two, 3).unwrap();
        assert_eq!(measured.mean, [0.5, 20.0 / 255.0, 7.0 / 255.0]);
        assert_eq!(
            measured.std,
            [0.5, 10.0 / 255.0, 1.0 / 255.0],
            "the constant channel gets one level's step"
        );
        assert!(Normalise::measure(&Two, 2).is_err());
    }

    #[test]
    fn published_constants_of_cifar_are_what_they_always_were() {
        let of = |mean: [f32; 3], std: [f32; 3]| Normalise { mean: mean.to_vec(), std: std.to_vec() };
        assert_eq!(Normalise::cifar10(), of([0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]));
        assert_eq!(Normalise::cifar100(), of([0.507, 0.487, 0.441], [0.267, 0.256, 0.276]));
    }

    #[test]
    fn constants_of_fashion_mnist_are_those_of_its_pictures() {
        let train = crate::known::embedded().unwrap().train;
        let crate::Items::Images(store) = train.items() else { panic!("pictures") };
        let (measured, built_in) =
            (Normalise::measure(store.as_ref(), 1).unwrap(), Normalise::fashion_mnist());
        for (measured, built_in) in [(measured.mean, built_in.mean), (measured.std, built_in.std)] {
            assert!((measured[0] - built_in[0]).abs() < 0.005, "{measured:?}, not {built_in:?}");
        }
    }

    #[test]
    fn unusable_moments_are_refused() {
        for (mean, std) in [
            (vec![0.5], vec![0.0]),
            (vec![0.5], vec![f32::NAN]),
            (vec![f32::INFINITY], vec![1.0]),
            (vec![0.5], vec![-1.0]),
            (vec![0.5; 2], vec![1.0]),
        ] {
            let message = Normalise { mean, std }.tables(1).unwrap_err().to_string();
            assert!(message.contains("normalise") && message.contains("above 0"), "{message}");
        }
    }

    #[test]
    fn numbers_are_those_of_the_formula_pixel_by_pixel() {
        let shape = Shape { width: 2, height: 1, channels: 3 };
        let picture = Picture::new(shape, &[0, 255, 51, 255, 0, 102]).unwrap();
        let normalise = Normalise { mean: vec![0.0, 0.5, 0.2], std: vec![1.0, 0.5, 0.1] };
        let mut out = [9.0; 6];
        write_numbers(picture, &normalise.tables(3).unwrap(), &mut out);
        assert_eq!(out, [0.0, 1.0, (0.2f32 - 0.2) / 0.1, 1.0, -1.0, (0.4f32 - 0.2) / 0.1]);
    }
}
