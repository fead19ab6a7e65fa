//! Parts that training methods share, each small and tested alone.

pub mod contrast;
pub mod gmm;
pub mod loss;
pub mod mix;
pub mod target;
