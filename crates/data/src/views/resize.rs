//! Pictures of any size brought to the network's size and number of channels.
//!
//! Each new pixel is the mean of the old ones under a triangle centred on it, whose half width is one new pixel or one old one,
//! whichever is larger; so making a picture smaller does not alias. Two passes, one to the new width and one to the new height,
//! in 22-bit fixed point: equal to Pillow's bilinear `resize` bit for bit. Its version 13 makes the new height first where the
//! picture loses more than twice as many rows as columns (found by trying sizes), and so do we.

use super::canvas::{check_shape, luma};
use crate::{Error, Image, Result, Shape};
use serde::{Deserialize, Serialize};

/// How a picture of another shape is brought to the network's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// The largest middle part that has the network's proportions; nothing is distorted, margins may be lost.
    #[default]
    Cover,
    /// All of it, distorted if the proportions differ.
    Stretch,
}

/// Most values a decoded picture may have before it is resized, and between the two passes.
const MOST_VALUES: usize = 1 << 30;
/// Longest side of a picture before it is resized: the rounding of so many weights cannot overflow their sum.
const LONGEST_OLD_SIDE: usize = 1 << 17;

/// The picture in the shape asked for.
pub fn fit(image: Image, shape: Shape, how: Fit) -> Result<Image> {
    check_shape(shape)?;
    // Fewer channels first: less to resize.
    let image =
        if shape.channels < image.shape.channels { convert(image, shape.channels)? } else { checked(image)? };
    let (width, height) = (image.shape.width as f64, image.shape.height as f64);
    let (mut across, mut down) = ((0.0, width), (0.0, height));
    if how == Fit::Cover {
        let scale = (width / shape.width as f64).min(height / shape.height as f64);
        // Pillow keeps the part in single precision; with ours in double, a few weights would round differently.
        let single = |x: f64| x as f32 as f64;
        let middle = |length: f64, kept: f64| {
            (single((length - kept) / 2.0).max(0.0), single((length + kept) / 2.0).min(length))
        };
        across = middle(width, shape.width as f64 * scale);
        down = middle(height, shape.height as f64 * scale);
    }
    convert(resample(image, shape.width, shape.height, across, down)?, shape.channels)
}

/// The picture, if it can be resized and converted.
pub(super) fn checked(image: Image) -> Result<Image> {
    let Shape { width, height, channels } = image.shape;
    let values = width.checked_mul(height).and_then(|area| area.checked_mul(channels));
    let fits = values.is_some_and(|n| n > 0 && n <= MOST_VALUES && n == image.pixels.len())
        && width.max(height) <= LONGEST_OLD_SIDE;
    if fits && [1, 3].contains(&channels) {
        return Ok(image);
    }
    Err(Error::Setting {
        what: "picture",
        value: format!("{width} x {height} x {channels} with {} values", image.pixels.len()),
        requirement: format!(
            "must be grey (1) or colour (3), not empty, of at most {MOST_VALUES} values and {LONGEST_OLD_SIDE} a side"
        ),
    })
}

/// The picture as grey (its brightness) or colour (its grey three times).
pub fn convert(image: Image, channels: usize) -> Result<Image> {
    let Image { shape, pixels } = checked(image)?;
    let pixels = match (shape.channels, channels) {
        (old, new) if old == new => pixels,
        (3, 1) => pixels.as_chunks::<3>().0.iter().map(|&pixel| luma(pixel)).collect(),
        (1, 3) => pixels.iter().flat_map(|&grey| [grey; 3]).collect(),
        _ => {
            return Err(Error::Setting {
                what: "channels",
                value: channels.to_string(),
                requirement: "must be 1 (grey) or 3 (colour)".into(),
            });
        }
    };
    Ok(Image { shape: Shape { channels, ..shape }, pixels })
}

/// Bits behind the point of a weight: 32 less 8 for the value and 2 for sums above 255 and signs.
const BITS: u32 = 22;

/// For one new pixel: the first old pixel it takes from, and the weights from there on.
struct Weights {
    first: usize,
    weights: Vec<i32>,
}

/// Weights of each of `new` pixels over the part `from..to` of `old` pixels.
fn weigh(old: usize, new: usize, (from, to): (f64, f64)) -> Vec<Weights> {
    // Pillow takes this difference in single precision, which decides the rounding of a few weights.
    let scale = (to as f32 - from as f32) as f64 / new as f64;
    let reach = scale.max(1.0);
    (0..new)
        .map(|at| {
            let centre = from + (at as f64 + 0.5) * scale;
            let first = (centre - reach + 0.5).max(0.0) as usize;
            let end = ((centre + reach + 0.5) as usize).min(old).max(first + 1);
            let triangle = |i: usize| (1.0 - (((i as f64 - centre) + 0.5) * (1.0 / reach)).abs()).max(0.0);
            let weights: Vec<f64> = (first..end).map(triangle).collect();
            let sum: f64 = weights.iter().sum();
            let fixed = |w: &f64| (if sum == 0.0 { *w } else { w / sum } * (1 << BITS) as f64 + 0.5) as i32;
            Weights { first, weights: weights.iter().map(fixed).collect() }
        })
        .collect()
}

/// The weighted sum, rounded and clipped.
fn level(sum: i32) -> u8 {
    ((sum + (1 << (BITS - 1))) >> BITS).clamp(0, 255) as u8
}

