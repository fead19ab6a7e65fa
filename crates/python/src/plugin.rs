//! The plug-in loss: one batch in, value and gradient out. Called in every training step, so the way in and out is short.

use crate::arrays::{classes, describe, indices, numbers, rows};
use crate::calls::detached;
use crate::errors::{input_error, raise};
use crate::taxonomy::tree_of;
use crate::values;
use negscale::taxonomy::Distances;
use negscale::{
    BatchLabels, Centre, ClassAnchor, Error, Evaluation, Memory, NegScale, Real, Settings, Terms as Record,
    Workspace,
};
use numpy::ndarray::Array2;
use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Settings of the plug-in by name, as in a recipe.
pub(crate) fn settings_of(given: Option<&Bound<'_, PyDict>>) -> PyResult<Settings> {
    let given = given.map(values::table).transpose()?.unwrap_or_default();
    let settings: Settings = negscale_methods::settings::read("negscale", &given).map_err(raise)?;
    settings.checked().map_err(raise)
}

/// Work space that calls borrow, as many as there are calls at once.
struct Spaces<T>(Mutex<Vec<Workspace<T>>>);

impl<T: Real> Spaces<T> {
    fn borrow(&self) -> Workspace<T> {
        // Nobody waits here, least of all a forked child whose parent was in the middle of this.
        self.0.try_lock().ok().and_then(|mut free| free.pop()).unwrap_or_default()
    }

    fn give_back(&self, space: Workspace<T>) {
        if let Ok(mut free) = self.0.try_lock() {
            free.push(space);
        }
    }
}

impl<T> Default for Spaces<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

/// Numbers that the plug-in computes with.
trait Number: Real + Element {
    fn spaces(plugin: &Plugin) -> &Spaces<Self>;
}

impl Number for f32 {
    fn spaces(plugin: &Plugin) -> &Spaces<Self> {
        &plugin.single
    }
}

impl Number for f64 {
    fn spaces(plugin: &Plugin) -> &Spaces<Self> {
        &plugin.double
    }
}

/// What the value of a batch is made of.
#[pyclass(frozen, get_all, module = "negscale")]
struct Terms {
    /// SNOP's global term, without weights.
    snop_global: f64,
    /// SNOP's local term, without weights.
    snop_local: f64,
    /// DCSA, without its weight.
    dcsa: f64,
    /// The anchor of class means, without its weight.
    anchor: f64,
    /// Why SNOP has its value: "active", "no-pairs", "off" or "warm-up".
    snop_state: &'static str,
    /// Why DCSA has its value.
    dcsa_state: &'static str,
    /// Number of unrelated pairs.
    unrelated_pairs: usize,
    /// Number of related pairs.
    related_pairs: usize,
    /// Related pairs above their cap.
    capped_pairs: usize,
    /// Unrelated pairs of equal features, which have no direction.
    identical_pairs: usize,
    /// Samples whose features are all zero.
    zero_features: usize,
    /// What value and gradient were multiplied by: 1 without `balance`.
    scale: f64,
}

impl From<Record> for Terms {
    fn from(record: Record) -> Self {
        use negscale::TermState::{Active, NoPairs, Off, WarmUp};
        let word = |state| match state {
            Active => "active",
            NoPairs => "no-pairs",
            Off => "off",
            WarmUp => "warm-up",
            _ => "unknown",
        };
        Self {
            snop_global: record.global,
            snop_local: record.local,
            dcsa: record.dcsa,
            anchor: record.anchor,
            snop_state: word(record.snop_state),
            dcsa_state: word(record.dcsa_state),
            unrelated_pairs: record.unrelated_pairs,
            related_pairs: record.related_pairs,
            capped_pairs: record.capped_pairs,
            identical_pairs: record.identical_pairs,
            zero_features: record.zero_features,
            scale: record.scale,
        }
    }
}

#[pymethods]
impl Terms {
    /// All of them by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        all.set_item("snop_global", self.snop_global)?;
        all.set_item("snop_local", self.snop_local)?;
        all.set_item("dcsa", self.dcsa)?;
        all.set_item("anchor", self.anchor)?;
        all.set_item("snop_state", self.snop_state)?;
        all.set_item("dcsa_state", self.dcsa_state)?;
        all.set_item("unrelated_pairs", self.unrelated_pairs)?;
        all.set_item("related_pairs", self.related_pairs)?;
        all.set_item("capped_pairs", self.capped_pairs)?;
        all.set_item("identical_pairs", self.identical_pairs)?;
        all.set_item("zero_features", self.zero_features)?;
        all.set_item("scale", self.scale)?;
        Ok(all)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let parts =
            self.to_dict(py)?.into_iter().map(|(name, value)| Ok(format!("{name}={}", value.repr()?)));
        Ok(format!("Terms({})", parts.collect::<PyResult<Vec<String>>>()?.join(", ")))
    }
}

/// Value, terms, and the gradient if it was wanted.
type Evaluated<'py> = (f64, Terms, Option<Bound<'py, PyAny>>);

