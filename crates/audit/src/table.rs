//! `audit.csv`.
//!
//! Columns: `index, path, given, suggested, score, clean_probability, suggested_probability, tree_distance, flag`. Classes are
//! written by name; `path` is the id of rows that have one, and empty for samples with neither, `tree_distance` without a tree; `flag` is `true` or `false`. Numbers have
//! as many digits as it takes to read them back unchanged. Quoting is that of RFC 4180; lines end in a line feed.
//!
//! # Formulas
//! Class names and paths come from data that may be somebody else's, and spreadsheets run what looks like a formula. So by
//! default such a cell gets an apostrophe in front ([`Cells::Guarded`], [`negscale_records::cells`]), which is taken off again where the
//! program reads labels; ordinary names and paths are not touched. Programs that must have every name unchanged ask for
//! [`Cells::Exact`].

use crate::{Audit, Finding};
use crate::{Error, Result};
use negscale_atomic_file::write_atomic;
use negscale_records::cells::guard;
use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

pub(crate) const AUDIT_COLUMNS: [&str; 9] = [
    "index",
    "path",
    "given",
    "suggested",
    "score",
    "clean_probability",
    "suggested_probability",
    "tree_distance",
    "flag",
];

/// How text from the data is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cells {
    /// With an apostrophe in front of what a spreadsheet would take for a formula.
    #[default]
    Guarded,
    /// As it is.
    Exact,
}

impl Cells {
    pub(crate) fn text(self, text: &str) -> Cow<'_, str> {
        match self {
            Cells::Guarded => guard(text),
            Cells::Exact => text.into(),
        }
    }
}

impl Audit {
    /// Writes the list, whole or not at all; `path_of` tells where a sample is from, if it has a place.
    pub fn save_csv(
        &self,
        to: impl AsRef<Path>,
        path_of: impl Fn(usize) -> Option<String>,
        cells: Cells,
    ) -> Result<()> {
        let to = to.as_ref();
        write_atomic(to, |file| self.write_csv(file, path_of, cells))
            .map_err(|source| Error::File { path: to.to_owned(), source })
    }

    /// Writes the list.
    pub fn write_csv(
        &self,
        to: impl Write,
        path_of: impl Fn(usize) -> Option<String>,
        cells: Cells,
    ) -> io::Result<()> {
        let mut table = csv::Writer::from_writer(to);
        table.write_record(AUDIT_COLUMNS).map_err(system)?;
        for Finding { index, verdict, tree_distance, flag, .. } in &self.findings {
            let name = |class: u32| cells.text(&self.class_names[class as usize]);
            let path = path_of(*index).unwrap_or_default();
            table
                .write_record([
                    index.to_string().as_str(),
                    &cells.text(&path),
                    &name(verdict.given),
                    &name(verdict.suggested),
                    &verdict.score.to_string(),
                    &verdict.clean_probability.to_string(),
                    &verdict.suggested_probability.to_string(),
                    &tree_distance.map(|d| d.to_string()).unwrap_or_default(),
                    if *flag { "true" } else { "false" },
                ])
                .map_err(system)?;
        }
        table.flush()
    }
}

/// The system's own error where there is one, so that a full disk is known as such.
pub(crate) fn system(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
