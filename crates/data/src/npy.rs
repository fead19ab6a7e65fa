//! `.npy`: NumPy's file of one array (format versions 1 to 3).
//!
//! Six bytes of magic, two of version, the header's length (two bytes in version 1, four from 2 on), a Python dictionary with
//! exactly `descr`, `fortran_order` and `shape`, then the numbers. The header is parsed here, by a reader that knows these
//! three entries and nothing else: no expression is evaluated and no pickle is ever opened.

use crate::array::{Array, Element, Kind};
use crate::block::Block;
use crate::{Error, Result};
use std::path::Path;

/// NumPy itself refuses headers above 10,000 characters; records with many fields are no use here.
const MAX_HEADER: usize = 64 << 10;
const MAX_DIMENSIONS: usize = 32;

/// What stands before the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// One item.
    pub element: Element,
    /// First dimension varies fastest.
    pub fortran: bool,
    /// Lengths of the dimensions.
    pub shape: Vec<usize>,
    /// Where the numbers begin.
    pub start: usize,
}

/// Maps a `.npy` file.
pub fn open(path: &Path) -> Result<Array> {
    read(path, None, Block::map(path)?)
}

/// An array from the bytes of a `.npy` file. `path` is for messages.
pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Array> {
    read(path, None, bytes.into())
}

pub(crate) fn read(path: &Path, place: Option<String>, block: Block) -> Result<Array> {
    let wrong = |problem: String| Error::format(path, place.clone(), problem);
    let header = Header::parse(&block.head(LONGEST_HEAD)).map_err(wrong)?;
    let numbers = block.part(header.start..block.len());
    let numbers = numbers.ok_or_else(|| wrong("the file ends before its header does".into()))?;
    Array::new(path, place, numbers, header.element, header.shape, header.fortran)
}

/// How many bytes are needed to know how long the header is.
pub(crate) const PREFIX: usize = 12;

/// Where the numbers begin at the latest.
pub(crate) const LONGEST_HEAD: usize = PREFIX + MAX_HEADER;

/// Where the numbers begin, from the first [`PREFIX`] bytes.
pub(crate) fn start(bytes: &[u8]) -> Result<usize, String> {
    let short = || format!("only {} bytes, too few for the header of an .npy file", bytes.len());
    if bytes.get(..6).ok_or_else(short)? != b"\x93NUMPY" {
        return Err("not an .npy file: it does not begin with \\x93NUMPY".into());
    }
    let (length, from) = match (bytes.get(6).ok_or_else(short)?, bytes.get(8..10), bytes.get(8..12)) {
        (1, Some(two), _) => (usize::from(u16::from_le_bytes([two[0], two[1]])), 10),
        (2 | 3, _, Some(four)) => (u32::from_le_bytes([four[0], four[1], four[2], four[3]]) as usize, 12),
        (1..=3, _, _) => return Err(short()),
        (version, _, _) => {
            return Err(format!(".npy version {version} is not supported: versions 1 to 3 are"));
        }
    };
    if length > MAX_HEADER {
        return Err(format!("the header claims {length} bytes: at most {MAX_HEADER} are accepted"));
    }
    Ok(from + length)
}

impl Header {
    /// Reads the header at the beginning of a file.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let start = start(bytes)?;
        let from = if bytes[6] == 1 { 10 } else { PREFIX };
        let Some(text) = bytes.get(from..start) else {
            return Err(format!(
                "the header claims to end at byte {start}, but there are only {}",
                bytes.len()
            ));
        };
        let text = std::str::from_utf8(text).map_err(|_| "the header is not text".to_string())?;
        let (mut element, mut fortran, mut shape) = (None, None, None);
        let mut rest = Reader(text.trim());
        rest.expect('{')?;
        while !rest.accept('}') {
            let key = rest.quoted()?;
            rest.expect(':')?;
            match key {
                "descr" if rest.peeks('[') => {
                    return Err(
                        "records (structured dtype) are not supported: save the columns as one array of numbers"
                            .into(),
                    );
                }
                "descr" => element = Some(parse_element(rest.quoted()?)?),
                "fortran_order" => fortran = Some(rest.truth()?),
                "shape" => shape = Some(rest.tuple()?),
                other => return Err(format!("the header has an unknown entry `{}`", other.escape_debug())),
            }
            if !rest.accept(',') && !rest.peeks('}') {
                return Err(rest.unexpected("`,` or `}`"));
            }
        }
        match (element, fortran, shape) {
            (Some(element), Some(fortran), Some(shape)) => Ok(Self { element, fortran, shape, start }),
            _ => Err("the header must have `descr`, `fortran_order` and `shape`".into()),
        }
    }
}

