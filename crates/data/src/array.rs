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
                std::str::from_utf8(&bytes[..end]).ok().map(str::to_owned)
            }
            Kind::Unicode => {
                let one = Element { kind: Kind::Unsigned, size: 4, ..self };
                let points: Vec<u32> = bytes.chunks_exact(4).map(|c| one.bits(c) as u32).collect();
                let end = points.iter().rposition(|&p| p != 0).map_or(0, |at| at + 1);
                points[..end].iter().map(|&p| char::from_u32(p)).collect()
            }
        }
    }

    fn is_number(self) -> bool {
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
                "shape {shape:?} of {}-byte items needs {needed}, which does not fit the {} there are: the file is cut off or its header wrong",
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
            let number = match self.element.kind {
                Kind::Signed => u32::try_from(self.element.signed(bytes)),
                _ => u32::try_from(self.element.bits(bytes)),
            };
            number.ok().filter(|&label| (label as usize) < classes).ok_or_else(|| {
                let label = self.element.word(bytes).unwrap_or_default();
                let problem = format!(
                    "label {label} in column {column} names no class: there are {classes}, numbered from 0"
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
                        "label of row {row} is no class: labels are whole numbers or text, not fractions, NaN or nothing"
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
        for (j, out) in out.iter_mut().enumerate() {
            let at = (first + j * step) * size;
            let value = self.element.value(&bytes[at..at + size]) as f32;
            if !value.is_finite() {
                let problem = format!("{value} as a 32-bit number: replace or remove that row");
                return Err(self.wrong_at(format!("row {index}, column {j}"), problem));
            }
            *out = value;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npy;

    fn array(bytes: Vec<u8>, kind: Kind, size: usize, big_endian: bool, shape: &[usize]) -> Result<Array> {
        let element = Element { kind, size, big_endian };
        Array::new(Path::new("a.npy"), None, bytes.into(), element, shape.into(), false)
    }

    fn first(bytes: &[u8], kind: Kind, big_endian: bool) -> f32 {
        let array = array(bytes.to_vec(), kind, bytes.len(), big_endian, &[1, 1]).unwrap();
        let mut out = [0.0];
        array.into_features().unwrap().read(0, &mut out).unwrap();
        out[0]
    }

    #[test]
    fn every_kind_of_number_is_read_in_both_byte_orders() {
        assert_eq!(first(&1.5f32.to_le_bytes(), Kind::Float, false), 1.5);
        assert_eq!(first(&1.5f32.to_be_bytes(), Kind::Float, true), 1.5);
        assert_eq!(first(&(-2.25f64).to_le_bytes(), Kind::Float, false), -2.25);
        assert_eq!(first(&f16::from_f32(0.5).to_le_bytes(), Kind::Float, false), 0.5);
        assert_eq!(first(&bf16::from_f32(-3.0).to_le_bytes(), Kind::Brain, false), -3.0);
        assert_eq!(first(&(-7i16).to_be_bytes(), Kind::Signed, true), -7.0);
        assert_eq!(first(&[0xFF], Kind::Signed, false), -1.0);
        assert_eq!(first(&[0xFF], Kind::Unsigned, false), 255.0);
        assert_eq!(first(&i64::MIN.to_le_bytes(), Kind::Signed, false), i64::MIN as f32);
        assert_eq!(first(&[2], Kind::Bool, false), 1.0);
    }

    #[test]
    fn fortran_order_gives_the_same_rows() {
        let element = Element { kind: Kind::Unsigned, size: 1, big_endian: false };
        let bytes = vec![1u8, 4, 2, 5, 3, 6];
        let array = Array::new(Path::new("a"), None, bytes.into(), element, vec![2, 3], true).unwrap();
        let mut row = [0.0; 3];
        array.read(1, &mut row).unwrap();
        assert_eq!(row, [4.0, 5.0, 6.0]);
    }

    #[test]
    fn shapes_that_do_not_fit_the_bytes_are_refused_without_overflow() {
        for shape in [&[1usize << 60, 1 << 60][..], &[3, 2], &[1, 2, 1, 9]] {
            let error = array(vec![0; 8], Kind::Float, 4, false, shape).unwrap_err().to_string();
            assert!(error.contains("a.npy") && error.contains("header wrong"), "{error}");
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_an_error_with_its_row_and_column() {
        for (bytes, size) in [
            ([1f32.to_le_bytes(), f32::NAN.to_le_bytes()].concat(), 4),
            ([0f64, 1e300].map(f64::to_le_bytes).concat(), 8),
        ] {
            let array = array(bytes, Kind::Float, size, false, &[1, 2]).unwrap();
            let error = array.read(0, &mut [0.0; 2]).unwrap_err().to_string();
            assert!(error.contains("row 0, column 1"), "{error}");
        }
    }

    #[test]
    fn labels_may_be_whole_floats_or_text_but_not_fractions() {
        let whole = array([0f32, 2.0].map(f32::to_le_bytes).concat(), Kind::Float, 4, false, &[2, 1]);
        assert_eq!(whole.unwrap().into_labels().unwrap().words().collect::<Vec<_>>(), ["0", "2"]);
        let text = array(b"cat\0\0dog\0\0".to_vec(), Kind::Text, 5, false, &[2]).unwrap();
        assert_eq!(text.into_labels().unwrap().words().collect::<Vec<_>>(), ["cat", "dog"]);
        let fraction = array(0.5f32.to_le_bytes().to_vec(), Kind::Float, 4, false, &[1]).unwrap();
        assert!(fraction.into_labels().unwrap_err().to_string().contains("row 0"));
        let nothing = array(vec![], Kind::Text, 0, false, &[1 << 60]).unwrap();
        assert!(nothing.into_labels().is_err());
    }

    fn table(descr: &str, fortran: &str, shape: &str, numbers: &[u8]) -> Result<Array> {
        npy::from_bytes(Path::new("a.npy"), npy::tests::npy(descr, fortran, shape, numbers))
    }

    #[test]
    fn tables_of_labels_have_rows_and_columns_in_either_order() {
        for (fortran, numbers) in [("False", [1, 2, 3, 4, 5, 6]), ("True", [1, 4, 2, 5, 3, 6])] {
            let table = table("'|u1'", fortran, "(2, 3)", &numbers).unwrap();
            assert_eq!(table.label_table().unwrap(), (2, 3));
            assert_eq!(table.label_column(1, 6).unwrap(), [2, 5]);
            assert!(table.label_column(1, 5).unwrap_err().to_string().contains("a.npy, row 1"));
            assert!(table.label_column(3, 9).is_err() && table.read(2, &mut [0.0; 3]).is_err());
        }
        let list = table("'|u1'", "False", "(2,)", &[1, 2]).unwrap();
        assert_eq!(list.label_column(0, 3).unwrap(), [1, 2]);
    }

    #[test]
    fn hostile_tables_of_labels_are_errors() {
        let labels = |bytes| npy::from_bytes(Path::new("a.npy"), bytes)?.label_column(0, 9);
        let whole = npy::tests::npy("'|u1'", "False", "(2, 3)", &[1, 2, 3, 4, 5, 6]);
        let mut long = whole.clone();
        long[8..10].copy_from_slice(&[0xff, 0xff]);
        let mut longer = whole.clone();
        longer[6] = 2;
        longer[8..12].copy_from_slice(&[0xff; 4]);
        let other = |descr, shape, numbers: &[u8]| npy::tests::npy(descr, "False", shape, numbers);
        let mut cases = vec![
            long,
            longer,
            other("'|u1'", "(4294967296, 4294967296)", &[0]),
            other("'|u1'", "(18446744073709551615, 2)", &[0]),
            other("'|u1'", "(18446744073709551615, 0)", &[]),
            other("'|u1'", "(99999999999999999999999,)", &[0]),
            other("'|u1'", "(-1, 2)", &[0]),
            other("'|u1'", "(1, 1, 1)", &[0]),
            other("'|u1'", "()", &[0]),
            other("'|u1'", "(2, 3", &[0; 6]),
            other("'<f8'", "(1,)", &[0; 8]),
            other("'|b1'", "(1,)", &[0]),
            other("'|O'", "(1,)", &[0; 8]),
            other("'|u1', 'shade': (1,)", "(1,)", &[0]),
            [&whole[..], &[7]].concat(),
        ];
        cases.extend((0..whole.len()).map(|end| whole[..end].to_vec()));
        for bytes in cases {
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            assert!(labels(bytes).is_err(), "{shown}");
        }
    }

    proptest::proptest! {
        #[test]
        fn damaged_tables_of_labels_never_panic(at in 0usize..140, byte: u8, end in 0usize..150) {
            let mut bytes = npy::tests::npy("'|u1'", "False", "(2, 3)", &[1, 2, 3, 4, 5, 6]);
            bytes.truncate(end);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            if let Ok(table) = npy::from_bytes(Path::new("a.npy"), bytes) {
                for column in 0..7 {
                    let _ = table.label_column(column, 6);
                }
            }
        }
    }
}
