//! Networks by name, their optimisers and schedules, and trained models as files.
//!
//! | module | what it holds |
//! |---|---|
//! | [`networks`] | one file per network, built by name; layers, heads, initial weights, weights files |
//! | [`optim`], [`schedule`], [`ema`] | SGD and Adam, learning rates over a run, running means of weights |
//! | [`scan`](mod@scan) | a network run over a whole dataset |
//! | [`model`] | a trained model as one file, its predictions and its accuracy |

/// The snippets of the README are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod ema;
mod error;
pub mod model;
pub mod networks;
pub mod optim;
pub mod scan;
pub mod schedule;

pub use error::{Error, Result};
pub use negscale_kernels::{Precision, fast_precision};
pub use networks::{
    CARDS, Classifier, FEW_CLASSES, Heads, InitScheme, Input, LastLayer, Loading, Mode, NetCard, NetSpec,
    Network, Output, PRECISIONS, ParameterEntry, ParameterKind, Pass, Projection, Samples, card,
    multiply_adds, names, precision_name, precision_named,
};
pub use scan::{Scan, accuracy, scan, to_samples, values};