fn parse_element(descr: &str) -> Result<Element, String> {
    let not_read = |why: &str| Err(format!("dtype `{}` {why}", descr.escape_debug()));
    let (order, rest) = match descr.chars().next() {
        Some(order @ ('<' | '>' | '|' | '=')) => (order, &descr[1..]),
        _ => ('|', descr),
    };
    let mut letters = rest.chars();
    let letter = letters.next();
    if letter == Some('O') {
        return not_read(
            "holds Python objects, which can run code when opened: save numbers, e.g. array.astype('float32')",
        );
    }
    let size = letters.as_str().parse::<usize>().ok().filter(|&size| size <= 1 << 20);
    let (kind, size) = match (letter, size) {
        (Some('f'), Some(size @ (2 | 4 | 8))) => (Kind::Float, size),
        (Some('i'), Some(size @ (1 | 2 | 4 | 8))) => (Kind::Signed, size),
        (Some('u'), Some(size @ (1 | 2 | 4 | 8))) => (Kind::Unsigned, size),
        (Some('b'), Some(1)) => (Kind::Bool, 1),
        (Some('S'), Some(size)) => (Kind::Text, size),
        (Some('U'), Some(size)) => (Kind::Unicode, 4 * size),
        _ => {
            return not_read(
                "is not supported: f2, f4, f8, i1 to i8, u1 to u8 and b1 are, and for labels S and U",
            );
        }
    };
    Ok(Element { kind, size, big_endian: order == '>' })
}

