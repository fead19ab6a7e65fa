//! The user's own data: point at it, and it is recognised.
//!
//! | what | recognised by | module |
//! |---|---|---|
//! | folder + table | `metadata.csv` or `metadata.jsonl` in it, or in its `train` | [`metadata`] |
//! | Parquet | a `.parquet` file, or a folder with some (or with `data/*.parquet`) | [`parquet`] |
//! | ImageFolder | folders of pictures, one a class; or those below `train`, `test`, `val`, `valid`, `validation` | [`folder`] |
//! | arrays | `.npy`, `.npz`, `.safetensors`, `.csv`, `.tsv` | `arrays` |
//!
//! Every format yields parts (items, labels as they stand in the file, names of classes if the format has them); one place,
//! [`open`], turns the labels of all parts into classes by one [vocabulary](labels). Labels in a file of their own find their items
//! by [`join`]. Predictions for the items, by whatever model, are read by [`predictions`].

mod arrays;
mod asked;
mod columns;
pub mod files;
pub mod folder;
mod groups;
pub(crate) mod header;
mod identified;
pub mod join;
pub mod label_file;
pub mod labels;
pub mod lines;
pub mod metadata;
pub mod npz;
pub mod parquet;
pub mod passed;
pub mod predictions;
mod recognise;
mod relabel;
mod reviewed;
mod separator;
mod shards;
pub mod side;
mod spill;
pub mod stream;
pub mod table;
pub mod tensors;
mod texts;
mod vectors;
pub(crate) mod words;

pub use header::Header;
pub(crate) use relabel::relabel;

use crate::readable::{self, Failure};
use crate::{Annotators, Dataset, Error, Items, Result, Splits};
use labels::{Column, Vocabulary};
use recognise::read;
use serde::{Deserialize, Serialize};
use side::SideColumns;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the data itself does not say. All may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnOptions {
    /// Name of the dataset; by default that of its file or folder.
    pub name: Option<String>,
    /// File of labels: `.npy`, `.csv`, or `.txt` with one per line. For an array that has none, or instead of those of any data;
    /// joined by its columns `index` or `path` or by ids, without them in the order of the items. Items that a review dropped are left out.
    pub labels: Option<PathBuf>,
    /// Whether the labels file, or the table where there is none, begins with a header.
    pub header: Header,
    /// Column (or array, in `.npz` and `.safetensors`) of the labels.
    pub label_column: Option<String>,
    /// Column (or array) of the true labels.
    pub truth_column: Option<String>,
    /// Column (or array) that says where an item's label comes from: a camera, a site, a person.
    pub source_column: Option<String>,
    /// Columns (or arrays) of labels by several annotators, in place of one column: the label is their majority vote. Blank cells are no votes.
    pub label_columns: Vec<String>,
    /// Column of texts in a table, in place of features: an encoder makes rows of numbers of them.
    pub text_column: Option<String>,
    /// Column of the pictures in Parquet.
    pub image_column: Option<String>,
    /// Array of the features in `.npz` and `.safetensors`, or column of lists of numbers in Parquet.
    pub array: Option<String>,
    /// Columns of the features in a table, in this order; all others without it.
    pub feature_columns: Vec<String>,
    /// Columns of a table that are left out.
    pub ignore_columns: Vec<String>,
    /// Column of ids in a table: no feature, but a name for the item; `none` if there is none, whatever columns are called.
    pub id_column: Option<String>,
    /// File or folder to be judged by, in a form that is read by itself.
    pub test: Option<PathBuf>,
    /// File of labels for `test`.
    pub test_labels: Option<PathBuf>,
    /// Rows to be judged by instead: they are taken out of what is learned from.
    pub test_rows: Option<Range<usize>>,
    /// Leave out pictures that cannot be read, instead of refusing all. Then rows and label files count those that are left; a label
    /// file may also have a label for every item.
    pub skip_unreadable: bool,
    /// File of class names, one per line, in the order of the numbers.
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

/// What was opened, with what there is to say about it.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The data.
    pub splits: Splits,
    /// In which form it was.
    pub form: Form,
}

/// Items with labels as they stand in the file.
pub(crate) struct LabelledItems {
    items: Items,
    given: Column,
    truth: Option<Column>,
    side: SideColumns,
    names: Option<Vec<String>>,
    /// What a person should know of how it was read, a sentence each.
    notes: Vec<String>,
    /// Items left out already, because they cannot be read.
    left_out: Vec<Failure>,
}

impl LabelledItems {
    /// Of which there is nothing more to say.
    fn new(items: Items, given: Column, truth: Option<Column>) -> Self {
        let side = SideColumns::default();
        Self { items, given, truth, side, names: None, notes: Vec::new(), left_out: Vec::new() }
    }

