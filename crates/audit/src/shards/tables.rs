//! Lists and tables of all shards, written row by row.
//!
//! They have the columns of [`audit.csv`](crate::Audit::save_csv) and [`corrected.csv`](crate::Audit::save_corrected). The clean
//! probability is one less the score, and there are no distances in a tree.

use super::record::Record;
use super::{RowScore, Shards, TopRow};
use crate::correction::{CORRECTED_COLUMNS, is_corrected};
use crate::table::{AUDIT_COLUMNS, Cells, system};
use crate::{Error, Result};
use negscale_atomic_file::write_atomic;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

type Table<'a> = csv::Writer<&'a mut BufWriter<File>>;

/// Names of classes as they are written.
fn written(names: &[String], cells: Cells) -> Vec<String> {
    names.iter().map(|name| cells.text(name).into_owned()).collect()
}

fn write_row(
    table: &mut Table,
    names: &[String],
    path: &str,
    &TopRow { row, given, score }: &TopRow,
) -> io::Result<()> {
    let RowScore { score, suggested, suggested_probability, flag } = score;
    table
        .write_record([
            row.to_string().as_str(),
            path,
            &names[given as usize],
            &names[suggested as usize],
            &score.to_string(),
            &(1.0 - score).to_string(),
            &suggested_probability.to_string(),
            "",
            if flag { "true" } else { "false" },
        ])
        .map_err(system)
}

impl Shards {
    /// Writes a file whole or not at all; errors that are not the system's are told as they are.
    fn save(&self, to: &Path, columns: &[&str], write: impl FnOnce(&mut Table) -> Result<()>) -> Result<()> {
        let mut failed = None;
        let saved = write_atomic(to, |file| {
            let mut table = csv::Writer::from_writer(file);
            table.write_record(columns).map_err(system)?;
            write(&mut table).map_err(|error| {
                failed = Some(error);
                io::Error::other("")
            })?;
            table.flush()
        });
        match (failed, saved) {
            (Some(error), _) => Err(error),
            (None, saved) => saved.map_err(|source| Error::File { path: to.to_owned(), source }),
        }
    }

    fn check_names(&self, names: &[String]) -> Result<()> {
        let classes = self.counts().classes().len();
        if names.len() != classes {
            let problem = format!("{} names for {classes} classes", names.len());
            return Err(Error::Samples { what: "class names", problem });
        }
        Ok(())
    }

    /// Writes the most suspicious rows, at most so many, in the form of `audit.csv`; `path_of` gives the id of a row, if it has one.
    ///
    /// # Errors
    /// As [`top`](Self::top); if names and classes are not equally many, or the file cannot be written.
    pub fn save_top(
        &self,
        to: &Path,
        count: usize,
        names: &[String],
        path_of: impl Fn(u64) -> Option<String>,
        cells: Cells,
    ) -> Result<()> {
        self.check_names(names)?;
        let (top, names) = (self.top(count)?, written(names, cells));
        let failed = |source| Error::File { path: to.to_owned(), source };
        self.save(to, &AUDIT_COLUMNS, |table| {
            top.iter().try_for_each(|row| {
                let path = path_of(row.row).unwrap_or_default();
                write_row(table, &names, &cells.text(&path), row).map_err(failed)
            })
        })
    }

    /// Writes all rows in their order, in the form of `audit.csv`.
    ///
    /// # Errors
    /// As [`save_top`](Self::save_top).
    pub fn save_rows(
        &self,
        to: &Path,
        names: &[String],
        path_of: impl Fn(u64) -> Option<String>,
        cells: Cells,
    ) -> Result<()> {
        self.check_names(names)?;
        let names = written(names, cells);
        let failed = |source| Error::File { path: to.to_owned(), source };
        self.save(to, &AUDIT_COLUMNS, |table| {
            self.visit(|row, &Record { given, score }| {
                let path = path_of(row).unwrap_or_default();
                write_row(table, &names, &cells.text(&path), &TopRow { row, given, score }).map_err(failed)
            })
        })
    }

    /// Writes `corrected.csv`: the suggestion where a label is flagged and the suggestion is sure enough, else the label as given, for all
    /// rows in their order. Gives how many labels are changed.
    ///
    /// # Errors
    /// As [`save_top`](Self::save_top).
    pub fn save_corrected(
        &self,
        to: &Path,
        names: &[String],
        path_of: impl Fn(u64) -> Option<String>,
    ) -> Result<u64> {
        self.check_names(names)?;
        let names = written(names, Cells::Guarded);
        let mut all_changed = 0;
        let failed = |source| Error::File { path: to.to_owned(), source };
        self.save(to, &CORRECTED_COLUMNS, |table| {
            self.visit(|row, &Record { given, score }| {
                let RowScore { suggested, suggested_probability, flag, .. } = score;
                let is_changed = is_corrected(flag, given, suggested, suggested_probability);
                let label = if is_changed { suggested } else { given };
                all_changed += u64::from(is_changed);
                let path = path_of(row).unwrap_or_default();
                let name = |class: u32| names[class as usize].as_str();
                let changed = if is_changed { "true" } else { "false" };
                let cells =
                    [&row.to_string(), &*Cells::Guarded.text(&path), name(label), name(given), changed];
                table.write_record(cells).map_err(system).map_err(failed)
            })
        })?;
        Ok(all_changed)
    }
}
