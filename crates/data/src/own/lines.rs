//! Text files read a record at a time, with a bound on what one record may take.
//!
//! A quote that is never closed makes the rest of a CSV file one field; a line feed that never comes does the same to a text
//! file. Both end in an error at [`MAX_RECORD`] bytes, not in memory filled with the file.

use super::separator::{self, Scan};
use crate::{Error, Result};
use negscale_records::did_you_mean;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most bytes of one line or CSV record: some 400,000 numbers as text.
pub const MAX_RECORD: u64 = 4 << 20;

/// What is said of a blank line.
const BLANK: &str =
    "a blank line before the end: fill or remove it, so that it is clear which item each line belongs to";

/// Opens a regular file for streaming.
pub(super) fn open(path: &Path) -> Result<BufReader<File>> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    if !file.metadata().map_err(|e| Error::io(path, e))?.is_file() {
        return Err(Error::format(path, None, "not a regular file: point at a file"));
    }
    Ok(BufReader::new(file))
}

/// "line 7", as errors name it.
pub(crate) fn line(number: u64) -> String {
    format!("line {number}")
}

/// Where the header, the first line, has a column.
pub(super) fn column(path: &Path, header: &csv::StringRecord, name: &str) -> Result<usize> {
    header.iter().position(|field| field == name).ok_or_else(|| {
        let fields: Vec<&str> = header.iter().take(20).collect();
        let near = did_you_mean(name, header.iter());
        Error::format(
            path,
            line(1),
            format!("no column `{name}`: {near}the header has {}", fields.join(", ")),
        )
    })
}

/// Calls `each` with the number and text of every line, without its end. Empty lines at the end of the file are left out.
pub(super) fn read_lines(
    path: &Path,
    mut reader: impl BufRead,
    mut each: impl FnMut(u64, &str) -> Result<()>,
) -> Result<()> {
    let mut text = Vec::new();
    let mut empty_since = None;
    for number in 1.. {
        text.clear();
        let read = (&mut reader).take(MAX_RECORD + 1).read_until(b'\n', &mut text);
        if read.map_err(|e| Error::io(path, e))? == 0 {
            break;
        }
        if text.len() as u64 > MAX_RECORD {
            let problem = format!("the line is longer than {MAX_RECORD} bytes: is it a text file?");
            return Err(Error::format(path, line(number), problem));
        }
        let bytes = if number == 1 { text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&text) } else { &text };
        let Ok(words) = std::str::from_utf8(bytes) else {
            return Err(Error::format(path, line(number), "not UTF-8 text: save it as UTF-8"));
        };
        let words = words.trim();
        if words.is_empty() {
            empty_since.get_or_insert(number);
            continue;
        }
        if let Some(empty) = empty_since {
            return Err(Error::format(path, line(empty), BLANK));
        }
        each(number, words)?;
    }
    Ok(())
}

/// A CSV file, record by record. Its separator is a comma, a semicolon or a tab; blank lines before the end are errors.
pub(crate) struct Records<'a, R> {
    path: &'a Path,
    reader: csv::Reader<Leash<Chain<Cursor<Vec<u8>>, R>>>,
    seen: Arc<Seen>,
    record: csv::StringRecord,
    /// Line of the next record.
    line: u64,
}

/// So many bytes of the beginning decide about the separator.
const SAMPLE: u64 = 64 << 10;

impl<'a, R: Read> Records<'a, R> {
    /// Records of a reader; the first may be a header, that is for the caller to see.
    pub fn new(path: &'a Path, mut inner: R) -> Result<Self> {
        let mut start = Vec::new();
        inner.by_ref().take(SAMPLE).read_to_end(&mut start).map_err(|e| Error::io(path, e))?;
        let whole = (start.len() as u64) < SAMPLE;
        // Spreadsheets put a byte order mark in front.
        if start.starts_with(b"\xEF\xBB\xBF") {
            start.drain(..3);
        }
        let separator = separator::detect(path, &start, whole)?;
        let seen = Arc::new(Seen::default());
        let scan = Scan::new(Some(separator));
        let leash = Leash { inner: Cursor::new(start).chain(inner), seen: seen.clone(), scan };
        let reader = csv::ReaderBuilder::new().has_headers(false).delimiter(separator).from_reader(leash);
        Ok(Self { path, reader, seen, record: csv::StringRecord::new(), line: 1 })
    }

