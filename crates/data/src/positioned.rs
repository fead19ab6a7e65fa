//! A file that is read by place, from any thread, without a map: what was read is no part of the process afterwards.

use crate::{Error, Result};
use ::parquet::errors::Result as Unpacked;
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::Bytes;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// Opens a file that is regular, so that it has an end, and not empty; with its length.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64)> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let about = file.metadata().map_err(|e| Error::io(path, e))?;
    if !about.is_file() {
        return Err(Error::format(path, None, "not a regular file: point at a file"));
    }
    if about.len() == 0 {
        return Err(Error::format(path, None, "the file is empty (0 bytes)"));
    }
    Ok((file, about.len()))
}

/// A regular file, with its length when it was opened.
#[derive(Debug, Clone)]
pub(crate) struct PositionedFile {
    file: Arc<File>,
    length: u64,
}

impl PositionedFile {
    /// Opens a file that is there and not empty.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, length) = open_regular(path)?;
        Ok(Self { file: Arc::new(file), length })
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Fills `bytes` from a place on.
    pub fn read_at(&self, mut start: u64, mut bytes: &mut [u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match read_some(&self.file, bytes, start) {
                Ok(0) => {
                    let problem = "the file is shorter than when it was opened: is it being written?";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
                }
                Ok(count) => {
                    start += count as u64;
                    bytes = &mut bytes[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(unix)]
fn read_some(file: &File, bytes: &mut [u8], start: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, start)
}

#[cfg(windows)]
fn read_some(file: &File, bytes: &mut [u8], start: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, start)
}

/// Reads on from a place, by a position of its own.
pub(crate) struct From {
    file: PositionedFile,
    at: u64,
}

impl Read for From {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = read_some(&self.file.file, bytes, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// The bytes of a Parquet file: in memory or mapped, or read by place.
#[derive(Clone)]
pub(crate) enum Chunks {
    /// All of them.
    Bytes(Bytes),
    /// Those that are asked for.
    File(PositionedFile),
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(file) => file.length,
        }
    }
}

impl ChunkReader for Chunks {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> Unpacked<Self::T> {
        match self {
            Self::Bytes(bytes) => Ok(Box::new(bytes.get_read(start)?)),
            // Headers of pages are read so, some dozen bytes each.
            Self::File(file) => {
                Ok(Box::new(BufReader::with_capacity(512, From { file: file.clone(), at: start })))
            }
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Unpacked<Bytes> {
        match self {
            Self::Bytes(bytes) => bytes.get_bytes(start, length),
            Self::File(file) => {
                // Before anything is allocated: the file may claim a page of any length.
                if start.checked_add(length as u64).is_none_or(|end| end > file.length) {
                    return Err(::parquet::errors::ParquetError::EOF(format!(
                        "{length} bytes from {start} on are not in the file"
                    )));
                }
                let mut bytes = vec![0; length];
                file.read_at(start, &mut bytes)?;
                Ok(bytes.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_many_threads_and_none_behind_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, (0..=255).collect::<Vec<u8>>()).unwrap();
        let file = PositionedFile::open(&path).unwrap();
        std::thread::scope(|scope| {
            for start in 0..4u8 {
                let file = &file;
                scope.spawn(move || {
                    for at in (start..250).step_by(4) {
                        let mut bytes = [0; 3];
                        file.read_at(u64::from(at), &mut bytes).unwrap();
                        assert_eq!(bytes, [at, at + 1, at + 2]);
                    }
                });
            }
        });
        let error = file.read_at(250, &mut [0; 9]).unwrap_err().to_string();
        assert!(error.contains("shorter"), "{error}");
        let chunks = Chunks::File(file);
        assert!(chunks.get_bytes(0, usize::MAX).is_err() && chunks.get_bytes(250, 7).is_err());
        assert_eq!(chunks.get_bytes(254, 2).unwrap()[..], [254, 255]);
        assert!(PositionedFile::open(folder.path()).is_err());
    }
}
