//! Label noise: every law's statistics, conventions, files.

// Clippy spares only the test functions themselves, not what they share.
#![allow(clippy::unwrap_used, clippy::panic)]

mod asymmetric;
mod edges;
mod files;
mod frozen;
mod human;
mod instance;
mod material;
mod spec;
mod symmetric;
