//! Arrays of NumPy (`.npy`), mapped, as far as the known sets need them: little-endian, row by row, one or two axes.
//!
//! Nothing in the header is believed: its length is bounded, and the shape must account for every byte that follows.

use super::records::{Bytes, map};
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// Longest header that is read; NumPy itself refuses more than 10,000 bytes.
const MAX_HEADER: usize = 10_000;

/// A mapped array of rows.
pub(crate) struct Npy {
    path: PathBuf,
    bytes: Bytes,
    start: usize,
    /// Rows.
    pub rows: usize,
    /// Values per row; 1 where there is one axis only.
    pub columns: usize,
    /// Bytes per value.
    size: usize,
}

impl Npy {
    /// Opens an array whose values have the type `descr`, such as `|u1`, of `size` bytes.
    pub fn open(path: &Path, descr: &str, size: usize) -> Result<Self> {
        Self::new(path, map(path)?, descr, size)
    }

    fn new(path: &Path, bytes: Bytes, descr: &str, size: usize) -> Result<Self> {
        let wrong = |problem: String| Error::format(path, "header".to_owned(), problem);
        let (start, header) = header(&bytes).map_err(&wrong)?;
        let found = entry(header, "descr").map_err(&wrong)?;
        let found = found.trim_matches(['\'', '"']);
        if found != descr {
            return Err(wrong(format!(
                "values of type `{found}`, but `{descr}` is needed; save it with that type"
            )));
        }
        if entry(header, "fortran_order").map_err(&wrong)? != "False" {
            return Err(wrong("columns first; save it row by row (numpy.ascontiguousarray)".into()));
        }
        let shape = shape(entry(header, "shape").map_err(&wrong)?).map_err(&wrong)?;
        let (rows, columns) = match shape[..] {
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            _ => return Err(wrong(format!("{} axes, but one or two are needed", shape.len()))),
        };
        let needed = rows.checked_mul(columns).and_then(|n| n.checked_mul(size));
        let body = bytes.len() - start;
        if needed != Some(body) || body == 0 {
            let problem = format!(
                "the shape {shape:?} of {size}-byte values does not fit the {body} bytes that follow"
            );
            return Err(wrong(problem + "; copy or download the file again"));
        }
        Ok(Self { path: path.to_owned(), bytes, start, rows, columns, size })
    }

    /// Where the array is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of a row, if there is one.
    pub fn row(&self, index: usize) -> Result<&[u8]> {
        let length = self.columns * self.size;
        if index >= self.rows {
            return Err(Error::format(&self.path, None, format!("no row {index}: there are {}", self.rows)));
        }
        Ok(&self.bytes[self.start + index * length..][..length])
    }

    /// A column of one-byte values, all below `classes`.
    pub fn labels(&self, column: usize, classes: usize) -> Result<Vec<u32>> {
        (0..self.rows)
            .map(|row| {
                let Some(&label) = self.row(row)?.get(column) else {
                    let problem = format!("no column {column}: there are {}", self.columns);
                    return Err(Error::format(&self.path, None, problem));
                };
                if usize::from(label) < classes {
                    return Ok(label.into());
                }
                let problem =
                    format!("label {label} in column {column}, but the classes are 0 to {}", classes - 1);
                Err(Error::format(&self.path, format!("row {row}"), problem))
            })
            .collect()
    }
}

/// Start of the values, and the text that describes them.
fn header(bytes: &[u8]) -> Result<(usize, &str), String> {
    let short = || "the file ends in its header; copy or download it again".to_owned();
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err("not a .npy file".into());
    }
    let (start, length) = match bytes.get(6..12).ok_or_else(short)? {
        [1, _, a, b, ..] => (10, u32::from(u16::from_le_bytes([*a, *b]))),
        [2 | 3, _, a, b, c, d] => (12, u32::from_le_bytes([*a, *b, *c, *d])),
        [version, ..] => {
            return Err(format!("version {version} of .npy is not known; save it with version 1"));
        }
        [] => return Err(short()),
    };
    let length = length as usize;
    if length > MAX_HEADER {
        return Err(format!("a header of {length} bytes: more than {MAX_HEADER} are not believed"));
    }
    let text = bytes.get(start..start + length).ok_or_else(short)?;
    let text = std::str::from_utf8(text).map_err(|_| "the header is no text".to_owned())?;
    Ok((start + length, text))
}

