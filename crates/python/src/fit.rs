//! Classifiers that learn from labels of which some are wrong: trained on rows in memory, kept as bytes or as files.

use crate::arrays::rows;
use crate::calls::{detached, interruptible};
use crate::errors::raise;
use crate::taxonomy::Taxonomy;
use crate::values::table;
use anyhow::{Context, anyhow};
use burn::tensor::Device;
use negscale_data::{Dataset, Splits};
use negscale_nets::model;
use negscale_records::EpochRecord;
use negscale_run::recipe::{DataSettings, Layers, Recipe};
use negscale_run::{Fitted, Result, Stop};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Table;

/// Where training on rows starts: every row is learnt from and judged, shown as it is, with the same numbers on every CPU.
const DEFAULTS: &str = r#"
plugin = "none"
baseline = "none"
validation = 0.0
precision = "f32"

[rolr]
passes = 1
guess_view = "plain"
train_view = "plain"
scan_view = "plain"
"#;

/// Adds what this file has to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Model>()?;
    module.add_class::<Fit>()?;
    module.add_function(wrap_pyfunction!(fit, module)?)
}

/// Training and predictions send no messages.
type Nothing = std::sync::mpsc::Sender<()>;

/// The function that makes a model again, and what it is called with.
type Pickled<'py> = (Bound<'py, PyAny>, (Vec<Bound<'py, PyBytes>>,));

/// A trained model: networks, names of the classes, and how rows become the networks' input.
///
/// It is pickled as the bytes of its files, which are those that `negscale train` writes.
#[pyclass(frozen, module = "negscale._negscale")]
pub(crate) struct Model(model::Model);

#[pymethods]
impl Model {
    /// Reads a model: the folder of a finished run, or the `model.safetensors` in it.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        detached(py, || model::Model::load(path, &Device::flex()))?.map(Self).map_err(raise)
    }

    /// The model of which these are the files, the first network's first.
    #[staticmethod]
    fn from_files(py: Python<'_>, files: Vec<Vec<u8>>) -> PyResult<Self> {
        detached(py, || model::Model::from_files(&files, &Device::flex()))?.map(Self).map_err(raise)
    }

    /// The bytes of its files, the first network's first.
    fn to_files<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let files = detached(py, || self.0.to_files())?.map_err(raise)?;
        Ok(files.iter().map(|file| PyBytes::new(py, file)).collect())
    }

    /// Writes its files into a folder that exists, and returns their paths.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
        detached(py, || self.0.save(folder))?.map_err(raise)
    }

    /// Names of the classes, in the order of the probabilities.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.0.classes().to_vec()
    }

    /// What there is to say about it: method, data, noise, version.
    #[getter]
    fn about(&self) -> BTreeMap<String, String> {
        self.0.about().clone()
    }

    /// Numbers per row.
    #[getter]
    fn n_features(&self) -> usize {
        self.0.preparation().len()
    }

    /// Probabilities of the classes, a row for each row of `features`; `threads` = 0 takes as many as there are cores.
    #[pyo3(signature = (features, threads = 1))]
    fn predict_proba<'py>(
        &self,
        py: Python<'py>,
        features: PyReadonlyArray2<'py, f32>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (values, [count, dim]) =
            (rows(&features).into_owned(), [features.shape()[0], features.shape()[1]]);
        let (stop, classes) = (Stop::default(), self.0.classes());
        let work = |_: Nothing| -> Result<Vec<f32>> {
            let data = Dataset::from_features("rows", classes.to_vec(), values, dim, vec![0; count])?;
            // Threads of its own: as many as were asked for, and none that a fork would lose.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.context("cannot start threads")?.install(|| {
                let mut all = Vec::with_capacity(count * classes.len());
                for batch in self.0.predictions(&data, threads)? {
                    stop.check()?;
                    all.extend(batch?.probabilities);
                }
                Ok(all)
            })
        };
        let found = interruptible(py, &stop, work, |_, ()| Ok(()))?.map_err(raise)?;
        PyArray1::from_vec(py, found).reshape([count, classes.len()])
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let files = slf.get().to_files(slf.py())?;
        Ok((slf.get_type().getattr("from_files")?, (files,)))
    }

    fn __repr__(&self) -> String {
        let method = self.0.about().get("method").map_or("unnamed", String::as_str);
        format!("<Model of {method}: {} features, {} classes>", self.n_features(), self.0.classes().len())
    }
}