    /// Leaves out what cannot be read, if that leaves as many items as there are labels for: those of a run that did so.
    fn leave_out_unreadable(&mut self, labels: usize) {
        let (failures, items) = (readable::Look::at(&self.items).failures, self.items.len());
        if items - failures.len() == labels {
            let others = readable::others(&failures, items);
            self.items = self.items.subset(&others);
            self.given = self.given.pick(&others);
            self.truth = self.truth.take().map(|truth| truth.pick(&others));
            self.side = self.side.pick(&others);
            self.notes.extend(readable::note(&failures, items));
            self.left_out = failures;
        }
    }
}

/// From so many items on, there must be fewer classes than items.
const FEW: usize = 20;

/// Names of folders and shards with a test split, the first found being taken.
const TESTS: [&str; 4] = ["test", "validation", "valid", "val"];

/// The extension of a path, in small letters; empty where there is none.
fn extension(path: &Path) -> String {
    path.extension().map_or(String::new(), |extension| extension.to_string_lossy().to_ascii_lowercase())
}

/// Opens the user's own data, in whichever form it is.
pub fn open(path: &Path, options: &OwnOptions) -> Result<Splits> {
    open_in_full(path, options).map(|opened| opened.splits)
}

/// Opens items without asking for labels, to be predicted: a picture, all pictures below a folder, Parquet with pictures (the
/// training split's, if they are in parts), or an array of features. Columns and arrays of labels that are there are left out.
/// All are in the training split of what is returned.
pub fn open_items(path: &Path, options: &OwnOptions) -> Result<Splits> {
    let about = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    let extension = extension(path);
    let (items, notes) = if about.is_dir() {
        match shards::find(path)? {
            Some((shards, _)) => parquet::open_items(&shards, options)?,
            None => {
                let (files, passed) = folder::open_all(path)?;
                (Items::Images(Arc::new(files)) as Items, passed.notes(path))
            }
        }
    } else if folder::is_picture(path) {
        (Items::Images(Arc::new(files::Files::new(vec![path.to_owned()]))), Vec::new())
    } else if extension == "parquet" {
        parquet::open_items(&[path.to_owned()], options)?
    } else if arrays::EXTENSIONS.contains(&extension.as_str()) {
        arrays::open_items(path, options)?
    } else {
        let problem = "unknown format: tried, by its extension, images (.jpg, .jpeg, .png, .webp), .parquet, .npy, .npz, \
                       .safetensors and .csv";
        return Err(Error::format(path, None, problem));
    };
    let splits = Splits { notes, ..Splits::new(Dataset::unlabelled(name_of(path, options), items), None) };
    if options.skip_unreadable { splits.without_unreadable() } else { Ok(splits) }
}

fn name_of(path: &Path, options: &OwnOptions) -> String {
    let stem = if path.is_dir() { path.file_name() } else { path.file_stem() };
    let stem = || stem.unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    options.name.clone().unwrap_or_else(stem)
}

/// As [`open`], telling also the form.
pub fn open_in_full(path: &Path, options: &OwnOptions) -> Result<Opened> {
    if let (None, Some(labels)) = (&options.test, &options.test_labels) {
        let requirement = "there are labels for test data, but no test data: give it with --test".to_string();
        return Err(Error::Setting {
            what: "--test-labels",
            value: labels.display().to_string(),
            requirement,
        });
    }
    check_names(options)?;
    let (form, mut train, mut test) = read(path, options.labels.as_deref(), options)?;
    check_side(path, &train.side, options)?;
    // With several annotators nothing is judged by a test split, which would have other columns.
    if !options.label_columns.is_empty() {
        test = None;
    } else if let Some(other) = &options.test {
        if options.test_rows.is_some() {
            let requirement = "either a test file or test rows, not both".to_string();
            return Err(Error::Setting { what: "test", value: other.display().to_string(), requirement });
        }
        test = Some(read(other, options.test_labels.as_deref(), &options.for_test(other)?)?.1);
    }
    let name = name_of(path, options);
    let mut notes = std::mem::take(&mut train.notes);
    notes.extend(test.iter_mut().flat_map(|test| test.notes.drain(..)));
    let left_out = std::mem::take(&mut train.left_out);
    let mut splits = assemble(name, train, test, options)?;
    notes.append(&mut splits.notes);
    let splits = Splits { notes, left_out, ..splits };
    let splits = if options.skip_unreadable { splits.without_unreadable()? } else { splits };
    Ok(Opened { splits, form })
}

/// Whether several annotators are named, each of them once.
fn check_names(options: &OwnOptions) -> Result<()> {
    let names = &options.label_columns;
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    let requirement = match (twice, &names[..]) {
        (Some((_, name)), _) => {
            format!("column `{name}` is named twice; every column is one annotator, so name it once")
        }
        (None, [_]) => {
            "name at least two columns, as in a,b,c; for one column there is --label-column".into()
        }
        (None, _) if !names.is_empty() && options.label_column.is_some() => {
            "labels are in one column or in several: leave out --label-column or --label-columns".into()
        }
        _ => return Ok(()),
    };
    Err(Error::Setting { what: "--label-columns", value: names.join(","), requirement })
}

