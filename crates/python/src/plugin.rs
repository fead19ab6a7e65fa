//! The plug-in loss: one batch in, value and gradient out.

use pyo3::prelude::*;

/// Adds what this file has to the module.
pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