/// What training leaves: the model, and what is believed of every label.
#[pyclass(frozen, get_all, module = "negscale._negscale")]
pub(crate) struct Fit {
    /// The trained model.
    model: Py<Model>,
    /// By row: 1 for a label that fits, 0 for one that does not.
    label_quality: Py<PyArray1<f64>>,
    /// By row: probability that the label is right, as the method had it in training.
    clean_probability: Py<PyArray1<f64>>,
    /// By row: number of the class that it should be.
    suggested: Py<PyArray1<u32>>,
    /// By row: whether the label is held to be wrong.
    flags: Py<PyArray1<bool>>,
    /// Estimated share of wrong labels, and its 95 % interval, if it can be estimated.
    rate: Option<(f64, (f64, f64))>,
    /// Figures of every epoch by name.
    epochs: Vec<BTreeMap<String, f64>>,
}

/// Trains on rows of features whose labels are numbers of `classes`. `settings` are those of recipes, with the argument they come from.
#[pyfunction]
#[pyo3(signature = (features, labels, classes, settings, tree = None))]
fn fit(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, f32>,
    labels: PyReadonlyArray1<'_, u32>,
    classes: Vec<String>,
    settings: Vec<(String, Bound<'_, PyDict>)>,
    tree: Option<Bound<'_, Taxonomy>>,
) -> PyResult<Fit> {
    let (values, dim) = (rows(&features).into_owned(), features.shape()[1]);
    let labels = labels.as_array().to_vec();
    let settings = settings.into_iter().map(|(place, given)| Ok((place, table(&given)?)));
    let settings = settings.collect::<PyResult<Vec<_>>>()?;
    let (tree, stop) = (tree.map(|tree| tree.get().tree.clone()), Stop::default());
    let work = |_: Nothing| -> Result<Fitted> {
        let data = Dataset::from_features("rows", classes, values, dim, labels)?;
        let recipe = recipe(settings, &data)?;
        negscale_run::fit(&recipe, Splits::new(data, None), tree.as_ref(), &mut (), &stop)
    };
    Fit::new(py, interruptible(py, &stop, work, |_, ()| Ok(()))?.map_err(raise)?)
}

impl Fit {
    fn new(py: Python<'_>, fitted: Fitted) -> PyResult<Self> {
        let Fitted { model, records, ranked, estimate } = fitted;
        let count = ranked.findings().len();
        let (mut quality, mut clean) = (vec![0.0; count], vec![0.0; count]);
        let (mut suggested, mut flags) = (vec![0; count], vec![false; count]);
        for finding in ranked.findings() {
            let (at, verdict) = (finding.index, &finding.verdict);
            (quality[at], clean[at]) = (1.0 - verdict.score, verdict.clean_probability);
            (suggested[at], flags[at]) = (verdict.suggested, finding.flag);
        }
        let estimate = estimate.filter(|estimate| estimate.cannot_judge.is_none());
        Ok(Self {
            model: Py::new(py, Model(model))?,
            label_quality: quality.into_pyarray(py).unbind(),
            clean_probability: clean.into_pyarray(py).unbind(),
            suggested: suggested.into_pyarray(py).unbind(),
            flags: flags.into_pyarray(py).unbind(),
            rate: estimate.map(|estimate| (estimate.rate, estimate.interval.into())),
            epochs: records.iter().map(figures).collect(),
        })
    }
}

fn figures(record: &EpochRecord) -> BTreeMap<String, f64> {
    let epoch = ("epoch".to_owned(), record.epoch as f64);
    record.scalars().into_iter().chain([epoch]).collect()
}

/// Every setting of training on this data.
fn recipe(settings: Vec<(String, Table)>, data: &Dataset) -> Result<Recipe> {
    let mut layers = Layers::in_memory()?.with_text("the defaults", DEFAULTS)?;
    let plain = layers.data()?;
    for (place, given) in settings {
        for (key, value) in given {
            layers = layers.with_flag(&place, &key, value)?;
        }
    }
    let recipe = layers.resolve_for(data)?;
    if (DataSettings { tree: plain.tree.clone(), ..recipe.data.clone() }) != plain
        || recipe.baseline.is_some()
    {
        let problem = "the rows are here already: settings that say where data comes from, what noise it gets or which baseline it is \
                       compared with belong into a recipe for `negscale train`";
        return Err(anyhow!(problem).into());
    }
    Ok(recipe)
}
