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
//! | not in the paper: class means held where they were, what a label excludes, a share of the host's gradient | [`anchor`], [`exclusion`], [`balance`] |

pub mod anchor;
pub mod balance;
#[cfg(feature = "burn")]
pub mod burn;
pub mod centre;
mod choices;
mod coverage;
pub mod dcsa;
mod error;
mod evaluation;
pub mod exclusion;
mod features;
mod forms;
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
mod workspace;

pub use anchor::ClassAnchor;
pub use balance::Balance;
pub use centre::ClassMeans;
pub use choices::{
    Centre, Confidence, DeltaFeatures, LocalDivisor, LocalShape, PairSource, Reduction, Similarity, Targets,
};
pub use coverage::PairCoverage;
pub use error::{Error, Result};
pub use evaluation::{Evaluation, GradientLengths, PairLists, TermState, Terms};
pub use labels::BatchLabels;
pub use plugin::NegScale;
pub use real::Real;
pub use settings::Settings;
pub use taxonomy::Taxonomy;
pub use workspace::{Memory, Workspace};
