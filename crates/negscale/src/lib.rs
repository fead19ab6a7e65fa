//! NegScale: a plug-in loss for training with wrong labels, with its exact gradient and no tensor framework.
//!
//! Under label noise the learnt similarity of related classes is distorted, while the dissimilarity of unrelated
//! classes stays put. NegScale leans on the latter: [`snop`] pushes unrelated pairs of a batch apart, [`dcsa`] caps the
//! similarity of related pairs by what the unrelated ones say. Which classes are related is read off a class tree
//! ([`taxonomy`]).
//!
//! | in the paper | here |
//! |---|---|
//! | pLCA distance | [`Taxonomy::distance`] |
//! | related and unrelated pairs $P_{sim}$, $P_{neg}$ | [`pairs`] |
//! | $L_{global}$, $L_{local}$, $w_{ij}$, $L_{SNOP}$ | [`snop`] |
//! | $\delta_{ij}$, $L_{DCSA}$ | [`dcsa`] |
//! | $\lambda L_{SNOP} + \mu L_{DCSA}$ | [`NegScale`] |
//!
//! Slices in, value and gradient out, in `f32` or `f64`: see [`NegScale`] for the three lines.

#[cfg(feature = "burn")]
pub mod burn;
pub mod centre;
mod coverage;
pub mod dcsa;
mod error;
mod evaluation;
mod features;
mod labels;
pub mod pairs;
mod plugin;
mod product;
mod real;
pub mod reference;
mod rows;
mod settings;
pub mod snop;
pub mod taxonomy;
mod threads;

pub use centre::ClassMeans;
pub use coverage::PairCoverage;
pub use error::{Error, Result};
pub use evaluation::{Evaluation, PairLists, TermState, Terms};
pub use labels::BatchLabels;
pub use plugin::{NegScale, Workspace};
pub use real::Real;
pub use settings::{Centre, PairSource, Reduction, Settings, Targets};
pub use taxonomy::Taxonomy;
