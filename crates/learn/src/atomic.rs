//! Files that are there whole or not at all.

use crate::{Error, Result};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

static PARTS: AtomicU64 = AtomicU64::new(0);

/// Writes a file beside its place, waits until the disk has it and renames it, so that a reader, also one after a crash or
/// on a full disk, finds the old file or the new one and never half of either.
pub fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // Two writers at once, threads or processes, must not share a part.
    name.push(format!(".{}-{}.part", std::process::id(), PARTS.fetch_add(1, Ordering::Relaxed)));
    let part = path.with_file_name(name);
    let written = File::create(&part).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush()?;
        file.get_ref().sync_all()
    });
    written.and_then(|()| fs::rename(&part, path)).map_err(|source| {
        let _ = fs::remove_file(&part); // the first error is the one to tell
        Error::File { path: path.to_owned(), source }
    })?;
    // The new name is on disk once the folder is; systems on which folders cannot be opened do that by themselves.
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}
