//! Arrays of numbers over mapped bytes, whatever file they lie in.
//!
//! An array of shape $(n, d_1, \dots, d_k)$ holds n vectors of $d = \prod_j d_j$ numbers. Its bytes are checked once against
//! $n \cdot d \cdot$ (bytes per number), in arithmetic that cannot overflow; afterwards reading cannot go out of bounds. Numbers are
//! turned into f32 when they are read, and one that is not finite is an error then, with its place: a mapped file of many
//! gigabytes is not read through just to be opened.

use crate::block::Block;
use crate::own::labels::Column;
use crate::{Error, FeatureStore, Result};
use half::{bf16, f16};
use std::path::{Path, PathBuf};

/// What the bytes of a number mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// IEEE floating point of 2, 4 or 8 bytes.
    Float,
    /// The upper half of an f32.
    Brain,
    /// Signed integer of 1, 2, 4 or 8 bytes.
    Signed,
    /// Unsigned integer of 1, 2, 4 or 8 bytes.
    Unsigned,
    /// One byte, zero or not.
    Bool,
    /// Bytes of text, filled up with zeros (labels only).
    Text,
    /// UTF-32 text, filled up with zeros (labels only).
    Unicode,
}

/// One number: meaning, bytes, order of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// Meaning.
    pub kind: Kind,
    /// Bytes.
    pub size: usize,
    /// Most significant byte first.
    pub big_endian: bool,
}

impl Element {
    /// The bytes as an unsigned little-endian number.
    fn bits(self, bytes: &[u8]) -> u64 {
        let step = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        if self.big_endian { bytes.iter().fold(0, step) } else { bytes.iter().rev().fold(0, step) }
    }

    fn signed(self, bytes: &[u8]) -> i64 {
        let unused = 64 - 8 * self.size.clamp(1, 8) as u32;
        (self.bits(bytes) << unused) as i64 >> unused
    }

    fn value(self, bytes: &[u8]) -> f64 {
        let bits = self.bits(bytes);
        match (self.kind, self.size) {
            (Kind::Float, 2) => f16::from_bits(bits as u16).to_f64(),
            (Kind::Float, 4) => f64::from(f32::from_bits(bits as u32)),
            (Kind::Float, _) => f64::from_bits(bits),
            (Kind::Brain, _) => bf16::from_bits(bits as u16).to_f64(),
            (Kind::Signed, _) => self.signed(bytes) as f64,
            (Kind::Bool, _) => f64::from(u8::from(bits != 0)),
            _ => bits as f64,
        }
    }

