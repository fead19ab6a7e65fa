//! Parquet with pictures, as Hugging Face stores image sets: a column `image` of {bytes, path}, of bytes, or of paths; a label;
//! class names in the schema's metadata; several shards (`train-00000-of-00002.parquet`, `test-...`). Or with features, in lists or
//! in columns of numbers (`vectors.rs`).
//!
//! # Hostile files
//! The files are mapped, so lengths are checked against what is there. More rows than bytes are refused: every picture has at
//! least one. The crate that unpacks may panic on malformed pages; that is caught and becomes an error. A page is bounded by the
//! format to 2 GiB, and by the size that it declares (`pages.rs`).

mod pages;
mod pictures;
mod shard;

pub(super) use shard::{Shard, guard};

use super::columns::Layout;
use super::header::TRUTH;
use super::identified::identified;
use super::labels::Column;
use super::metadata::Fence;
use super::side::{SideColumns, no_label};
use super::{LabelledItems, OwnOptions, vectors};
use crate::block::Block;
use crate::positioned::Chunks;
use crate::{Error, Items, Result};
use bytes::Bytes;
use pictures::pictures;
use std::path::{Path, PathBuf};

/// Opens shards as one part. Labels may be missing if they are `beside`.
pub(super) fn open(paths: &[PathBuf], beside: bool, options: &OwnOptions) -> Result<LabelledItems> {
    part(map(paths)?, beside, options)
}

/// Opens the items of shards, labelled or not.
pub(super) fn open_items(paths: &[PathBuf], options: &OwnOptions) -> Result<(Items, Vec<String>)> {
    let shards = map(paths)?;
    let labels = shards.iter().map(|shard| shard.label(true, options)).collect::<Result<Vec<_>>>()?;
    items(shards, &labels, options)
}

/// Maps shards.
pub(super) fn map(paths: &[PathBuf]) -> Result<Vec<Shard>> {
    let mut shards = Vec::new();
    for path in paths {
        let mut shard = Shard::new(path, Chunks::Bytes(Bytes::from_owner(Block::map(path)?)))?;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        shard.fence = Some(Fence::new(folder)?);
        shards.push(shard);
    }
    Ok(shards)
}

/// The words of a column of ids, whole numbers or text.
pub(super) fn words(shard: &Shard, name: &str) -> Result<Vec<String>> {
    let mut column = Column::new(false);
    shard.labels(name, &mut column)?;
    Ok(column.words().map(str::to_owned).collect())
}

/// Reads every label and every picture of a file from its bytes: for tests and fuzzing.
pub fn check_bytes(path: &Path, bytes: Vec<u8>, options: &OwnOptions) -> Result<usize> {
    let part = part(vec![Shard::new(path, Chunks::Bytes(bytes.into()))?], false, options)?;
    if let Items::Images(store) = &part.items {
        for index in 0..store.len() {
            store.bytes(index)?;
        }
    }
    Ok(part.items.len())
}

fn part(shards: Vec<Shard>, beside: bool, options: &OwnOptions) -> Result<LabelledItems> {
    let Labels { given, truth, side, names, columns } = Labels::read(&shards, beside, true, options)?;
    let (items, notes) = items(shards, &columns, options)?;
    Ok(LabelledItems { names, notes, side, ..LabelledItems::new(items, given, truth) })
}

/// Labels of all shards.
pub(super) struct Labels {
    pub given: Column,
    pub truth: Option<Column>,
    /// Sources and labels by several annotators, where they were asked for.
    pub side: SideColumns,
    /// Names of the classes, where the first shard has them.
    pub names: Option<Vec<String>>,
    /// The column of each shard.
    pub columns: Vec<Option<String>>,
}

impl Labels {
    /// Reads them; they may be missing if they are `beside`. Without `needed`, columns are found but labels as given are not read.
    pub fn read(shards: &[Shard], beside: bool, needed: bool, options: &OwnOptions) -> Result<Self> {
        let (mut given, mut truth, mut names) = (Column::new(true), None, None);
        let mut columns = Vec::with_capacity(shards.len());
        let mut side = SideColumns::default();
        for (at, shard) in shards.iter().enumerate() {
            read_side(shard, beside, options, &mut side)?;
            let label = shard.label(beside, options)?;
            if let Some(label) = &label {
                if at == 0 {
                    names = shard.class_names(label)?;
                }
                // Of several annotators, the columns beside have the labels.
                if needed && options.label_columns.is_empty() {
                    shard.labels(label, &mut given)?;
                }
            }
            columns.push(label);
            let truth_column = match &options.truth_column {
                // Perhaps the labels file has it.
                Some(name) if beside && shard.column(name).is_none() => None,
                Some(name) => Some(shard.choose(Some(name), &[], "", "truth_column")?),
                None => shard.column(TRUTH).map(|column| column.name().to_owned()),
            };
            if let Some(name) = truth_column {
                shard.labels(&name, truth.get_or_insert_with(|| Column::new(true)))?;
            }
        }
        if needed {
            if side.annotators.iter().any(Column::is_text) {
                given.mark_text();
            }
            for row in 0..side.annotators.first().map_or(0, Column::len) {
                let word =
                    side.annotators.iter().map(|column| column.word(row)).find(|word| !word.is_empty());
                given.push(word.ok_or_else(|| {
                    let path = shards.first().map_or(Path::new(""), Shard::path);
                    Error::format(path, format!("row {row}"), no_label(&options.label_columns))
                })?);
            }
        }
        Ok(Self { given, truth, side, names, columns })
    }
}

