//! Audits of labels: arrays, predictions or a path in, a verdict on every label out.

mod found;
mod frozen;
mod work;

use crate::calls::detached;
use crate::errors::{input_error, raise};
use found::AuditFindings;
use negscale_audit::rank;
use negscale_data::{Dataset, FeatureStore, Items, Sources, Splits};
use negscale_run::RunOptions;
use negscale_run::audit::{self, defaults_in_memory, find, recipe_for};
use negscale_run::recipe::{Judge, Layers};
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;
use work::watched;

/// Rows that were handed over, with what they are called. Where there are predictions alone, rows have no numbers.
struct HandedRows {
    values: Vec<f32>,
    dim: usize,
    count: usize,
    ids: Option<Vec<String>>,
    columns: Vec<String>,
}

impl FeatureStore for HandedRows {
    fn len(&self) -> usize {
        self.count
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn read(&self, index: usize, out: &mut [f32]) -> negscale_data::Result<()> {
        out.copy_from_slice(&self.values[index * self.dim..(index + 1) * self.dim]);
        Ok(())
    }

    fn origin(&self, index: usize) -> Option<String> {
        self.ids.as_ref().and_then(|ids| ids.get(index)).cloned()
    }

    fn names(&self) -> &[String] {
        &self.columns
    }
}

/// Settings by their names in recipes, as JSON.
type Written = serde_json::Map<String, serde_json::Value>;

fn written(settings: &str) -> PyResult<Written> {
    serde_json::from_str(settings).map_err(|error| input_error(error.to_string()))
}

/// Lays settings over layers; errors call them by their names.
fn lay(mut layers: Layers, settings: &Written) -> negscale_run::Result<Layers> {
    for (key, value) in settings {
        let value = toml::Value::try_from(value)?;
        layers = layers.with_flag(key, key, value)?;
    }
    Ok(layers)
}

/// Audits rows, or predictions alone. All arrays belong together row by row; whoever calls has checked that they do.
#[pyfunction]
#[pyo3(signature = (features, labels, classes, *, name, settings, ids=None, columns=None, sources=None, truth=None, pred_probs=None, out=None,
    fresh=false, progress=None))]
#[allow(clippy::too_many_arguments)]
fn audit_rows<'py>(
    py: Python<'py>,
    features: Option<PyReadonlyArray2<'py, f32>>,
    labels: PyReadonlyArray1<'py, u32>,
    classes: Vec<String>,
    name: String,
    settings: &str,
    ids: Option<Vec<String>>,
    columns: Option<Vec<String>>,
    sources: Option<(Vec<String>, Vec<u32>)>,
    truth: Option<PyReadonlyArray1<'py, u32>>,
    pred_probs: Option<PyReadonlyArray2<'py, f32>>,
    out: Option<PathBuf>,
    fresh: bool,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<AuditFindings> {
    let settings = written(settings)?;
    let given = labels.as_slice()?.to_vec();
    let dim = features.as_ref().map_or(0, |features| features.as_array().ncols());
    let values = features.as_ref().map_or(Ok(&[][..]), |features| features.as_slice())?.to_vec();
    let pred_probs = pred_probs.map(|rows| Ok::<_, PyErr>(rows.as_slice()?.to_vec())).transpose()?;
    let truth = truth.map(|labels| Ok::<_, PyErr>(labels.as_slice()?.to_vec())).transpose()?;
    let columns = columns.unwrap_or_default();
    let rows = HandedRows { values, dim, count: given.len(), ids, columns };
    watched(py, progress, move |watch, stop| {
        let items = Items::Features(Arc::new(rows));
        let train = Dataset::new(name, classes, items, given, truth)?;
        let sources = sources.map(|(names, of)| Sources::new(names, of)).transpose()?;
        let train = train.with_provenance(sources, None)?;
        let recipe = lay(defaults_in_memory()?, &settings)?.resolve_for(&train)?;
        let options = RunOptions { fresh, ..RunOptions::default() };
        let out = out.as_deref().map(|place| (place, options));
        find(&recipe, Splits::new(train, None), pred_probs.as_deref(), out, watch, stop)
    })
    .map(AuditFindings::from)
}

