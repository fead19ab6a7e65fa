//! Predictions in a file: a row of class probabilities for every item.
//!
//! | file | what it holds |
//! |---|---|
//! | `.npy` | N x C numbers |
//! | `.csv`, `.tsv` | C columns of numbers, with or without a header |
//! | `.parquet` | C columns of numbers, or one column of lists of C numbers |
//!
//! Where columns have names and the classes are known, columns are put into the order of the classes (`names.rs`); a column `index`, or one
//! of ids, says which item a row belongs to (`order.rs`). Each row must be a distribution: $p_{ic} \ge 0$ and $|\sum_c p_{ic} - 1| \le 10^{-3}$.

mod names;
mod order;

use super::lines::{self, Records, line};
use super::{columns::Layout, columns::NO_ID, extension, parquet, vectors};
use crate::array::Array;
use crate::{Error, FeatureStore, Result, npy};
use names::Names;
use negscale_records::cells::unguard;
use order::Keys;
use std::path::Path;

/// How far from 1 the sum of a row may be.
const TOLERANCE: f64 = 1e-3;

/// What predictions should fit. All may be left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expected<'a> {
    /// How many items there are.
    pub rows: Option<usize>,
    /// The names of the classes, in their order.
    pub classes: Option<&'a [String]>,
    /// The ids of the items, in their order.
    pub ids: Option<&'a [String]>,
}

/// Predictions, a row for every item.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Predictions {
    /// N x C, row after row.
    pub values: Vec<f32>,
    /// Rows N.
    pub rows: usize,
    /// Names of the columns, where the file has any.
    pub classes: Option<Vec<String>>,
}

impl Predictions {
    /// Numbers of a row, C.
    #[must_use]
    pub fn width(&self) -> usize {
        self.values.len() / self.rows.max(1)
    }
}

