//! Layers of networks that are only used, not trained: on slices, on the calling thread alone, with bias and ReLU6 in the same pass.
//!
//! Pixels are rows of channels. Who has many pictures shares those among threads, a few at a time, so that what lies between two layers
//! stays in the caches. Every sum is taken in an order that the layer fixes: neither the pixels that come along nor where a row lies
//! changes a bit of it.

mod depthwise;
mod point;

pub use depthwise::Depthwise;
pub use point::Point;
