//! Text files read a record at a time, with a bound on what one record may take.
//!
//! A quote that is never closed makes the rest of a CSV file one field; a line feed that never comes does the same to a text
//! file. Both end in an error at [`MAX_RECORD`] bytes, not in memory filled with the file.

use crate::{Error, Result};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most bytes of one line or CSV record: some 400,000 numbers as text.
pub const MAX_RECORD: u64 = 4 << 20;

/// Opens a regular file for streaming.
pub(super) fn open(path: &Path) -> Result<BufReader<File>> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    if !file.metadata().map_err(|e| Error::io(path, e))?.is_file() {
        return Err(Error::format(path, None, "not a regular file: point at a file"));
    }
    Ok(BufReader::new(file))
}

/// "line 7", as errors name it.
pub(super) fn line(number: u64) -> String {
    format!("line {number}")
}

/// Where the header, the first line, has a column.
pub(super) fn column(path: &Path, header: &csv::StringRecord, name: &str) -> Result<usize> {
    header.iter().position(|field| field == name).ok_or_else(|| {
        let fields: Vec<&str> = header.iter().take(20).collect();
        Error::format(path, line(1), format!("no column `{name}`: the header has {}", fields.join(", ")))
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
            return Err(Error::format(path, line(empty), "an empty line before the end: remove or fill it"));
        }
        each(number, words)?;
    }
    Ok(())
}

/// A CSV file, record by record.
pub(super) struct Records<'a, R> {
    path: &'a Path,
    reader: csv::Reader<Leash<R>>,
    since: Arc<AtomicU64>,
    record: csv::StringRecord,
}

impl<'a, R: Read> Records<'a, R> {
    /// Records of a reader; the first may be a header, that is for the caller to see.
    pub fn new(path: &'a Path, inner: R) -> Self {
        let since = Arc::new(AtomicU64::new(0));
        let leash = Leash { inner, since: since.clone() };
        let reader = csv::ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).from_reader(leash);
        Self { path, reader, since, record: csv::StringRecord::new() }
    }

    /// The next record with its line. A record with more or fewer fields than the first is an error.
    pub fn next(&mut self) -> Result<Option<(u64, &csv::StringRecord)>> {
        self.since.store(0, Relaxed);
        let more = self.reader.read_record(&mut self.record).map_err(|error| {
            let at = error.position().map_or_else(|| self.reader.position().line(), csv::Position::line);
            let problem = match error.kind() {
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    format!("{len} fields where the first line has {expected_len}: every line needs the same")
                }
                csv::ErrorKind::Utf8 { .. } => "not UTF-8 text: save it as UTF-8".into(),
                csv::ErrorKind::Io(error) => error.to_string(),
                _ => error.to_string(),
            };
            Error::format(self.path, line(at), problem)
        })?;
        let number = self.record.position().map_or(0, csv::Position::line);
        if !more {
            return Ok(None);
        }
        // Spreadsheets put a byte order mark in front; the csv crate takes it off.
        Ok(Some((number, &self.record)))
    }
}

/// Lets through only so many bytes until the count is set back.
struct Leash<R> {
    inner: R,
    since: Arc<AtomicU64>,
}

impl<R: Read> Read for Leash<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.since.load(Relaxed) > MAX_RECORD {
            let problem = format!("a record of more than {MAX_RECORD} bytes: is a quote left open?");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let count = self.inner.read(out)?;
        self.since.fetch_add(count as u64, Relaxed);
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
        let mut records = Records::new(Path::new("t.csv"), "a,b\n\"".as_bytes().chain(endless()));
        assert!(records.next().unwrap().is_some());
        let error = records.next().unwrap_err().to_string();
        assert!(error.contains("t.csv, line") && error.contains("quote left open"), "{error}");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_line() {
        let bytes = b"a\n\xFF\xFE\n";
        let error = read_lines(Path::new("t"), &bytes[..], |_, _| Ok(())).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        let mut records = Records::new(Path::new("t"), &bytes[..]);
        records.next().unwrap();
        assert!(records.next().unwrap_err().to_string().contains("line 2"));
    }
}
