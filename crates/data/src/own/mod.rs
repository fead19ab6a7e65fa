//! The user's own data: point at it, and it is recognised.
//!
//! | what | recognised by | module |
//! |---|---|---|
//! | folder + table | `metadata.csv` or `metadata.jsonl` in it, or in its `train` | [`metadata`] |
//! | Parquet | a `.parquet` file, or a folder with some (or with `data/*.parquet`) | [`parquet`] |
//! | ImageFolder | folders of pictures, one a class; or those below `train`, `test`, `val`, `valid`, `validation` | [`folder`] |
//! | arrays | `.npy`, `.npz`, `.safetensors`, `.csv` | `arrays` |
//!
//! Every format yields parts (items, labels as they stand in the file, names of classes if the format has them); one place,
//! [`open`], turns the labels of all parts into classes by one [vocabulary](labels).

mod arrays;
pub mod files;
pub mod folder;
pub mod label_file;
pub mod labels;
pub mod lines;
pub mod metadata;
pub mod npz;
pub mod parquet;
mod shards;
mod spill;
pub mod table;
pub mod tensors;

use crate::{Dataset, Error, Items, Result, Splits};
use labels::{Column, Vocabulary};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the data itself does not say. All may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnOptions {
    /// Name of the data set; by default that of its file or folder.
    pub name: Option<String>,
    /// File of labels: `.npy`, `.csv`, or `.txt` with one a line. For an array that has none, or instead of those of any data, in
    /// the order of its items.
    pub labels: Option<PathBuf>,
    /// Column (or array, in `.npz` and `.safetensors`) of the labels.
    pub label_column: Option<String>,
    /// Column (or array) of the true labels.
    pub truth_column: Option<String>,
    /// Column of the pictures in Parquet.
    pub image_column: Option<String>,
    /// Array of the features in `.npz` and `.safetensors`.
    pub array: Option<String>,
    /// File or folder to be judged by, in a form that is read by itself.
    pub test: Option<PathBuf>,
    /// File of labels for `test`.
    pub test_labels: Option<PathBuf>,
    /// Rows to be judged by instead: they are taken out of what is learned from.
    pub test_rows: Option<Range<usize>>,
    /// File of class names, one a line, in the order of the numbers.
    pub class_names: Option<PathBuf>,
    /// Folder for what must be unpacked; by default the system's for temporary files.
    pub scratch: Option<PathBuf>,
    /// The most bytes that arrays of an `.npz` may unpack to; by default 64 GiB.
    pub max_unpacked: Option<u64>,
}

/// The forms that are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Folder with a metadata table.
    Metadata,
    /// Parquet file or shards.
    Parquet,
    /// Folders of pictures, one a class.
    ImageFolder,
    /// Array file.
    Array,
}

/// Files that were passed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Names that begin with a dot.
    pub hidden: usize,
    /// No pictures by their extension, or links to folders.
    pub foreign: usize,
}

/// What was opened, with what there is to say about it.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The data.
    pub splits: Splits,
    /// In which form it was.
    pub form: Form,
    /// Files passed over, in all parts.
    pub skipped: Skipped,
}

/// Items with labels as they stand in the file.
pub(crate) struct Part {
    items: Items,
    given: Column,
    truth: Option<Column>,
    names: Option<Vec<String>>,
    skipped: Skipped,
    /// What a person should know of how it was read, a sentence each.
    notes: Vec<String>,
}

/// Names of folders and shards with a test part, the first found being taken.
const TESTS: [&str; 4] = ["test", "validation", "valid", "val"];

/// Opens the user's own data, in whichever form it is.
pub fn open(path: &Path, options: &OwnOptions) -> Result<Splits> {
    open_in_full(path, options).map(|opened| opened.splits)
}

/// Opens items without asking for labels, to be predicted: a picture, all pictures below a folder, Parquet with pictures (the
/// training part's, if they are in parts), or an array of features. Columns and arrays of labels that are there are left out.
/// All are in the training part of what is returned.
pub fn open_items(path: &Path, options: &OwnOptions) -> Result<Splits> {
    let about = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let items = if about.is_dir() {
        match shards::find(path)? {
            Some((shards, _)) => parquet::open_items(&shards, options)?,
            None => Items::Images(Arc::new(folder::open_all(path)?)),
        }
    } else if folder::is_picture(path) {
        Items::Images(Arc::new(files::Files::new(vec![path.to_owned()])))
    } else if extension == "parquet" {
        parquet::open_items(&[path.to_owned()], options)?
    } else if arrays::EXTENSIONS.contains(&extension.as_str()) {
        arrays::open_items(path, options)?
    } else {
        let problem = "no form that is known: tried, by its extension, pictures (.jpg, .jpeg, .png, .webp), .parquet, .npy, .npz, \
                       .safetensors and .csv";
        return Err(Error::format(path, None, problem));
    };
    Ok(Splits::new(Dataset::unlabelled(name_of(path, options), items), None))
}

