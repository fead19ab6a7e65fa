//! Pictures to embeddings.

mod network;
mod resize;
mod weights;

pub use network::{EFFICIENTNET_LITE0, EfficientNetLite0};
