//! Pictures in files of their own: read and decoded when asked for.

use crate::decode::{decode, read};
use crate::{Error, Image, ImageStore, Result};
use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

/// Files below one folder.
pub(crate) struct Pictures {
    root: PathBuf,
    files: Vec<Box<str>>,
}

impl Pictures {
    /// The files, given by their paths below `root`. The first must be there, so that a wrong folder is noticed at once; the
    /// others are met when they are read.
    pub fn new(root: PathBuf, files: Vec<Box<str>>) -> Result<Self> {
        if let Some(first) = files.first() {
            let path = root.join(&**first);
            std::fs::metadata(&path).map_err(|e| Error::io(&path, e))?;
        }
        Ok(Self { root, files })
    }

    fn path(&self, index: usize) -> Result<PathBuf> {
        let problem = || format!("no image {index}: there are {}", self.files.len());
        let file = self.files.get(index).ok_or_else(|| Error::format(&self.root, None, problem()))?;
        Ok(self.root.join(&**file))
    }
}

/// Whether a path from a list stays below the folder that it is joined to.
pub(crate) fn stays_below(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

/// Whether a file's name is that of a JPEG picture; a system's thumbnails and other hidden files are none of ours.
pub(crate) fn is_jpeg(name: &str) -> bool {
    let lower = name.to_lowercase();
    !lower.starts_with('.') && (lower.ends_with(".jpeg") || lower.ends_with(".jpg"))
}

impl ImageStore for Pictures {
    fn len(&self) -> usize {
        self.files.len()
    }
    fn load(&self, index: usize) -> Result<Image> {
        let path = self.path(index)?;
        decode(&path, &read(&path)?)
    }
    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Owned(read(&self.path(index)?)?))
    }
    fn origin(&self, index: usize) -> Option<String> {
        Some(self.path(index).ok()?.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_picture_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.jpg"), b"not a picture").unwrap();
        let pictures = Pictures::new(folder.path().to_owned(), vec!["a.jpg".into(), "b.jpg".into()]).unwrap();
        assert!(pictures.load(0).unwrap_err().to_string().contains("a.jpg"));
        assert!(pictures.load(1).unwrap_err().to_string().contains("b.jpg"));
        assert!(pictures.load(2).unwrap_err().to_string().contains("no image 2"));
        assert!(Pictures::new(folder.path().to_owned(), vec!["b.jpg".into()]).is_err());
    }

    #[test]
    fn paths_that_leave_the_folder_are_told_apart() {
        assert!(stays_below("google/q0001/a.jpg"));
        for path in ["", "../a.jpg", "a/../../b.jpg", "/etc/passwd", "./a.jpg"] {
            assert!(!stays_below(path), "{path}");
        }
    }
}
