//! ImageFolder: `root/class/**/*.{jpg,jpeg,png,webp}`, the folder's name being the class.
//!
//! Order is by name at every level, so it is the same on every machine. Hidden files and files of other kinds are passed over
//! and counted. Below a class, links to folders are not followed: they could lead round in circles.

use super::Skipped;
use super::files::Files;
use super::labels::Column;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

const PICTURES: [&str; 4] = ["jpg", "jpeg", "png", "webp"];

/// Pictures with the folders they lie in.
#[derive(Debug)]
pub struct Classes {
    /// All pictures.
    pub files: Files,
    /// Folder name of each.
    pub given: Column,
    /// Folder names, sorted.
    pub names: Vec<String>,
    /// What was passed over.
    pub skipped: Skipped,
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Whether the name is that of a picture.
pub(super) fn is_picture(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
    extension.is_some_and(|e| PICTURES.contains(&e.as_str()))
}

/// What a folder holds, sorted by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))?;
    let mut paths: Vec<PathBuf> =
        list.map(|entry| entry.map(|e| e.path()).map_err(|e| Error::io(folder, e))).collect::<Result<_>>()?;
    paths.sort_unstable();
    Ok(paths)
}

/// The folders in a folder that are not hidden, sorted by name.
pub(super) fn folders(root: &Path) -> Result<Vec<PathBuf>> {
    Ok(entries(root)?.into_iter().filter(|path| !is_hidden(path) && path.is_dir()).collect())
}

/// Reads a folder of class folders.
pub fn open(root: &Path) -> Result<Classes> {
    let mut skipped = Skipped::default();
    let (mut files, mut given, mut names) = (Vec::new(), Column::new(false), Vec::new());
    for entry in entries(root)? {
        if is_hidden(&entry) {
            skipped.hidden += 1;
            continue;
        }
        if !entry.is_dir() {
            skipped.foreign += 1;
            continue;
        }
        let Some(name) = entry.file_name().and_then(|name| name.to_str()).map(str::to_owned) else {
            return Err(Error::format(&entry, None, "the name of this class folder is not UTF-8: rename it"));
        };
        let before = files.len();
        gather(&entry, &mut files, &mut skipped)?;
        if files.len() == before {
            let problem =
                "class folder without a picture (jpg, jpeg, png, webp): add some or remove the folder";
            return Err(Error::format(&entry, None, problem));
        }
        (before..files.len()).for_each(|_| given.push(&name));
        names.push(name);
    }
    if names.is_empty() {
        return Err(Error::format(root, None, "no class folder in it"));
    }
    given.mark_names();
    Ok(Classes { files: Files::new(files), given, names, skipped })
}

/// All pictures below a folder, whatever the folders in it mean.
pub fn open_all(root: &Path) -> Result<Files> {
    let mut files = Vec::new();
    gather(root, &mut files, &mut Skipped::default())?;
    if files.is_empty() {
        return Err(Error::format(root, None, "no picture (jpg, jpeg, png, webp) in it or in folders below"));
    }
    Ok(Files::new(files))
}

/// All pictures below a folder.
fn gather(folder: &Path, files: &mut Vec<PathBuf>, skipped: &mut Skipped) -> Result<()> {
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        let mut below = Vec::new();
        for entry in entries(&folder)? {
            let link = entry.is_symlink();
            if is_hidden(&entry) {
                skipped.hidden += 1;
            } else if entry.is_dir() && !link {
                below.push(entry);
            } else if entry.is_file() && is_picture(&entry) {
                files.push(entry);
            } else {
                skipped.foreign += 1;
            }
        }
        waiting.extend(below.into_iter().rev());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(root: &Path, names: &[&str]) {
        for name in names {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
    }

    #[test]
    fn classes_and_files_are_sorted_and_the_rest_is_counted() {
        let root = tempfile::tempdir().unwrap();
        touch(
            root.path(),
            &["b/2.JPG", "b/1.png", "a/deep/er/x.webp", "a/y.jpeg", "a/.hidden.png", "b/notes.txt"],
        );
        touch(root.path(), &["readme.md", ".git/x.png"]);
        let classes = open(root.path()).unwrap();
        assert_eq!(classes.names, ["a", "b"]);
        assert_eq!(classes.given.words().collect::<Vec<_>>(), ["a", "a", "b", "b"]);
        assert_eq!(classes.skipped, Skipped { hidden: 2, foreign: 2 });
        let names: Vec<_> = classes.files.paths().iter().map(|p| p.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["y.jpeg", "x.webp", "1.png", "2.JPG"]);
    }

    #[test]
    fn an_empty_class_folder_is_an_error_that_names_it() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), &["a/1.png", "hollow/notes.txt"]);
        let error = open(root.path()).unwrap_err().to_string();
        assert!(error.contains("hollow"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_in_circles_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), &["a/1.png"]);
        std::os::unix::fs::symlink(root.path(), root.path().join("a/again")).unwrap();
        let classes = open(root.path()).unwrap();
        assert_eq!((classes.files.paths().len(), classes.skipped.foreign), (1, 1));
    }
}
