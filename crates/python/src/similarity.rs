//! Similarity of all pairs of samples.

use crate::arrays::features;
use crate::calls::detached;
use crate::errors::raise;
use crate::taxonomy::tree_of;
use negscale::taxonomy::Thresholds;
use negscale_similarity::{Change, LabelNoise, Labels, Pairs, Spread, Units, change, similarity};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use serde::Serialize;

/// What is found, as it is told to Python.
#[derive(Serialize)]
struct Found {
    samples: usize,
    skipped: usize,
    wrong: Option<f64>,
    similarity: Pairs<Spread>,
    clean: Option<Pairs<Spread>>,
    change: Option<Pairs<Change>>,
    class_means: Vec<Vec<Option<f64>>>,
    label_noise: Option<LabelNoise>,
    verdict: Option<String>,
}

/// Measures it, as JSON; `reference` are features of the same samples by a network trained without noise.
#[pyfunction]
#[pyo3(signature = (features, given, truth, taxonomy, eta_min, eta_max, reference=None))]
#[expect(clippy::too_many_arguments, reason = "they have names where they are given")]
fn measure_similarity<'py>(
    py: Python<'py>,
    features: &Bound<'py, PyAny>,
    given: PyReadonlyArray1<'py, u32>,
    truth: Option<PyReadonlyArray1<'py, u32>>,
    taxonomy: &Bound<'py, PyAny>,
    eta_min: u32,
    eta_max: u32,
    reference: Option<&Bound<'py, PyAny>>,
) -> PyResult<String> {
    let (values, dim) = self::features("features", features)?;
    let reference = reference.map(|reference| self::features("clean_features", reference)).transpose()?;
    let tree = tree_of(taxonomy)?;
    let thresholds = Thresholds::new(eta_min, eta_max).map_err(raise)?;
    let given = given.as_array().to_vec();
    let truth = truth.map(|truth| truth.as_array().to_vec());
    let measure = || -> anyhow::Result<String> {
        let labels = Labels::new(&given, truth.as_deref(), &tree, thresholds)?;
        let units = Units::new(&values, dim)?;
        let by = truth.as_deref().unwrap_or(&given);
        let class_means = || negscale_similarity::similarity::class_means(&units, by, tree.classes());
        let found = match &reference {
            Some((values, dim)) => {
                let reference = Units::new(values, *dim)?;
                let (of_run, of_clean, changes) = change(&units, &reference, &labels)?;
                let skipped = (0..units.len()).filter(|&i| units.is_zero(i) || reference.is_zero(i)).count();
                (of_run, Some(of_clean), Some(changes), skipped)
            }
            None => (similarity(&units, &labels)?, None, None, units.zeros()),
        };
        let (similarity, clean, change, skipped) = found;
        let label_noise = LabelNoise::of(&labels);
        Ok(serde_json::to_string(&Found {
            samples: labels.len(),
            skipped,
            wrong: labels.wrong(),
            similarity,
            clean,
            change,
            class_means: class_means()?,
            verdict: label_noise.as_ref().map(LabelNoise::verdict),
            label_noise,
        })?)
    };
    detached(py, measure)?.map_err(raise)
}

/// Adds what this file has to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(measure_similarity, module)?)
}
