//! A picture that is being changed, in memory that is used again for the next one.

use crate::{Error, Image, Result, Shape};

/// Longest side of a picture that views take, so that every index and every fixed-point coordinate has room.
pub const LONGEST_SIDE: usize = 16_384;

/// A picture somebody else owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picture<'a> {
    shape: Shape,
    pixels: &'a [u8],
}

impl<'a> Picture<'a> {
    /// A picture, if size and values fit together: sides from 1 to [`LONGEST_SIDE`], 1 or 3 channels.
    pub fn new(shape: Shape, pixels: &'a [u8]) -> Result<Self> {
        check_shape(shape)?;
        if pixels.len() != shape.len() {
            return Err(Error::Setting {
                what: "pixels",
                value: pixels.len().to_string(),
                requirement: format!("a picture of {shape:?} has {} values", shape.len()),
            });
        }
        Ok(Self { shape, pixels })
    }

    /// Its size.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Its values, row by row, the channels of a pixel side by side.
    pub fn pixels(&self) -> &'a [u8] {
        self.pixels
    }
}

impl<'a> TryFrom<&'a Image> for Picture<'a> {
    type Error = Error;

    fn try_from(image: &'a Image) -> Result<Self> {
        Self::new(image.shape, &image.pixels)
    }
}

/// Refuses sizes that views cannot take.
pub fn check_shape(shape: Shape) -> Result<()> {
    let side = 1..=LONGEST_SIDE;
    if side.contains(&shape.width) && side.contains(&shape.height) && [1, 3].contains(&shape.channels) {
        return Ok(());
    }
    Err(Error::Setting {
        what: "shape",
        value: format!("{} x {} x {}", shape.width, shape.height, shape.channels),
        requirement: format!("width and height must be 1 to {LONGEST_SIDE}, channels 1 (grey) or 3 (colour)"),
    })
}

/// The picture being changed, and the memory of the one before.
///
/// Nothing is allocated once the largest picture has been seen.
#[derive(Debug, Clone)]
pub struct Scratch {
    pub(super) shape: Shape,
    pub(super) front: Vec<u8>,
    pub(super) back: Vec<u8>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self { shape: Shape { width: 0, height: 0, channels: 1 }, front: Vec::new(), back: Vec::new() }
    }
}

impl Scratch {
    /// Empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a copy of a picture.
    pub fn load(&mut self, picture: Picture) {
        self.shape = picture.shape;
        self.front.clear();
        self.front.extend_from_slice(picture.pixels);
    }

    /// The picture as it is now.
    pub fn picture(&self) -> Picture<'_> {
        Picture { shape: self.shape, pixels: &self.front }
    }

    /// Makes a new picture of the same size out of the present one: `paint(old, new)`, where `new` holds rubbish.
    pub(super) fn repaint(&mut self, paint: impl FnOnce(&[u8], &mut [u8])) {
        self.back.resize(self.front.len(), 0);
        paint(&self.front, &mut self.back);
        std::mem::swap(&mut self.front, &mut self.back);
    }
}

/// Brightness of a pixel as television defined it, in 16-bit fixed point: (19595 R + 38470 G + 7471 B + 2^15) / 2^16.
#[inline]
pub(super) fn luma<const C: usize>(pixel: [u8; C]) -> u8 {
    if C < 3 {
        return pixel[0];
    }
    let [r, g, b] = [pixel[0] as u32, pixel[1] as u32, pixel[2] as u32];
    ((19_595 * r + 38_470 * g + 7_471 * b + 32_768) >> 16) as u8
}