    /// Reads a row of the usual kinds of numbers in one sweep; false if it is of another kind, or has a number that is not
    /// finite.
    fn read_row(self, bytes: &[u8], out: &mut [f32]) -> bool {
        let mut finite = true;
        match (self.kind, self.size, self.big_endian) {
            (Kind::Float, 2, false) => {
                for (bytes, out) in bytes.as_chunks::<2>().0.iter().zip(out) {
                    let half = u32::from(u16::from_le_bytes(*bytes));
                    finite &= half & 0x7c00 != 0x7c00;
                    // The same digits under the exponent of an f32, which counts from 112 further below.
                    let size = f32::from_bits((half & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
                    *out = f32::from_bits(size.to_bits() | (half & 0x8000) << 16);
                }
            }
            (Kind::Float, 4, false) => {
                for (bytes, out) in bytes.as_chunks::<4>().0.iter().zip(out) {
                    *out = f32::from_le_bytes(*bytes);
                    finite &= out.is_finite();
                }
            }
            _ => return false,
        }
        finite
    }

    /// Reads a row of numbers that lie one after another; the first that is not finite, and its column, where there is one.
    pub(crate) fn read_finite(self, bytes: &[u8], out: &mut [f32]) -> Result<(), (usize, f32)> {
        if self.read_row(bytes, out) {
            return Ok(());
        }
        for (column, (bytes, out)) in bytes.chunks_exact(self.size.max(1)).zip(out).enumerate() {
            *out = self.value(bytes) as f32;
            if !out.is_finite() {
                return Err((column, *out));
            }
        }
        Ok(())
    }

    /// A label as text, or `None` where the number is not whole or the text not readable.
    fn word(self, bytes: &[u8]) -> Option<String> {
        match self.kind {
            Kind::Signed => Some(self.signed(bytes).to_string()),
            Kind::Unsigned | Kind::Bool => Some(self.bits(bytes).to_string()),
            Kind::Float | Kind::Brain => {
                let value = self.value(bytes);
                (value.fract() == 0.0 && value.abs() < 2f64.powi(53)).then(|| (value as i64).to_string())
            }
            Kind::Text => {
                let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |at| at + 1);
                // Copied before it is checked: the bytes may be those of a file that changes.
                String::from_utf8(bytes[..end].to_vec()).ok()
            }
            Kind::Unicode => {
                let one = Element { kind: Kind::Unsigned, size: 4, ..self };
                let points: Vec<u32> = bytes.chunks_exact(4).map(|c| one.bits(c) as u32).collect();
                let end = points.iter().rposition(|&p| p != 0).map_or(0, |at| at + 1);
                points[..end].iter().map(|&p| char::from_u32(p)).collect()
            }
        }
    }

    pub(crate) fn is_number(self) -> bool {
        !matches!(self.kind, Kind::Text | Kind::Unicode)
    }
}

/// An array whose bytes are known to fit its shape.
#[derive(Debug, Clone)]
pub struct Array {
    block: Block,
    element: Element,
    shape: Vec<usize>,
    fortran: bool,
    path: PathBuf,
    place: Option<String>,
}

impl Array {
    /// An array over a block, if block and shape fit. `path` and `place` (a member, say) are for messages.
    pub fn new(
        path: &Path,
        place: Option<String>,
        block: Block,
        element: Element,
        shape: Vec<usize>,
        fortran: bool,
    ) -> Result<Self> {
        let needed = bytes_needed(&shape, element.size);
        if needed != Some(block.len()) {
            let needed = needed.map_or("more bytes than any file has".into(), |n| format!("{n} bytes"));
            let problem = format!(
                "shape {shape:?} of {}-byte items needs {needed}, which does not fit the {} there are: the file is cut off or its header is wrong",
                element.size,
                block.len()
            );
            return Err(Error::format(path, place, problem));
        }
        Ok(Self { block, element, shape, fortran, path: path.to_owned(), place })
    }

    /// Its shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The file it is in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn wrong(&self, problem: impl Into<String>) -> Error {
        Error::format(&self.path, self.place.clone(), problem)
    }

    fn wrong_at(&self, place: String, problem: impl Into<String>) -> Error {
        let place = self.place.as_ref().map_or(place.clone(), |member| format!("{member}, {place}"));
        Error::format(&self.path, place, problem)
    }

    /// Rows and columns of a table of whole numbers; one column where there is one dimension only.
    pub fn label_table(&self) -> Result<(usize, usize)> {
        if !matches!(self.element.kind, Kind::Signed | Kind::Unsigned) {
            return Err(self.wrong("labels must be whole numbers: save them as e.g. array.astype('uint8')"));
        }
        match self.shape[..] {
            [rows] => Ok((rows, 1)),
            [rows, columns] => Ok((rows, columns)),
            _ => Err(self.wrong(format!("shape {:?}: labels need one or two dimensions", self.shape))),
        }
    }

