//! Classifiers that learn from labels of which some are wrong: trained on rows in memory, kept as bytes or as files.

use pyo3::prelude::*;

/// Adds what this file has to the module.
pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
