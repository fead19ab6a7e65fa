//! Where fetching happens, so that nothing half-written is ever seen under a final name.
//!
//! In the cache folder, `.downloads/<name>/` holds downloads (also unfinished ones, for resuming), `work/` raw material and
//! `ready/` finished files; `.downloads/<name>.lock` is locked by the process at work. Finished and checked files are moved
//! to `<name>/` by renaming, on the same disk, at the very end.

use super::Progress;
use super::recipe::Wanted;
use crate::{Error, Result};
use negscale_atomic_file::keep_name;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A system error while writing; a full disk is said plainly.
pub(super) fn written(path: &Path, error: std::io::Error) -> Error {
    let error = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => std::io::Error::new(
            error.kind(),
            "the disk is full: free some space or choose another folder, then try again (a download resumes where it stopped)",
        ),
        _ => error,
    };
    Error::io(path, error)
}

/// Whether there is no room left.
pub(super) fn is_full(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. }
        if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
}

/// Whether all files are there in their sizes. Files get there only after their checksums were right.
pub(super) fn is_complete(folder: &Path, files: &[Wanted]) -> bool {
    files.iter().all(|file| {
        std::fs::metadata(folder.join(file.name))
            .is_ok_and(|found| found.is_file() && found.len() == file.bytes)
    })
}

/// The place at work, locked against other processes while it lives.
pub(super) struct Place {
    target: PathBuf,
    downloads: PathBuf,
    _lock: File,
}

impl Place {
    /// Takes the place, waiting for another process that has it.
    pub fn take(cache: &Path, name: &str, progress: &mut dyn FnMut(Progress)) -> Result<Self> {
        let downloads = cache.join(".downloads").join(name);
        create(&downloads)?;
        let path = cache.join(".downloads").join(format!("{name}.lock"));
        let lock = File::create(&path).map_err(|e| written(&path, e))?;
        let taken = match lock.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => {
                progress(Progress::busy("waiting for another process that is fetching the same dataset"));
                lock.lock()
            }
            Err(TryLockError::Error(e)) => Err(e),
        };
        match taken {
            // some network disks know no locks: better fetch without one than not at all
            Err(e) if e.kind() != ErrorKind::Unsupported => return Err(Error::io(path, e)),
            _ => {}
        }
        // the process that held the lock before us may have removed it
        create(&downloads)?;
        Ok(Self { target: cache.join(name), downloads, _lock: lock })
    }

    /// Where the dataset goes in the end.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// For downloads.
    pub fn downloads(&self) -> &Path {
        &self.downloads
    }

    /// For raw material.
    pub fn work(&self) -> PathBuf {
        self.downloads.join("work")
    }

    /// For finished files.
    pub fn ready(&self) -> PathBuf {
        self.downloads.join("ready")
    }

    /// Empties raw material and finished files, such as those of a source that failed. Downloads stay.
    pub fn clear(&self) -> Result<()> {
        for folder in [self.work(), self.ready()] {
            erase(&folder)?;
            create(&folder)?;
        }
        Ok(())
    }

    /// Moves finished files to their final place and removes everything else.
    pub fn publish(&self, files: &[Wanted]) -> Result<()> {
        if self.target.exists() {
            // some of it is there already, perhaps with files of the user's own
            for file in files {
                let to = self.target.join(file.name);
                std::fs::rename(self.ready().join(file.name), &to).map_err(|e| written(&to, e))?;
            }
        } else {
            keep_name(self.ready().join("any")).map_err(|e| written(&self.ready(), e))?;
            std::fs::rename(self.ready(), &self.target).map_err(|e| written(&self.target, e))?;
        }
        // Downloads are removed only once what was made of them outlives a power cut.
        let kept = keep_name(self.target.join("any")).and_then(|()| keep_name(&self.target));
        kept.map_err(|e| written(&self.target, e))?;
        erase(&self.downloads)
    }
}

/// A folder with those above it.
pub(super) fn create(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| written(folder, e))
}

fn erase(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io(folder, e)),
        _ => Ok(()),
    }
}
