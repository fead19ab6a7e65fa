//! Networks, optimisers and training methods for data whose labels are wrong.

pub mod audit;
pub mod ema;
mod error;
pub mod hosts;
pub mod kit;
pub mod ledger;
pub mod model;
pub mod nets;
pub mod optim;
pub mod plugins;
pub mod recipe;
pub mod schedule;
pub mod settings;
pub mod trainer;

pub use error::{Error, Result};
pub use negscale_data::nearest::nearest;
