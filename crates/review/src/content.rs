//! The picture or the columns of a row, read when they are asked for.

use crate::samples::{Sample, Samples};
use crate::{Error, Result};
use negscale_data::stream::RowStream;
use negscale_data::{Dataset, Image, Items};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Mutex;

/// Of a row's columns so many are shown.
const COLUMNS: usize = 200;
/// Of a cell so many characters.
const CHARACTERS: usize = 20_000;
/// Cells of more characters are text.
const TEXT: usize = 40;
/// Of a row beside another so many characters.
const BRIEF: usize = 160;

/// Where rows are.
#[derive(Debug)]
enum Source {
    Whole(Dataset),
    /// Read one by one, of an audit in parts.
    Rows(RowStream),
}

/// What is shown of rows.
pub struct Content {
    source: Source,
    table: Option<Mutex<Table>>,
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Content of {:?}", self.source)
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
    /// there, also those that are no features, such as text.
    #[must_use]
    pub fn new(dataset: Dataset, file: Option<&Path>) -> Self {
        let is_features = matches!(dataset.items(), Items::Features(_));
        let table = file.filter(|_| is_features).and_then(|file| Table::open(file, dataset.len()));
        Self { source: Source::Whole(dataset), table: table.map(Mutex::new) }
    }

    /// Of rows that stay where they are.
    #[must_use]
    pub fn of_stream(rows: RowStream) -> Self {
        Self { source: Source::Rows(rows), table: None }
    }

    /// How many rows.
    fn len(&self) -> usize {
        match &self.source {
            Source::Whole(dataset) => dataset.len(),
            Source::Rows(rows) => usize::try_from(rows.rows()).unwrap_or(usize::MAX),
        }
    }

    fn origin(&self, row: usize) -> Option<String> {
        match &self.source {
            Source::Whole(dataset) => dataset.items().origin(row),
            Source::Rows(rows) => rows.id(row as u64).map(str::to_owned),
        }
    }

    /// Refuses data that are not those of the audit: rows are known by their places.
    ///
    /// # Errors
    /// A row is not there, or is from elsewhere.
    pub fn check(&self, samples: &Samples) -> Result<()> {
        let differs =
            |sample: &&Sample| match usize::try_from(sample.row).ok().filter(|row| *row < self.len()) {
                Some(row) => !sample.path.is_empty() && self.origin(row).as_deref() != Some(&*sample.path),
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
        matches!(&self.source, Source::Whole(dataset) if matches!(dataset.items(), Items::Images(_)))
    }

    /// The picture of a row, as it is stored where browsers can show that.
    #[must_use]
    pub fn picture(&self, row: u64) -> Option<Picture> {
        let Source::Whole(dataset) = &self.source else { return None };
        let Items::Images(store) = dataset.items() else { return None };
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
        let Some(row) = usize::try_from(row).ok().filter(|row| *row < self.len()) else { return Vec::new() };
        let cells = self.table.as_ref().and_then(|table| table.lock().ok()?.row(row));
        if let Some(cells) = cells {
            return cells;
        }
        let (names, values) = match &self.source {
            Source::Whole(dataset) => {
                let Items::Features(store) = dataset.items() else { return Vec::new() };
                let mut values = vec![0.0; store.dim()];
                let is_read = store.names().len() == values.len() && store.read(row, &mut values).is_ok();
                (store.names().to_vec(), if is_read { values } else { Vec::new() })
            }
            Source::Rows(rows) => {
                let (names, mut values) = (rows.names(), Vec::new());
                let is_read = !names.is_empty() && rows.read_some(&[row as u64], &mut values).is_ok();
                (names, if is_read { values } else { Vec::new() })
            }
        };
        let columns = names.into_iter().zip(values).take(COLUMNS);
        columns.map(|(name, value)| (name, value.to_string())).collect()
    }

    /// A row in a few words, beside another; none of pictures and of rows whose columns have no names.
    #[must_use]
    pub fn brief(&self, row: u64) -> Option<String> {
        let mut columns = self.columns(row);
        // A text says more than numbers.
        let longest = columns.iter().map(|(_, value)| value.chars().count()).max()?;
        if longest > TEXT {
            columns.retain(|(_, value)| value.chars().count() == longest);
            return columns.pop().map(|(_, text)| shorten(&text));
        }
        let all: Vec<String> = columns.into_iter().map(|(name, value)| format!("{name} {value}")).collect();
        Some(shorten(&all.join(", ")))
    }
}

/// The first words of a text.
fn shorten(text: &str) -> String {
    if text.chars().count() <= BRIEF {
        return text.to_owned();
    }
    text.chars().take(BRIEF).chain(['…']).collect()
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
