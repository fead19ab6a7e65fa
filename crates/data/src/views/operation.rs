//! One change of a picture, and the strong view made of them.
//!
//! Strong view: three of the 14 operations of [`Operation::draw`], drawn with replacement, then Cutout. What the literature
//! defines for 32 x 32 pixels holds here for any size: 32 becomes the width (for rows, the height) and the middle (16, 16)
//! half of both.

use super::canvas::Scratch;
use super::geometry::{self, Edge};
use super::{enhance, levels};
use crate::Shape;
use crate::draw::Draw;

/// A change of an 8-bit picture, pixel-exact with Pillow's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operation {
    /// Nothing.
    Identity,
    /// Each channel stretched to all levels.
    Autocontrast,
    /// Each channel's levels made equally frequent.
    Equalize,
    /// 255 less every value.
    Invert,
    /// Towards black (below 1) or away from it.
    Brightness(f64),
    /// Towards grey (below 1) or away from it.
    Colour(f64),
    /// Towards the mean brightness (below 1) or away from it.
    Contrast(f64),
    /// Towards the smoothed picture (below 1) or away from it.
    Sharpness(f64),
    /// Only so many top bits are kept.
    Posterize(u8),
    /// Values not below the threshold are inverted.
    Solarize(f64),
    /// Counter-clockwise about the middle, in degrees.
    Rotate(f64),
    /// Source = (x + v y, y).
    ShearX(f64),
    /// Source = (x, y + v x).
    ShearY(f64),
    /// Source = (x + v width, y).
    TranslateX(f64),
    /// Source = (x, y + v height).
    TranslateY(f64),
}

impl Operation {
    /// One of the 14 operations of the strong view, uniformly, with a value uniform in its range: enhancements 0.05 to 0.95
    /// (so they only take away), posterize 4 to 7 bits, solarize 0 to 256, rotation within 30 degrees, shear and
    /// translation within 0.3. Invert is not among them.
    pub fn draw(draw: &mut Draw) -> Self {
        let kind = draw.below(14);
        let dull = |draw: &mut Draw| draw.within(0.05, 0.95);
        let slant = |draw: &mut Draw| draw.within(-0.3, 0.3);
        match kind {
            0 => Self::Identity,
            1 => Self::Autocontrast,
            2 => Self::Equalize,
            3 => Self::Brightness(dull(draw)),
            4 => Self::Colour(dull(draw)),
            5 => Self::Contrast(dull(draw)),
            6 => Self::Sharpness(dull(draw)),
            7 => Self::Posterize(draw.within(4.0, 8.0) as u8),
            8 => Self::Solarize(draw.within(0.0, 256.0)),
            9 => Self::Rotate(draw.within(-30.0, 30.0)),
            10 => Self::ShearX(slant(draw)),
            11 => Self::ShearY(slant(draw)),
            12 => Self::TranslateX(slant(draw)),
            _ => Self::TranslateY(slant(draw)),
        }
    }

    /// Changes the picture.
    pub fn apply(self, scratch: &mut Scratch, edge: Edge) {
        match scratch.shape.channels {
            1 => self.apply_to::<1>(scratch, edge),
            _ => self.apply_to::<3>(scratch, edge),
        }
    }

    fn apply_to<const C: usize>(self, scratch: &mut Scratch, edge: Edge) {
        let Shape { width, height, .. } = scratch.shape;
        let pixels = &mut scratch.front[..];
        match self {
            Self::Identity => {}
            Self::Autocontrast => levels::autocontrast::<C>(pixels),
            Self::Equalize => levels::equalize::<C>(pixels),
            Self::Invert => levels::invert(pixels),
            Self::Brightness(v) => enhance::brightness(pixels, v as f32),
            Self::Colour(v) => enhance::colour::<C>(pixels, v as f32),
            Self::Contrast(v) => enhance::contrast::<C>(pixels, v as f32),
            Self::Sharpness(v) => enhance::sharpness(scratch, v as f32),
            Self::Posterize(bits) => levels::posterize(pixels, bits),
            Self::Solarize(v) => levels::solarize(pixels, v),
            Self::Rotate(degrees) => geometry::rotate(scratch, degrees, edge.fill),
            Self::ShearX(v) => geometry::shear_x(scratch, v, edge),
            Self::ShearY(v) => geometry::shear_y(scratch, v, edge),
            Self::TranslateX(v) => geometry::translate(scratch, v * width as f64, 0.0, edge.fill),
            Self::TranslateY(v) => geometry::translate(scratch, 0.0, v * height as f64, edge.fill),
        }
    }
}

/// A square painted over, so that the network cannot rely on one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cutout {
    /// Side in pixels.
    pub side: f64,
    /// Column of the centre.
    pub x: f64,
    /// Row of the centre.
    pub y: f64,
}

impl Cutout {
    /// Colour of the square; in grey pictures its brightness, 123.
    pub const COLOUR: [u8; 3] = [125, 123, 114];

    /// Side uniform between 0 and half the width, centre uniform over the picture.
    pub fn draw(shape: Shape, draw: &mut Draw) -> Self {
        let (width, height) = (shape.width as f64, shape.height as f64);
        Self { side: width * draw.within(0.0, 0.5), x: draw.within(0.0, width), y: draw.within(0.0, height) }
    }

    /// First and last column (or row), both painted: from trunc(max(0, centre - side/2)) to floor(min(length, first + side)).
    fn span(centre: f64, side: f64, length: usize) -> std::ops::Range<usize> {
        let first = (centre - side / 2.0).max(0.0).trunc();
        let last = (first + side).min(length as f64).floor();
        let first = (first as usize).min(length);
        first..(last as usize + 1).clamp(first, length)
    }

    /// Paints the square.
    pub fn apply(self, scratch: &mut Scratch) {
        let Shape { width, height, channels } = scratch.shape;
        let columns = Self::span(self.x, self.side, width);
        for y in Self::span(self.y, self.side, height) {
            let start = y * width * channels;
            let patch = &mut scratch.front[start + columns.start * channels..start + columns.end * channels];
            match channels {
                1 => patch.fill(Self::COLOUR[1]),
                _ => patch.as_chunks_mut().0.fill(Self::COLOUR),
            }
        }
    }
}

/// Three operations and a Cutout. The weak view that follows them in the definition is left to the caller.
pub(super) fn strengthen(scratch: &mut Scratch, draw: &mut Draw) {
    for _ in 0..3 {
        Operation::draw(draw).apply(scratch, Edge::STRONG);
    }
    Cutout::draw(scratch.shape, draw).apply(scratch);
}
