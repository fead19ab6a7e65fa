//! Pictures that are files of their own: read and decoded when they are asked for.

use crate::decode::{decode, read};
use crate::{Image, ImageStore, Result};
use std::borrow::Cow;
use std::path::PathBuf;

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
