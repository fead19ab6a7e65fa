//! Pictures that are files of their own: read and decoded when they are asked for.

use crate::decode::decode;
use crate::{Error, Image, ImageStore, Result};
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most bytes that an encoded picture may have.
pub(super) const MAX_FILE: u64 = 512 << 20;

/// A list of picture files.
#[derive(Debug, Clone)]
pub struct Files {
    paths: Vec<PathBuf>,
}

impl Files {
    /// Pictures at these paths.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths }
    }

    /// The paths.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

/// A picture's file, if it is of reasonable size.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Error::format(
            path,
            None,
            format!("more than {MAX_FILE} bytes: no picture of reasonable size"),
        ));
    }
    Ok(bytes)
}

impl ImageStore for Files {
    fn len(&self) -> usize {
        self.paths.len()
    }
    fn load(&self, index: usize) -> Result<Image> {
        decode(&self.paths[index], &read(&self.paths[index])?)
    }
    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        read(&self.paths[index]).map(Cow::Owned)
    }
    fn origin(&self, index: usize) -> Option<String> {
        Some(self.paths[index].display().to_string())
    }
}
