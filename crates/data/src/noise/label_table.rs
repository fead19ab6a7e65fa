//! Tables of labels in NumPy's `.npy` format: whole numbers, one or two dimensions.
//!
//! The header is read and checked against the size of the file before anything is allocated.

use crate::{Error, Result};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// A header of a table this simple has about 120 bytes.
const HEADER_LIMIT: usize = 1 << 16;

/// A table whose header has been read.
pub(super) struct LabelTable {
    path: PathBuf,
    reader: BufReader<File>,
    rows: usize,
    columns: usize,
    column_first: bool,
    number: Number,
}

/// How a number is stored.
#[derive(Clone, Copy)]
struct Number {
    bytes: usize,
    signed: bool,
    big_endian: bool,
}

impl LabelTable {
    /// Reads the header.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let io = |e| Error::io(path, e);
        let broken = |problem: String| Error::format(path, "header".to_string(), problem);
        let file = File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let mut reader = BufReader::new(file);
        let mut start = [0; 8];
        let magic = reader.read_exact(&mut start).is_ok() && start.starts_with(MAGIC);
        let mut length = [0; 4];
        let width = if start[6] == 1 { 2 } else { 4 };
        if !magic || reader.read_exact(&mut length[..width]).is_err() {
            return Err(broken("not a .npy file, or cut short: fetch it again".into()));
        }
        let length = u32::from_le_bytes(length) as usize;
        if !(1..=3).contains(&start[6]) || length > HEADER_LIMIT {
            return Err(broken(format!("version {} with {length} bytes: not a .npy of labels", start[6])));
        }
        let mut text = vec![0; length];
        reader.read_exact(&mut text).map_err(|_| broken("cut short: fetch the file again".into()))?;
        let text = String::from_utf8_lossy(&text);
        let number = value(&text, "descr").and_then(Number::read);
        let number =
            number.ok_or_else(|| broken(format!("labels must be whole numbers: {}", text.trim())))?;
        let shape = value(&text, "shape").and_then(read_shape);
        let (rows, columns) =
            shape.ok_or_else(|| broken(format!("labels need one or two dimensions: {}", text.trim())))?;
        let data = rows.checked_mul(columns).and_then(|n| n.checked_mul(number.bytes));
        let expected = data.map(|data| (8 + width + length + data) as u64);
        if expected != Some(size) {
            let problem = format!(
                "promises {rows} x {columns} numbers of {} bytes, which does not fit the file's {size} bytes: \
                 fetch it again",
                number.bytes
            );
            return Err(broken(problem));
        }
        let column_first = value(&text, "fortran_order").is_some_and(|v| v.starts_with("True"));
        Ok(Self { path: path.to_owned(), reader, rows, columns, column_first, number })
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns; 1 for a table of one dimension.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// The chosen columns, each a list of labels.
    pub(super) fn read<const N: usize>(mut self, columns: [usize; N]) -> Result<[Vec<u32>; N]> {
        let mut out = [(); N].map(|()| vec![0u32; self.rows]);
        let mut bytes = [0; 8];
        for at in 0..self.rows * self.columns {
            let (row, column) = match self.column_first {
                true => (at % self.rows, at / self.rows),
                false => (at / self.columns, at % self.columns),
            };
            let stored = &mut bytes[..self.number.bytes];
            self.reader.read_exact(stored).map_err(|e| Error::io(&self.path, e))?;
            let label = self.number.label(stored);
            for (_, out) in columns.iter().zip(&mut out).filter(|(wanted, _)| **wanted == column) {
                out[row] = label.ok_or_else(|| {
                    let place = format!("row {row}, column {column}");
                    Error::format(&self.path, place, "no label: below 0 or above 4294967295")
                })?;
            }
        }
        Ok(out)
    }
}

impl Number {
    fn read(text: &str) -> Option<Self> {
        let text = text.strip_prefix(['\'', '"'])?;
        let text = &text[..text.find(['\'', '"'])?];
        let mut letters = text.chars();
        let (order, kind) = (letters.next()?, letters.next()?);
        let bytes = letters.as_str().parse().ok().filter(|bytes| [1, 2, 4, 8].contains(bytes))?;
        let known = ['<', '>', '|'].contains(&order) && ['u', 'i'].contains(&kind);
        known.then_some(Self { bytes, signed: kind == 'i', big_endian: order == '>' })
    }

    fn label(self, stored: &[u8]) -> Option<u32> {
        let push = |number: u64, &byte: &u8| number << 8 | u64::from(byte);
        let number = match self.big_endian {
            true => stored.iter().fold(0, push),
            false => stored.iter().rev().fold(0, push),
        };
        let negative = self.signed && number >> (8 * self.bytes - 1) == 1;
        u32::try_from(number).ok().filter(|_| !negative)
    }
}

/// The text after a key of the header's dictionary.
fn value<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let after = ['\'', '"'].iter().find_map(|quote| {
        let key = format!("{quote}{key}{quote}");
        header.find(&key).map(|at| &header[at + key.len()..])
    })?;
    Some(after.trim_start().strip_prefix(':')?.trim_start())
}

/// Rows and columns.
fn read_shape(text: &str) -> Option<(usize, usize)> {
    let inside = text.strip_prefix('(')?;
    let inside = &inside[..inside.find(')')?];
    let mut sizes = inside.split(',').map(str::trim).filter(|size| !size.is_empty());
    let rows = sizes.next()?.parse().ok()?;
    let columns = sizes.next().map_or(Some(1), |size| size.parse().ok())?;
    sizes.next().is_none().then_some((rows, columns))
}
