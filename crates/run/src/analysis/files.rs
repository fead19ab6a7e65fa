//! Features and labels in files.

use super::{AnalysisOptions, Matter, View, grow};
use crate::error::bail;
use crate::{Error, Result, load_tree};
use anyhow::{Context, anyhow};
use negscale::Settings;
use negscale_data::Items;
use negscale_data::own::label_file::{self, Asked};
use negscale_data::own::labels::{Column, Vocabulary};
use negscale_data::own::{OwnOptions, join, open_items};
use negscale_nets::Scan;
use std::path::{Path, PathBuf};

fn wrong(path: &Path) -> impl Fn(String) -> Error {
    move |problem| anyhow!("{}: {problem}", path.display()).into()
}

/// Features and labels in files.
#[derive(Debug, Clone, Default)]
pub struct AnalysisFiles {
    /// Features (.npy, .npz, .safetensors, .csv), a row for each sample.
    pub features: PathBuf,
    /// Labels as given.
    pub given: PathBuf,
    /// True labels, if known.
    pub truth: Option<PathBuf>,
    /// Features of a clean run, rows in the same order.
    pub clean_features: Option<PathBuf>,
}

/// Opens the files.
pub fn open(files: &AnalysisFiles, options: &AnalysisOptions) -> Result<Matter> {
    let AnalysisFiles { features, given, truth, clean_features } = files;
    let name = options.tree.as_deref().unwrap_or("learnt");
    let run = view(features)?;
    let clean = clean_features.as_deref().map(view).transpose()?;
    let rows = run.scan.features.len() / run.scan.dim.max(1);
    let read = |path: &Path| label_file::open(path, Asked::default())?.join_rows(rows);
    let join::Joined { given: column, truth: beside, .. } = read(given)?;
    let truth = match truth {
        Some(path) => Some((read(path)?.given, path)),
        None => beside.map(|column| (column, given)),
    };
    let columns: Vec<&Column> =
        [&column].into_iter().chain(truth.as_ref().map(|(column, _)| column)).collect();
    let tree = (name != "learnt").then(|| load_tree(name, None)).transpose()?;
    let vocabulary = match &tree {
        Some(tree) => Vocabulary::named(tree.class_names().map(str::to_owned).collect()),
        None => Vocabulary::of(&columns),
    };
    let vocabulary = vocabulary.map_err(wrong(given))?;
    let labels = vocabulary.apply(&column).map_err(wrong(given))?;
    let truth = truth.map(|(column, path)| vocabulary.apply(&column).map_err(wrong(path))).transpose()?;
    let classes = vocabulary.into_names();
    let tree = match tree {
        Some(tree) => tree,
        None => grow(&classes, &run.scan, &labels)?,
    };
    Ok(Matter {
        data: given.display().to_string(),
        split: "file",
        classes,
        given: labels,
        truth,
        tree,
        settings: options.over(Settings::default())?,
        batch: 0,
        believed: None,
        run,
        clean,
    })
}

fn view(path: &Path) -> Result<View> {
    let dataset = open_items(path, &OwnOptions::default())?.train;
    let Items::Features(store) = dataset.items() else {
        bail!(
            "{}: it holds images, but features must be rows of numbers; give features, or a run whose model computes them",
            path.display()
        );
    };
    let dim = store.dim();
    let mut features = vec![0.0; store.len() * dim];
    for (row, out) in features.chunks_exact_mut(dim.max(1)).enumerate() {
        store.read(row, out).with_context(|| path.display().to_string())?;
    }
    Ok(View {
        name: path.display().to_string(),
        method: None,
        noise: None,
        accuracy: None,
        steps: Vec::new(),
        scan: Scan { dim, features, ..Scan::default() },
        classifier: None,
    })
}
