//! ImageFolder: `root/class/**/*.{jpg,jpeg,png,webp}`, the folder's name being the class.
//!
//! Order is by name at every level, so it is the same on every machine. What is passed over is counted and said (`passed.rs`).
//! Below a class, links to folders are not followed: they could lead round in circles. A folder without pictures is no class, and
//! the numbers of classes count those that have some; one that would have pictures if their kind could be read, or if links did
//! not lead nowhere, is an error.

use super::files::Files;
use super::labels::Column;
use super::passed::{Passed, kind_that_cannot_be_read};
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
    pub passed: Passed,
    /// Folders without pictures, by name: no classes.
    pub empty: Vec<String>,
}

impl Classes {
    /// What a person should know of what was passed over below `root`.
    pub fn notes(&self, root: &Path) -> Vec<String> {
        let mut notes = self.passed.notes(root);
        if !self.empty.is_empty() {
            let names: Vec<String> = self.empty.iter().map(|name| format!("`{name}`")).collect();
            let names = names.join(", ");
            notes.push(format!(
                "{}: no image in {names}, so it is not a class; classes are numbered without it",
                root.display()
            ));
        }
        notes
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// A file's extension in small letters.
fn extension(path: &Path) -> Option<String> {
    path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase)
}

/// Whether the name is that of a picture.
pub(super) fn is_picture(path: &Path) -> bool {
    extension(path).is_some_and(|e| PICTURES.contains(&e.as_str()))
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
    let (mut passed, mut empty) = (Passed::default(), Vec::new());
    let (mut files, mut given, mut names) = (Vec::new(), Column::new(false), Vec::new());
    for entry in entries(root)? {
        if is_hidden(&entry) {
            passed.hidden += 1;
            continue;
        }
        if !entry.is_dir() {
            if entry.is_file() && is_picture(&entry) {
                passed.loose += 1;
            } else {
                pass_over(&entry, &mut passed);
            }
            continue;
        }
        let Some(name) = entry.file_name().and_then(|name| name.to_str()).map(str::to_owned) else {
            return Err(Error::format(&entry, None, "the name of this class folder is not UTF-8: rename it"));
        };
        let (before, mut here) = (files.len(), Passed::default());
        gather(&entry, &mut files, &mut here)?;
        if files.len() == before {
            match here.in_place_of_pictures() {
                Some(found) => {
                    let problem = format!("class folder without an image that can be read, but with {found}");
                    return Err(Error::format(&entry, None, problem));
                }
                None => empty.push(name),
            }
        } else {
            (before..files.len()).for_each(|_| given.push(&name));
            names.push(name);
        }
        passed.add(here);
    }
    if names.is_empty() {
        let problem = "no class folder with images (jpg, jpeg, png, webp) in it";
        return Err(Error::format(root, None, problem));
    }
    given.mark_names();
    Ok(Classes { files: Files::new(files), given, names, passed, empty })
}

/// All pictures below a folder, whatever the folders in it mean; and what was passed over.
pub fn open_all(root: &Path) -> Result<(Files, Passed)> {
    let (mut files, mut passed) = (Vec::new(), Passed::default());
    gather(root, &mut files, &mut passed)?;
    if files.is_empty() {
        let but = passed.in_place_of_pictures().map(|found| format!(", but {found}"));
        let problem = format!(
            "no image (jpg, jpeg, png, webp) in it or in folders below{}",
            but.as_deref().unwrap_or_default()
        );
        return Err(Error::format(root, None, problem));
    }
    Ok((Files::new(files), passed))
}

/// All pictures below a folder.
fn gather(folder: &Path, files: &mut Vec<PathBuf>, passed: &mut Passed) -> Result<()> {
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        let mut below = Vec::new();
        for entry in entries(&folder)? {
            if is_hidden(&entry) {
                passed.hidden += 1;
            } else if entry.is_dir() && !entry.is_symlink() {
                below.push(entry);
            } else if entry.is_file() && is_picture(&entry) {
                files.push(entry);
            } else {
                pass_over(&entry, passed);
            }
        }
        waiting.extend(below.into_iter().rev());
    }
    Ok(())
}

