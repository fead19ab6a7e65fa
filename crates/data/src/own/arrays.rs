//! Embeddings or tables: one array file, and labels in it or beside it.
//!
//! In `.npz` and `.safetensors` arrays have names. Features are the one asked for, else the first of the usual names that is
//! there, else the only array with two or more dimensions; labels and true labels likewise. `x_train`, `y_train`, `x_test`,
//! `y_test` in one file (Keras's way) give both parts. Arrays of more than two dimensions are flattened to vectors.

use super::columns::{Layout, NO_ID};
use super::identified::identified;
use super::label_file::LabelFile;
use super::npz::Npz;
use super::side::SideColumns;
use super::tensors::Tensors;
use super::{LabelledItems, OwnOptions, extension, label_file, table, texts};
use crate::array::Array;
use crate::npy;
use crate::{Error, Items, Result};
use std::path::Path;
use std::sync::Arc;

const FEATURES: [&str; 8] = ["x", "X", "features", "embeddings", "embedding", "data", "x_train", "X_train"];
const LABELS: [&str; 8] = ["y", "Y", "labels", "label", "targets", "target", "y_train", "Y_train"];
const TRUTHS: [&str; 2] = ["true_labels", "true_label"];
const TEST_FEATURES: [&str; 4] = ["x_test", "X_test", "test_features", "test_embeddings"];
const TEST_LABELS: [&str; 4] = ["y_test", "Y_test", "test_labels", "test_label"];

/// Extensions that are read here.
pub(super) const EXTENSIONS: [&str; 5] = ["npy", "npz", "safetensors", "csv", "tsv"];
/// Those of tables.
const TABLES: [&str; 2] = ["csv", "tsv"];

/// Named arrays, from either kind of file.
enum Named {
    Npz(Box<Npz>),
    Tensors(Tensors),
}

impl Named {
    fn names(&self) -> &[String] {
        match self {
            Named::Npz(file) => file.names(),
            Named::Tensors(file) => file.names(),
        }
    }

    fn array(&mut self, name: &str) -> Result<Array> {
        match self {
            Named::Npz(file) => file.array(name),
            Named::Tensors(file) => file.array(name),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.names().iter().any(|other| other == name)
    }

    fn first_of(&self, names: &[&str]) -> Option<String> {
        names.iter().find(|name| self.has(name)).map(|name| name.to_string())
    }
}

/// Reads an array file with its labels: the training split, and the test split where the file has one.
pub(super) fn open(
    path: &Path,
    labels: Option<&Path>,
    options: &OwnOptions,
) -> Result<(LabelledItems, Option<LabelledItems>)> {
    let extension = extension(path);
    let is_table = TABLES.contains(&extension.as_str());
    let in_data = |name: &str| if is_table { table::has_column(path, name) } else { Ok(false) };
    let beside = match labels {
        Some(file) => Some(label_file::open(file, options.asked(file, in_data)?)?),
        None => None,
    };
    match (extension.as_str(), beside) {
        ("npy", Some(beside)) => Ok((joined(features(npy::open(path)?)?, beside, Vec::new())?, None)),
        ("npy", None) => {
            Err(Error::format(path, None, "an .npy file has no labels: give a labels file (--labels)"))
        }
        ("npz", beside) => {
            let file = Npz::open(path, options.max_unpacked, options.scratch.as_deref())?;
            named(path, Named::Npz(Box::new(file)), beside, options)
        }
        ("safetensors", beside) => named(path, Named::Tensors(Tensors::open(path)?), beside, options),
        (_, beside) => {
            let table = table::open(path, reading(path, beside.is_some(), options)?)?;
            let items = items_of(table.texts, table.features, table.ids, table.names)?;
            let part = match (beside, table.given) {
                (Some(beside), _) => {
                    let part = joined(items, beside, table.notes)?;
                    LabelledItems {
                        truth: part.truth.or(table.truth),
                        side: part.side.or(table.side),
                        ..part
                    }
                }
                (None, Some(given)) => {
                    let part = LabelledItems::new(items, given, table.truth);
                    LabelledItems { notes: table.notes, side: table.side, ..part }
                }
                (None, None) => return Err(Error::format(path, None, "it has no column of labels")),
            };
            Ok((part, None))
        }
    }
}

/// How a table is read; where labels are `beside`, or not asked for, its own columns of them are left out.
fn reading<'a>(path: &Path, beside: bool, options: &'a OwnOptions) -> Result<table::Reading<'a>> {
    let mut layout = Layout { unlabelled: beside, ..options.layout() };
    if beside {
        // Columns may be the labels file's.
        let there = |name: Option<&'a str>| match name {
            Some(name) if !table::has_column(path, name)? => Ok(None),
            name => Ok::<_, Error>(name),
        };
        layout.truth = there(layout.truth)?;
        layout.source = there(layout.source)?;
        for name in std::mem::take(&mut layout.annotators) {
            if table::has_column(path, name)? {
                let problem = format!(
                    "column `{name}` is both in the data and in the file of labels: leave --labels out, or rename it in one of them"
                );
                return Err(Error::format(path, None, problem));
            }
        }
        layout.label = there(layout.label)?.or(there(Some("label"))?);
        if layout.id != Some(NO_ID) {
            layout.id = there(layout.id)?;
        }
    }
    Ok(table::Reading { layout, header: options.header, scratch: options.scratch.as_deref() })
}

