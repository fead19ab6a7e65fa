//! Holds no code. Its dependencies keep `cargo run` and `cargo test` on one build of burn.
//!
//! Cargo builds a crate once for every set of its features. Criterion and proptest turn on features of four crates that burn uses too,
//! so tests would have a build of burn of their own. The features are turned on here, for all packages of the workspace: cargo joins
//! the features of all members. No published crate depends on this one.
//!
//! Measured with `cargo build --release --timings` on two cores: without this package `cargo build` followed by `cargo test` compiles
//! burn and all that depends on it twice, 270 s of other people's crates and 130 s of ours out of 578 s; with it the first build
//! compiles the same 272 crates as before. `.ci/run` fails when the features part ways.
