//! Files that are written whole or not at all.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::error::{Error, Result};

/// Writes beside the place, waits for the disk and renames, so that nobody ever reads half a file and a crash
/// or a full disk leaves the earlier file as it was.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // A leading dot: TensorBoard and people looking for results pass over it.
    let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&part, path)).map_err(|source| {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_file(&part);
        Error::io(path, source)
    })
}
