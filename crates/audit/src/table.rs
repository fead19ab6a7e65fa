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

/// Further columns: their names, and what they hold for a finding.
pub type MoreColumns<'a> = (&'a [&'a str], &'a dyn Fn(&Finding) -> Vec<String>);

impl Audit {
    /// Writes the list, whole or not at all; `path_of` tells where a sample is from, if it has a place.
    pub fn save_csv(
        &self,
        to: impl AsRef<Path>,
        path_of: impl Fn(usize) -> Option<String>,
        cells: Cells,
    ) -> Result<()> {
        self.save_csv_with(to, path_of, cells, (&[], &|_| Vec::new()))
    }

    /// The same with further columns behind these.
    pub fn save_csv_with(
        &self,
        to: impl AsRef<Path>,
        path_of: impl Fn(usize) -> Option<String>,
        cells: Cells,
        more: MoreColumns,
    ) -> Result<()> {
        let to = to.as_ref();
        write_atomic(to, |file| self.write_csv_with(file, path_of, cells, more))
            .map_err(|source| Error::File { path: to.to_owned(), source })
    }

    /// Writes the list.
    pub fn write_csv(
        &self,
        to: impl Write,
        path_of: impl Fn(usize) -> Option<String>,
        cells: Cells,
    ) -> io::Result<()> {
        self.write_csv_with(to, path_of, cells, (&[], &|_| Vec::new()))
    }

    fn write_csv_with(
        &self,
        to: impl Write,
        path_of: impl Fn(usize) -> Option<String>,
        cells: Cells,
        (names, more): MoreColumns,
    ) -> io::Result<()> {
        let mut table = csv::Writer::from_writer(to);
        table.write_record(AUDIT_COLUMNS.iter().chain(names)).map_err(system)?;
        for finding in &self.findings {
            let Finding { index, verdict, tree_distance, flag, .. } = finding;
            let name = |class: u32| cells.text(&self.class_names[class as usize]);
            let path = path_of(*index).unwrap_or_default();
            let cells_of_all = [
                index.to_string().as_str(),
                &cells.text(&path),
                &name(verdict.given),
                &name(verdict.suggested),
                &verdict.score.to_string(),
                &verdict.clean_probability.to_string(),
                &verdict.suggested_probability.to_string(),
                &tree_distance.map(|d| d.to_string()).unwrap_or_default(),
                if *flag { "true" } else { "false" },
            ]
            .map(str::to_owned);
            let further = more(finding).into_iter().map(|cell| cells.text(&cell).into_owned());
            table.write_record(cells_of_all.into_iter().chain(further)).map_err(system)?;
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
