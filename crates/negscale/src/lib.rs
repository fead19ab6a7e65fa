#![cfg_attr(feature = "burn", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "burn"),
    doc = "A plug-in loss for training with wrong labels, with its exact gradient and no tensor framework."
)]
#![cfg_attr(not(feature = "burn"), doc = "")]
#![cfg_attr(
    not(feature = "burn"),
    doc = "Slices in, value and gradient out, in `f32` or `f64`: see [`NegScale`] for the three lines."
)]
//!
//! # Where to find the paper
//!
//! | in the paper | here |
//! |---|---|
//! | pLCA distance | [`Taxonomy::distance`] |
//! | related and unrelated pairs $P_{sim}$, $P_{neg}$ | [`pairs`] |
//! | $L_{global}$, $L_{local}$, $w_{ij}$, $L_{SNOP}$ | [`snop`] |
//! | $\delta_{ij}$, $L_{DCSA}$ | [`dcsa`] |
//! | $\lambda L_{SNOP} + \mu L_{DCSA}$ | [`NegScale`] |
//! | the formulas as printed, for comparison | [`mod@reference`] |

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
