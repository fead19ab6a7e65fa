//! Parts that training methods share, each small and tested alone.

pub mod fine;
pub mod gmm;
pub mod knn;
pub mod otsu;
pub mod rank;
pub mod rows;
pub mod small_loss;
pub mod vote;
