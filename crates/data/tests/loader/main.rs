//! The loader: what comes, in which order, and what does not depend on threads, resuming or memory.

// Clippy spares only the test functions themselves, not what they share.
#![allow(clippy::unwrap_used)]

mod memory;
mod order;
mod pictures;
mod refusals;
mod sameness;
mod threads;
