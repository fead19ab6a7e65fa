//! A nameless temporary file that grows and is read by place.

use crate::{Error, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Where something lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub start: u64,
    pub length: usize,
}

/// The file; the system removes it when the process ends, however it ends.
pub(super) struct Spill {
    folder: PathBuf,
    // One cursor, so one lock: reading a picture here takes microseconds where decoding takes many more.
    state: Mutex<Option<(File, u64)>>,
}

impl Spill {
    /// A spill that will make its file in `folder`, or in the system's folder for temporary files, at the first write.
    pub fn new(folder: Option<&Path>) -> Self {
        let folder = folder.map_or_else(std::env::temp_dir, Path::to_owned);
        Self { folder, state: Mutex::new(None) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(File, u64)>> {
        // A panic elsewhere leaves file and end as they were: both change only after a whole write.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Adds bytes and says where they are.
    pub fn write(&self, bytes: &[u8]) -> Result<Place> {
        let failed = |e| Error::io(&self.folder, e);
        let mut state = self.lock();
        let (file, end) = match &mut *state {
            Some(state) => state,
            empty => empty.insert((tempfile::tempfile_in(&self.folder).map_err(failed)?, 0)),
        };
        file.seek(SeekFrom::Start(*end)).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        let place = Place { start: *end, length: bytes.len() };
        *end += bytes.len() as u64;
        Ok(place)
    }

    /// The bytes of a place.
    pub fn read(&self, place: Place) -> Result<Vec<u8>> {
        let failed = |e| Error::io(&self.folder, e);
        let mut bytes = vec![0; place.length];
        let mut state = self.lock();
        let Some((file, _)) = state.as_mut() else {
            return Err(Error::format(&self.folder, None, "nothing was unpacked here yet"));
        };
        file.seek(SeekFrom::Start(place.start)).map_err(failed)?;
        file.read_exact(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_give_back_what_was_written_from_many_threads() {
        let spill = Spill::new(None);
        std::thread::scope(|scope| {
            for t in 0..4u8 {
                let spill = &spill;
                scope.spawn(move || {
                    for n in 0..200usize {
                        let place = spill.write(&vec![t; n]).unwrap();
                        assert_eq!(spill.read(place).unwrap(), vec![t; n]);
                    }
                });
            }
        });
    }
}