/// Rows as they stand in a file.
struct Rows {
    values: Vec<f32>,
    width: usize,
    names: Option<Vec<String>>,
    keys: Keys,
    /// What the first row is called in messages, and in which unit rows are counted.
    first: (u64, &'static str),
}

impl Rows {
    /// How a person would find a row.
    fn place(&self, row: usize) -> String {
        let (first, unit) = self.first;
        let counted = if unit == "row" { " (counted from 0)" } else { "" };
        format!("{unit} {}{counted}", first + row as u64)
    }
}

/// Reads predictions by the file's extension.
///
/// # Errors
/// If the file is none of these, does not fit what is expected, or has a row that is no distribution.
pub fn read(path: &Path, expected: Expected) -> Result<Predictions> {
    let rows = match extension(path).as_str() {
        "npy" => from_npy(npy::open(path)?)?,
        "csv" | "tsv" => from_csv(path, expected)?,
        "parquet" => from_parquet(path, expected)?,
        _ => {
            let problem =
                "predictions are read from .npy (N x C), .csv, .tsv or .parquet: save them in one of these";
            return Err(Error::format(path, None, problem));
        }
    };
    finish(path, rows, expected)
}

/// Checks rows and puts them into the order of the items.
fn finish(path: &Path, mut rows: Rows, expected: Expected) -> Result<Predictions> {
    let width = rows.width;
    if let Some(classes) = expected.classes.filter(|classes| classes.len() != width) {
        let problem = format!(
            "{width} columns for {} classes ({}): give a probability for every class",
            classes.len(),
            names::listing(classes.iter().map(String::as_str))
        );
        return Err(Error::format(path, None, problem));
    }
    for (row, values) in rows.values.chunks(width).enumerate() {
        let remedy = "give probabilities, not logits (a softmax of each row makes them)";
        if let Some(at) = values.iter().position(|&p| p.is_nan() || p < 0.0) {
            let problem = format!(
                "{} in {}, which is no probability: {remedy}",
                values[at],
                rows.names
                    .as_ref()
                    .map_or(format!("column {}", at + 1), |names| format!("column `{}`", names[at]))
            );
            return Err(Error::format(path, rows.place(row), problem));
        }
        let sum: f64 = values.iter().map(|&p| f64::from(p)).sum();
        if (sum - 1.0).abs() > TOLERANCE {
            let problem = format!("its {width} numbers sum to {sum:.4}, not to 1: {remedy}");
            return Err(Error::format(path, rows.place(row), problem));
        }
    }
    // What is a little above 1 is a rounding error.
    rows.values.iter_mut().for_each(|p| *p = p.min(1.0));
    let count = rows.values.len() / width;
    let place = |row| rows.place(row);
    if let Some(order) = rows
        .keys
        .order(count, expected, place)
        .map_err(|(row, problem)| Error::format(path, row.map(|row| rows.place(row)), problem))?
    {
        let arranged = order.iter().flat_map(|&row| &rows.values[row * width..(row + 1) * width]);
        rows.values = arranged.copied().collect();
    }
    Ok(Predictions { values: rows.values, rows: count, classes: rows.names })
}

/// All numbers of an array with rows and columns.
fn numbers(array: &Array) -> Result<(Vec<f32>, usize)> {
    let width = array.dim();
    let mut values = vec![0.0; array.len() * width];
    for (row, out) in values.chunks_mut(width).enumerate() {
        array.read(row, out)?;
    }
    Ok((values, width))
}

fn from_npy(array: Array) -> Result<Rows> {
    if array.shape().len() != 2 {
        let problem = format!(
            "shape {:?}: predictions have two dimensions, a row for every item and a column for every class",
            array.shape()
        );
        return Err(Error::format(array.path(), None, problem));
    }
    let (values, width) = numbers(&array.into_features()?)?;
    Ok(Rows { values, width, names: None, keys: Keys::default(), first: (0, "row") })
}

fn from_csv(path: &Path, expected: Expected) -> Result<Rows> {
    let mut records = Records::new(path, lines::open(path)?)?;
    let Some((_, first)) = records.next()? else {
        return Err(Error::format(path, None, "the file is empty"));
    };
    let first = first.clone();
    let fields: Vec<&str> = first.iter().map(unguard).collect();
    let has_header = match names::is_header(&fields, expected.classes, TOLERANCE) {
        Some(known) => known,
        None => count_decides(path, expected)?,
    };
    let names = match has_header {
        true => Names::resolve(&fields, expected.classes)
            .map_err(|problem| Error::format(path, line(1), problem))?,
        false => Names::unnamed(fields.len()),
    };
    let (mut values, mut keys) = (Vec::new(), Keys::new(&names));
    let mut take = |number: u64, record: &csv::StringRecord| -> Result<()> {
        for &at in &names.places {
            let value = record[at].parse::<f32>().map_err(|_| {
                let shown: String = record[at].chars().take(40).collect();
                let hint = match record[at].replacen(',', ".", 1).parse::<f32>() {
                    Ok(_) => "write it with a decimal point",
                    Err(_) => "every column but `index` and ids must hold probabilities",
                };
                let problem = format!("`{}` is not a number: {hint}", shown.escape_debug());
                Error::format(path, format!("line {number}, column {}", at + 1), problem)
            })?;
            values.push(value);
        }
        keys.push(|at| unguard(&record[at]).to_owned());
        Ok(())
    };
    if !has_header {
        take(1, &first)?;
    }
    while let Some((number, record)) = records.next()? {
        take(number, record)?;
    }
    if values.is_empty() {
        return Err(Error::format(path, None, "it has a header but no rows"));
    }
    let width = names.places.len();
    Ok(Rows { values, width, names: names.names, keys, first: (1 + u64::from(has_header), "line") })
}

/// Whether there is a header, where only the number of lines can tell.
fn count_decides(path: &Path, expected: Expected) -> Result<bool> {
    let (mut records, mut count) = (Records::new(path, lines::open(path)?)?, 0);
    while records.next()?.is_some() {
        count += 1;
    }
    match expected.rows {
        Some(rows) if count == rows => Ok(false),
        Some(rows) if count == rows + 1 => Ok(true),
        _ => {
            let problem = "do these numbers name the classes, or are they a prediction? Begin with a header of class names, or with a column `index`";
            Err(Error::format(path, line(1), problem))
        }
    }
}

fn from_parquet(path: &Path, expected: Expected) -> Result<Rows> {
    let shards = parquet::map(&[path.to_owned()])?;
    let wrong = |problem: String| Error::format(path, "schema".to_string(), problem);
    let Some(shard) = shards.first() else { return Err(wrong("no file".into())) };
    let columns = shard.names();
    let free = Names::resolve(&columns, None).map_err(wrong)?;
    let is_list = |at: &&usize| {
        let mut leaves = shard.schema().columns().iter();
        leaves.any(|leaf| {
            leaf.max_rep_level() > 0 && leaf.path().parts().first().is_some_and(|p| p == columns[**at])
        })
    };
    let lists: Vec<&usize> = free.places.iter().filter(is_list).collect();
    let (names, chosen) = match lists[..] {
        [list] => {
            let layout = Layout { id: Some(NO_ID), unlabelled: true, ..Layout::default() };
            let chosen = vectors::choose(shard, layout, Some(columns[*list]))?;
            (Names { names: None, ..free }, chosen)
        }
        _ => {
            let names = Names::resolve(&columns, expected.classes).map_err(wrong)?;
            let features: Vec<String> = names.places.iter().map(|&at| columns[at].to_owned()).collect();
            let layout =
                Layout { id: Some(NO_ID), features: &features, unlabelled: true, ..Layout::default() };
            (names, vectors::choose(shard, layout, None)?)
        }
    };
    let chosen = chosen.ok_or_else(|| wrong("no column of numbers in it".into()))?;
    let array = vectors::read(&shards, &[chosen], None)?;
    let (values, width) = numbers(&array.into_features()?)?;
    let mut keys = Keys::new(&names);
    keys.fill(|at| parquet::words(shard, columns[at]))?;
    Ok(Rows { values, width, names: names.names, keys, first: (0, "row") })
}

#[cfg(test)]
mod tests;
