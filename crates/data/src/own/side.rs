//! Columns beside labels and features: where an item comes from, labels by several annotators, and what a review said. Their cells may be blank.

use super::labels::{Column, Vocabulary};
use super::reviewed::ReviewColumns;
use super::{OwnOptions, extension, parquet, table};
use crate::{Annotators, Result, Sources};
use std::path::Path;

/// Columns as they stand in a file; blank cells are empty words.
#[derive(Debug, Default)]
pub struct SideColumns {
    /// Sources, where there is a column of them.
    pub source: Option<Column>,
    /// Labels by each annotator, where there are several.
    pub annotators: Vec<Column>,
    /// What a review said of labels, where the file of labels is an exported one.
    pub review: Option<ReviewColumns>,
}

impl SideColumns {
    /// Empty columns, for a source and for so many annotators.
    pub(super) fn new(has_source: bool, annotators: usize) -> Self {
        let column = || Column::new(false);
        Self {
            source: has_source.then(column),
            annotators: std::iter::repeat_with(column).take(annotators).collect(),
            review: None,
        }
    }

    /// The columns of these items, in this order.
    pub(super) fn pick(&self, order: &[usize]) -> Self {
        let pick = |column: &Column| column.pick(order);
        Self {
            source: self.source.as_ref().map(pick),
            annotators: self.annotators.iter().map(pick).collect(),
            review: self.review.as_ref().map(|review| review.pick(order)),
        }
    }

    /// These columns, and those of `other` that are missing here.
    pub(super) fn or(self, other: Self) -> Self {
        let annotators = if self.annotators.is_empty() { other.annotators } else { self.annotators };
        Self { source: self.source.or(other.source), annotators, review: self.review.or(other.review) }
    }

    /// Adds the cells of the next item. Gives its first label by an annotator, or what is wrong if there is none.
    pub(super) fn push<'a>(
        &mut self,
        source: Option<&str>,
        labels: impl Iterator<Item = &'a str>,
        names: &[String],
    ) -> Result<Option<&'a str>, String> {
        if let Some(column) = &mut self.source {
            column.push(source.unwrap_or_default());
        }
        let mut first = None;
        for (column, label) in self.annotators.iter_mut().zip(labels) {
            column.push(label);
            first = first.or(Some(label).filter(|label| !label.is_empty()));
        }
        if first.is_none() && !self.annotators.is_empty() {
            return Err(no_label(names));
        }
        Ok(first)
    }

    /// Sources as a dataset has them.
    pub(super) fn sources(&self) -> Result<Option<Sources>> {
        self.source
            .as_ref()
            .map(|column| {
                Sources::new(column.distinct().map(str::to_owned).collect(), column.places().to_vec())
            })
            .transpose()
    }

    /// Annotators as a dataset has them; those who said nothing of an item have no label there.
    pub(super) fn annotators(
        &self,
        names: &[String],
        vocabulary: &Vocabulary,
    ) -> Result<Option<Annotators>, String> {
        if self.annotators.is_empty() {
            return Ok(None);
        }
        let columns = self.annotators.iter().map(|column| vocabulary.apply_to_some(column));
        let columns = columns.collect::<Result<Vec<_>, String>>()?;
        Annotators::new(names.to_vec(), columns).map(Some).map_err(|error| error.to_string())
    }
}

/// What is said of an item that nobody has labelled.
pub(super) fn no_label(names: &[String]) -> String {
    format!("no label in any of the columns {}: fill in one, or remove the row", names.join(", "))
}

impl OwnOptions {
    /// The same for test data: nobody asks who labelled it, but a column of sources is no feature there either.
    pub(super) fn for_test(&self, path: &Path) -> Result<Self> {
        let mut options = Self { source_column: None, ..self.clone() };
        if let Some(name) = &self.source_column {
            let is_there = match extension(path).as_str() {
                "csv" | "tsv" if path.is_file() => table::has_column(path, name)?,
                "parquet" if path.is_file() => parquet::has_column(path, name)?,
                _ => false,
            };
            options.ignore_columns.extend(is_there.then(|| name.clone()));
        }
        Ok(options)
    }
}