fn resample(
    image: Image,
    width: usize,
    height: usize,
    across: (f64, f64),
    down: (f64, f64),
) -> Result<Image> {
    let old = image.shape;
    let columns_last =
        height < old.height && 2 * (width as i64 - old.width as i64) > height as i64 - old.height as i64;
    let between = if columns_last { old.width * height } else { width.saturating_mul(old.height) };
    if between.saturating_mul(old.channels) > MOST_VALUES {
        return Err(Error::Setting {
            what: "picture",
            value: format!("{} x {}", old.width, old.height),
            requirement: format!("too long to be brought to {width} x {height}: make one of the two smaller"),
        });
    }
    Ok(if columns_last {
        resize_columns(resize_rows(image, height, down), width, across)
    } else {
        resize_rows(resize_columns(image, width, across), height, down)
    })
}

/// Another number of columns.
fn resize_columns(image: Image, width: usize, part: (f64, f64)) -> Image {
    let old = image.shape;
    if width == old.width && part == (0.0, width as f64) {
        return image;
    }
    let columns = weigh(old.width, width, part);
    let shape = Shape { width, ..old };
    let mut pixels = Vec::with_capacity(shape.len());
    for row in image.pixels.chunks_exact(old.width * old.channels) {
        for Weights { first, weights } in &columns {
            for c in 0..old.channels {
                let values = row[first * old.channels + c..].iter().step_by(old.channels);
                pixels.push(level(values.zip(weights).map(|(&v, w)| v as i32 * w).sum()));
            }
        }
    }
    Image { shape, pixels }
}

/// Another number of rows.
fn resize_rows(image: Image, height: usize, part: (f64, f64)) -> Image {
    let old = image.shape;
    if height == old.height && part == (0.0, height as f64) {
        return image;
    }
    let row = old.width * old.channels;
    let shape = Shape { height, ..old };
    let mut pixels = Vec::with_capacity(shape.len());
    let mut sums = vec![0i32; row];
    for Weights { first, weights } in weigh(old.height, height, part) {
        sums.fill(0);
        for (old, weight) in image.pixels[first * row..].chunks_exact(row).zip(&weights) {
            sums.iter_mut().zip(old).for_each(|(sum, &v)| *sum += v as i32 * weight);
        }
        pixels.extend(sums.iter().map(|&sum| level(sum)));
    }
    Image { shape, pixels }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::LONGEST_SIDE;

    fn ramp(width: usize, height: usize, channels: usize) -> Image {
        let shape = Shape { width, height, channels };
        Image { shape, pixels: (0..shape.len()).map(|i| (i * 7 % 251) as u8).collect() }
    }

    #[test]
    fn a_picture_of_the_right_shape_stays_as_it_is() {
        for how in [Fit::Cover, Fit::Stretch] {
            assert_eq!(fit(ramp(5, 4, 3), ramp(5, 4, 3).shape, how).unwrap(), ramp(5, 4, 3));
        }
    }

    #[test]
    fn covering_takes_the_middle_and_stretching_takes_everything() {
        let shape = Shape { width: 6, height: 2, channels: 1 };
        let image = Image { shape, pixels: [[0, 0, 90, 90, 0, 0]; 2].concat() };
        let square = Shape { width: 2, height: 2, channels: 1 };
        assert_eq!(fit(image.clone(), square, Fit::Cover).unwrap().pixels, [90; 4]);
        assert!(fit(image, square, Fit::Stretch).unwrap().pixels.iter().all(|&v| v > 0 && v < 90));
    }

    #[test]
    fn grey_becomes_three_equal_channels_and_colour_its_brightness() {
        let grey = Image { shape: Shape { width: 2, height: 1, channels: 1 }, pixels: vec![3, 200] };
        let colour = convert(grey.clone(), 3).unwrap();
        assert_eq!(colour.pixels, [3, 3, 3, 200, 200, 200]);
        assert_eq!(convert(colour, 1).unwrap(), grey);
        let red = Image { shape: Shape { width: 1, height: 1, channels: 3 }, pixels: vec![255, 0, 0] };
        assert_eq!(convert(red, 1).unwrap().pixels, [76]);
    }

    #[test]
    fn broken_pictures_and_sizes_are_refused_without_a_panic() {
        let with = |width, height, channels, values| Image {
            shape: Shape { width, height, channels },
            pixels: vec![0; values],
        };
        let target = Shape { width: 4, height: 4, channels: 3 };
        for image in [
            with(0, 0, 3, 0),
            with(4, 4, 3, 47),
            with(4, 4, 2, 32),
            with(4, 4, 4, 64),
            with(usize::MAX, usize::MAX, 3, 3),
        ] {
            assert!(fit(image, target, Fit::Cover).is_err());
        }
        for (width, height, channels) in [(0, 4, 3), (4, LONGEST_SIDE + 1, 3), (4, 4, 2)] {
            assert!(fit(ramp(3, 3, 3), Shape { width, height, channels }, Fit::Cover).is_err());
        }
        let thin = fit(ramp(1, 700, 1), Shape { width: 9, height: 2, channels: 3 }, Fit::Cover).unwrap();
        assert_eq!(thin.pixels.len(), 54);
    }
}
