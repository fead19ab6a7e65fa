//! The square in the middle of a picture, resized by cubic interpolation.
//!
//! A place of the result at $i$ lies at $u = (i + 1/2) n/m - 1/2$ in a row of $n$ pixels ($m$: places). Where the picture grows, its value is
//! $\sum_j k(u - j) v_j$ over the four nearest pixels, $k$ being Keys' cubic with $A = -3/4$ and pixels beyond the edge those at the edge. Where
//! it shrinks, the kernel is widened by $n/m$, with $A = -1/2$, pixels beyond the edge are left out, and the weights are divided by their
//! sum. Both as PyTorch's `interpolate` (without and with `antialias`) does it. Results are kept between 0 and 255.

use crate::Picture;

/// Pixels of a side of the result.
pub(super) const SIDE: usize = 128;

/// Weighted pixels of every place: `count` for each.
struct Taps {
    count: usize,
    pixels: Vec<u32>,
    weights: Vec<f32>,
}

/// Keys' cubic kernel.
fn cubic(t: f64, a: f64) -> f64 {
    let t = t.abs();
    if t < 1.0 {
        ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0
    } else if t < 2.0 {
        ((t - 5.0) * t + 8.0) * t * a - 4.0 * a
    } else {
        0.0
    }
}

impl Taps {
    fn new(pixels: usize) -> Self {
        if pixels > SIDE { Self::shrinking(pixels) } else { Self::growing(pixels) }
    }

    fn growing(pixels: usize) -> Self {
        let scale = pixels as f64 / SIDE as f64;
        let mut taps = Self { count: 4, pixels: Vec::new(), weights: Vec::new() };
        for place in 0..SIDE {
            let at = (place as f64 + 0.5) * scale - 0.5;
            for near in -1..=2 {
                let pixel = at.floor() + f64::from(near);
                taps.pixels.push(pixel.clamp(0.0, pixels as f64 - 1.0) as u32);
                taps.weights.push(cubic(at - pixel, -0.75) as f32);
            }
        }
        taps
    }

    fn shrinking(pixels: usize) -> Self {
        let scale = pixels as f64 / SIDE as f64;
        let reach = 2.0 * scale;
        let count = 2 * reach.ceil() as usize + 1;
        let mut taps = Self { count, pixels: Vec::new(), weights: Vec::new() };
        for place in 0..SIDE {
            let centre = (place as f64 + 0.5) * scale;
            let first = (centre - reach + 0.5).max(0.0) as usize;
            let end = ((centre + reach + 0.5) as usize).min(pixels).min(first + count);
            let weight = |pixel: usize| cubic((pixel as f64 + 0.5 - centre) / scale, -0.5);
            let total: f64 = (first..end).map(weight).sum();
            // Filled up with weights of 0.
            for pixel in first..first + count {
                taps.pixels.push(pixel.min(pixels - 1) as u32);
                taps.weights.push(if pixel < end { (weight(pixel) / total) as f32 } else { 0.0 });
            }
        }
        taps
    }

    /// Pixels and weights of a place.
    fn at(&self, place: usize) -> impl Iterator<Item = (usize, f32)> {
        let these = place * self.count..(place + 1) * self.count;
        self.pixels[these.clone()].iter().map(|&p| p as usize).zip(self.weights[these].iter().copied())
    }
}

/// The picture, which has pixels, as a network sees it: [`SIDE`] x [`SIDE`] x 3 values $(v - 127)/128$. `between` is work space.
pub(super) fn prepare(picture: &Picture, between: &mut Vec<f32>, out: &mut [f32]) {
    let side = picture.width.min(picture.height);
    let (left, top) = ((picture.width - side) / 2, (picture.height - side) / 2);
    let taps = Taps::new(side);
    between.resize(side * SIDE * 3, 0.0);
    for (y, row) in between.chunks_exact_mut(SIDE * 3).enumerate() {
        let from = &picture.pixels[((top + y) * picture.width + left) * 3..][..side * 3];
        for (x, place) in row.chunks_exact_mut(3).enumerate() {
            let mut sum = [0.0f32; 3];
            for (pixel, weight) in taps.at(x) {
                for (sum, &value) in sum.iter_mut().zip(&from[pixel * 3..pixel * 3 + 3]) {
                    *sum += weight * f32::from(value);
                }
            }
            place.copy_from_slice(&sum);
        }
    }
    for (y, row) in out.chunks_exact_mut(SIDE * 3).enumerate() {
        row.fill(0.0);
        for (pixel, weight) in taps.at(y).filter(|&(_, weight)| weight != 0.0) {
            add(row, &between[pixel * SIDE * 3..][..SIDE * 3], weight);
        }
        row.iter_mut().for_each(|value| *value = (value.clamp(0.0, 255.0) - 127.0) / 128.0);
    }
}

negscale_cpu::for_this_cpu! {
    fn add(to: &mut [f32], from: &[f32], weight: f32) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to += weight * from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(pixels: &[u8], width: usize, height: usize) -> Vec<f32> {
        let mut out = vec![f32::NAN; SIDE * SIDE * 3];
        prepare(&Picture { pixels, width, height }, &mut Vec::new(), &mut out);
        out
    }

    #[test]
    fn a_flat_picture_of_any_size_stays_flat() {
        for (width, height) in [(1, 1), (2, 3), (32, 32), (128, 128), (129, 130), (401, 300), (1000, 2)] {
            let out = prepared(&vec![200; width * height * 3], width, height);
            let wanted = (200.0 - 127.0) / 128.0;
            assert!(out.iter().all(|value| (value - wanted).abs() < 1e-5), "{width} x {height}");
        }
    }

    #[test]
    fn a_picture_of_the_right_size_is_left_as_it_is_and_only_the_middle_of_a_wide_one_counts() {
        let pixels: Vec<u8> = (0..SIDE * SIDE * 3).map(|i| (i * 7 % 251) as u8).collect();
        let out = prepared(&pixels, SIDE, SIDE);
        assert!(pixels.iter().zip(&out).all(|(&p, v)| (f32::from(p) - 127.0) / 128.0 == *v));
        let mut wide = Vec::new();
        for row in pixels.chunks(SIDE * 3) {
            wide.extend([0; 15].iter().chain(row).chain(&[255; 18]));
        }
        assert_eq!(prepared(&wide, SIDE + 11, SIDE), out);
    }
}
