//! Training runs from recipes.

use crate::calls::interruptible;
use crate::errors::{input_error, raise};
use crate::values;
use negscale::PairCoverage;
use negscale_methods::trainer::{Progress, Trainer};
use negscale_records::EpochRecord;
use negscale_run::folder::RunFolder;
use negscale_run::recipe::{DEFAULT_RECIPE, Layers, Recipe};
use negscale_run::{Finished, Keep, Material, RunOptions, Stop, Watch, name};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Batches are told of no more often than this.
const EVERY: Duration = Duration::from_millis(100);

/// Tells Python what happens, as JSON.
struct Teller {
    to: Sender<Value>,
    told: Option<Instant>,
}

impl Teller {
    fn tell(&self, what: Value) {
        // Nobody listens any more once the call has been interrupted.
        drop(self.to.send(what));
    }
}

impl Watch for Teller {
    fn note(&mut self, text: &str) {
        self.tell(json!({"event": "note", "text": text}));
    }

    fn open(
        &mut self,
        recipe: &Recipe,
        coverage: Option<&PairCoverage>,
        material: &Material,
        folder: &RunFolder,
    ) {
        let data = &material.train;
        self.tell(json!({
            "event": "open", "folder": folder.place(), "method": name(recipe, coverage), "data": data.name(),
            "samples": data.len(), "classes": data.classes().len(), "net": recipe.train.net, "epochs": recipe.train.epochs,
            "noise_rate": material.noise_rate(),
        }));
    }

    fn complete(&mut self, epochs: usize) {
        self.tell(json!({"event": "complete", "epochs": epochs}));
    }

    fn begin(&mut self, trainer: &Trainer, records: &[EpochRecord]) {
        let (done, epochs) = (records.len(), trainer.settings().epochs);
        self.tell(json!({"event": "begin", "done": done, "epochs": epochs}));
    }

    fn pairs(&mut self, coverage: &PairCoverage) {
        for warning in coverage.warnings() {
            self.tell(json!({"event": "warning", "text": warning}));
        }
    }

    fn batch(&mut self, progress: &Progress) {
        if self.told.is_some_and(|told| told.elapsed() < EVERY) {
            return;
        }
        self.told = Some(Instant::now());
        let Progress { epoch, epochs, done, of, .. } = progress;
        self.tell(json!({"event": "batch", "epoch": epoch + 1, "epochs": epochs, "done": done, "of": of}));
    }

    fn epoch(&mut self, records: &[EpochRecord]) -> negscale_run::Result<()> {
        if let Some(record) = records.last() {
            self.tell(json!({"event": "epoch", "record": serde_json::to_value(record)?}));
        }
        Ok(())
    }

    fn begin_baseline(&mut self, recipe: &Recipe) {
        self.tell(json!({"event": "baseline", "method": name(recipe, None)}));
    }
}

/// The layers of a recipe (a path, the text of one, or a dict) and of single settings over it.
fn layers(recipe: Option<&Bound<'_, PyAny>>, settings: &Bound<'_, PyDict>) -> PyResult<Layers> {
    let settings = values::table(settings)?;
    let mut layers = Layers::new();
    layers = match recipe {
        None if settings.contains_key("data") => layers,
        None => layers.with_text("the default recipe", DEFAULT_RECIPE).map_err(raise)?,
        Some(recipe) => over(layers, recipe)?,
    };
    for (name, value) in settings {
        layers = layers.with_flag(&format!("{name}="), &name, value).map_err(raise)?;
    }
    Ok(layers)
}

fn over(layers: Layers, recipe: &Bound<'_, PyAny>) -> PyResult<Layers> {
    let as_text = |text: &str| text.contains('\n') || text.contains('=');
    if let Ok(dict) = recipe.cast::<PyDict>() {
        let text = toml::to_string(&values::table(dict)?).map_err(raise)?;
        layers.with_text("the recipe", &text).map_err(raise)
    } else if let Ok(text) = recipe.cast::<PyString>()
        && text.to_str().is_ok_and(as_text)
    {
        layers.with_text("the recipe", text.to_str()?).map_err(raise)
    } else {
        let kind = recipe.get_type();
        let path: PathBuf = recipe.extract().map_err(|_| {
            input_error(format!("a recipe is a path, the text of one, or a dict of settings; got {kind}"))
        })?;
        layers.with_file(&path).map_err(raise)
    }
}

/// Trains, and returns the folder, the results as JSON, and the summary. `hear` is called with what happens, as JSON.
#[pyfunction]
#[pyo3(signature = (recipe, settings, out, fresh, results_only, checkpoint_every, hear))]
#[expect(clippy::too_many_arguments, reason = "they have names where they are given")]
fn train<'py>(
    py: Python<'py>,
    recipe: Option<&Bound<'py, PyAny>>,
    settings: &Bound<'py, PyDict>,
    out: Option<PathBuf>,
    fresh: bool,
    results_only: bool,
    checkpoint_every: f64,
    hear: &Bound<'py, PyAny>,
) -> PyResult<(PathBuf, String, String)> {
    let layers = layers(recipe, settings)?;
    let checkpoint_every = Duration::try_from_secs_f64(checkpoint_every).map_err(|_| {
        input_error(format!("checkpoint_every = {checkpoint_every}: give seconds, 0 or more"))
    })?;
    let keep = if results_only { Keep::Results } else { Keep::All };
    let options = RunOptions { fresh, keep, checkpoint_every };
    let stop = Stop::default();
    let work = |to: Sender<Value>| -> negscale_run::Result<Finished> {
        let mut teller = Teller { to, told: None };
        let data = layers.data()?;
        let splits = data.open()?;
        splits.notes.iter().for_each(|note| teller.note(note));
        if !data.own.skip_unreadable {
            splits.check_readable()?;
        }
        stop.check()?;
        let recipe = layers.resolve_for(&splits.train)?;
        negscale_run::train(recipe, splits, out, options, &mut teller, &stop)
    };
    let tell = |_: Python<'_>, what: Value| hear.call1((what.to_string(),)).map(drop);
    let Finished { results, words, place } = interruptible(py, &stop, work, tell)?.map_err(raise)?;
    Ok((place, results.to_string(), words))
}

/// Adds what this file has to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(train, module)?)
}
