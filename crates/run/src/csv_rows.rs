//! Rows of CSV, with errors as the system gave them: a closed pipe and a full disk must be known as such.

use std::io::{Error, Write};

/// Writes a row.
pub fn write_row<T: AsRef<[u8]>>(
    table: &mut csv::Writer<impl Write>,
    row: impl IntoIterator<Item = T>,
) -> Result<(), Error> {
    table.write_record(row).map_err(|error| match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => Error::other(format!("{other:?}")),
    })
}
