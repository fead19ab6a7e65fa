//! The `negscale` command, as the wheel carries it.

use pyo3::prelude::*;
use std::ffi::OsString;
use std::panic::catch_unwind;
use std::path::PathBuf;

/// Exit code of a program that panicked.
const PANICKED: u8 = 101;

/// Runs the command with these arguments, of which the first is its name, and returns its exit code. A process that the command starts
/// for a part of its work is `program` with the words `starts_with` before its own.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>, program: PathBuf, starts_with: Vec<OsString>) -> u8 {
    negscale_cli::starts_with(program, starts_with);
    py.detach(|| catch_unwind(|| negscale_cli::main(arguments)).unwrap_or(PANICKED))
}

/// Adds what this file has to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(command, module)?)
}
