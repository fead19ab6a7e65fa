//! NegScale.
mod error;
pub mod taxonomy;
pub use error::{Error, Result};
pub use taxonomy::Taxonomy;
