//! The native half of the Python package `negscale`: numpy arrays in, library calls, Python objects out.
//!
//! One file per part, each of which registers what it has. The other half is in `python/negscale`.

mod arrays;
mod audit;
mod calls;
mod command;
mod errors;
mod fit;
mod noise;
mod plugin;
mod similarity;
mod taxonomy;
mod train;
mod values;

use pyo3::prelude::*;

/// The same as in the binary: it keeps large blocks from step to step (decision 009). Only what is Rust here allocates with it.
#[global_allocator]
static METER: negscale_cli::Meter = negscale_cli::Meter;

/// `negscale._negscale`, which the files of the package build upon. Nothing here is meant to be called by users directly.
#[pymodule]
fn _negscale(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    for register in [
        errors::register,
        calls::register,
        arrays::register,
        plugin::register,
        taxonomy::register,
        noise::register,
        similarity::register,
        train::register,
        audit::register,
        fit::register,
        command::register,
    ] {
        register(module)?;
    }
    Ok(())
}
