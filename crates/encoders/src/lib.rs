//! Pictures and text to embeddings: rows of numbers for which near means alike.

/// The snippets of the README are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod error;
#[cfg(feature = "onnx")]
mod onnx;
mod picture;
mod text;

pub use error::{Error, Result};
pub use negscale_kernels::Precision;
#[cfg(feature = "onnx")]
pub use onnx::{OnnxPictures, OnnxSettings, OnnxTexts};
pub use picture::{EFFICIENTNET_LITE0, EfficientNetLite0};
pub use text::TextEncoder;

/// A picture as encoders take it.
#[derive(Debug, Clone, Copy)]
pub struct Picture<'a> {
    /// Rows of pixels from the top, three bytes each: red, green, blue.
    pub pixels: &'a [u8],
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// What makes a row of numbers of an item.
pub trait Encoder<Item>: Send + Sync {
    /// Its name, such as `efficientnet-lite0`.
    fn name(&self) -> &str;

    /// Numbers in a row.
    fn width(&self) -> usize;

    /// Writes the row of every item one after the other into `rows`, which holds `items.len()` times [`width`](Self::width) numbers. A row
    /// has the same bits in whatever company its item comes, and with however many threads.
    ///
    /// # Errors
    /// Says which item cannot be encoded, and why.
    fn encode(&self, items: &[Item], rows: &mut [f32]) -> Result<()>;

    /// Of how many items the end was not read since it was opened, because they are longer than it takes.
    fn truncated(&self) -> usize {
        0
    }
}