/// Counts what is neither a picture nor a folder to look into.
fn pass_over(entry: &Path, passed: &mut Passed) {
    if entry.is_dir() {
        passed.linked_folders += 1;
    } else if !entry.exists() {
        passed.dangling.push(entry.to_owned());
    } else if let Some(kind) = extension(entry).as_deref().and_then(kind_that_cannot_be_read) {
        *passed.unsupported.entry(kind).or_default() += 1;
    } else {
        passed.foreign += 1;
    }
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
        assert_eq!(classes.passed, Passed { hidden: 2, foreign: 2, ..Passed::default() });
        let names: Vec<_> = classes.files.paths().iter().map(|p| p.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["y.jpeg", "x.webp", "1.png", "2.JPG"]);
    }

    #[test]
    fn an_empty_class_folder_is_no_class_and_the_note_names_it() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), &["a/1.png", "hollow/notes.txt", "z/1.png"]);
        let classes = open(root.path()).unwrap();
        assert_eq!(classes.names, ["a", "z"]);
        let notes = classes.notes(root.path()).join("\n");
        assert!(notes.contains("no image in `hollow`") && notes.contains("not a class"), "{notes}");
    }

    #[test]
    fn kinds_that_cannot_be_read_are_counted_by_kind_and_loose_pictures_too() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), &["a/1.png", "a/2.gif", "a/3.GIF", "a/4.bmp", "a/5.tif", "a/6.tiff", "a/7.avif"]);
        touch(root.path(), &["a/notes.txt", "loose.jpg"]);
        let classes = open(root.path()).unwrap();
        let counts: Vec<_> = classes.passed.unsupported.iter().map(|(kind, n)| (*kind, *n)).collect();
        assert_eq!(counts, [("avif", 1), ("bmp", 1), ("gif", 2), ("tif", 1), ("tiff", 1)]);
        assert_eq!((classes.passed.foreign, classes.passed.loose), (1, 1));
        let notes = classes.notes(root.path()).join("\n");
        for part in ["2 .gif files", "1 .avif file", "convert them to PNG or JPEG", "1 image", "1 other file"]
        {
            assert!(notes.contains(part), "{part}: {notes}");
        }
    }

    #[test]
    fn a_class_of_nothing_but_pictures_of_another_kind_is_an_error_that_names_the_kind() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), &["a/1.png", "b/1.gif", "b/2.gif"]);
        let error = open(root.path()).unwrap_err().to_string();
        assert!(error.contains("/b: ") && error.contains("2 .gif files"), "{error}");
        let error = open_all(&root.path().join("b")).unwrap_err().to_string();
        assert!(error.contains("2 .gif files"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_in_circles_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), &["a/1.png"]);
        std::os::unix::fs::symlink(root.path(), root.path().join("a/again")).unwrap();
        let classes = open(root.path()).unwrap();
        assert_eq!((classes.files.paths().len(), classes.passed.linked_folders), (1, 1));
        assert!(classes.notes(root.path()).join("").contains("links to folders are not followed"));
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_nowhere_are_counted_and_the_first_is_named() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), &["a/1.png", "b/x.txt"]);
        for name in ["a/2.png", "a/3.png", "b/1.png"] {
            std::os::unix::fs::symlink("nowhere.png", root.path().join(name)).unwrap();
        }
        let error = open(root.path()).unwrap_err().to_string();
        assert!(error.contains("/b: ") && error.contains("1 link that leads nowhere"), "{error}");
        std::fs::remove_file(root.path().join("b/1.png")).unwrap();
        let notes = open(root.path()).unwrap().notes(root.path()).join("\n");
        assert!(notes.contains("2 links that lead nowhere") && notes.contains("2.png"), "{notes}");
    }
}
