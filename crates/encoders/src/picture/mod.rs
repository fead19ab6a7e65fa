//! Pictures to embeddings.

mod network;
mod resize;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod weights;

pub use network::{EFFICIENTNET_LITE0, EfficientNetLite0};
