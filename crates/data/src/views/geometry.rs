//! Operations that move pixels: each place of the new picture looks up where it came from.
//!
//! A matrix (a b c; d e f) sends the place (x, y) of the new picture to (a x + b y + c, d x + e y + f) in the old one, with
//! pixel centres at halves. Arithmetic follows Pillow's: 16.16 fixed point for the nearest pixel, double precision for the
//! bicubic mean, a plain shift for translations.

use super::canvas::Scratch;
use crate::Shape;

/// What stands where a picture has nothing, and how a shear reads between pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Level of every channel outside the picture.
    pub fill: u8,
    /// Whether shears take the bicubic mean of 16 pixels rather than the nearest one.
    pub smooth_shear: bool,
}

impl Edge {
    /// Black and nearest: the strong view.
    pub const STRONG: Self = Self { fill: 0, smooth_shear: false };
    /// Grey and bicubic: the AutoAugment policy.
    pub const AUTOAUGMENT: Self = Self { fill: 128, smooth_shear: true };
}

type Matrix = [f64; 6];

/// Turns the picture counter-clockwise about its middle, by an angle in degrees.
pub(super) fn rotate(scratch: &mut Scratch, degrees: f64, fill: u8) {
    let turn = degrees.rem_euclid(360.0);
    if turn == 0.0 || !turn.is_finite() {
        return;
    }
    let (sin, cos) = (-turn.to_radians()).sin_cos();
    let (a, b, d, e) = (round15(cos), round15(sin), round15(-sin), round15(cos));
    let (cx, cy) = (scratch.shape.width as f64 / 2.0, scratch.shape.height as f64 / 2.0);
    let c = a * -cx + b * -cy + 0.0 + cx;
    let f = d * -cx + e * -cy + 0.0 + cy;
    nearest(scratch, [a, b, c, d, e, f], fill);
}

/// The nearest number with 15 decimals, as the reference rounds its matrix. The product's rounding error is added back, so
/// that it cannot decide.
fn round15(x: f64) -> f64 {
    let product = x * 1e15;
    let error = x.mul_add(1e15, -product);
    let whole = product.round_ties_even();
    let rest = (product - whole) + error;
    (whole + f64::from(rest > 0.5) - f64::from(rest < -0.5)) / 1e15
}

/// Slants rows: source = (x + v y, y).
pub(super) fn shear_x(scratch: &mut Scratch, v: f64, edge: Edge) {
    shear(scratch, [1.0, v, 0.0, 0.0, 1.0, 0.0], edge);
}

/// Slants columns: source = (x, y + v x).
pub(super) fn shear_y(scratch: &mut Scratch, v: f64, edge: Edge) {
    shear(scratch, [1.0, 0.0, 0.0, v, 1.0, 0.0], edge);
}

fn shear(scratch: &mut Scratch, matrix: Matrix, edge: Edge) {
    match (edge.smooth_shear, scratch.shape.channels) {
        (false, _) => nearest(scratch, matrix, edge.fill),
        (true, 1) => bicubic::<1>(scratch, matrix, edge.fill),
        (true, _) => bicubic::<3>(scratch, matrix, edge.fill),
    }
}

/// Moves the picture by (dx, dy) pixels against their signs: source = (x + dx, y + dy), floor of the pixel centre.
pub(super) fn translate(scratch: &mut Scratch, dx: f64, dy: f64, fill: u8) {
    let Shape { width, height, channels } = scratch.shape;
    // Conversion clips, and a shift beyond the picture is as good as one just beyond it.
    let shift = |d: f64, side: usize| ((d + 0.5).floor() as i64).clamp(-(side as i64), side as i64) as isize;
    let (dx, dy) = (shift(dx, width), shift(dy, height));
    let (left, right) = ((-dx).max(0) as usize, (width as isize - dx.max(0)) as usize);
    scratch.repaint(|old, new| {
        for (y, out) in new.chunks_exact_mut(width * channels).enumerate() {
            let Some(from) = y.checked_add_signed(dy).filter(|&from| from < height && left < right) else {
                out.fill(fill);
                continue;
            };
            let start = from * width * channels;
            let source = left.saturating_add_signed(dx) * channels;
            let length = (right - left) * channels;
            out[..left * channels].fill(fill);
            out[left * channels..right * channels]
                .copy_from_slice(&old[start + source..start + source + length]);
            out[right * channels..].fill(fill);
        }
    });
}

/// Each place takes the pixel it falls in.
fn nearest(scratch: &mut Scratch, matrix: Matrix, fill: u8) {
    match scratch.shape.channels {
        1 => nearest_of::<1>(scratch, matrix, fill),
        _ => nearest_of::<3>(scratch, matrix, fill),
    }
}

