//! Run folders: settings, data, noise, model, and what was recorded while training.

use super::{AnalysisOptions, Matter, Split, View, grow};
use crate::error::bail;
use crate::recipe::{Layers, Recipe};
use crate::{Material, Result, load_tree};
use anyhow::Context;
use burn::tensor::Device;
use negscale::{Settings, Taxonomy};
use negscale_audit::{Ledger, NoiseEstimate, NoiseModel, Predictions};
use negscale_data::Dataset;
use negscale_methods::trainer::Tree;
use negscale_nets::model::Model;
use negscale_report::read_metrics;
use negscale_similarity::{ByRelation, RELATIONS};
use std::fs;
use std::path::Path;

/// Opens a run, and the clean run beside it.
pub fn open(folder: &Path, clean: Option<&Path>, options: &AnalysisOptions) -> Result<Matter> {
    let layers = settings(folder)?;
    let splits =
        layers.data()?.open().with_context(|| format!("cannot open the data of {}", folder.display()))?;
    let recipe = layers.resolve_for(&splits.train)?;
    let model = Model::load(folder, &Device::flex())?;
    let material = Material::prepare(&recipe, splits, model.preparation().clone())?;
    check_fingerprint(folder, &material.fingerprint)?;
    let dataset = match options.split {
        Split::Train => material.train.clone(),
        Split::Test => material.splits.test.clone().context("the data of this run has no test split")?,
        Split::SecondTest => {
            material.splits.second_test.clone().context("the data of this run has no second test split")?
        }
    };
    let run = view(folder, &model, &recipe, &dataset)?;
    let clean = match clean {
        Some(place) => {
            let theirs = settings(place)?.resolve_for(&material.splits.train)?;
            check_fingerprint(place, &material.fingerprint)?;
            Some(view(place, &Model::load(place, &Device::flex())?, &theirs, &dataset)?)
        }
        None => None,
    };
    let classes = dataset.classes().to_vec();
    let own = folder.join("tree.tsv");
    let tree = match options.tree.as_deref() {
        Some("learnt") => grow(&classes, &run.scan, dataset.given())?,
        Some(name) => load_tree(name, None)?.for_classes(&classes)?,
        None if own.exists() => {
            let text = fs::read_to_string(&own).with_context(|| format!("cannot read {}", own.display()))?;
            let name = match recipe.data.tree_for(&classes)? {
                Tree::Given(tree) => tree.name().to_owned(),
                _ => "learnt".to_owned(),
            };
            Taxonomy::from_tsv(&name, &text)?.for_classes(&classes)?
        }
        // A run without plug-in grows none.
        None => grow(&classes, &run.scan, dataset.given())?,
    };
    let plugin: Settings = toml::Value::Table(recipe.train.plugin_settings.clone()).try_into()?;
    Ok(Matter {
        data: recipe.data.data.clone(),
        split: if options.split == Split::Train { "train" } else { "test" },
        classes,
        given: dataset.given().to_vec(),
        truth: dataset.truth().map(<[u32]>::to_vec),
        tree,
        settings: options.over(plugin)?,
        batch: recipe.train.batch,
        believed: if options.split == Split::Train { believed(folder)? } else { None },
        run,
        clean,
    })
}

fn settings(folder: &Path) -> Result<Layers> {
    let path = folder.join("settings.toml");
    if !path.exists() {
        bail!("{} is not a run's folder: there is no settings.toml in it", folder.display());
    }
    Ok(Layers::new().with_file(&path)?)
}

/// Refuses data that the run was not trained on: features and labels would not match.
fn check_fingerprint(folder: &Path, fingerprint: &str) -> Result<()> {
    let path = folder.join("settings.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let table: toml::Table = toml::from_str(&text).with_context(|| path.display().to_string())?;
    let saved = table.get("provenance").and_then(|origin| origin.get("data_fingerprint"));
    match saved.and_then(toml::Value::as_str) {
        Some(saved) if saved != fingerprint => bail!(
            "{} was trained on other data, or the data has changed since: analyse a run that was trained on the data as it is now",
            folder.display()
        ),
        _ => Ok(()),
    }
}

fn view(folder: &Path, model: &Model, recipe: &Recipe, dataset: &Dataset) -> Result<View> {
    if model.classes() != dataset.classes() {
        bail!("{}: its model has other classes than the data", folder.display());
    }
    let path = folder.join(crate::RESULTS);
    let results = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let results: serde_json::Value = serde_json::from_str(&results)
        .with_context(|| format!("{} is damaged: train the run again", path.display()))?;
    Ok(View {
        name: folder.display().to_string(),
        method: Some(model.about().get("method").cloned().unwrap_or_else(|| crate::name(recipe, None))),
        noise: Some(recipe.data.noise.to_string()),
        accuracy: results["test_last"].as_f64(),
        steps: steps(folder)?,
        scan: model.scan(dataset, recipe.train.threads)?,
        classifier: Some(model.classifier()?),
    })
}

/// Estimated numbers of samples by given and true class, from the run's ledger.
fn believed(folder: &Path) -> Result<Option<Vec<f64>>> {
    let path = folder.join("ledger.parquet");
    if !path.exists() {
        return Ok(None);
    }
    let ledger = Ledger::load(&path)?;
    let Some(predictions) = ledger.predictions() else { return Ok(None) };
    let predictions = Predictions::new(predictions, ledger.given(), ledger.classes())?;
    let estimate = NoiseEstimate::new(&NoiseModel::fit(&predictions));
    Ok(estimate.cannot_judge.is_none().then_some(estimate.joint))
}

/// Changes per step, of every epoch in which they were recorded.
fn steps(folder: &Path) -> Result<Vec<ByRelation<f64>>> {
    let reading = read_metrics(&folder.join("metrics.jsonl"))?;
    let of_epoch = |more: &std::collections::BTreeMap<String, f64>| {
        ByRelation::of(|at| more.get(&format!("step change {}", RELATIONS[at])).copied())
    };
    let all = reading.records.iter().map(|record| of_epoch(&record.more));
    Ok(all.filter(|changes| changes.list().iter().any(Option::is_some)).collect())
}
