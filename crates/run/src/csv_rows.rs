//! Rows of CSV, with the system's own errors: a closed pipe and a full disk must be recognisable.

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
