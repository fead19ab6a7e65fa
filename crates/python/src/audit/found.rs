//! What an audit has found, for Python: columns in the order of the data.

use crate::errors::raise;
use negscale_audit::{Finding, NoiseEstimate};
use negscale_run::audit::{Found, Numbers};
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A number that is not there, where numbers are classes, distances or sets.
const NONE: i64 = -1;

/// What an audit has found.
#[pyclass(frozen, module = "negscale._negscale")]
pub(super) struct AuditFindings(Found);

impl From<Found> for AuditFindings {
    fn from(found: Found) -> Self {
        Self(found)
    }
}

impl AuditFindings {
    /// The estimate, unless nothing can be said.
    fn judged(&self) -> Option<&NoiseEstimate> {
        self.0.estimate.as_ref().filter(|estimate| estimate.cannot_judge.is_none())
    }

    /// Something of every finding, in the order of the data.
    fn column<'py, T: Element + Clone>(
        &self,
        py: Python<'py>,
        empty: T,
        of: impl Fn(&Finding, &Numbers) -> T,
    ) -> Bound<'py, PyArray1<T>> {
        let mut column = vec![empty; self.0.audit.findings().len()];
        for (finding, numbers) in self.0.audit.findings().iter().zip(&self.0.evidence) {
            column[finding.index] = of(finding, numbers);
        }
        column.into_pyarray(py)
    }
}

#[pymethods]
impl AuditFindings {
    /// Columns by name, in the order of the data; classes by number.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let class = |number: Option<u32>| number.map_or(NONE, i64::from);
        let share = |number: Option<f32>| number.map_or(f32::NAN, |number| number);
        let columns = PyDict::new(py);
        columns.set_item("given", self.column(py, 0, |f, _| i64::from(f.verdict.given)))?;
        columns.set_item("suggested", self.column(py, 0, |f, _| i64::from(f.verdict.suggested)))?;
        columns.set_item("score", self.column(py, 0.0, |f, _| f.verdict.score))?;
        columns.set_item("clean_probability", self.column(py, 0.0, |f, _| f.verdict.clean_probability))?;
        columns.set_item(
            "suggested_probability",
            self.column(py, 0.0, |f, _| f.verdict.suggested_probability),
        )?;
        columns.set_item("tree_distance", self.column(py, NONE, |f, _| class(f.tree_distance)))?;
        columns.set_item("flag", self.column(py, false, |f, _| f.flag))?;
        columns.set_item("corrected", self.column(py, false, |f, _| f.is_corrected()))?;
        columns.set_item("predicted", self.column(py, NONE, |_, n| class(n.predicted.map(|p| p.0))))?;
        columns.set_item(
            "predicted_probability",
            self.column(py, 0.0, |_, n| share(n.predicted.map(|p| p.1))),
        )?;
        columns.set_item("given_probability", self.column(py, 0.0, |_, n| share(n.given)))?;
        columns.set_item("near_copies", self.column(py, NONE, |_, n| class(n.copies)))?;
        columns.set_item("outlier", self.column(py, false, |_, n| n.is_outlier))?;
        Ok(columns)
    }

    /// Numbers of the samples, most suspicious first.
    fn order<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.0
            .audit
            .findings()
            .iter()
            .map(|finding| finding.index as i64)
            .collect::<Vec<_>>()
            .into_pyarray(py)
    }

    /// Names of the classes.
    fn classes(&self) -> &[String] {
        self.0.audit.class_names()
    }

    /// Where samples are from, or their ids, if they have any.
    fn ids(&self) -> Option<&[String]> {
        self.0.origins.as_deref()
    }

    /// Why labels are flagged, by the number of the sample.
    fn reasons(&self) -> Vec<(usize, &[String])> {
        let findings = self.0.audit.findings().iter().zip(&self.0.reasons);
        findings.filter(|(f, _)| f.flag).map(|(f, reasons)| (f.index, reasons.as_slice())).collect()
    }

    /// P(given class | true class), a row for every true class; nothing if labels cannot be judged.
    fn transition<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let Some(estimate) = self.judged() else { return Ok(None) };
        let rows = estimate.given_by_true();
        let classes = rows.len();
        square(py, rows.concat(), classes).map(Some)
    }

    /// What `audit.json` holds.
    fn results(&self) -> String {
        self.0.results.to_string()
    }

    /// A summary for people.
    fn words(&self) -> &str {
        &self.0.words
    }

    /// The page as one HTML text.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.0.html()).map_err(raise)
    }
}

/// Rows of C numbers as an array.
pub(super) fn square<'py>(
    py: Python<'py>,
    values: Vec<f64>,
    classes: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    values.into_pyarray(py).reshape([classes, classes])
}