fn name_of(path: &Path, options: &OwnOptions) -> String {
    let stem = if path.is_dir() { path.file_name() } else { path.file_stem() };
    let stem = || stem.unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    options.name.clone().unwrap_or_else(stem)
}

/// As [`open`], telling also the form and what was passed over.
pub fn open_in_full(path: &Path, options: &OwnOptions) -> Result<Opened> {
    let (form, mut train, mut test) = read(path, options.labels.as_deref(), options)?;
    if let Some(other) = &options.test {
        if options.test_rows.is_some() {
            let requirement = "either a test file or test rows, not both".to_string();
            return Err(Error::Setting { what: "test", value: other.display().to_string(), requirement });
        }
        test = Some(read(other, options.test_labels.as_deref(), options)?.1);
    }
    let name = name_of(path, options);
    let (train_skipped, test_skipped) =
        (train.skipped, test.as_ref().map_or(Skipped::default(), |t| t.skipped));
    let skipped = Skipped {
        hidden: train_skipped.hidden + test_skipped.hidden,
        foreign: train_skipped.foreign + test_skipped.foreign,
    };
    let mut notes = std::mem::take(&mut train.notes);
    notes.extend(test.iter_mut().flat_map(|test| test.notes.drain(..)));
    let splits = Splits { notes, ..assemble(name, train, test, options)? };
    Ok(Opened { splits, form, skipped })
}

/// Labels become classes, by one vocabulary for all parts.
fn assemble(name: String, train: Part, test: Option<Part>, options: &OwnOptions) -> Result<Splits> {
    let wrong = |part: &str, problem: String| Error::Labels { dataset: format!("{name}{part}"), problem };
    let vocabulary = match (&options.class_names, &train.names) {
        (Some(file), _) => {
            let mut names = Vec::new();
            lines::read_lines(file, lines::open(file)?, |_, word| {
                names.push(word.to_owned());
                Ok(())
            })?;
            Vocabulary::named(names).map_err(|problem| Error::format(file, None, problem))?
        }
        (None, Some(names)) => Vocabulary::named(names.clone()).map_err(|problem| wrong("", problem))?,
        (None, None) => {
            let columns: Vec<&Column> =
                [Some(&train.given), train.truth.as_ref()].into_iter().flatten().collect();
            Vocabulary::of(&columns).map_err(|problem| wrong("", problem))?
        }
    };
    let classes = vocabulary.clone().into_names();
    let dataset = |part: Part, which: &str| {
        let given = vocabulary.apply(&part.given).map_err(|problem| wrong(which, problem))?;
        let truth = part.truth.map(|truth| vocabulary.apply(&truth)).transpose();
        let truth = truth.map_err(|problem| wrong(which, format!("true {problem}")))?;
        Dataset::new(format!("{name}{which}"), classes.clone(), part.items, given, truth)
    };
    let train = dataset(train, "")?;
    let test = test.map(|test| dataset(test, " (test)")).transpose()?;
    let Some(rows) = &options.test_rows else {
        return Ok(Splits::new(train, test));
    };
    let count = train.len();
    if rows.start >= rows.end || rows.end > count || rows.len() == count {
        let requirement = format!("some but not all of the rows 0 to {count}");
        return Err(Error::Setting { what: "test_rows", value: format!("{rows:?}"), requirement });
    }
    let outside: Vec<usize> = (0..count).filter(|row| !rows.contains(row)).collect();
    let inside: Vec<usize> = rows.clone().collect();
    Ok(Splits::new(train.subset(&outside)?, Some(train.subset(&inside)?)))
}

type Parts = (Form, Part, Option<Part>);

/// Recognises the form of a path and reads it.
fn read(path: &Path, labels: Option<&Path>, options: &OwnOptions) -> Result<Parts> {
    let about = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    let (form, mut train, test) =
        if about.is_dir() { read_folder(path, options)? } else { read_file(path, labels, options)? };
    if let Some(file) = labels.filter(|_| form != Form::Array) {
        // Corrected labels, for instance: in the order of the items, instead of their own.
        let (given, truth) = label_file::open(file, None, options.truth_column.as_deref())?;
        if given.len() != train.given.len() {
            let problem = format!("{} labels for {} items", given.len(), train.given.len());
            return Err(Error::format(file, None, problem));
        }
        train.given = given;
        train.truth = truth.or(train.truth);
    }
    Ok((form, train, test))
}

