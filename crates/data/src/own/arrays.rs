//! Embeddings or tables: one array file, and labels in it or beside it.
//!
//! In `.npz` and `.safetensors` arrays have names. Features are the one asked for, else the first of the usual names that is
//! there, else the only array with two or more dimensions; labels and true labels likewise. `x_train`, `y_train`, `x_test`,
//! `y_test` in one file (Keras's way) give both parts. Arrays of more than two dimensions are flattened to vectors.

use super::labels::Column;
use super::npz::Npz;
use super::tensors::Tensors;
use super::{OwnOptions, Part, label_file, table};
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
pub(super) const EXTENSIONS: [&str; 4] = ["npy", "npz", "safetensors", "csv"];

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

    fn first_of(&self, names: &[&str]) -> Option<String> {
        names.iter().find(|name| self.names().iter().any(|n| n == *name)).map(|name| name.to_string())
    }
}

/// Reads an array file with its labels: the training part, and the test part where the file has one.
pub(super) fn open(path: &Path, labels: Option<&Path>, options: &OwnOptions) -> Result<(Part, Option<Part>)> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    // A table with labels of its own keeps its column of them out of the features when other labels take their place.
    let asked = options.label_column.as_deref();
    let mut replaced = None;
    if extension == "csv" && labels.is_some() {
        for name in asked.into_iter().chain(["label"]) {
            if replaced.is_none() && table::has_column(path, name)? {
                replaced = Some(name);
            }
        }
    }
    let column = asked.filter(|_| replaced.is_none());
    let beside = labels.map(|file| label_file::open(file, column, options.truth_column.as_deref()));
    let beside = beside.transpose()?;
    match (extension.as_str(), beside) {
        ("npy", Some((given, truth))) => Ok((part(npy::open(path)?, given, truth)?, None)),
        ("npy", None) => {
            Err(Error::format(path, None, "an .npy file has no room for labels: name a labels file (labels)"))
        }
        ("csv", beside) => {
            // Named columns are the labels file's, if there is one.
            let own = beside.is_none();
            let layout = table::Layout {
                label: if own { asked } else { replaced },
                truth: options.truth_column.as_deref().filter(|_| own),
                unlabelled: !own,
                scratch: options.scratch.as_deref(),
            };
            let table = table::open(path, layout)?;
            let (given, truth) = match (beside, table.given) {
                (Some((given, truth)), _) => (given, truth.or(table.truth)),
                (None, given) => (given.unwrap_or_default(), table.truth),
            };
            Ok((part(table.features, given, truth)?, None))
        }
        ("npz", beside) => {
            let file = Npz::open(path, options.max_unpacked, options.scratch.as_deref())?;
            named(path, Named::Npz(Box::new(file)), beside, options)
        }
        (_, beside) => named(path, Named::Tensors(Tensors::open(path)?), beside, options),
    }
}

/// Reads the features of an array file, labelled or not.
pub(super) fn open_items(path: &Path, options: &OwnOptions) -> Result<Items> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let mut file = match extension.as_str() {
        "npy" => return features(npy::open(path)?),
        "csv" => {
            // Columns of labels by their usual names are no features, whether asked for or not.
            let asked = options.label_column.as_deref();
            let label = match asked {
                None if table::has_column(path, "label")? => Some("label"),
                asked => asked,
            };
            let layout = table::Layout {
                label,
                truth: options.truth_column.as_deref(),
                unlabelled: true,
                scratch: options.scratch.as_deref(),
            };
            return features(table::open(path, layout)?.features);
        }
        "npz" => Named::Npz(Box::new(Npz::open(path, options.max_unpacked, options.scratch.as_deref())?)),
        _ => Named::Tensors(Tensors::open(path)?),
    };
    let labels = options.label_column.clone().or_else(|| file.first_of(&LABELS));
    let name = choose_features(path, &mut file, labels.as_deref(), options)?;
    features(file.array(&name)?)
}

fn features(array: Array) -> Result<Items> {
    Ok(Items::Features(Arc::new(array.into_features()?)))
}

fn part(array: Array, given: Column, truth: Option<Column>) -> Result<Part> {
    Ok(Part {
        items: features(array)?,
        given,
        truth,
        names: None,
        skipped: Default::default(),
        notes: Vec::new(),
    })
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
        let problem =
            format!("which array holds the features? {} could, of {listing}: name it (array)", tables.len());
        Error::format(path, None, problem)
    })
}

fn named(
    path: &Path,
    mut file: Named,
    beside: Option<label_file::Columns>,
    options: &OwnOptions,
) -> Result<(Part, Option<Part>)> {
    let listing = file.names().join(", ");
    let wrong = |problem: String| Error::format(path, None, problem);
    let labels =
        if beside.is_some() { None } else { options.label_column.clone().or_else(|| file.first_of(&LABELS)) };
    let features = choose_features(path, &mut file, labels.as_deref(), options)?;
    let truth = match beside {
        Some(_) => None,
        None => options.truth_column.clone().or_else(|| file.first_of(&TRUTHS)),
    };
    let (given, truth) = match (beside, labels) {
        (Some(columns), _) => columns,
        (None, Some(name)) => {
            let truth = truth.map(|name| file.array(&name)?.into_labels()).transpose()?;
            (file.array(&name)?.into_labels()?, truth)
        }
        (None, None) => {
            return Err(wrong(format!(
                "no labels among its arrays ({listing}): name the array (label_column) or a labels file (labels)"
            )));
        }
    };
    let train = part(file.array(&features)?, given, truth)?;
    let test = match (file.first_of(&TEST_FEATURES), file.first_of(&TEST_LABELS)) {
        (Some(x), Some(y)) => Some(part(file.array(&x)?, file.array(&y)?.into_labels()?, None)?),
        _ => None,
    };
    Ok((train, test))
}
