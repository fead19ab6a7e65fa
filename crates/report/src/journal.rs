//! `metrics.jsonl`: one JSON object per line and epoch, appended as the run goes on.
//!
//! A crash in the middle of a write leaves a torn last line. It is dropped, with a note, when the file is read, and
//! cut off before the next record is appended. A broken line anywhere else is an error: no crash of ours makes one.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use negscale_atomic_file::{keep_name, write_bytes};

use crate::error::{Error, Result};
use negscale_records::EpochRecord;

/// What a `metrics.jsonl` holds.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The records, in the order of the file.
    pub records: Vec<EpochRecord>,
    /// Says so if a torn last line was dropped.
    pub note: Option<String>,
    /// Bytes up to the end of the last whole record.
    sound: u64,
    /// Whether the last record lacks the end of its line.
    open_ended: bool,
}

/// Reads a `metrics.jsonl`.
///
/// # Errors
/// The file cannot be read, or a line before the last is no record.
pub fn read_metrics(path: &Path) -> Result<Reading> {
    let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    let mut reading = Reading::default();
    let mut lines = bytes.split_inclusive(|&b| b == b'\n').enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if !line.trim_ascii().is_empty() {
            match serde_json::from_slice(line) {
                Ok(record) => reading.records.push(record),
                Err(_) if lines.peek().is_none() => {
                    reading.note = Some(format!(
                        "{}, line {}: cut off in the middle ({} bytes), probably by a crash; dropped",
                        path.display(),
                        number + 1,
                        line.len()
                    ));
                    break;
                }
                Err(source) => {
                    return Err(Error::Line { path: path.to_path_buf(), line: number + 1, source });
                }
            }
        }
        reading.sound += line.len() as u64;
        reading.open_ended = line.last() != Some(&b'\n');
    }
    Ok(reading)
}

/// A `metrics.jsonl` open for appending.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Journal {
    /// Opens or creates the file, cuts off a torn last line, and hands back what it already holds.
    ///
    /// # Errors
    /// The file cannot be read or written, or a line before the last is no record.
    pub fn open(path: &Path) -> Result<(Self, Reading)> {
        let reading = match read_metrics(path) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Reading::default(),
            other => other?,
        };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(|e| Error::io(path, e))?;
        // Records that are synced are of use only if the file keeps its name.
        keep_name(path).map_err(|e| Error::io(path, e))?;
        let mut journal = Self { path: path.to_path_buf(), file, length: reading.sound };
        journal.cut().map_err(|e| Error::io(path, e))?;
        if reading.open_ended {
            journal.put(b"\n")?;
        }
        Ok((journal, reading))
    }

    /// Appends a record and waits until the disk has it.
    ///
    /// # Errors
    /// The disk is full or fails; the file then still ends with the record before.
    pub fn append(&mut self, record: &EpochRecord) -> Result<()> {
        let mut line =
            serde_json::to_vec(record).map_err(|source| Error::Encode { epoch: record.epoch, source })?;
        line.push(b'\n');
        self.put(&line)
    }

    /// Keeps the records of the first `done` epochs only: a run that resumes from an older checkpoint writes the others again.
    ///
    /// # Errors
    /// The file cannot be read or written; it is then as it was before.
    pub fn rewind(&mut self, done: u64) -> Result<()> {
        let mut kept = Vec::new();
        for record in read_metrics(&self.path)?.records.iter().filter(|r| r.epoch <= done) {
            serde_json::to_writer(&mut kept, record)
                .map_err(|source| Error::Encode { epoch: record.epoch, source })?;
            kept.push(b'\n');
        }
        write_bytes(&self.path, &kept).map_err(|e| Error::io(&self.path, e))?;
        *self = Self::open(&self.path)?.0;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        match self.file.write_all(bytes).and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(source) => {
                // Should this fail too, the reader drops the torn line.
                let source = match self.cut() {
                    Ok(()) => source,
                    Err(cut) => {
                        let both =
                            format!("{source}; the incomplete line could not be removed either: {cut}");
                        std::io::Error::new(source.kind(), both)
                    }
                };
                Err(Error::io(&self.path, source))
            }
        }
    }

    /// Makes the file end where the last whole record does.
    fn cut(&mut self) -> std::io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.seek(SeekFrom::Start(self.length)).map(|_| ())
    }
}