    /// A column of class numbers, all below `classes`.
    pub fn label_column(&self, column: usize, classes: usize) -> Result<Vec<u32>> {
        let (rows, columns) = self.label_table()?;
        // Before anything is allocated: a table without columns could claim any number of rows.
        if column >= columns {
            return Err(self.wrong(format!("no column {column}: there are {columns}")));
        }
        let size = self.element.size;
        let label = |row| {
            let at = size * if self.fortran { column * rows + row } else { row * columns + column };
            let bytes = &self.block.as_ref()[at..at + size];
            let label = match self.element.kind {
                Kind::Signed => i128::from(self.element.signed(bytes)),
                _ => i128::from(self.element.bits(bytes)),
            };
            u32::try_from(label).ok().filter(|&label| (label as usize) < classes).ok_or_else(|| {
                let problem = format!(
                    "label {label} in column {column} is not a class: there are {classes}, numbered from 0"
                );
                self.wrong_at(format!("row {row}"), problem)
            })
        };
        (0..rows).map(label).collect()
    }

    /// The array as vectors, if it has rows of numbers.
    pub fn into_features(self) -> Result<Self> {
        if !self.element.is_number() {
            return Err(self.wrong("holds text, but features must be numbers"));
        }
        if self.shape.len() < 2 {
            let shape = &self.shape;
            return Err(self.wrong(format!(
                "shape {shape:?}: features need rows and columns; for one number per item save it as array.reshape(-1, 1)"
            )));
        }
        if self.shape.contains(&0) {
            return Err(self.wrong(format!("shape {:?} holds nothing", self.shape)));
        }
        if self.fortran && self.shape.len() > 2 {
            return Err(self.wrong(
                "Fortran order with more than two dimensions: save it again as np.ascontiguousarray(array)",
            ));
        }
        Ok(self)
    }

    /// The array as a column of labels: one dimension, or a second one of length 1.
    pub fn into_labels(self) -> Result<Column> {
        let rows = match self.shape[..] {
            [n] | [n, 1] => n,
            _ => {
                let shape = &self.shape;
                return Err(self.wrong(format!("shape {shape:?}: labels need one dimension, one per item")));
            }
        };
        // Text of no bytes could claim any number of rows.
        if self.element.size == 0 && rows > 0 {
            return Err(self.wrong("every label is empty"));
        }
        let mut column = Column::new(self.element.is_number());
        for (row, bytes) in self.block.as_ref().chunks_exact(self.element.size.max(1)).enumerate() {
            match self.element.word(bytes) {
                Some(word) if !word.is_empty() => column.push(&word),
                _ => {
                    return Err(self.wrong(format!(
                        "the label of row {row} is not a class: labels are whole numbers or text, not fractions, NaN or empty"
                    )));
                }
            }
        }
        Ok(column)
    }
}

/// Bytes of an array of this shape, or `None` where no machine could hold them.
pub(crate) fn bytes_needed(shape: &[usize], size: usize) -> Option<usize> {
    shape.iter().try_fold(size, |product, &length| product.checked_mul(length))
}

impl FeatureStore for Array {
    fn len(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    fn dim(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        let (rows, dim, size) = (self.len(), self.dim(), self.element.size);
        if index >= rows || out.len() != dim {
            let asked = out.len();
            return Err(self
                .wrong(format!("row {index} with {asked} places asked of {rows} rows with {dim} numbers")));
        }
        let bytes = self.block.as_ref();
        let (first, step) = if self.fortran { (index, rows) } else { (index * dim, 1) };
        let wrong = |(column, value): (usize, f32)| {
            self.wrong_at(format!("row {index}, column {column}"), refuse_number(value))
        };
        if !self.fortran {
            return self.element.read_finite(&bytes[first * size..(first + dim) * size], out).map_err(wrong);
        }
        for (j, out) in out.iter_mut().enumerate() {
            let at = (first + j * step) * size;
            let value = self.element.value(&bytes[at..at + size]) as f32;
            if !value.is_finite() {
                return Err(wrong((j, value)));
            }
            *out = value;
        }
        Ok(())
    }
}

/// What is said of a number that is not finite.
pub(crate) fn refuse_number(value: f32) -> String {
    format!("{value} as a 32-bit number: replace or remove that row")
}

#[cfg(test)]
#[path = "array_tests.rs"]
mod tests;
