//! Parts that training methods share, each small and tested alone.

pub mod gmm;
pub mod loss;
