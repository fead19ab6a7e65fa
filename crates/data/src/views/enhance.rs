//! Operations that move a picture towards a duller one, or away from it: x becomes clip(trunc(d + v (x - d))).
//!
//! v = 1 gives the picture back, v = 0 the dull one (d): black, its greys, one grey, or itself smoothed. Computed in single
//! precision like Pillow's blend, so that not even the rounding differs; a conversion to u8 truncates and clips.

use super::canvas::{Scratch, luma};
use super::levels;

#[inline]
fn blend(dull: u8, value: u8, v: f32) -> u8 {
    (dull as f32 + v * (value as i32 - dull as i32) as f32) as u8
}

/// Towards one level for all pixels: a table does it.
fn blend_level(pixels: &mut [u8], dull: u8, v: f32) {
    levels::map(pixels, &std::array::from_fn(|level| blend(dull, level as u8, v)));
}

/// Towards black.
pub(super) fn brightness(pixels: &mut [u8], v: f32) {
    blend_level(pixels, 0, v);
}

/// Towards the mean brightness, rounded.
pub(super) fn contrast<const C: usize>(pixels: &mut [u8], v: f32) {
    let all = pixels.as_chunks::<C>().0;
    let sum: u64 = all.iter().map(|&pixel| luma(pixel) as u64).sum();
    let mean = (sum as f64 / all.len() as f64 + 0.5) as u8;
    blend_level(pixels, mean, v);
}

/// Towards the greys of the picture. A grey picture stays as it is.
pub(super) fn colour<const C: usize>(pixels: &mut [u8], v: f32) {
    if C == 1 {
        return;
    }
    for pixel in pixels.as_chunks_mut::<C>().0 {
        let grey = luma(*pixel);
        *pixel = pixel.map(|value| blend(grey, value, v));
    }
}

/// Towards the smoothed picture: each inner value is (5 x itself + its 8 neighbours) / 13, rounded; the border stays.
pub(super) fn sharpness(scratch: &mut Scratch, v: f32) {
    let (step, row) = (scratch.shape.channels, scratch.shape.width * scratch.shape.channels);
    let (height, width) = (scratch.shape.height, scratch.shape.width);
    if height < 3 || width < 3 {
        return; // all border, and a border blended with itself stays
    }
    scratch.repaint(|old, new| {
        new[..row].copy_from_slice(&old[..row]);
        new[(height - 1) * row..].copy_from_slice(&old[(height - 1) * row..]);
        for y in 1..height - 1 {
            let [above, here, below] = [y - 1, y, y + 1].map(|y| &old[y * row..(y + 1) * row]);
            let out = &mut new[y * row..(y + 1) * row];
            out[..step].copy_from_slice(&here[..step]);
            out[row - step..].copy_from_slice(&here[row - step..]);
            for x in step..row - step {
                let column = |x: usize| above[x] as u32 + here[x] as u32 + below[x] as u32;
                let sum = column(x - step) + column(x) + column(x + step) + 4 * here[x] as u32;
                // 13 is odd: a sum is never half-way between two levels, so integers round as Pillow's floats do.
                out[x] = blend(((2 * sum + 13) / 26) as u8, here[x], v);
            }
        }
    });
}