/// The value of a key in the header's Python dictionary.
fn entry<'a>(header: &'a str, key: &str) -> Result<&'a str, String> {
    let missing = || format!("no `{key}` in `{}`", header.trim_end());
    let quoted = [format!("'{key}':"), format!("\"{key}\":")];
    let at =
        quoted.iter().find_map(|q| header.find(q.as_str()).map(|at| at + q.len())).ok_or_else(missing)?;
    let rest = header[at..].trim_start();
    let end = if rest.starts_with('(') { rest.find(')').map(|end| end + 1) } else { rest.find([',', '}']) };
    Ok(rest[..end.ok_or_else(missing)?].trim_end())
}

fn shape(text: &str) -> Result<Vec<usize>, String> {
    let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
    let axes = inner
        .ok_or_else(|| format!("shape `{text}`"))?
        .split(',')
        .map(str::trim)
        .filter(|axis| !axis.is_empty());
    axes.map(|axis| axis.parse().map_err(|_| format!("shape `{text}`"))).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A `.npy` file.
    pub(crate) fn npy(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = (header.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), values].concat()
    }

    fn open(bytes: Vec<u8>) -> Result<Npy> {
        Npy::new(Path::new("a.npy"), Bytes::Owned(bytes), "|u1", 1)
    }

    #[test]
    fn rows_and_columns_are_found() {
        let table = open(npy("|u1", "(2, 3)", &[1, 2, 3, 4, 5, 6])).unwrap();
        assert_eq!((table.rows, table.columns), (2, 3));
        assert_eq!(table.labels(1, 6).unwrap(), [2, 5]);
        assert_eq!(open(npy("|u1", "(2,)", &[1, 2])).unwrap().labels(0, 3).unwrap(), [1, 2]);
        assert!(table.labels(1, 5).unwrap_err().to_string().contains("a.npy, row 1"));
        assert!(table.labels(3, 9).is_err() && table.row(2).is_err());
    }

    #[test]
    fn hostile_headers_are_errors() {
        let whole = npy("|u1", "(2, 3)", &[1, 2, 3, 4, 5, 6]);
        let with = |from: &str, to: &str| {
            let at = whole.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
            [&whole[..at], to.as_bytes(), &whole[at + from.len()..]].concat()
        };
        let mut long = whole.clone();
        long[8..10].copy_from_slice(&[0xff, 0xff]);
        let mut longer = whole.clone();
        longer[6] = 2;
        longer[8..12].copy_from_slice(&[0xff; 4]);
        let mut cases = vec![
            long,
            longer,
            npy("|u1", "(4294967296, 4294967296)", &[0]),
            npy("|u1", "(18446744073709551615, 2)", &[0]),
            npy("|u1", "(99999999999999999999999,)", &[0]),
            npy("|u1", "(-1, 2)", &[0]),
            npy("|u1", "(0, 2)", &[]),
            npy("|u1", "(1, 1, 1)", &[0]),
            npy("|u1", "()", &[0]),
            npy("|u1", "(2, 3", &[0; 6]),
            npy("<f8", "(1,)", &[0; 8]),
            npy("|O", "(1,)", &[0; 8]),
            with("False", "True "),
            with("'shape'", "'shade'"),
            [&whole[..], &[7]].concat(),
        ];
        cases.extend((0..whole.len()).map(|end| whole[..end].to_vec()));
        for bytes in cases {
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            assert!(open(bytes).is_err(), "{shown}");
        }
    }

    proptest::proptest! {
        #[test]
        fn damaged_arrays_never_panic(at in 0usize..90, byte: u8, end in 0usize..100) {
            let mut bytes = npy("|u1", "(2, 3)", &[1, 2, 3, 4, 5, 6]);
            bytes.truncate(end);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            if let Ok(table) = open(bytes) {
                for column in 0..7 {
                    let _ = table.labels(column, 6);
                }
            }
        }
    }
}
