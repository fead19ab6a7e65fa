//! Datasets with labels of unknown quality: formats, label noise, views and loading. No tensor framework.
//!
//! Data flows one way: a format becomes a [`Dataset`]; noise may change its given labels; views turn an item into what a
//! network sees; the loader makes batches of them. Every random choice is a function of (seed, purpose, epoch, sample), see
//! [`draw`], so that order, threads and resuming change nothing.

/// The snippets of the README are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod array;
pub mod block;
pub mod catalogue;
pub mod dataset;
pub mod decode;
pub mod draw;
mod error;
pub mod fetch;
pub mod folders;
pub mod image;
pub mod inspect;
mod items;
pub mod known;
pub mod loader;
mod memory;
pub mod noise;
pub mod npy;
mod open;
pub mod own;
mod positioned;
pub mod provenance;
pub mod readable;
#[doc(hidden)]
pub mod real_data;
pub mod views;

pub use dataset::{Dataset, FeatureStore, ImageStore, Items, Splits};
pub use error::{Error, Result};
pub use image::{Image, Shape};
pub use loader::{Batch, Loader, LoaderSettings, Order};
pub use noise::{Noise, NoiseContext, NoiseSpec};
pub use open::open;
pub use own::stream;
pub use provenance::{Annotators, Reviewed, Sources};
pub use views::View;
