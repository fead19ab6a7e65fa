//! Training runs from recipes.

use pyo3::prelude::*;

/// Adds what this file has to the module.
pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