fn read_file(path: &Path, labels: Option<&Path>, options: &OwnOptions) -> Result<Parts> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    if ["metadata.csv", "metadata.jsonl"].contains(&name) {
        return Ok((Form::Metadata, read_metadata(path, options)?, None));
    }
    if extension == "parquet" {
        return Ok((Form::Parquet, parquet::open(&[path.to_owned()], options)?, None));
    }
    if arrays::EXTENSIONS.contains(&extension.as_str()) {
        let (train, test) = arrays::open(path, labels, options)?;
        return Ok((Form::Array, train, test));
    }
    Err(Error::format(
        path,
        None,
        "no form that is known: tried, by its extension, .parquet, .npy, .npz, .safetensors, .csv, and the names metadata.csv and metadata.jsonl",
    ))
}

fn read_metadata(table: &Path, options: &OwnOptions) -> Result<Part> {
    let names = metadata::Names {
        label: options.label_column.as_deref().unwrap_or("label"),
        truth: options.truth_column.as_deref(),
    };
    let rows = metadata::open(table, names)?;
    let files = metadata::resolve(table, &rows)?;
    let items = Items::Images(Arc::new(files::Files::new(files)));
    Ok(Part {
        items,
        given: rows.given,
        truth: rows.truth,
        names: None,
        skipped: Skipped::default(),
        notes: Vec::new(),
    })
}

fn read_classes(root: &Path) -> Result<Part> {
    let classes = folder::open(root)?;
    let items = Items::Images(Arc::new(classes.files));
    Ok(Part {
        items,
        given: classes.given,
        truth: None,
        names: Some(classes.names),
        skipped: classes.skipped,
        notes: Vec::new(),
    })
}

fn read_folder(path: &Path, options: &OwnOptions) -> Result<Parts> {
    if let Some(table) = metadata::find(path)? {
        return Ok((Form::Metadata, read_metadata(&table, options)?, None));
    }
    let inner = split_folders(path)?;
    if let Some((train, test)) = &inner
        && let Some(table) = metadata::find(train)?
    {
        let test = match test {
            None => None,
            Some(test) => match metadata::find(test)? {
                Some(table) => Some(read_metadata(&table, options)?),
                None => {
                    return Err(Error::format(
                        test,
                        None,
                        "no metadata.csv or metadata.jsonl, but train has one",
                    ));
                }
            },
        };
        return Ok((Form::Metadata, read_metadata(&table, options)?, test));
    }
    if let Some((train, tests)) = shards::find(path)? {
        let train = parquet::open(&train, options)?;
        for shards in tests {
            let test = parquet::open(&shards, options)?;
            // Hugging Face marks labels that are kept secret, for a contest, by -1: that part cannot judge.
            if test.given.words().any(|word| word != "-1") {
                return Ok((Form::Parquet, train, Some(test)));
            }
        }
        return Ok((Form::Parquet, train, None));
    }
    if let Some((train, test)) = inner {
        let test = test.map(|test| read_classes(&test)).transpose()?;
        return Ok((Form::ImageFolder, read_classes(&train)?, test));
    }
    if !folder::folders(path)?.is_empty() {
        return Ok((Form::ImageFolder, read_classes(path)?, None));
    }
    Err(Error::format(
        path,
        None,
        "no form that is known: tried metadata.csv and metadata.jsonl, *.parquet and data/*.parquet, train/ with test/, val/ or valid/, and class folders with pictures",
    ))
}

/// `train` and what it is judged by, if the folder is laid out so. A lone folder `train` among others is a class (of vehicles).
fn split_folders(root: &Path) -> Result<Option<(PathBuf, Option<PathBuf>)>> {
    let folders = folder::folders(root)?;
    let find = |name: &str| folders.iter().find(|path| path.file_name().is_some_and(|n| n == name)).cloned();
    let Some(train) = find("train") else { return Ok(None) };
    let test = TESTS.iter().find_map(|name| find(name));
    let split = test.is_some() || folders.len() == 1;
    let holds = !folder::folders(&train)?.is_empty() || metadata::find(&train)?.is_some();
    Ok((split && holds).then_some((train, test)))
}