    /// The next record with its line, blanks around fields taken off. A record with more or fewer fields than the first is an
    /// error.
    pub fn next(&mut self) -> Result<Option<(u64, &csv::StringRecord)>> {
        self.seen.since.store(0, Relaxed);
        let number = self.line;
        let more = self.reader.read_record(&mut self.record).map_err(|error| {
            let blank = self.seen.blank.load(Relaxed);
            if blank > 0 {
                return Error::format(self.path, line(blank), BLANK);
            }
            let problem = match error.kind() {
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    format!("{len} fields where the first line has {expected_len}: every line needs the same")
                }
                csv::ErrorKind::Utf8 { .. } => "not UTF-8 text: save it as UTF-8".into(),
                csv::ErrorKind::Io(error) => error.to_string(),
                _ => error.to_string(),
            };
            Error::format(self.path, line(number), problem)
        })?;
        if !more {
            return Ok(None);
        }
        // Counted here: the csv crate counts lines anew after blank ones and after carriage returns.
        let inside: usize = self.record.iter().map(|field| field.matches('\n').count()).sum();
        self.line += 1 + inside as u64;
        self.record.trim();
        Ok(Some((number, &self.record)))
    }
}

/// What was seen of a file while it was read ahead.
#[derive(Default)]
struct Seen {
    /// Bytes since the last record.
    since: AtomicU64,
    /// A blank line before others; 0 for none.
    blank: AtomicU64,
}

/// Lets through only so many bytes until the count is set back, and no blank line.
struct Leash<R> {
    inner: R,
    seen: Arc<Seen>,
    scan: Scan,
}

impl<R: Read> Read for Leash<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.seen.since.load(Relaxed) > MAX_RECORD {
            let problem = format!("a record of more than {MAX_RECORD} bytes: is a quote left open?");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let count = self.inner.read(out)?;
        self.seen.since.fetch_add(count as u64, Relaxed);
        if let Some(blank) = self.scan.blank_line(&out[..count]) {
            self.seen.blank.store(blank, Relaxed);
            return Err(io::Error::new(io::ErrorKind::InvalidData, BLANK));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_with_their_numbers_and_without_marks_and_ends() {
        let mut seen = Vec::new();
        let text = "\u{FEFF}a\r\nb\n\n\n";
        read_lines(Path::new("t"), text.as_bytes(), |n, s| {
            seen.push((n, s.to_owned()));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [(1, "a".into()), (2, "b".into())]);
        let error = read_lines(Path::new("t"), "a\n\nb".as_bytes(), |_, _| Ok(())).unwrap_err().to_string();
        assert!(error.contains("t, line 2"), "{error}");
    }

    #[test]
    fn a_line_or_a_quote_without_end_stops_at_the_bound() {
        let endless = || io::repeat(b'x');
        let error = read_lines(Path::new("t"), BufReader::new(endless()), |_, _| Ok(())).unwrap_err();
        assert!(error.to_string().contains("longer than"), "{error}");
        let mut records = Records::new(Path::new("t.csv"), "a,b\n\"".as_bytes().chain(endless())).unwrap();
        assert!(records.next().unwrap().is_some());
        let error = records.next().unwrap_err().to_string();
        assert!(error.contains("t.csv, line") && error.contains("quote left open"), "{error}");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_line() {
        let bytes = b"a\n\xFF\xFE\n";
        let error = read_lines(Path::new("t"), &bytes[..], |_, _| Ok(())).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        let mut records = Records::new(Path::new("t"), &bytes[..]).unwrap();
        records.next().unwrap();
        assert!(records.next().unwrap_err().to_string().contains("line 2"));
    }

    #[test]
    fn records_come_with_their_lines_and_blank_lines_are_refused_with_theirs() {
        let lines = |text: &str| -> Result<Vec<(u64, String)>> {
            let mut records = Records::new(Path::new("t.csv"), text.as_bytes())?;
            let mut all = Vec::new();
            while let Some((number, record)) = records.next()? {
                all.push((number, record[0].to_owned()));
            }
            Ok(all)
        };
        let wanted = [(1, "a".to_string()), (2, "b\nc".into()), (4, "d".into())];
        for text in ["a;1\n\"b\nc\";2\n d ;3\n\n\n", "\u{FEFF}a,1\r\n\"b\nc\",2\r\nd,3\r\n\r\n"] {
            assert_eq!(lines(text).unwrap(), wanted, "{text:?}");
        }
        for (text, place) in [("a\n\nb\n", "line 2"), ("a,1\r\nb,2\r\n\r\nc,3", "line 3"), ("\na", "line 1")]
        {
            let error = lines(text).unwrap_err().to_string();
            assert!(error.contains(&format!("t.csv, {place}: a blank line")), "{error}");
        }
        assert!(lines("a,1\r\nb,2\r\nc\r\n").unwrap_err().to_string().contains("line 3: 1 fields"));
    }
}
