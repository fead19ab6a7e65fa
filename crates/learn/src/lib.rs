//! Networks, optimisers and training methods for data whose labels are wrong.

mod error;
pub mod nets;

pub use error::{Error, Result};