/// What is left of a header.
struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    fn unexpected(&self, wanted: &str) -> String {
        let found: String = self.0.chars().take(12).collect();
        format!("the header should have {wanted} at `{}`", found.escape_debug())
    }

    fn peeks(&mut self, mark: char) -> bool {
        self.0 = self.0.trim_start();
        self.0.starts_with(mark)
    }

    fn accept(&mut self, mark: char) -> bool {
        let there = self.peeks(mark);
        if there {
            self.0 = &self.0[mark.len_utf8()..];
        }
        there
    }

    fn expect(&mut self, mark: char) -> Result<(), String> {
        if self.accept(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    fn quoted(&mut self) -> Result<&'a str, String> {
        let quote = if self.peeks('"') { '"' } else { '\'' };
        self.expect(quote)?;
        let (text, rest) = self.0.split_once(quote).ok_or_else(|| self.unexpected("a closing quote"))?;
        self.0 = rest;
        Ok(text)
    }

    fn truth(&mut self) -> Result<bool, String> {
        self.0 = self.0.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.0.strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        self.expect('(')?;
        let mut lengths = Vec::new();
        while !self.accept(')') {
            self.0 = self.0.trim_start();
            let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
            let length = self.0[..end].parse().map_err(|_| self.unexpected("a length that fits 64 bits"))?;
            // Python 2 wrote long integers with an L.
            self.0 = self.0[end..].strip_prefix('L').unwrap_or(&self.0[end..]);
            lengths.push(length);
            if lengths.len() > MAX_DIMENSIONS {
                return Err(format!("the header claims more than {MAX_DIMENSIONS} dimensions"));
            }
            if !self.accept(',') && !self.peeks(')') {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
        Ok(lengths)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::FeatureStore;
    use proptest::prelude::*;

    /// A file as NumPy would write it.
    pub fn npy(descr: &str, fortran: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}");
        let fill = 64 - (10 + header.len() + 1) % 64;
        let header = format!("{header}{}\n", " ".repeat(fill));
        [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), numbers].concat()
    }

    fn error(bytes: Vec<u8>) -> String {
        from_bytes(Path::new("x.npy"), bytes).and_then(Array::into_features).unwrap_err().to_string()
    }

    #[test]
    fn a_file_whose_header_another_process_rewrites_is_read_or_refused_but_never_mixed() {
        use std::io::{Seek, SeekFrom, Write};
        use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let (good, done) = (npy("'<f4'", "False", "(2, 3)", &[0; 24]), AtomicBool::new(false));
        std::fs::write(&path, &good).unwrap();
        // The same length in bytes, with characters of two bytes and with what is no text at all.
        let texts = ["'<f4é", "'\u{e9}\u{e9}'"].map(|text| text.as_bytes().to_vec());
        let others = texts.into_iter().chain([vec![0xFF; 5], good[21..26].to_vec()]).collect::<Vec<_>>();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                for bytes in others.iter().cycle().take_while(|_| !done.load(Relaxed)) {
                    file.seek(SeekFrom::Start(21)).unwrap();
                    file.write_all(bytes).unwrap();
                }
            });
            for _ in 0..3000 {
                if let Ok(array) = open(&path) {
                    assert_eq!(array.shape(), [2, 3]);
                }
            }
            done.store(true, Relaxed);
        });
    }

    #[test]
    fn a_table_of_floats_is_read_from_all_three_versions() {
        let numbers = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(f32::to_le_bytes).concat();
        let first = npy("'<f4'", "False", "(2, 3)", &numbers);
        let mut later = first.clone();
        later[6] = 2;
        later.splice(10..10, [0, 0]);
        let mut last = later.clone();
        last[6] = 3;
        for bytes in [first, later, last] {
            let array = from_bytes(Path::new("x.npy"), bytes).unwrap().into_features().unwrap();
            let mut row = [0.0; 3];
            array.read(1, &mut row).unwrap();
            assert_eq!((array.len(), row), (2, [4.0, 5.0, 6.0]));
        }
    }

    #[test]
    fn files_are_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        std::fs::write(&path, npy("'|u1'", "False", "(2, 2)", &[1, 2, 3, 4])).unwrap();
        let mut row = [0.0; 2];
        open(&path).unwrap().read(1, &mut row).unwrap();
        assert_eq!(row, [3.0, 4.0]);
    }

    #[test]
    fn huge_shapes_are_refused_with_the_shape_in_the_message() {
        let shape = "(1000000000000000000, 1000000000000000000)";
        let error = error(npy("'<f4'", "False", shape, &[0; 16]));
        assert!(error.contains("x.npy") && error.contains("1000000000000000000"), "{error}");
        let error = self::error(npy("'<f4'", "False", "(99999999999999999999999, 1)", &[0; 16]));
        assert!(error.contains("64 bits"), "{error}");
    }

    #[test]
    fn headers_that_lie_about_their_length_are_refused() {
        let mut lying = npy("'<f4'", "False", "(1, 1)", &[0; 4]);
        lying[8..10].copy_from_slice(&60_000u16.to_le_bytes());
        assert!(error(lying.clone()).contains("60010"));
        lying[6] = 2;
        lying[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(error(lying).contains("claims 4294967295 bytes"));
    }

    #[test]
    fn objects_records_and_other_dtypes_are_refused() {
        assert!(error(npy("'|O'", "False", "(1, 1)", &[0; 8])).contains("run code"));
        assert!(error(npy("[('a', '<f4')]", "False", "(1, 1)", &[0; 8])).contains("structured"));
        assert!(error(npy("'<c8'", "False", "(1, 1)", &[0; 8])).contains("`<c8`"));
        assert!(error(npy("'<U999999999999'", "False", "(1, 1)", &[0; 8])).contains("not supported"));
    }

    #[test]
    fn truncated_and_empty_files_are_refused_wherever_they_end() {
        let whole = npy("'<f8'", "False", "(3, 2)", &[0; 48]);
        for end in 0..whole.len() {
            assert!(error(whole[..end].to_vec()).contains("x.npy"));
        }
        let longer = [&whole[..], &[0]].concat();
        assert!(error(longer).contains("needs 48 bytes"));
    }

    #[test]
    fn headers_with_other_entries_or_without_the_three_are_refused() {
        assert!(error(npy("'<f4', 'evil': 'x'", "False", "(1, 1)", &[0; 4])).contains("evil"));
        assert!(error(npy("'<f4'", "Maybe", "(1, 1)", &[0; 4])).contains("True or False"));
        assert!(error(npy("'<f4'", "False", "(1, -1)", &[0; 4])).contains("a length"));
        assert!(error(npy("'<f4'", "False", "()", &[0; 4])).contains("rows and columns"));
        assert!(error(npy("'<f4'", "False", "(0, 1)", &[])).contains("nothing"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, text in "[{}'a-z:<>|()0-9, ]{0,60}", descr in "[<>|a-zO0-9]{0,5}") {
            let _ = from_bytes(Path::new("p"), bytes);
            let headed = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
            let _ = from_bytes(Path::new("p"), headed);
            let typed = npy(&format!("'{descr}'"), "True", "(2, 2)", &[1; 16]);
            if let Ok(array) = from_bytes(Path::new("p"), typed) {
                let _ = array.clone().into_labels();
                if let Ok(features) = array.into_features() {
                    let _ = features.read(1, &mut [0.0; 2]);
                }
            }
        }
    }
}
