//! A decoded picture.

use serde::{Deserialize, Serialize};

/// Size of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 (grey) or 3 (red, green, blue).
    pub channels: usize,
}

impl Shape {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.width * self.height * self.channels
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A picture of 8-bit values, row by row, the channels of a pixel side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its size.
    pub shape: Shape,
    /// `shape.len()` values.
    pub pixels: Vec<u8>,
}

impl Image {
    /// From planes: all values of the first channel, then all of the second, as CIFAR's binary files have them.
    pub fn from_planes(shape: Shape, planes: &[u8]) -> Self {
        assert_eq!(planes.len(), shape.len(), "planes of {shape:?}");
        let mut pixels = vec![0; planes.len()];
        for (channel, plane) in planes.chunks((shape.width * shape.height).max(1)).enumerate() {
            let places = pixels.chunks_mut(shape.channels);
            places.zip(plane).for_each(|(pixel, &value)| pixel[channel] = value);
        }
        Self { shape, pixels }
    }
}
