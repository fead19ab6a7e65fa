//! Parts that training methods share, each small and tested alone.

pub mod adaptive;
pub mod beta;
pub mod collision;
pub mod contrast;
pub mod fine;
pub mod jsd;
pub mod knn;
pub mod loss;
pub mod mix;
pub mod nested;
pub mod otsu;
pub mod posterior;
pub mod purify;
pub mod rank;
pub mod rows;
pub mod semi;
pub mod small_loss;
pub mod structure;
pub mod target;
pub mod threshold;
pub mod vote;
