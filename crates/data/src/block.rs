//! Bytes that are mapped from a file or spooled to disk, so that what is large need not be in memory.

use crate::{Error, Result, positioned};
use memmap2::Mmap;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::{SpooledTempFile, spooled_tempfile_in};

/// A run of bytes with an owner that is shared, not copied.
#[derive(Clone)]
pub struct Block {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl Block {
    /// The whole of a file, mapped. Only regular files: a pipe or a device has no end to map to.
    pub fn map(path: &Path) -> Result<Self> {
        let (file, _) = positioned::open_regular(path)?;
        Self::of_file(&file, path)
    }

    fn of_file(file: &File, path: &Path) -> Result<Self> {
        // SAFETY: the map is only ever read, as bytes in which every pattern is valid; text and headers are copied before they are
        // parsed, so that nothing that was checked can change afterwards. That another program shortens the
        // file meanwhile cannot be ruled out by any reader that maps; then the system ends the process, nothing worse.
        let map = unsafe { Mmap::map(file) }.map_err(|e| Error::io(path, e))?;
        Ok(Self { range: 0..map.len(), owner: Arc::new(map) })
    }

    /// Part of this block, if it lies inside.
    pub fn part(&self, range: Range<usize>) -> Option<Self> {
        if range.start > range.end || range.end > self.len() {
            return None;
        }
        let start = self.range.start + range.start;
        Some(Self { owner: self.owner.clone(), range: start..start + range.len() })
    }

    /// A copy of the first `count` bytes, or of all if there are fewer. For whatever is checked first and used afterwards, text above
    /// all: another process may rewrite a mapped file between the two.
    pub fn head(&self, count: usize) -> Vec<u8> {
        self[..count.min(self.len())].to_vec()
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
}

impl std::ops::Deref for Block {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.owner.as_ref().as_ref()[self.range.clone()]
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for Block {
    fn from(bytes: Vec<u8>) -> Self {
        Self { range: 0..bytes.len(), owner: Arc::new(bytes) }
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Block of {} bytes", self.len())
    }
}

/// Bytes under way: in memory while they are few, in a nameless temporary file from then on.
pub(crate) struct Spool {
    file: SpooledTempFile,
    folder: PathBuf,
}

/// Up to here a spool stays in memory.
const IN_MEMORY: usize = 16 << 20;

impl Spool {
    /// An empty spool that will write to `folder`, or to the system's folder for temporary files.
    pub fn new(folder: Option<&Path>) -> Self {
        let folder = folder.map_or_else(std::env::temp_dir, Path::to_owned);
        Self { file: spooled_tempfile_in(IN_MEMORY, &folder), folder }
    }

    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io(&self.folder, e))
    }

    /// What was written, in memory or mapped.
    pub fn finish(self) -> Result<Block> {
        match self.file.into_inner() {
            tempfile::SpooledData::InMemory(bytes) => Ok(bytes.into_inner().into()),
            tempfile::SpooledData::OnDisk(file) => Block::of_file(&file, &self.folder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_inside_and_nest() {
        let block = Block::from(vec![0, 1, 2, 3, 4, 5]);
        let part = block.part(2..5).unwrap();
        assert_eq!(part.as_ref(), [2, 3, 4]);
        assert_eq!(part.part(1..3).unwrap().as_ref(), [3, 4]);
        assert!(part.part(1..4).is_none() && block.part(7..7).is_none());
    }

    #[test]
    fn a_spool_gives_back_what_was_written_from_memory_and_from_disk() {
        for rows in [3, 3000] {
            let mut spool = Spool::new(None);
            for i in 0..rows {
                spool.write(&vec![i as u8; 8192]).unwrap();
            }
            let block = spool.finish().unwrap();
            assert_eq!(block.len(), rows * 8192);
            assert!((0..rows).all(|i| block.as_ref()[i * 8192] == i as u8));
        }
    }

    #[test]
    fn the_head_of_a_block_is_a_copy_and_no_longer_than_the_block() {
        let block = Block::from(vec![1, 2, 3]);
        assert_eq!(block.head(2), [1, 2]);
        assert_eq!(block.head(9), [1, 2, 3]);
        let copy = block.head(2);
        assert_ne!(copy.as_ptr(), block.as_ptr());
    }

    #[test]
    fn folders_and_empty_files_cannot_be_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty.npy");
        File::create(&empty).unwrap();
        assert!(Block::map(&empty).unwrap_err().to_string().contains("empty"));
        assert!(Block::map(folder.path()).is_err());
        assert!(Block::map(&folder.path().join("absent")).is_err());
    }
}
