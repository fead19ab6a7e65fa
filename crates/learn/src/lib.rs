//! Networks, optimisers and training methods for data whose labels are wrong.

pub mod ema;
pub mod optim;
pub mod schedule;
