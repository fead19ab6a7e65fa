//! From 8-bit values to the numbers a network sees: (x / 255 - mean) / std, by channel.

use super::ChannelSums;
use super::canvas::Picture;
use crate::known::cifar::{CIFAR10_CHANNELS, CIFAR100_CHANNELS};
use crate::{Error, ImageStore, Result};
use serde::{Deserialize, Serialize};

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

    /// Measured over all pixels of all pictures. Grey pictures count for every channel when colour is asked for, colours by their
    /// brightness when grey is. [`Dataset::channel_sums`](crate::Dataset::channel_sums) spares a second look at pictures.
    pub fn measure(store: &dyn ImageStore, channels: usize) -> Result<Self> {
        ChannelSums::measure(store)?.normalise(channels)
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

/// Adds the numbers of all pixels, row by row, the channels of a pixel side by side: as pictures have them, and as the
/// networks' kernels read them.
pub(super) fn add_numbers(picture: Picture, tables: &[[f32; 256]], out: &mut Vec<f32>) {
    let pixels = picture.pixels();
    if let [red, green, blue] = tables {
        let numbers = |&[r, g, b]: &[u8; 3]| [red[r as usize], green[g as usize], blue[b as usize]];
        out.extend(pixels.as_chunks::<3>().0.iter().flat_map(numbers));
    } else if let [grey] = tables {
        out.extend(pixels.iter().map(|&level| grey[level as usize]));
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
        let mut out = vec![9.0];
        add_numbers(picture, &normalise.tables(3).unwrap(), &mut out);
        assert_eq!(out, [9.0, 0.0, 1.0, (0.2f32 - 0.2) / 0.1, 1.0, -1.0, (0.4f32 - 0.2) / 0.1]);
    }
}