/// What goes with a batch beside its features.
struct Given<'a, 'py> {
    labels: &'a Bound<'py, PyAny>,
    confidence: &'a Bound<'py, PyAny>,
    refurbished: Option<&'a Bound<'py, PyAny>>,
    clean: Option<&'a Bound<'py, PyAny>>,
    frozen: Option<&'a Bound<'py, PyAny>>,
    step: u64,
    warming_up: bool,
}

/// The plug-in for one class tree and one choice of settings. Calls from several threads at once do not wait for one another, unless
/// the plug-in remembers something from batch to batch.
#[pyclass(frozen, module = "negscale._negscale")]
pub(crate) struct Plugin {
    plugin: NegScale,
    single: Spaces<f32>,
    double: Spaces<f64>,
    /// What is known of earlier batches, where settings make use of it.
    memory: Option<Mutex<Memory>>,
}

impl Plugin {
    fn memory(&self) -> Option<MutexGuard<'_, Memory>> {
        self.memory.as_ref().map(|memory| memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn memory_or_refusal(&self) -> PyResult<MutexGuard<'_, Memory>> {
        let refusal = || {
            input_error("with these settings the plug-in remembers nothing: set anchor, balance or centre")
        };
        self.memory().ok_or_else(refusal)
    }

    fn evaluate_as<'py, T: Number>(
        &self,
        features: &PyReadonlyArray2<'py, T>,
        given: &Given<'_, 'py>,
        want_gradient: bool,
    ) -> PyResult<Evaluated<'py>> {
        let py = features.py();
        let (b, dim) = (features.shape()[0], features.shape()[1]);
        let rows_of_features = rows(features);
        let labels = labels("labels", given.labels)?;
        if labels.len() != b {
            return Err(input_error(format!(
                "features have {b} rows, but there are {} labels: one for each row",
                labels.len()
            )));
        }
        let confidence = numbers::<T>("confidence", given.confidence)?;
        let refurbished = given.refurbished.map(|labels| self::labels("refurbished", labels)).transpose()?;
        let clean = given.clean.map(|clean| numbers::<T>("clean", clean)).transpose()?;
        let frozen = given.frozen.map(PyAnyMethods::extract::<PyReadonlyArray2<'_, T>>).transpose()?;
        let frozen = frozen.as_ref().map(rows);
        let mut batch =
            BatchLabels::new(&labels, &confidence).with_step(given.step).with_warming_up(given.warming_up);
        batch.refurbished = refurbished.as_deref();
        batch.clean = clean.as_deref();
        batch.frozen = frozen.as_deref();
        let spaces = T::spaces(self);
        let work = || {
            let mut space = spaces.borrow();
            let mut memory = self.memory();
            if let Some(memory) = &mut memory {
                std::mem::swap(&mut **memory, space.memory_mut());
            }
            let evaluated = self.plugin.loss_and_gradient(&rows_of_features, dim, &batch, &mut space);
            let evaluated = evaluated.map(|Evaluation { value, terms, .. }| (value, terms));
            if let Some(memory) = &mut memory {
                std::mem::swap(&mut **memory, space.memory_mut());
            }
            drop(memory);
            let gradient = if want_gradient { space.take_gradient() } else { Vec::new() };
            spaces.give_back(space);
            evaluated.map(|(value, terms)| (value, terms, gradient))
        };
        let (value, terms, gradient) = detached(py, work)?.map_err(refusal)?;
        let gradient = match want_gradient {
            true => {
                Some(Array2::from_shape_vec((b, dim), gradient).map_err(raise)?.into_pyarray(py).into_any())
            }
            false => None,
        };
        Ok((value, terms.into(), gradient))
    }
}

/// The plug-in for a class tree, or for a C x C table of whole distances.
fn plugin_of(taxonomy: &Bound<'_, PyAny>, settings: Settings) -> PyResult<NegScale> {
    let made = match taxonomy.extract::<PyReadonlyArray2<'_, i64>>() {
        Ok(table) => {
            let values: Result<Vec<u32>, _> = table.as_array().iter().map(|&d| u32::try_from(d)).collect();
            let values =
                values.map_err(|_| input_error("a class distance is below 0, or above 4294967295"))?;
            let [classes, others] = table.shape()[..] else { return Err(input_error(describe(taxonomy))) };
            if classes != others {
                return Err(input_error(format!(
                    "class distances must be C x C; got {}",
                    describe(taxonomy)
                )));
            }
            Distances::new(classes, values)
                .and_then(|table| NegScale::from_distances("distances", &table, settings))
        }
        Err(_) => NegScale::new(&tree_of(taxonomy)?, settings),
    };
    made.map_err(raise)
}

/// Labels as the plug-in takes them.
fn labels(what: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let class = |(sample, label): (usize, i64)| {
        usize::try_from(label).map_err(|_| Error::NegativeLabel { sample, label })
    };
    indices(what, given)?.into_iter().enumerate().map(class).collect::<Result<_, _>>().map_err(raise)
}

/// An error of the plug-in; what the batch lacks is called as it is here.
fn refusal(error: Error) -> PyErr {
    let (setting, argument) = match &error {
        Error::NoRefurbished => ("targets = \"refurbished\"", "refurbished"),
        Error::Lacking { setting, by, .. } => (*setting, by.trim_start_matches("with_")),
        _ => return raise(error),
    };
    input_error(format!(
        "settings say {setting}, but `{argument}` is not given: hand it over, or change the setting"
    ))
}

