//! `review.jsonl`: only ever added to, and on the disk before an answer is given.
//!
//! Several processes may add to it, one for each reviewer: who adds holds a lock, and first reads what others have added meanwhile. So steps
//! have one order, whoever takes them, and nobody's lines stand within those of another.
//!
//! A line without its end was not written to the end: nobody was told of it, and it is cut off when the file is opened next. A line
//! that could not be written is cut off at once; where not even that can be done, nothing more is written.

use crate::decision::Line;
use crate::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The format of lines.
const VERSION: u32 = 1;
/// Others hold the lock for as long as a line takes to be written.
const PATIENCE: Duration = Duration::from_secs(20);
/// So often somebody looks whether the lock is free.
const TICK: Duration = Duration::from_millis(2);

/// The file, open for adding.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: Arc<File>,
    data: String,
    /// Bytes that are known to be whole lines, and how many these are.
    whole: u64,
    count: u64,
    is_broken: bool,
}

/// As long as it is there, nobody else adds a line.
#[derive(Debug)]
pub struct Lock(Arc<File>);

impl Drop for Lock {
    fn drop(&mut self) {
        // It ends with the process at the latest.
        drop(self.0.unlock());
    }
}

fn lock(file: &Arc<File>, path: &Path, is_to_write: bool) -> Result<Lock> {
    let begun = Instant::now();
    loop {
        let locked = if is_to_write { file.try_lock() } else { file.try_lock_shared() };
        match locked {
            Ok(()) => return Ok(Lock(file.clone())),
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => std::thread::sleep(TICK),
            Err(TryLockError::WouldBlock) => {
                let problem = "another review has been writing to it for long: end that one, or let it go on if it was halted";
                return Err(Error::format(path, None, problem));
            }
            Err(TryLockError::Error(error)) => return Err(Error::file(path)(error)),
        }
    }
}

impl Record {
    /// Opens the record of these data, or begins one, and gives the lines so far but for the first.
    ///
    /// # Errors
    /// It is of other data, or damaged; those of the system.
    pub fn open(path: &Path, data: &str) -> Result<(Self, Vec<Line>)> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = Arc::new(file.map_err(Error::file(path))?);
        let mut record =
            Self { path: path.to_owned(), file, data: data.to_owned(), whole: 0, count: 0, is_broken: false };
        let lock = record.lock()?;
        let lines = record.news(&lock)?;
        if record.whole == 0 {
            negscale_atomic_file::keep_name(path).map_err(Error::file(path))?;
            record.add(&lock, &[Line::Review { version: VERSION, data: data.to_owned() }])?;
        }
        Ok((record, lines))
    }

    /// Keeps others from adding lines.
    ///
    /// # Errors
    /// Somebody holds it for long; those of the system.
    pub fn lock(&self) -> Result<Lock> {
        lock(&self.file, &self.path, true)
    }

    /// Whole lines that others have added. What a process left that was ended within a line is cut off.
    ///
    /// # Errors
    /// They are damaged, or lines are gone; those of the system.
    pub fn news(&mut self, _lock: &Lock) -> Result<Vec<Line>> {
        let (lines, torn) = self.read_on()?;
        if torn {
            cut(&self.file, self.whole).map_err(Error::file(&self.path))?;
        }
        Ok(lines)
    }

    /// The same for somebody who does not add to them.
    ///
    /// # Errors
    /// As [`news`](Self::news).
    pub fn look(&mut self) -> Result<Vec<Line>> {
        if self.length()? == self.whole {
            return Ok(Vec::new());
        }
        // A line that is being written could still be taken back.
        let _lock = lock(&self.file, &self.path, false)?;
        Ok(self.read_on()?.0)
    }

    fn length(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(Error::file(&self.path))?.len())
    }

    /// Further lines, and whether there is more than whole lines.
    fn read_on(&mut self) -> Result<(Vec<Line>, bool)> {
        if self.length()? < self.whole {
            let problem = "lines that were there are gone: somebody has changed it; start the review again";
            return Err(Error::format(&self.path, None, problem));
        }
        let mut bytes = Vec::new();
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.whole))
            .and_then(|_| file.read_to_end(&mut bytes))
            .map_err(Error::file(&self.path))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = read(&self.path, &bytes[..whole], &self.data, self.count)?;
        self.whole += whole as u64;
        self.count += bytes[..whole].iter().filter(|byte| **byte == b'\n').count() as u64;
        Ok((lines, whole < bytes.len()))
    }

    /// Adds lines behind all that are [known](Self::news); once it returns they are on the disk.
    ///
    /// # Errors
    /// Those of the system; nothing is added then.
    pub fn add(&mut self, _lock: &Lock, lines: &[Line]) -> Result<()> {
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
        let mut file = &*self.file;
        let written = file.write_all(&text).and_then(|()| file.sync_data());
        if let Err(error) = written {
            self.is_broken = cut(&self.file, self.whole).is_err();
            return Err(Error::file(&self.path)(error));
        }
        self.whole += text.len() as u64;
        self.count += lines.len() as u64;
        Ok(())
    }
}

