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
pub mod dcsa;
mod error;
mod features;
pub mod literal;
pub mod pairs;
mod plugin;
mod product;
mod reach;
mod real;
mod record;
mod rows;
mod settings;
pub mod snop;
pub mod taxonomy;
mod threads;

pub use centre::ClassMeans;
pub use error::{Error, Result};
pub use plugin::{NegScale, Workspace};
pub use reach::{Reach, TermReach};
pub use real::Real;
pub use record::{Evaluation, PairLists, Tap, TermState, Terms};
pub use settings::{Centre, PairSource, Reduction, Settings, Targets};
pub use taxonomy::Taxonomy;
