//! `.npy` files by place.

use super::CHUNK;
use crate::array::{Element, refuse_number};
use crate::npy::{self, Header};
use crate::own::extension;
use crate::positioned::PositionedFile;
use crate::{Error, FeatureStore, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Rows that lie closer than this are read together.
const NEAR: u64 = 32 << 10;

/// One file.
struct Part {
    path: PathBuf,
    file: PositionedFile,
    element: Element,
    /// Where the numbers begin.
    start: u64,
    /// Number of its first row among all.
    first: u64,
    rows: u64,
}

/// Files with rows of one length, one after another.
pub(super) struct Arrays {
    parts: Vec<Part>,
    dim: usize,
}

/// The `.npy` files of a folder in the order of their names, but for the one of labels.
pub(super) fn list(folder: &Path, labels: Option<&Path>) -> Result<Vec<PathBuf>> {
    let labels = labels.and_then(|path| path.canonicalize().ok());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))? {
        let path = entry.map_err(|e| Error::io(folder, e))?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if extension(&path) == "npy" && !is_hidden && (labels.is_none() || path.canonicalize().ok() != labels)
        {
            files.push(path);
        }
    }
    files.sort_unstable();
    // x-10 before x-2: sorted as text, but was it written so?
    if let Some(pair) = files.windows(2).find(|pair| counted(&pair[0]) > counted(&pair[1])) {
        let name =
            |path: &Path| path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let problem = format!(
            "is `{}` before `{}` or after it? Write the numbers in the names with zeros in front, all equally long",
            name(&pair[0]),
            name(&pair[1])
        );
        return Err(Error::format(folder, None, problem));
    }
    Ok(files)
}

/// A name in pieces, numbers by their values.
fn counted(path: &Path) -> Vec<(String, u128)> {
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let mut pieces = Vec::new();
    let mut rest = name.as_str();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(digits);
        let (number, after) =
            after.split_at(after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len()));
        pieces.push((word.to_owned(), number.parse().unwrap_or(0)));
        rest = after;
    }
    pieces
}

impl Arrays {
    /// Opens files whose rows follow one another.
    pub fn open(paths: &[PathBuf]) -> Result<Self> {
        let (mut parts, mut first, mut width) = (Vec::with_capacity(paths.len()), 0, None);
        for path in paths {
            // Everything about header, shape and length is checked there; nothing is read yet.
            let (rows, dim) = {
                let array = npy::open(path)?.into_features()?;
                (array.len() as u64, array.dim())
            };
            let file = PositionedFile::open(path)?;
            let mut head = vec![0; file.length().min(npy::LONGEST_HEAD as u64) as usize];
            file.read_at(0, &mut head).map_err(|e| Error::io(path, e))?;
            let header = Header::parse(&head).map_err(|problem| Error::format(path, None, problem))?;
            if header.fortran {
                let problem = "Fortran order, in which rows are scattered over the file: save it again as np.ascontiguousarray(array)";
                return Err(Error::format(path, None, problem));
            }
            let width = *width.get_or_insert(dim);
            if width != dim {
                let problem =
                    format!("rows of {dim} numbers, but those of {} have {width}", paths[0].display());
                return Err(Error::format(path, None, problem));
            }
            let start = header.start as u64;
            parts.push(Part { path: path.clone(), file, element: header.element, start, first, rows });
            first += rows;
        }
        Ok(Self { parts, dim: width.unwrap_or(0) })
    }

    pub fn rows(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.first + part.rows)
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Rows that follow one another.
    pub fn read(&self, rows: Range<u64>, mut out: &mut [f32]) -> Result<()> {
        let mut bytes = Vec::new();
        for part in &self.parts {
            let (from, to) = (rows.start.max(part.first), rows.end.min(part.first + part.rows));
            let at_once = (CHUNK / (self.dim * part.element.size).max(1)).max(1) as u64;
            let mut next = from;
            while next < to {
                let end = (next + at_once).min(to);
                part.fetch(next..end, self.dim, &mut bytes)?;
                let (now, later) = std::mem::take(&mut out).split_at_mut((end - next) as usize * self.dim);
                let pieces =
                    bytes.chunks_exact(self.dim * part.element.size).zip(now.chunks_exact_mut(self.dim));
                for (row, (bytes, out)) in (next..).zip(pieces) {
                    part.read_row(row, bytes, out)?;
                }
                (next, out) = (end, later);
            }
        }
        Ok(())
    }

    /// Rows of rising numbers.
    pub fn read_some(&self, rows: &[u64], out: &mut [f32]) -> Result<()> {
        let (mut bytes, mut at) = (Vec::new(), 0);
        let mut places = out.chunks_exact_mut(self.dim);
        for part in &self.parts {
            let row_bytes = self.dim * part.element.size;
            let end = part.first + part.rows;
            while let Some(&first) = rows.get(at).filter(|&&row| row < end) {
                let (near, most) = ((NEAR / row_bytes as u64).max(1), (CHUNK / row_bytes).max(1) as u64);
                let more = rows[at..]
                    .windows(2)
                    .take_while(|pair| pair[1] < end && pair[1] - pair[0] <= near && pair[1] - first < most);
                let together = &rows[at..=at + more.count()];
                let last = together.last().copied().unwrap_or(first);
                part.fetch(first..last + 1, self.dim, &mut bytes)?;
                for (&row, out) in together.iter().zip(&mut places) {
                    let from = (row - first) as usize * row_bytes;
                    part.read_row(row, &bytes[from..from + row_bytes], out)?;
                }
                at += together.len();
            }
        }
        Ok(())
    }
}

impl Part {
    fn fetch(&self, rows: Range<u64>, dim: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let row = dim * self.element.size;
        bytes.resize((rows.end - rows.start) as usize * row, 0);
        let start = self.start + (rows.start - self.first) * row as u64;
        self.file.read_at(start, bytes).map_err(|e| Error::io(&self.path, e))
    }

    fn read_row(&self, row: u64, bytes: &[u8], out: &mut [f32]) -> Result<()> {
        self.element.read_finite(bytes, out).map_err(|(column, value)| {
            let place = format!("row {}, column {column}", row - self.first);
            Error::format(&self.path, place, refuse_number(value))
        })
    }
}
