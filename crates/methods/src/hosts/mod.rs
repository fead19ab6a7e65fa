//! The training methods, one short file each. A method ("host", because plug-ins attach to it) is a plan per epoch and an
//! objective per batch ([`Host`](crate::host::Host)); everything else (loop, networks, optimisers, views, evaluation, checkpoints) is the
//! [trainer](crate::trainer)'s. What several methods share is in [`parts`]; losses and statistics are in [`kit`](crate::kit).
//!
//! **Adding a method** is one file with a [`Card`] and an `impl Host`, its page in the book, and one word in `methods!` below.

pub mod parts;
mod prelude;

use crate::host::Card;
use crate::{Error, Result};

/// Declares the module of every method and lists their cards.
macro_rules! methods {
    ($($name:ident),+ $(,)?) => {
        $(pub mod $name;)+

        /// All methods, in the order in which they are listed to people.
        pub const METHODS: &[&Card] = &[$(&$name::CARD),+];
    };
}

methods![
    cross_entropy,
    gce,
    elr,
    co_teaching,
    jocor,
    co_learning,
    rolr,
    dividemix,
    rankmatch,
    anne,
    selc,
    selc_plus,
    crosssplit,
    dmlp_naive,
    dmlp_dividemix,
    ccl,
    nct,
    disc,
    dsos,
    unicon,
];

/// Names of all methods.
pub fn names() -> Vec<&'static str> {
    METHODS.iter().map(|card| card.id).collect()
}

/// The card of a method.
pub fn card(name: &str) -> Result<&'static Card> {
    METHODS
        .iter()
        .find(|card| card.id == name)
        .copied()
        .ok_or_else(|| Error::unknown("training method", name, names()))
}
