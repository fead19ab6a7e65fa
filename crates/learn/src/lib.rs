//! Networks, optimisers and training methods for data whose labels are wrong.

pub mod atomic;
pub mod audit;
pub mod ema;
mod error;
pub mod kit;
pub mod ledger;
pub mod model;
pub mod nets;
pub mod optim;
pub mod schedule;

pub use error::{Error, Result};