#[pymethods]
impl Plugin {
    #[new]
    #[pyo3(signature = (taxonomy, **settings))]
    fn new(taxonomy: &Bound<'_, PyAny>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let settings = settings_of(settings)?;
        let elsewhere = [("exclusion", settings.exclusion > 0.0), ("posterior", settings.posterior)];
        if let Some((name, _)) = elsewhere.into_iter().find(|(_, is_set)| *is_set) {
            return Err(input_error(format!(
                "setting `{name}` acts inside of training methods only: use negscale.train for it"
            )));
        }
        let remembers = settings.anchor > 0.0 || settings.balance > 0.0 || settings.centre != Centre::None;
        Ok(Self {
            plugin: plugin_of(taxonomy, settings)?,
            single: Spaces::default(),
            double: Spaces::default(),
            memory: remembers.then(Mutex::default),
        })
    }

    /// Value, terms and gradient of a batch: features B x d (float32 or float64), a label and a confidence in [0, 1] for each row.
    ///
    /// Without `want_gradient` the gradient is None. `refurbished`, `clean` and `frozen` go with the settings that name them; `step` decides
    /// the draw of random pairs, and while `warming_up` the terms are off unless settings say otherwise.
    #[pyo3(signature = (features, labels, confidence, want_gradient=true, *, refurbished=None, clean=None, frozen=None, step=0, warming_up=false))]
    #[expect(clippy::too_many_arguments, reason = "they have names where they are given")]
    fn evaluate<'py>(
        &self,
        features: &Bound<'py, PyAny>,
        labels: &Bound<'py, PyAny>,
        confidence: &Bound<'py, PyAny>,
        want_gradient: bool,
        refurbished: Option<&Bound<'py, PyAny>>,
        clean: Option<&Bound<'py, PyAny>>,
        frozen: Option<&Bound<'py, PyAny>>,
        step: u64,
        warming_up: bool,
    ) -> PyResult<Evaluated<'py>> {
        let given = Given { labels, confidence, refurbished, clean, frozen, step, warming_up };
        if let Ok(features) = features.extract::<PyReadonlyArray2<'py, f32>>() {
            return self.evaluate_as(&features, &given, want_gradient);
        }
        if let Ok(features) = features.extract::<PyReadonlyArray2<'py, f64>>() {
            return self.evaluate_as(&features, &given, want_gradient);
        }
        let got = describe(features);
        Err(input_error(format!(
            "features must be an array B x d of float32 or float64, a row per sample; got {got}"
        )))
    }

    /// The settings in force, as JSON.
    #[getter]
    fn settings(&self) -> PyResult<String> {
        serde_json::to_string(self.plugin.settings()).map_err(raise)
    }

    /// Number of classes.
    #[getter]
    fn classes(&self) -> usize {
        self.plugin.classes()
    }

    /// Relations of all pairs of classes with the settings in force, as `Taxonomy.relations` writes them.
    fn relations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i8>>> {
        let codes = self.plugin.relations().iter().map(|relation| crate::taxonomy::code(*relation));
        PyArray1::from_iter(py, codes).reshape([self.plugin.classes(), self.plugin.classes()])
    }

    /// Whether anything is remembered from batch to batch.
    #[getter]
    fn remembers(&self) -> bool {
        self.memory.is_some()
    }

    /// What is known of earlier batches, as JSON to be saved with a checkpoint; None if the settings make no use of it.
    fn state(&self) -> PyResult<Option<String>> {
        let memory = self.memory();
        memory.map(|memory| serde_json::to_string(&*memory).map_err(raise)).transpose()
    }

    /// Takes up what `state` gave.
    fn restore(&self, state: &str) -> PyResult<()> {
        let damaged =
            |error| raise(anyhow::Error::new(error).context("the state of the plug-in cannot be read"));
        *self.memory_or_refusal()? = serde_json::from_str(state).map_err(damaged)?;
        Ok(())
    }

    /// Tells the length of the gradient of the host's own loss at the features, after each backward pass; for `balance`.
    fn hear(&self, length: f64) -> PyResult<()> {
        self.memory_or_refusal()?.balance.hear(length);
        Ok(())
    }

    /// Remembers where class means are, from the features of all samples and the probability that each label is right; for `anchor`.
    #[pyo3(signature = (features, labels, clean=None))]
    fn remember(
        &self,
        features: &Bound<'_, PyAny>,
        labels: &Bound<'_, PyAny>,
        clean: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (rows, dim) = crate::arrays::features("features", features)?;
        let labels = classes("labels", labels)?;
        let clean = clean.map(|clean| numbers::<f32>("clean", clean)).transpose()?;
        let anchor = ClassAnchor::remember(&rows, dim, &labels, clean.as_deref(), self.plugin.classes())
            .map_err(raise)?;
        self.memory_or_refusal()?.anchor = Some(anchor);
        Ok(())
    }
}

/// Adds what this file has to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Terms>()?;
    module.add_class::<Plugin>()
}
