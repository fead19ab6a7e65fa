//! A picture to the numbers that a network takes.
//!
//! Each place of the result is a mean of pixels around its middle, with weights that fall linearly from there: over one pixel to each side
//! where the picture grows, over $n/m$ pixels where $n$ of them shrink to $m$. That is PyTorch's `interpolate` with `bilinear` and `antialias`.

use crate::Picture;

/// First pixel of every place, and the weights from there on.
fn weights(pixels: usize, places: usize) -> Vec<(usize, Vec<f32>)> {
    let scale = pixels as f64 / places as f64;
    let reach = scale.max(1.0);
    let place = |place: usize| {
        let centre = (place as f64 + 0.5) * scale;
        let first = (centre - reach + 0.5).max(0.0) as usize;
        let end = ((centre + reach + 0.5) as usize).clamp(first + 1, pixels.max(first + 1));
        let weight = |pixel: usize| (1.0 - ((pixel as f64 + 0.5 - centre) / reach).abs()).max(0.0);
        let total: f64 = (first..end).map(weight).sum();
        (first, (first..end).map(|pixel| (weight(pixel) / total) as f32).collect())
    };
    (0..places).map(place).collect()
}

/// The largest piece in the middle of a picture that has the shape of `rows x columns`, resized to it: red, green and blue one after the
/// other, between 0 and 1, then less `mean` and divided by `deviation`.
pub(super) fn fit(
    picture: &Picture,
    [rows, columns]: [usize; 2],
    mean: [f32; 3],
    deviation: [f32; 3],
) -> Vec<f32> {
    let Picture { pixels, width, height } = *picture;
    let cut = |side: usize, other: usize, long: usize, short: usize| {
        ((other as f64 * long as f64 / short as f64).round() as usize).clamp(1, side)
    };
    let (wide, high) = (cut(width, height, columns, rows), cut(height, width, rows, columns));
    let (left, top) = ((width - wide) / 2, (height - high) / 2);
    let mut between = vec![[0.0f32; 3]; high * columns];
    let across = weights(wide, columns);
    for (row, between) in pixels.chunks_exact(width * 3).skip(top).zip(between.chunks_exact_mut(columns)) {
        for (place, (first, weights)) in between.iter_mut().zip(&across) {
            for (pixel, weight) in row[(left + first) * 3..].chunks_exact(3).zip(weights) {
                for (sum, &value) in place.iter_mut().zip(pixel) {
                    *sum += weight * f32::from(value);
                }
            }
        }
    }
    let mut numbers = vec![0.0; 3 * rows * columns];
    for (y, (first, weights)) in weights(high, rows).iter().enumerate() {
        for x in 0..columns {
            for channel in 0..3 {
                let column = between[first * columns + x..].iter().step_by(columns);
                let sum: f32 = column.zip(weights).map(|(place, weight)| weight * place[channel]).sum();
                numbers[(channel * rows + y) * columns + x] =
                    (sum / 255.0 - mean[channel]) / deviation[channel];
            }
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(pixels: &[u8], [width, height]: [usize; 2], size: [usize; 2]) -> Vec<f32> {
        fit(&Picture { pixels, width, height }, size, [0.0; 3], [1.0 / 255.0; 3])
    }

    #[test]
    fn a_flat_picture_of_any_size_stays_flat() {
        for (from, to) in [
            ([1, 1], [5, 7]),
            ([3, 2], [2, 3]),
            ([40, 30], [7, 7]),
            ([7, 1000], [224, 224]),
            ([9, 9], [1, 1]),
        ] {
            let numbers = fitted(&vec![200; from[0] * from[1] * 3], from, to);
            assert_eq!(numbers.len(), 3 * to[0] * to[1]);
            assert!(numbers.iter().all(|x| (x - 200.0).abs() < 1e-3), "{from:?} {to:?}");
        }
    }

    #[test]
    fn the_middle_of_a_wide_picture_counts_and_colours_come_one_after_the_other() {
        // One row: black, red, green, white.
        let pixels = [0, 0, 0, 255, 0, 0, 0, 255, 0, 255, 255, 255];
        let numbers = fitted(&pixels, [4, 1], [1, 2]);
        assert_eq!(
            numbers.iter().map(|x| x.round()).collect::<Vec<f32>>(),
            [255.0, 0.0, 0.0, 255.0, 0.0, 0.0]
        );
        assert_eq!(fitted(&pixels, [4, 1], [1, 4]).len(), 12);
    }

    #[test]
    fn weights_fall_linearly_from_the_middle_and_sum_to_one() {
        // Six pixels to two places: middles at 1.5 and 4.5, reaching three pixels to each side.
        let wanted = [2.0, 3.0, 2.0, 1.0].map(|weight: f32| weight / 8.0);
        let places = weights(6, 2);
        let near = |found: &[f32], wanted: &[f32]| {
            found.len() >= wanted.len() && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6)
        };
        assert!(places[0].0 == 0 && near(&places[0].1, &wanted), "{places:?}");
        let turned: Vec<f32> = places[1].1.iter().rev().copied().collect();
        assert!(near(&turned, &wanted), "{places:?}");
        for (pixels, count) in [(1, 5), (5, 1), (7, 7), (100, 33), (33, 100)] {
            for (first, weights) in weights(pixels, count) {
                assert!(first + weights.len() <= pixels);
                assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            }
        }
    }
}