/// Reads the features of an array file, labelled or not, with what there is to say about them.
pub(super) fn open_items(path: &Path, options: &OwnOptions) -> Result<(Items, Vec<String>)> {
    let extension = extension(path);
    let mut file = match extension.as_str() {
        "npy" => return Ok((features(npy::open(path)?)?, Vec::new())),
        "npz" => Named::Npz(Box::new(Npz::open(path, options.max_unpacked, options.scratch.as_deref())?)),
        "safetensors" => Named::Tensors(Tensors::open(path)?),
        _ => {
            // Columns of labels by their usual names are no features, whether asked for or not.
            let mut reading = reading(path, true, options)?;
            reading.layout.label = options.label_column.as_deref().or(reading.layout.label);
            let table = table::open(path, reading)?;
            let items = items_of(table.texts, table.features, table.ids, table.names)?;
            return Ok((items, table.notes));
        }
    };
    let labels = options.label_column.clone().or_else(|| file.first_of(&LABELS));
    let name = choose_features(path, &mut file, labels.as_deref(), options)?;
    Ok((features(file.array(&name)?)?, Vec::new()))
}

/// The rows of a table: texts where a column of them was asked for, else numbers.
fn items_of(
    texts: Option<Vec<String>>,
    features: Array,
    ids: Option<Vec<String>>,
    names: Vec<String>,
) -> Result<Items> {
    match texts {
        Some(texts) => Ok(texts::items(texts, ids)),
        None => Ok(identified(features.into_features()?, ids, names)),
    }
}

fn features(array: Array) -> Result<Items> {
    Ok(Items::Features(Arc::new(array.into_features()?)))
}

/// Items with labels from a file, and what there is to say about both.
fn joined(items: Items, beside: LabelFile, mut notes: Vec<String>) -> Result<LabelledItems> {
    let labels = beside.join(&items)?;
    notes.extend(labels.notes);
    Ok(LabelledItems { notes, side: labels.side, ..LabelledItems::new(items, labels.given, labels.truth) })
}

/// Name of the array that holds the features.
fn choose_features(
    path: &Path,
    file: &mut Named,
    labels: Option<&str>,
    options: &OwnOptions,
) -> Result<String> {
    if let Some(name) = options.array.clone().or_else(|| file.first_of(&FEATURES)) {
        return Ok(name);
    }
    let mut tables = Vec::new();
    for name in file.names().to_vec() {
        if Some(name.as_str()) != labels && file.array(&name)?.shape().len() >= 2 {
            tables.push(name);
        }
    }
    <[String; 1]>::try_from(tables).map(|[name]| name).map_err(|tables| {
        let listing = file.names().join(", ");
        let problem = format!(
            "which array holds the features? {} could, of {listing}: name it (--array)",
            tables.len()
        );
        Error::format(path, None, problem)
    })
}

fn named(
    path: &Path,
    mut file: Named,
    beside: Option<LabelFile>,
    options: &OwnOptions,
) -> Result<(LabelledItems, Option<LabelledItems>)> {
    let listing = file.names().join(", ");
    let wrong = |problem: String| Error::format(path, None, problem);
    let labels = match (&beside, options.label_columns.first()) {
        (Some(_), _) => None,
        (None, Some(first)) => Some(first.clone()),
        (None, None) => options.label_column.clone().or_else(|| file.first_of(&LABELS)),
    };
    let name = choose_features(path, &mut file, labels.as_deref(), options)?;
    let items = features(file.array(&name)?)?;
    let mut side = SideColumns::default();
    if let Some(name) = options.source_column.as_ref().filter(|name| beside.is_none() || file.has(name)) {
        side.source = Some(file.array(name)?.into_labels()?);
    }
    for name in options.label_columns.iter().filter(|_| beside.is_none()) {
        side.annotators.push(file.array(name)?.into_labels()?);
    }
    let train = match (beside, labels) {
        (Some(beside), _) => joined(items, beside, Vec::new())?,
        (None, Some(name)) => {
            let truth = options.truth_column.clone().or_else(|| file.first_of(&TRUTHS));
            let truth = truth.map(|name| file.array(&name)?.into_labels()).transpose()?;
            LabelledItems::new(items, file.array(&name)?.into_labels()?, truth)
        }
        (None, None) => {
            return Err(wrong(format!(
                "no labels among its arrays ({listing}): name the array (--label-column) or a labels file (--labels)"
            )));
        }
    };
    let train = LabelledItems { side: train.side.or(side), ..train };
    let test = match (file.first_of(&TEST_FEATURES), file.first_of(&TEST_LABELS)) {
        (Some(x), Some(y)) => {
            Some(LabelledItems::new(features(file.array(&x)?)?, file.array(&y)?.into_labels()?, None))
        }
        _ => None,
    };
    Ok((train, test))
}
