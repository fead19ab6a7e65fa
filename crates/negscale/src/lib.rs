//! NegScale.
pub mod taxonomy;
mod error;
pub use error::{Error, Result};
pub use taxonomy::Taxonomy;
