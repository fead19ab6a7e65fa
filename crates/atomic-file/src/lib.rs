//! Files that are there whole or not at all.
//!
//! A file is written beside its place, as a part, and takes its place by renaming once the disk has all of it. A reader,
//! also one after a crash or on a full disk, finds the old file or the new one and never half of either:
//!
//! 1. a part `.<name>.<process>-<counter>.part` is made in the same folder, which is on the same disk;
//! 2. it is written, flushed and synced: renamed earlier, it could be empty after a power cut;
//! 3. it is renamed, which replaces the old file in one step;
//! 4. the folder is synced, where the system can do that, so that the new name outlives a power cut as well.
//!
//! When anything before the renaming fails, or panics, the part is removed and the old file is as it was. A process that is
//! killed leaves its part; the leading dot makes TensorBoard and people looking for results pass over it, and an
//! [`OwnFolder`] removes it when it is opened next. If several
//! write the same file at once, the last to rename wins, and its file is whole.
//!
//! Errors are those of the system, so that a full disk is an [`io::ErrorKind::StorageFull`] for the caller too. They do not
//! name the file: callers know it and put it into errors of their own.
//!
//! The new file is a new file: a link in its place is replaced, not followed, and permissions are those of any new file.

/// The snippets of the README are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod folder;

pub use folder::{FolderGuard, MARKER, OwnFolder};

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static PARTS: AtomicU64 = AtomicU64::new(0);

/// Writes a file whole or not at all.
///
/// # Errors
/// Those of `write`, as they are; those of the system. There is no folder for the file ([`ErrorKind::NotFound`], naming the
/// folder), or the place is not one for a file, such as a device or a pipe ([`ErrorKind::InvalidInput`]).
pub fn write_atomic(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let path = path.as_ref();
    check_place(path)?;
    let (file, part) = Part::create(path)?;
    let mut file = BufWriter::new(file);
    write(&mut file)?;
    file.flush()?;
    file.get_ref().sync_all()?;
    drop(file); // some systems do not rename open files
    part.publish(path)?;
    sync_folder(folder_of(path))
}

/// Makes the names in a folder outlive a power cut. Systems that do not open folders, and file systems that do not sync them, see
/// to that themselves; who may write to a folder but not read it has to leave it to them.
fn sync_folder(folder: &Path) -> io::Result<()> {
    use ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(e) if matches!(e.kind(), InvalidInput | PermissionDenied | Unsupported) => Ok(()),
        done => done,
    }
}

/// Makes the name of a file outlive a power cut: for files that are made once and then added to. Their content is theirs to sync.
///
/// # Errors
/// Those of the system.
pub fn keep_name(path: impl AsRef<Path>) -> io::Result<()> {
    sync_folder(folder_of(path.as_ref()))
}

/// Makes a folder and those above it, as far as they are missing, and makes their names outlive a power cut.
///
/// # Errors
/// Those of the system.
pub fn create_folders(folder: impl AsRef<Path>) -> io::Result<()> {
    let folder = folder.as_ref();
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
    fs::create_dir_all(folder)?;
    missing.into_iter().rev().try_for_each(keep_name)
}

/// Writes bytes as a file, whole or not at all.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_bytes(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    write_atomic(path, |file| file.write_all(bytes))
}

/// Renaming would put a file in place of a device: who may write to `/dev` would lose `/dev/null`.
fn check_place(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "is a device or a pipe, which a file cannot replace: name a file",
        )),
        // Whatever else is wrong with the place, the system says.
        _ => Ok(()),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// How the names of a file's parts begin.
fn part_of(path: &Path) -> io::Result<String> {
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(ErrorKind::InvalidInput, "does not end in the name of a file: add one")
    })?;
    // The start of the name is for people. All of a long one would make the name of the part too long.
    let name: String = name.to_string_lossy().chars().take(40).collect();
    Ok(format!(".{name}."))
}

/// A file on its way; goes away when dropped.
struct Part(PathBuf);

impl Part {
    fn create(path: &Path) -> io::Result<(File, Self)> {
        let start = part_of(path)?;
        loop {
            // Two writers at once, threads or processes, must not share a part.
            let count = PARTS.fetch_add(1, Ordering::Relaxed);
            let part = path.with_file_name(format!("{start}{}-{count}.part", std::process::id()));
            match File::create_new(&part) {
                Ok(file) => return Ok((file, Self(part))),
                // Left by a killed process of the same number, or in use on another machine.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    let problem =
                        format!("the folder {} does not exist: create it first", folder_of(path).display());
                    return Err(io::Error::new(ErrorKind::NotFound, problem));
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn publish(mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.0, path)?;
        self.0 = PathBuf::new(); // nothing is left to remove
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // What went wrong before is the error to tell; a part that stays hides nothing.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_synced_is_an_error() {
        let gone = std::env::temp_dir().join("negscale-atomic-file-no-such-folder");
        assert_eq!(sync_folder(&gone).map_err(|e| e.kind()), Err(ErrorKind::NotFound));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_system_that_does_not_sync_folders_is_none() {
        sync_folder(Path::new("/proc")).unwrap();
    }
}