/// Adds the sources of a shard's rows and their labels by several annotators, where they are asked for.
fn read_side(shard: &Shard, beside: bool, options: &OwnOptions, side: &mut SideColumns) -> Result<()> {
    if let Some(name) = &options.source_column {
        // Perhaps the labels file has it.
        if !beside || shard.column(name).is_some() {
            let name = shard.choose(Some(name), &[], "", "source_column")?;
            shard.labels_or_blanks(&name, side.source.get_or_insert_with(|| Column::new(false)))?;
        }
    }
    if !beside {
        side.annotators.resize_with(options.label_columns.len(), || Column::new(true));
        for (name, column) in options.label_columns.iter().zip(&mut side.annotators) {
            let name = shard.choose(Some(name), &[], "", "label_columns")?;
            shard.labels_or_blanks(&name, column)?;
        }
    }
    Ok(())
}

/// Whether a file has this column.
pub(super) fn has_column(path: &Path, name: &str) -> Result<bool> {
    Ok(Shard::open(path)?.column(name).is_some())
}

/// Which columns of a shard are features, where its labels are in column `label`.
pub(super) fn choose_features(
    shard: &Shard,
    label: Option<&str>,
    options: &OwnOptions,
) -> Result<Option<vectors::Chosen>> {
    let truth = options.truth_column.as_deref().filter(|name| shard.column(name).is_some());
    let there = |name: &&str| shard.column(name).is_some();
    let layout = Layout { label, truth, unlabelled: true, ..options.layout() };
    // They may be in the file of labels.
    let annotators = if options.labels.is_some() { &[] } else { layout.annotators };
    // The first of them is the label here.
    let annotators = annotators.get(1..).unwrap_or_default();
    let layout = Layout { source: layout.source.filter(there), annotators, ..layout };
    vectors::choose(shard, layout, options.array.as_deref())
}

/// Pictures, or features where there are none or columns of them are asked for.
fn items(
    shards: Vec<Shard>,
    labels: &[Option<String>],
    options: &OwnOptions,
) -> Result<(Items, Vec<String>)> {
    let asked = options.array.is_some() || !options.feature_columns.is_empty();
    let pictures_in = |shard: &Shard| {
        shard.choose(options.image_column.as_deref(), &["image", "img"], "Image", "image_column")
    };
    let without = match shards.first() {
        Some(_) if asked && options.image_column.is_none() => None,
        Some(first) => match pictures_in(first) {
            Err(error) if options.image_column.is_none() => Some(error),
            _ => return Ok((pictures(shards, options)?, Vec::new())),
        },
        None => None,
    };
    let mut chosen = Vec::with_capacity(shards.len());
    for (shard, label) in shards.iter().zip(labels) {
        chosen.extend(choose_features(shard, label.as_deref(), options)?);
    }
    if chosen.len() < shards.len() {
        // Neither pictures nor numbers.
        let path = shards.first().map_or(Path::new(""), Shard::path);
        return Err(without.unwrap_or_else(|| Error::format(path, None, "no column of numbers in it")));
    }
    let array = vectors::read(&shards, &chosen, options.scratch.as_deref())?.into_features()?;
    let mut ids = Column::new(false);
    for (shard, chosen) in shards.iter().zip(&chosen) {
        if let Some(id) = &chosen.id {
            shard.labels(id, &mut ids)?;
        }
    }
    let names = match (shards.first(), chosen.first()) {
        (Some(shard), Some(chosen)) if !chosen.is_list => {
            chosen.leaves.iter().map(|&at| shard.schema().column(at).path().string()).collect()
        }
        _ => Vec::new(),
    };
    let ids = (!ids.is_empty()).then(|| ids.words().map(str::to_owned).collect());
    let notes = chosen.into_iter().next().map_or(Vec::new(), |chosen| chosen.notes);
    Ok((identified(array, ids, names), notes))
}
