//! The picture or the columns of a row, read when they are asked for.

use crate::samples::{Sample, Samples};
use crate::{Error, Result};
use negscale_data::{Dataset, Image, Items};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Mutex;

/// Of a row's columns so many are shown.
const COLUMNS: usize = 200;
/// Of a cell so many characters.
const CHARACTERS: usize = 4000;

/// What is shown of rows.
pub struct Content {
    dataset: Dataset,
    table: Option<Mutex<Table>>,
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Content of {:?}", self.dataset)
    }
}

/// A picture as a browser takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Its kind.
    pub kind: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Content {
    /// Of these data; `file` is where they are, if they are one file. Of a table with a header all columns are shown as they stand
    /// there, also those that are no features.
    #[must_use]
    pub fn new(dataset: Dataset, file: Option<&Path>) -> Self {
        let has_names = matches!(dataset.items(), Items::Features(store) if !store.names().is_empty());
        let table = file.filter(|_| has_names).and_then(|file| Table::open(file, dataset.len()));
        Self { dataset, table: table.map(Mutex::new) }
    }

    /// Refuses data that are not those of the audit: rows are known by their places.
    ///
    /// # Errors
    /// A row is not there, or is from elsewhere.
    pub fn check(&self, samples: &Samples) -> Result<()> {
        let items = self.dataset.items();
        let differs =
            |sample: &&Sample| match usize::try_from(sample.row).ok().filter(|row| *row < items.len()) {
                Some(row) => !sample.path.is_empty() && items.origin(row).as_deref() != Some(&*sample.path),
                None => true,
            };
        match samples.list.iter().find(differs) {
            Some(sample) => Err(Error::Refused(format!(
                "the data have changed since the audit: row {} is no longer {}; audit them again",
                sample.row,
                if sample.path.is_empty() { "there" } else { &sample.path }
            ))),
            None => Ok(()),
        }
    }

    /// Whether rows are pictures.
    #[must_use]
    pub fn is_pictures(&self) -> bool {
        matches!(self.dataset.items(), Items::Images(_))
    }

    /// The picture of a row, as it is stored where browsers can show that.
    #[must_use]
    pub fn picture(&self, row: u64) -> Option<Picture> {
        let Items::Images(store) = self.dataset.items() else { return None };
        let row = usize::try_from(row).ok().filter(|row| *row < store.len())?;
        if let Ok(bytes) = store.bytes(row)
            && let Some(kind) = kind(&bytes)
        {
            return Some(Picture { kind, bytes: bytes.into_owned() });
        }
        png_of(&store.load(row).ok()?).map(|bytes| Picture { kind: "image/png", bytes })
    }

    /// Names and values of a row's columns; none of rows whose numbers have no names.
    #[must_use]
    pub fn columns(&self, row: u64) -> Vec<(String, String)> {
        let Items::Features(store) = self.dataset.items() else { return Vec::new() };
        let Some(row) = usize::try_from(row).ok().filter(|row| *row < store.len()) else { return Vec::new() };
        let cells = self.table.as_ref().and_then(|table| table.lock().ok()?.row(row));
        if let Some(cells) = cells {
            return cells;
        }
        let mut values = vec![0.0; store.dim()];
        if store.names().len() != values.len() || store.read(row, &mut values).is_err() {
            return Vec::new();
        }
        let columns = store.names().iter().zip(values).take(COLUMNS);
        columns.map(|(name, value)| (name.clone(), value.to_string())).collect()
    }
}

/// What browsers show, by its first bytes.
fn kind(bytes: &[u8]) -> Option<&'static str> {
    // Not of BMP, whose two letters could be bare pixels.
    let known: [(&[u8], &str); 3] =
        [(b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif")];
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let found = known.iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, kind)| *kind);
    found.or_else(|| is_webp.then_some("image/webp"))
}

fn png_of(image: &Image) -> Option<Vec<u8>> {
    let side = |length: usize| u32::try_from(length).ok();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side(image.shape.width)?, side(image.shape.height)?);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_color(match image.shape.channels {
        1 => png::ColorType::Grayscale,
        2 => png::ColorType::GrayscaleAlpha,
        3 => png::ColorType::Rgb,
        4 => png::ColorType::Rgba,
        _ => return None,
    });
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(&image.pixels).ok()?;
    writer.finish().ok()?;
    Some(bytes)
}

/// A table with a header of which rows are read by their places.
struct Table {
    reader: csv::Reader<File>,
    header: csv::StringRecord,
    places: Vec<csv::Position>,
}

impl Table {
    /// None if it is no such table, or one of another number of rows.
    fn open(path: &Path, rows: usize) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        if !["csv", "tsv"].contains(&extension.as_str()) {
            return None;
        }
        let mut first = String::new();
        BufReader::new(File::open(path).ok()?).read_line(&mut first).ok()?;
        let count = |sign: &u8| first.bytes().filter(|byte| byte == sign).count();
        let separator = [b'\t', b';', b','].into_iter().max_by_key(count)?;
        let open = || csv::ReaderBuilder::new().delimiter(separator).flexible(true).from_path(path).ok();
        let mut reader = open()?;
        let header = reader.headers().ok()?.clone();
        let mut places = Vec::with_capacity(rows);
        let mut record = csv::ByteRecord::new();
        loop {
            let place = reader.position().clone();
            match reader.read_byte_record(&mut record) {
                Ok(true) => places.push(place),
                Ok(false) => break,
                Err(_) => return None,
            }
        }
        (places.len() == rows).then_some(Self { reader, header, places })
    }

    fn row(&mut self, row: usize) -> Option<Vec<(String, String)>> {
        self.reader.seek(self.places.get(row)?.clone()).ok()?;
        let mut record = csv::ByteRecord::new();
        self.reader.read_byte_record(&mut record).ok().filter(|is_there| *is_there)?;
        let text = |cell: &[u8]| String::from_utf8_lossy(cell).chars().take(CHARACTERS).collect();
        let cells = self.header.iter().zip(record.iter()).take(COLUMNS);
        Some(cells.map(|(name, cell)| (name.to_owned(), text(cell))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_table_are_read_by_their_places_with_text_and_line_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, "text;size\n\"two\nlines; one cell\";1\n<b>bold</b>;2\n").unwrap();
        let mut table = Table::open(&path, 2).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(table.row(1).unwrap(), [pair("text", "<b>bold</b>"), pair("size", "2")]);
        assert_eq!(table.row(0).unwrap(), [pair("text", "two\nlines; one cell"), pair("size", "1")]);
        assert!(table.row(2).is_none() && Table::open(&path, 3).is_none());
    }

    #[test]
    fn kinds_are_told_by_first_bytes() {
        assert_eq!(kind(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(kind(b"RIFF0000WEBPVP8 "), Some("image/webp"));
        assert_eq!((kind(b"<svg onload="), kind(b"BM"), kind(b"")), (None, None, None));
    }
}
