//! Options as the readers of tables and of label files want them.

use super::columns::Layout;
use super::label_file::Asked;
use super::{OwnOptions, extension, table};
use crate::Result;
use std::path::Path;

impl OwnOptions {
    /// What is asked for of the columns of a table.
    pub(super) fn layout(&self) -> Layout<'_> {
        Layout {
            label: self.label_column.as_deref(),
            truth: self.truth_column.as_deref(),
            id: self.id_column.as_deref(),
            source: self.source_column.as_deref(),
            text: self.text_column.as_deref(),
            annotators: &self.label_columns,
            features: &self.feature_columns,
            ignored: &self.ignore_columns,
            unlabelled: false,
        }
    }

    /// What is asked for of a file of labels: columns that the data itself has need not be in the file.
    pub(super) fn asked(&self, file: &Path, in_data: impl Fn(&str) -> Result<bool>) -> Result<Asked<'_>> {
        let is_table = ["csv", "tsv"].contains(&extension(file).as_str());
        let of_file = |name: &Option<String>| -> Result<bool> {
            let Some(name) = name else { return Ok(false) };
            Ok(!in_data(name)? || (is_table && table::has_column(file, name)?))
        };
        let (of_label, of_truth) = (of_file(&self.label_column)?, of_file(&self.truth_column)?);
        let label = self.label_column.as_deref().filter(|_| of_label);
        let truth = self.truth_column.as_deref().filter(|_| of_truth);
        let of_source = of_file(&self.source_column)?;
        let source = self.source_column.as_deref().filter(|_| of_source);
        Ok(Asked {
            label,
            truth,
            id: self.id_column.as_deref(),
            source,
            annotators: &self.label_columns,
            header: self.header,
        })
    }
}
