//! Training methods for data whose labels are wrong, plug-in losses that attach to any of them, and the trainer that runs both.
//!
//! Modules know only those above them in this table:
//!
//! | module | what it holds |
//! |---|---|
//! | [`settings`] | settings as tables: defaults, checks, reading |
//! | [`host`] | what a method is: card, plan, batch, objective, what it can see |
//! | [`kit`] | losses, targets and statistics that methods are made of, each small and tested alone |
//! | [`hosts`] | the methods, one short file each |
//! | [`plugins`] | losses that attach to any host: none, NegScale and its ablations |
//! | [`trainer`] | the loop: networks, optimisers, views, plug-ins, evaluation, checkpoints |

mod error;
pub mod settings;

pub mod host;
pub mod kit;

pub mod hosts;
pub mod plugins;

pub mod trainer;

pub use error::{Error, Result};