fn nearest_of<const C: usize>(scratch: &mut Scratch, [a, b, c, d, e, f]: Matrix, fill: u8) {
    // Beyond 2^40 everything is outside any picture; the bound keeps the sums below from overflowing.
    let fixed = |v: f64| ((v * 65_536.0 + 0.5).floor() as i64).clamp(-(1 << 40), 1 << 40);
    let (ax, bx, cx) = (fixed(a), fixed(b), fixed(c + a * 0.5 + b * 0.5));
    let (ay, by, cy) = (fixed(d), fixed(e), fixed(f + d * 0.5 + e * 0.5));
    let Shape { width, height, .. } = scratch.shape;
    scratch.repaint(|old, new| {
        let (old, new) = (old.as_chunks::<C>().0, new.as_chunks_mut::<C>().0);
        for (y, row) in new.chunks_exact_mut(width).enumerate() {
            let (mut x_at, mut y_at) = (cx + bx * y as i64, cy + by * y as i64);
            for pixel in row {
                // A negative coordinate becomes a huge unsigned one: one comparison serves both sides.
                let (sx, sy) = ((x_at >> 16) as usize, (y_at >> 16) as usize);
                *pixel = if sx < width && sy < height { old[sy * width + sx] } else { [fill; C] };
                x_at += ax;
                y_at += ay;
            }
        }
    });
}

/// Cubic through values at 0 and 1 whose slopes there are the differences of their neighbours (cubic convolution with
/// a = -1), at the place t between 0 and 1; the four values stand at -1, 0, 1, 2.
#[inline]
fn cubic(v: [f64; 4], t: f64) -> f64 {
    let p2 = -v[0] + v[2];
    let p3 = 2.0 * (v[0] - v[1]) + v[2] - v[3];
    let p4 = -v[0] + v[1] - v[2] + v[3];
    v[1] + t * (p2 + t * (p3 + t * p4))
}

/// Each place takes the bicubic mean of the 16 pixels around it; beyond the border the border is repeated.
fn bicubic<const C: usize>(scratch: &mut Scratch, [a, b, c, d, e, f]: Matrix, fill: u8) {
    let Shape { width, height, .. } = scratch.shape;
    let (w, h) = (width as f64, height as f64);
    let inside = |at: i64, side: usize| at.clamp(0, side as i64 - 1) as usize;
    scratch.repaint(|old, new| {
        let (old, new) = (old.as_chunks::<C>().0, new.as_chunks_mut::<C>().0);
        for (y, row) in new.chunks_exact_mut(width).enumerate() {
            for (x, pixel) in row.iter_mut().enumerate() {
                let (px, py) = (x as f64 + 0.5, y as f64 + 0.5);
                let (sx, sy) = (a * px + b * py + c, d * px + e * py + f);
                if !(sx >= 0.0 && sx < w && sy >= 0.0 && sy < h) {
                    *pixel = [fill; C];
                    continue;
                }
                let (sx, sy) = (sx - 0.5, sy - 0.5);
                let (left, top) = (sx.floor(), sy.floor());
                let (tx, ty) = (sx - left, sy - top);
                let columns = [-1, 0, 1, 2].map(|k| inside(left as i64 + k, width));
                let rows = [-1, 0, 1, 2].map(|k| inside(top as i64 + k, height) * width);
                *pixel = std::array::from_fn(|channel| {
                    let value = |at: usize| old[at][channel] as f64;
                    cubic(rows.map(|r| cubic(columns.map(|c| value(r + c)), tx)), ty) as u8
                });
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::Picture;

    fn loaded(width: usize, height: usize) -> Scratch {
        let mut scratch = Scratch::new();
        let pixels: Vec<u8> = (1..=(width * height) as u8).collect();
        scratch.load(Picture::new(Shape { width, height, channels: 1 }, &pixels).unwrap());
        scratch
    }

    #[test]
    fn a_translation_beyond_the_picture_leaves_only_the_fill() {
        for (dx, dy) in [(3.0, 0.0), (-3.0, 0.0), (0.0, 2.0), (0.0, -2.0), (1e300, 0.0), (0.0, f64::INFINITY)]
        {
            let mut scratch = loaded(3, 2);
            translate(&mut scratch, dx, dy, 9);
            assert_eq!(scratch.front, [9; 6], "{dx} {dy}");
        }
    }

    #[test]
    fn a_translation_reads_from_where_its_sign_points() {
        let mut scratch = loaded(3, 2);
        translate(&mut scratch, 1.0, 0.0, 0);
        assert_eq!(scratch.front, [2, 3, 0, 5, 6, 0]);
        let mut scratch = loaded(3, 2);
        translate(&mut scratch, -1.2, 1.0, 0);
        assert_eq!(scratch.front, [0, 4, 5, 0, 0, 0]);
    }

    #[test]
    fn four_quarter_turns_of_a_square_give_it_back() {
        let mut scratch = loaded(4, 4);
        rotate(&mut scratch, 90.0, 0);
        assert_eq!(scratch.front[..4], [4, 8, 12, 16], "counter-clockwise: the right column comes on top");
        (0..3).for_each(|_| rotate(&mut scratch, 90.0, 0));
        assert_eq!(scratch.front, loaded(4, 4).front);
    }
}
