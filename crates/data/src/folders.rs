//! Where data is looked for, and where fetched data goes.
//!
//! In this order: the folder named by the user (a flag), the folders listed in the variable `NEGSCALE_DATA` (separated as in
//! `PATH`), the cache folder by the platform's convention (`~/.cache/negscale/data` on Linux,
//! `~/Library/Caches/negscale/data` on macOS, `%LOCALAPPDATA%\negscale\data` on Windows).
//!
//! Folders of `NEGSCALE_DATA` are only read, since they are often shared and write-protected. Fetched data goes to the flag's
//! folder, else to the platform's cache.

use crate::{Error, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Name of the variable that lists folders to look in.
pub const VARIABLE: &str = "NEGSCALE_DATA";

/// Folders to look in, in order, and the folder to write to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    looked_in: Vec<PathBuf>,
    cache: Option<PathBuf>,
}

impl Folders {
    /// Folders by flag, by the value of `NEGSCALE_DATA` and by the platform's cache folder (already with `negscale/data`).
    ///
    /// Empty entries are dropped (an empty name would mean the current folder by accident), and so are repeated ones.
    pub fn arrange(flag: Option<&Path>, listed: Option<&OsStr>, platform: Option<&Path>) -> Self {
        let named = |path: &&Path| !path.as_os_str().is_empty();
        let flag = flag.filter(named).map(Path::to_owned);
        let platform = platform.filter(named).map(Path::to_owned);
        let listed = listed.map(|value| std::env::split_paths(value).collect::<Vec<_>>()).unwrap_or_default();
        let mut looked_in: Vec<PathBuf> = Vec::new();
        for folder in flag.iter().chain(&listed).chain(&platform) {
            if !folder.as_os_str().is_empty() && !looked_in.contains(folder) {
                looked_in.push(folder.clone());
            }
        }
        Self { looked_in, cache: flag.or(platform) }
    }

    /// Folders by flag and by this process's environment.
    pub fn of_process(flag: Option<&Path>) -> Self {
        let platform = dirs::cache_dir().map(|cache| cache.join("negscale").join("data"));
        Self::arrange(flag, std::env::var_os(VARIABLE).as_deref(), platform.as_deref())
    }

    /// The same to read from: the flag's folder must be there.
    pub fn to_read(flag: Option<&Path>) -> Result<Self> {
        match flag {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
                let problem =
                    "there is no such folder; --data-dir (in a recipe: data_dir) must name an existing one";
                Err(Error::format(folder, None, problem))
            }
            _ => Ok(Self::of_process(flag)),
        }
    }

    /// Folders to look in, the first to be preferred.
    pub fn looked_in(&self) -> &[PathBuf] {
        &self.looked_in
    }

    /// The folder that fetched data is written to.
    pub fn cache(&self) -> Result<&Path> {
        self.cache.as_deref().ok_or_else(|| Error::Setting {
            what: "cache folder",
            value: "(none)".into(),
            requirement: "this system has no cache folder: name one with --data-dir".into(),
        })
    }

    /// The first folder that holds `relative`, joined with it.
    pub fn find(&self, relative: impl AsRef<Path>) -> Option<PathBuf> {
        let relative = relative.as_ref();
        self.looked_in.iter().map(|folder| folder.join(relative)).find(|path| path.exists())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(folders: &[&str]) -> std::ffi::OsString {
        std::env::join_paths(folders).unwrap()
    }

    #[test]
    fn the_flag_comes_first_then_the_variable_then_the_platform() {
        let folders =
            Folders::arrange(Some(Path::new("flag")), Some(&list(&["b", "a"])), Some(Path::new("home")));
        assert_eq!(folders.looked_in(), ["flag", "b", "a", "home"].map(PathBuf::from));
        assert_eq!(folders.cache().unwrap(), Path::new("flag"));
    }

    #[test]
    fn a_folder_to_read_from_that_is_not_there_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Folders::to_read(Some(folder.path())).is_ok() && Folders::to_read(None).is_ok());
        let error = Folders::to_read(Some(&folder.path().join("absent"))).unwrap_err().to_string();
        assert!(error.contains("absent") && error.contains("--data-dir"), "{error}");
    }

    #[test]
    fn listed_folders_are_read_and_never_written() {
        let folders = Folders::arrange(None, Some(&list(&["shared"])), Some(Path::new("home")));
        assert_eq!(folders.looked_in(), ["shared", "home"].map(PathBuf::from));
        assert_eq!(folders.cache().unwrap(), Path::new("home"));
    }

    #[test]
    fn empty_and_repeated_entries_are_dropped() {
        let folders =
            Folders::arrange(Some(Path::new("")), Some(&list(&["", "a", "", "a"])), Some(Path::new("a")));
        assert_eq!(folders.looked_in(), [PathBuf::from("a")]);
        assert!(Folders::arrange(None, Some(OsStr::new("")), None).looked_in().is_empty());
    }

    #[test]
    fn without_any_cache_folder_the_error_says_what_to_do() {
        let error = Folders::arrange(None, None, None).cache().unwrap_err().to_string();
        assert!(error.contains("name one"), "{error}");
    }

    #[test]
    fn the_first_folder_that_holds_a_file_wins() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(second.path().join("x"), "2").unwrap();
        let value = std::env::join_paths([first.path(), second.path()]).unwrap();
        let folders = Folders::arrange(None, Some(&value), None);
        assert_eq!(folders.find("x"), Some(second.path().join("x")));
        std::fs::write(first.path().join("x"), "1").unwrap();
        assert_eq!(folders.find("x"), Some(first.path().join("x")));
        assert_eq!(folders.find("y"), None);
    }
}
