//! `review.jsonl`: only ever added to, and on the disk before an answer is given.
//!
//! A line without its end was not written to the end: nobody was told of it, and it is cut off when the file is opened next. A line
//! that could not be written is cut off at once; where not even that can be done, nothing more is written.

use crate::decision::Line;
use crate::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The format of lines.
const VERSION: u32 = 1;

/// The file, open for adding.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: File,
    /// Bytes that are known to be whole lines.
    whole: u64,
    is_broken: bool,
}

impl Record {
    /// Opens the record of these data, or begins one, and gives the lines so far but for the first.
    ///
    /// # Errors
    /// It is of other data, or damaged; those of the system.
    pub fn open(path: &Path, data: &str) -> Result<(Self, Vec<Line>)> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut file = file.map_err(Error::file(path))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(Error::file(path))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            cut(&mut file, whole as u64).map_err(Error::file(path))?;
            bytes.truncate(whole);
        }
        let mut record = Self { path: path.to_owned(), file, whole: whole as u64, is_broken: false };
        let lines = read(path, &bytes, data)?;
        if bytes.is_empty() {
            negscale_atomic_file::keep_name(path).map_err(Error::file(path))?;
            record.add(&[Line::Review { version: VERSION, data: data.to_owned() }])?;
        }
        Ok((record, lines))
    }

    /// Adds lines; once it returns they are on the disk.
    ///
    /// # Errors
    /// Those of the system; nothing is added then.
    pub fn add(&mut self, lines: &[Line]) -> Result<()> {
        if self.is_broken {
            let problem = "an earlier line could neither be written nor removed; nothing more is recorded: \
                           free some disk space and start the review again";
            return Err(Error::format(&self.path, None, problem));
        }
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)
                .map_err(io::Error::from)
                .map_err(Error::file(&self.path))?;
            text.push(b'\n');
        }
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            self.is_broken = cut(&mut self.file, self.whole).is_err();
            return Err(Error::file(&self.path)(error));
        }
        self.whole += text.len() as u64;
        Ok(())
    }
}

/// Lines of a record that is only read. One that is not there has none.
///
/// # Errors
/// As [`Record::open`].
pub fn lines(path: &Path, data: &str) -> Result<Vec<Line>> {
    let mut bytes = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes.map_err(Error::file(path))?,
    };
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    read(path, &bytes, data)
}

fn cut(file: &mut File, length: u64) -> io::Result<()> {
    file.set_len(length)?;
    file.seek(SeekFrom::End(0))?;
    file.sync_data()
}

fn read(path: &Path, bytes: &[u8], data: &str) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        let damaged = |problem: String| Error::format(path, Some(number), problem);
        let line: Line = serde_json::from_slice(line).map_err(|error| {
            damaged(format!(
                "the record is damaged there ({error}): move the file away or restore it from a copy"
            ))
        })?;
        match (number, &line) {
            (1, Line::Review { version: VERSION, data: theirs }) if theirs == data => {}
            (1, Line::Review { version: VERSION, .. }) => {
                return Err(damaged(
                    "these decisions are about other data, so they cannot go on here: move the file away to begin anew".into(),
                ));
            }
            (1, _) => {
                return Err(damaged(
                    "it does not begin like a record of this version: move the file away to begin anew"
                        .into(),
                ));
            }
            (_, Line::Review { .. }) => {
                return Err(damaged("a second beginning: restore the file from a copy".into()));
            }
            _ => lines.push(line),
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{Decided, Decision};
    use proptest::prelude::*;
    use std::fs;

    fn decision(row: u64, name: &str) -> Line {
        Line::Decision(Decided {
            time: 1,
            reviewer: "ann".into(),
            step: row,
            row,
            before: Decision::Label("a".into()),
            after: if row.is_multiple_of(3) { Decision::Drop } else { Decision::Label(name.into()) },
            milliseconds: 5,
            flagged: true,
            informed: false,
        })
    }

    #[test]
    fn lines_come_back_as_they_were_and_other_data_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        let (mut record, before) = Record::open(&path, "x").unwrap();
        assert!(before.is_empty());
        let lines = [decision(1, "b"), Line::Undo { time: 2, reviewer: "ann".into(), step: 1 }];
        record.add(&lines).unwrap();
        drop(record);
        assert_eq!(Record::open(&path, "x").unwrap().1, lines);
        assert_eq!(super::lines(&path, "x").unwrap(), lines);
        let error = Record::open(&path, "y").unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("other data"), "{error}");
    }

    #[test]
    fn damage_inside_is_an_error_with_its_line_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        let (mut record, _) = Record::open(&path, "x").unwrap();
        record.add(&[decision(1, "b")]).unwrap();
        let text = fs::read_to_string(&path).unwrap() + "nonsense\n";
        fs::write(&path, &text).unwrap();
        let error = Record::open(&path, "x").unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains("damaged"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn cut_anywhere_it_keeps_all_whole_lines_and_goes_on(names in prop::collection::vec(".{0,8}", 1..5), back in 0usize..400) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("r.jsonl");
            let lines: Vec<Line> = (1..).zip(&names).map(|(row, name)| decision(row, name)).collect();
            let (mut record, _) = Record::open(&path, "x").unwrap();
            record.add(&lines).unwrap();
            drop(record);
            let bytes = fs::read(&path).unwrap();
            let kept = bytes.len().saturating_sub(back);
            fs::write(&path, &bytes[..kept]).unwrap();
            let whole = bytes[..kept].iter().filter(|byte| **byte == b'\n').count().saturating_sub(1);
            let (mut record, found) = Record::open(&path, "x").unwrap();
            prop_assert_eq!(&found[..], &lines[..whole]);
            record.add(&lines[whole..]).unwrap();
            drop(record);
            prop_assert_eq!(Record::open(&path, "x").unwrap().1, lines);
        }
    }
}