/// What an audit of a path comes to: findings, or the folder of a training that judged.
#[derive(IntoPyObject)]
enum Outcome<'py> {
    Found(Bound<'py, AuditFindings>),
    Folder(PathBuf),
}

/// Audits what is at a path, or a known dataset, as the command does. Rows of numbers are judged here and now; pictures by a training, whose
/// folder holds what was found. The second part of the answer is what is to be known of how the data was read.
#[pyfunction]
#[pyo3(signature = (what, *, settings, out=None, fresh=false, progress=None))]
fn audit_path<'py>(
    py: Python<'py>,
    what: String,
    settings: &str,
    out: Option<PathBuf>,
    fresh: bool,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Outcome<'py>, Vec<String>)> {
    let mut settings = written(settings)?;
    settings.insert("data".into(), what.into());
    let (found, notes) = watched(py, progress, move |watch, stop| {
        let written = |layers: Layers| lay(layers, &settings);
        let mut splits = written(audit::defaults(None)?)?.data()?.open()?;
        let notes = std::mem::take(&mut splits.notes);
        if !splits.train.items().is_empty() && settings.get("skip_unreadable") != Some(&true.into()) {
            splits.check_readable()?;
        }
        let recipe = recipe_for(&splits.train, written)?;
        let options = RunOptions { fresh, ..RunOptions::default() };
        if recipe.judge == Judge::Training && recipe.pred_probs.is_none() {
            let done = audit::audit(recipe, splits, out, options, watch, stop)?;
            return Ok((Err(done.place), notes));
        }
        let out = out.as_deref().map(|place| (place, options));
        Ok((Ok(find(&recipe, splits, None, out, watch, stop)?), notes))
    })?;
    let outcome = match found {
        Ok(found) => Outcome::Found(Bound::new(py, AuditFindings::from(found))?),
        Err(place) => Outcome::Folder(place),
    };
    Ok((outcome, notes))
}

/// Ranks labels by predictions alone: a dictionary of arrays in the order of samples, with the estimated counts of given (row) and true (column) classes.
#[pyfunction]
fn rank_labels<'py>(
    py: Python<'py>,
    pred_probs: PyReadonlyArray2<'py, f32>,
    labels: PyReadonlyArray1<'py, u32>,
) -> PyResult<Bound<'py, PyDict>> {
    let classes = pred_probs.as_array().ncols();
    let (pred_probs, labels) = (pred_probs.as_slice()?, labels.as_slice()?);
    let ranking = detached(py, || rank(pred_probs, labels))?.map_err(raise)?;
    let findings = ranking.audit.findings();
    let (mut scores, mut flags) = (vec![0.0; findings.len()], vec![false; findings.len()]);
    for finding in findings {
        scores[finding.index] = finding.verdict.score;
        flags[finding.index] = finding.flag;
    }
    let estimate = ranking.estimate;
    let answer = PyDict::new(py);
    answer.set_item("scores", scores.into_pyarray(py))?;
    answer.set_item("flags", flags.into_pyarray(py))?;
    let order: Vec<i64> = findings.iter().map(|finding| finding.index as i64).collect();
    answer.set_item("order", order.into_pyarray(py))?;
    answer.set_item("joint", found::square(py, estimate.joint, classes)?)?;
    answer.set_item("cannot_judge", estimate.cannot_judge)?;
    Ok(answer)
}

/// Adds what this file has to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AuditFindings>()?;
    module.add_function(wrap_pyfunction!(audit_rows, module)?)?;
    module.add_function(wrap_pyfunction!(audit_path, module)?)?;
    frozen::register(module)?;
    module.add_function(wrap_pyfunction!(rank_labels, module)?)
}
