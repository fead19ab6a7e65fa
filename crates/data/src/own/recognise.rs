//! In which form the user's data is, and what is read from it in that form.

use super::{
    Form, LabelledItems, OwnOptions, TESTS, arrays, extension, files, folder, label_file, metadata, parquet,
    shards,
};
use crate::{Error, Items, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The form, what is learned from, and what is judged by.
pub(super) type Found = (Form, LabelledItems, Option<LabelledItems>);

/// Recognises the form of a path and reads it.
pub(super) fn read(path: &Path, labels: Option<&Path>, options: &OwnOptions) -> Result<Found> {
    let about = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    let (form, mut train, test) = if about.is_dir() {
        read_folder(path, labels.is_some(), options)?
    } else {
        read_file(path, labels, options)?
    };
    if let Some(file) = labels.filter(|_| form != Form::Array) {
        // Corrected labels, for instance: instead of their own.
        let has_columns = form != Form::ImageFolder;
        // What the data lacks, the file must have.
        let lacks_source = train.side.source.is_none();
        let is_missing = |name: &str| lacks_source && options.source_column.as_deref() == Some(name);
        let read = label_file::open(file, options.asked(file, |name| Ok(has_columns && !is_missing(name)))?)?;
        if options.skip_unreadable && read.given.len() < train.items.len() {
            train.leave_out_unreadable(read.given.len());
        }
        let joined = read.join(&train.items)?;
        train.given = joined.given;
        train.truth = joined.truth.or(train.truth);
        train.side = joined.side.or(train.side);
        train.notes.extend(joined.notes);
    }
    Ok((form, train, test))
}

fn read_file(path: &Path, labels: Option<&Path>, options: &OwnOptions) -> Result<Found> {
    let extension = extension(path);
    if ["metadata.csv", "metadata.jsonl"].iter().any(|name| path.file_name().is_some_and(|n| n == *name)) {
        return Ok((Form::Metadata, read_metadata(path, options)?, None));
    }
    if extension == "parquet" {
        return Ok((Form::Parquet, parquet::open(&[path.to_owned()], labels.is_some(), options)?, None));
    }
    if options.text_column.is_some() && !["csv", "tsv"].contains(&extension.as_str()) {
        return Err(Error::format(
            path,
            None,
            "texts are read from .csv and .tsv files: leave out --text-column",
        ));
    }
    if arrays::EXTENSIONS.contains(&extension.as_str()) {
        let (train, test) = arrays::open(path, labels, options)?;
        return Ok((Form::Array, train, test));
    }
    Err(Error::format(
        path,
        None,
        "no form that is known: tried, by its extension, .parquet, .npy, .npz, .safetensors, .csv, .tsv, and the names metadata.csv and metadata.jsonl",
    ))
}

fn read_metadata(table: &Path, options: &OwnOptions) -> Result<LabelledItems> {
    let names = metadata::Names {
        label: options.label_column.as_deref().unwrap_or("label"),
        truth: options.truth_column.as_deref(),
        source: options.source_column.as_deref(),
        annotators: &options.label_columns,
    };
    let rows = metadata::open(table, names)?;
    let files = metadata::resolve(table, &rows)?;
    let items = Items::Images(Arc::new(files::Files::new(files)));
    Ok(LabelledItems { side: rows.side, ..LabelledItems::new(items, rows.given, rows.truth) })
}

fn read_classes(root: &Path) -> Result<LabelledItems> {
    let classes = folder::open(root)?;
    let notes = classes.notes(root);
    let items = Items::Images(Arc::new(classes.files));
    Ok(LabelledItems { names: Some(classes.names), notes, ..LabelledItems::new(items, classes.given, None) })
}

fn read_folder(path: &Path, beside: bool, options: &OwnOptions) -> Result<Found> {
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
        let train = parquet::open(&train, beside, options)?;
        for shards in tests {
            let test = parquet::open(&shards, false, options)?;
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
