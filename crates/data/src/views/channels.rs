//! Sums over the pixels of pictures, by channel: what their mean and standard deviation are made of.

use super::Normalise;
use super::canvas::luma;
use super::resize::checked;
use crate::{Error, Image, ImageStore, Result};
use rayon::prelude::*;

/// Sums of values and of their squares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    values: u64,
    squares: u128,
}

impl Sums {
    fn of(values: impl Iterator<Item = u8>) -> Self {
        let (one, two) = values.fold((0u64, 0u64), |(one, two), x| {
            let x = u64::from(x);
            (one + x, two + x * x)
        });
        Self { values: one, squares: two.into() }
    }

    fn add(&mut self, other: Self) {
        self.values += other.values;
        self.squares += other.squares;
    }
}

/// Sums over all pixels of some pictures, as colour and as grey. They are whole numbers, so that no order of summing can matter.
///
/// Grey pictures count for every channel of the colour, coloured ones by their brightness for the grey.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelSums {
    pixels: u64,
    colour: [Sums; 3],
    grey: Sums,
}

impl ChannelSums {
    /// Of one picture, if views can take it.
    pub fn of(image: Image) -> Result<Self> {
        let Image { shape, pixels } = checked(image)?;
        if shape.channels == 1 {
            let grey = Sums::of(pixels.iter().copied());
            return Ok(Self { pixels: pixels.len() as u64, colour: [grey; 3], grey });
        }
        let pixels = pixels.as_chunks::<3>().0;
        let colour = std::array::from_fn(|c| Sums::of(pixels.iter().map(|pixel| pixel[c])));
        let grey = Sums::of(pixels.iter().map(|&pixel| luma(pixel)));
        Ok(Self { pixels: pixels.len() as u64, colour, grey })
    }

    /// Of all pictures of a store, on all threads.
    pub fn measure(store: &dyn ImageStore) -> Result<Self> {
        let one = |index| Self::of(store.load(index)?);
        (0..store.len()).into_par_iter().map(one).try_reduce(Self::default, |a, b| Ok(a.join(b)))
    }

    /// Of the pictures of both.
    pub fn join(mut self, other: Self) -> Self {
        self.pixels += other.pixels;
        self.colour.iter_mut().zip(other.colour).for_each(|(sums, more)| sums.add(more));
        self.grey.add(other.grey);
        self
    }

    /// Mean and standard deviation of each of `channels`: 1 for grey, 3 for colour.
    pub fn normalise(&self, channels: usize) -> Result<Normalise> {
        let sums = match channels {
            1 => std::slice::from_ref(&self.grey),
            3 => &self.colour,
            _ => {
                return Err(Error::Setting {
                    what: "channels",
                    value: channels.to_string(),
                    requirement: "must be 1 (grey) or 3 (colour)".into(),
                });
            }
        };
        if self.pixels == 0 {
            return Err(Error::Setting {
                what: "normalise",
                value: "measure".into(),
                requirement: "needs at least one picture: give mean and std, or a data set that is not empty"
                    .into(),
            });
        }
        let n = self.pixels as f64;
        let moments = sums.iter().map(|sums| {
            let mean = sums.values as f64 / n;
            let std = (sums.squares as f64 / n - mean * mean).max(0.0).sqrt();
            // A channel of one level has deviation 0; dividing by one level's step instead keeps its numbers finite.
            ((mean / 255.0) as f32, (std.max(1.0) / 255.0) as f32)
        });
        let (mean, std) = moments.unzip();
        Ok(Normalise { mean, std })
    }
}
