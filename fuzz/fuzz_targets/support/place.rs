//! A folder of this process for parsers that read files, in memory where the system has such a place.

use std::path::{Path, PathBuf};

/// The folder, made once.
pub fn folder(name: &str) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = base.join(format!("negscale-fuzz-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the files of this target");
    folder
}

/// Puts a file there.
pub fn put(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a file of this target");
    path
}

/// Two parts of an input: two bytes tell how long the first is.
#[allow(dead_code)]
pub fn parts(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let ([low, high], rest) = data.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes([*low, *high]));
    Some(rest.split_at(length.min(rest.len())))
}
