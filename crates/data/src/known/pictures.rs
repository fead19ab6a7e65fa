//! Pictures in files of their own: read and decoded when asked for.

use crate::decode::decode;
use crate::{Error, Image, ImageStore, Result};
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// The largest file that is read.
const MAX_BYTES: u64 = 256 << 20;

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
        let problem = || format!("no picture {index}: there are {}", self.files.len());
        let file = self.files.get(index).ok_or_else(|| Error::format(&self.root, None, problem()))?;
        Ok(self.root.join(&**file))
    }

    fn read(path: &Path) -> Result<Vec<u8>> {
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Error::format(
                path,
                None,
                format!("larger than {MAX_BYTES} bytes: no picture of this set"),
            ));
        }
        Ok(bytes)
    }
}

/// Whether a path from a list stays below the folder that it is joined to.
pub(crate) fn stays_below(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

impl ImageStore for Pictures {
    fn len(&self) -> usize {
        self.files.len()
    }
    fn load(&self, index: usize) -> Result<Image> {
        let path = self.path(index)?;
        decode(&path, &Self::read(&path)?)
    }
    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Owned(Self::read(&self.path(index)?)?))
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
        assert!(pictures.load(2).unwrap_err().to_string().contains("no picture 2"));
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
