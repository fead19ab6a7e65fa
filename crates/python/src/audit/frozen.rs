//! Models of an audit, frozen in a file: they judge labels of rows wherever these are.

use crate::arrays::rows;
use crate::calls::detached;
use crate::errors::{input_error, raise};
use anyhow::Context;
use negscale_audit::crossfit::AuditModel;
use negscale_audit::shards::{RowScore, RowScorer, block_rows, text_id};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;
use std::path::PathBuf;

/// What `negscale audit fit` writes as `audit.safetensors`.
#[pyclass(frozen, module = "negscale._negscale")]
pub(super) struct FrozenModels(AuditModel);

#[pymethods]
impl FrozenModels {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        detached(py, || AuditModel::load(&path))?.map(Self).map_err(raise)
    }

    /// Names of the classes.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.0.about().classes.clone()
    }

    /// Numbers of a row.
    #[getter]
    fn dim(&self) -> usize {
        self.0.dim()
    }

    /// What they were made of, as JSON.
    fn about(&self) -> PyResult<String> {
        serde_json::to_string(self.0.about()).map_err(raise)
    }

    /// A score for each row, in blocks as shards have them, by threads of its own: as many as asked for, or one for each core (0).
    fn score<'py>(
        &self,
        py: Python<'py>,
        features: PyReadonlyArray2<'py, f32>,
        labels: PyReadonlyArray1<'py, u32>,
        ids: PyReadonlyArray1<'py, u64>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (width, dim) = (features.as_array().ncols(), self.0.dim());
        if width != dim {
            return Err(input_error(format!(
                "features have {width} numbers a row, but the audit was fitted to rows of {dim}: give the same columns in the same order"
            )));
        }
        let (values, labels, ids) = (rows(&features), labels.as_slice()?, ids.as_slice()?);
        let block = block_rows(dim) as usize;
        let work = || -> anyhow::Result<Vec<RowScore>> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let score = |((values, ids), labels): ((&[f32], &[u64]), &[u32])| {
                let mut found = Vec::with_capacity(ids.len());
                self.0.score(values, ids, labels, &mut found).map(|()| found)
            };
            let blocks = || {
                let blocks = values.par_chunks(block * dim).zip(ids.par_chunks(block));
                blocks.zip(labels.par_chunks(block)).with_max_len(1).map(score).collect::<Result<Vec<_>, _>>()
            };
            Ok(pool.context("cannot start threads")?.install(blocks)?.concat())
        };
        let found = detached(py, work)?.map_err(raise)?;
        let answer = PyDict::new(py);
        let column = |of: fn(&RowScore) -> f32| found.iter().map(of).collect::<Vec<_>>().into_pyarray(py);
        answer.set_item("score", column(|row| row.score))?;
        answer.set_item(
            "suggested",
            found.iter().map(|row| row.suggested).collect::<Vec<_>>().into_pyarray(py),
        )?;
        answer.set_item("suggested_probability", column(|row| row.suggested_probability))?;
        answer.set_item("flag", found.iter().map(|row| row.flag).collect::<Vec<_>>().into_pyarray(py))?;
        Ok(answer)
    }
}

/// What rows are known by whose ids are text.
#[pyfunction]
fn text_ids(py: Python<'_>, ids: Vec<String>) -> Bound<'_, PyArray1<u64>> {
    ids.iter().map(|id| text_id(id)).collect::<Vec<_>>().into_pyarray(py)
}

/// Adds what this file has to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<FrozenModels>()?;
    module.add_function(wrap_pyfunction!(text_ids, module)?)
}
