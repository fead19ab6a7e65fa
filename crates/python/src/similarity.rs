//! Similarity of all pairs of samples.

use pyo3::prelude::*;

/// Adds what this file has to the module.
pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
