//! Runs from data to files, as a library: what the `negscale` command does.
//!
//! | module | what it holds |
//! |---|---|
//! | [`recipe`] | every setting of a run by name: defaults, recipe files, single settings, in layers |
//! | [`train()`], [`audit()`](audit::audit) | a run or an audit: trains, resumes, writes its files |
//! | [`fit()`] | a run in memory, without files |
//! | [`Watch`], [`Stop`] | callbacks during a run, and how to stop it |
//! | [`embed`] | items to rows of numbers by an encoder |
//! | [`folder`] | a run's folder |
//! | [`analysis`] | the similarity of all pairs of samples of a run |
//! | [`sweep`] | many runs of one recipe: planning, progress, tables |

pub mod analysis;
pub mod audit;
mod class_tree;
pub mod clock;
pub mod csv_rows;
pub mod embed;
mod error;
mod fit;
pub mod folder;
mod instructions;
mod material;
mod place;
mod products;
pub mod recipe;
mod stop;
mod summary;
pub mod sweep;
mod table;
mod training;
mod watch;

pub use class_tree::load_tree;
pub use error::{Error, Result};
pub use fit::{Fitted, fit};
pub use material::Material;
pub use stop::Stop;
pub use summary::{Summary, name};
pub use training::{Command, Done, Finished, Keep, RESULTS, RunOptions, TRAIN, Trained, train};
pub use watch::Watch;