/// Refuses columns that neither the data nor the file of labels has.
fn check_side(path: &Path, side: &SideColumns, options: &OwnOptions) -> Result<()> {
    let missing = match (&options.source_column, options.label_columns.first()) {
        (Some(name), _) if side.source.is_none() => ("--source-column", name),
        (_, Some(name)) if side.annotators.is_empty() => ("--label-columns", name),
        _ => return Ok(()),
    };
    let (flag, name) = missing;
    let problem =
        format!("no column `{name}` in it, nor in a file of labels: {flag} needs a table that has it");
    Err(Error::format(path, None, problem))
}

/// The classes: those named, else those that occur.
fn vocabulary_of(
    name: &str,
    given: &Column,
    (truth, annotators): (Option<&Column>, &[Column]),
    names: Option<&[String]>,
    options: &OwnOptions,
) -> Result<Vocabulary> {
    let wrong = |problem: String| Error::Labels { dataset: name.to_owned(), problem };
    match (&options.class_names, names) {
        (Some(file), _) => {
            let mut names = Vec::new();
            lines::read_lines(file, lines::open(file)?, |_, word| {
                names.push(word.to_owned());
                Ok(())
            })?;
            Vocabulary::named(names).map_err(|problem| Error::format(file, None, problem))
        }
        (None, Some(names)) => Vocabulary::named(names.to_vec()).map_err(wrong),
        (None, None) => {
            let columns: Vec<&Column> = std::iter::once(given).chain(truth).chain(annotators).collect();
            let vocabulary = Vocabulary::of(&columns).map_err(wrong)?;
            // Fewer may well be one of each.
            if given.len() >= FEW && vocabulary.len() >= given.len() {
                let problem = format!(
                    "{} classes for {} items, as many as items or more: are these row numbers, names or measurements? Check that it is the right column",
                    vocabulary.len(),
                    given.len()
                );
                return Err(wrong(problem));
            }
            Ok(vocabulary)
        }
    }
}

/// Labels become classes, by one vocabulary for all parts.
fn assemble(
    name: String,
    train: LabelledItems,
    test: Option<LabelledItems>,
    options: &OwnOptions,
) -> Result<Splits> {
    let wrong = |part: &str, problem: String| Error::Labels { dataset: format!("{name}{part}"), problem };
    let others = (train.truth.as_ref(), &train.side.annotators[..]);
    let vocabulary = vocabulary_of(&name, &train.given, others, train.names.as_deref(), options)?;
    let derived = options.class_names.is_none() && train.names.is_none();
    let classes = vocabulary.clone().into_names();
    let mut notes = Vec::new();
    let mut dataset = |part: LabelledItems, which: &str| {
        // Labels of the training split made the classes; only others can fail to be among them.
        let hint = if derived {
            "; classes are those of the training split: remove such items, or name all classes in a file (--class-names)"
        } else {
            ""
        };
        let given = match &part.side.review {
            Some(review) => review.classes(&part.given, &vocabulary),
            None => vocabulary.apply(&part.given),
        };
        let given = given.map_err(|problem| wrong(which, problem + hint))?;
        let truth = part.truth.map(|truth| vocabulary.apply(&truth)).transpose();
        let truth = truth.map_err(|problem| wrong(which, format!("true {problem}{hint}")))?;
        let annotators = part.side.annotators(&options.label_columns, &vocabulary);
        let annotators = annotators.map_err(|problem| wrong(which, problem))?;
        let given = annotators.as_ref().map_or(given, Annotators::majority);
        let sources = part.side.sources()?;
        let dataset = Dataset::new(format!("{name}{which}"), classes.clone(), part.items, given, truth)?;
        let dataset = dataset.with_provenance(sources, annotators)?;
        let Some(review) = &part.side.review else { return Ok(dataset) };
        let (dataset, note) = review.apply(dataset, &vocabulary)?;
        notes.push(note);
        Ok(dataset)
    };
    let train = dataset(train, "")?;
    let test = test.map(|test| dataset(test, " (test)")).transpose()?;
    let Some(rows) = &options.test_rows else {
        return Ok(Splits { notes, ..Splits::new(train, test) });
    };
    let count = train.len();
    if rows.start >= rows.end || rows.end > count || rows.len() == count {
        let requirement = format!("some but not all of the rows 0 to {count}");
        return Err(Error::Setting { what: "test_rows", value: format!("{rows:?}"), requirement });
    }
    let outside: Vec<usize> = (0..count).filter(|row| !rows.contains(row)).collect();
    let inside: Vec<usize> = rows.clone().collect();
    Ok(Splits { notes, ..Splits::new(train.subset(&outside)?, Some(train.subset(&inside)?)) })
}