/// Lines of a record that is only read. One that is not there has none.
///
/// # Errors
/// As [`Record::open`].
pub fn lines(path: &Path, data: &str) -> Result<Vec<Line>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => Arc::new(file.map_err(Error::file(path))?),
    };
    let mut record =
        Record { path: path.to_owned(), file, data: data.to_owned(), whole: 0, count: 0, is_broken: true };
    record.look()
}

fn cut(file: &File, length: u64) -> io::Result<()> {
    file.set_len(length)?;
    file.sync_data()
}

/// Lines behind so many others.
fn read(path: &Path, bytes: &[u8], data: &str, before: u64) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (number, line) in (before + 1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
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

    fn add(record: &mut Record, lines: &[Line]) {
        let lock = record.lock().unwrap();
        record.add(&lock, lines).unwrap();
    }

    #[test]
    fn lines_come_back_as_they_were_and_other_data_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        let (mut record, before) = Record::open(&path, "x").unwrap();
        assert!(before.is_empty());
        let lines = [decision(1, "b"), Line::Undo { time: 2, reviewer: "ann".into(), step: 1 }];
        add(&mut record, &lines);
        drop(record);
        assert_eq!(Record::open(&path, "x").unwrap().1, lines);
        assert_eq!(super::lines(&path, "x").unwrap(), lines);
        let error = Record::open(&path, "y").unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("other data"), "{error}");
    }

    #[test]
    fn what_others_add_is_read_before_one_adds_and_what_they_left_torn_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        let (mut one, _) = Record::open(&path, "x").unwrap();
        let (mut other, _) = Record::open(&path, "x").unwrap();
        add(&mut one, &[decision(1, "b")]);
        assert_eq!((other.look().unwrap(), other.look().unwrap()), (vec![decision(1, "b")], vec![]));
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"line\":\"und").unwrap();
        assert!(one.look().unwrap().is_empty());
        let lock = other.lock().unwrap();
        assert!(other.news(&lock).unwrap().is_empty());
        other.add(&lock, &[decision(2, "c")]).unwrap();
        drop(lock);
        assert_eq!(one.look().unwrap(), [decision(2, "c")]);
        fs::write(&path, "").unwrap();
        let error = one.look().unwrap_err().to_string();
        assert!(error.contains("are gone"), "{error}");
    }

    #[test]
    fn damage_inside_is_an_error_with_its_line_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        let (mut record, _) = Record::open(&path, "x").unwrap();
        add(&mut record, &[decision(1, "b")]);
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
            add(&mut record, &lines);
            drop(record);
            let bytes = fs::read(&path).unwrap();
            let kept = bytes.len().saturating_sub(back);
            fs::write(&path, &bytes[..kept]).unwrap();
            let whole = bytes[..kept].iter().filter(|byte| **byte == b'\n').count().saturating_sub(1);
            let (mut record, found) = Record::open(&path, "x").unwrap();
            prop_assert_eq!(&found[..], &lines[..whole]);
            add(&mut record, &lines[whole..]);
            drop(record);
            prop_assert_eq!(Record::open(&path, "x").unwrap().1, lines);
        }
    }
}
