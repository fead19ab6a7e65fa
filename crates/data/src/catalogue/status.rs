//! Which known datasets are here, judged by file names and sizes, without reading them.

use super::{ENTRIES, Entry, Form, How, Piece};
use crate::folders::Folders;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Whether a dataset is here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum State {
    /// It is inside the program.
    Embedded,
    /// All its files are here.
    Present {
        /// The folder of its files.
        folder: PathBuf,
        /// The layout found.
        form: &'static str,
    },
    /// Some of its files are here.
    Incomplete {
        /// The folder of its files.
        folder: PathBuf,
        /// What is missing or has the wrong size.
        problems: Vec<String>,
    },
    /// None of its files are here.
    Absent,
}

/// A known dataset and whether it is here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The dataset.
    pub entry: &'static Entry,
    /// Whether it is here.
    #[serde(flatten)]
    pub state: State,
}

/// The state of every known dataset, shown as a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Listing {
    /// In the catalogue's order.
    pub rows: Vec<Status>,
}

/// Looks for every known dataset.
pub fn list(folders: &Folders) -> Listing {
    Listing { rows: ENTRIES.iter().map(|entry| Status { entry, state: entry.state(folders) }).collect() }
}

impl Entry {
    /// Looks for this dataset. A complete copy anywhere is preferred to an incomplete one found earlier.
    pub fn state(&'static self, folders: &Folders) -> State {
        if self.how == How::Embedded {
            return State::Embedded;
        }
        let mut incomplete: Option<(PathBuf, Vec<String>)> = None;
        for root in folders.looked_in() {
            for form in self.forms {
                for folder in form.folders.iter().map(|folder| root.join(folder)) {
                    let problems = form.problems(&folder);
                    if problems.is_empty() {
                        return State::Present { folder, form: form.name };
                    }
                    // of several incomplete layouts, the one that lacks least is most likely meant
                    if problems.len() < form.pieces.len() || form.any_piece(&folder) {
                        match &incomplete {
                            Some((_, fewer)) if fewer.len() <= problems.len() => {}
                            _ => incomplete = Some((folder, problems)),
                        }
                    }
                }
            }
        }
        match incomplete {
            Some((folder, problems)) => State::Incomplete { folder, problems },
            None => State::Absent,
        }
    }
}

impl Form {
    /// What is missing or wrong in a folder; nothing if the layout is complete.
    pub fn problems(&self, folder: &Path) -> Vec<String> {
        self.pieces.iter().filter_map(|piece| piece.problem(folder)).collect()
    }

    fn any_piece(&self, folder: &Path) -> bool {
        self.pieces.iter().any(|piece| folder.join(piece.path()).exists())
    }
}

impl Piece {
    fn path(&self) -> &'static str {
        match self {
            Piece::Sized(path, _) | Piece::File(path) | Piece::Folder(path) => path,
        }
    }

    fn problem(&self, folder: &Path) -> Option<String> {
        let path = self.path();
        let found = match std::fs::metadata(folder.join(path)) {
            Ok(found) => found,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Some(format!("{path} is missing")),
            Err(e) => return Some(format!("{path} cannot be read: {e}")),
        };
        match self {
            Piece::Sized(_, bytes) if !found.is_file() || found.len() != *bytes => {
                Some(format!("{path} has {} bytes, not {bytes}", found.len()))
            }
            Piece::File(_) if !found.is_file() || found.len() == 0 => Some(format!("{path} is empty")),
            Piece::Folder(_) => {
                let filled = std::fs::read_dir(folder.join(path)).is_ok_and(|mut all| all.next().is_some());
                (!filled).then(|| format!("{path} is not a folder with files in it"))
            }
            _ => None,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            State::Embedded => f.write_str("built in"),
            State::Present { folder, form } => write!(f, "{} ({form})", folder.display()),
            State::Incomplete { folder, problems } => {
                let first = problems.first().map_or("", String::as_str);
                let more = problems.len().saturating_sub(1);
                write!(f, "incomplete: {}: {first}", folder.display())?;
                if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
            }
            State::Absent => f.write_str("-"),
        }
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let count = |n: usize| if n == 0 { "-".to_owned() } else { n.to_string() };
        let header = ["name", "classes", "train", "test", "to get it", "found"].map(str::to_owned);
        let mut lines = vec![header];
        for Status { entry, state } in &self.rows {
            let how = match entry.how {
                How::Embedded => "embedded",
                How::Fetch => "get",
                How::ByHand { .. } => "by hand",
            };
            let (classes, train, test) = (count(entry.classes), count(entry.train), count(entry.test));
            lines.push([entry.name.into(), classes, train, test, how.into(), state.to_string()]);
        }
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 5] = std::array::from_fn(width);
        for [name, classes, train, test, how, found] in &lines {
            let [a, b, c, d, e] = widths;
            writeln!(f, "{name:a$}  {classes:>b$}  {train:>c$}  {test:>d$}  {how:e$}  {found}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::entry;

    /// A file of that size that takes no room on disk.
    fn hole(path: PathBuf, bytes: u64) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::File::create(path).unwrap().set_len(bytes).unwrap();
    }

    fn only(folder: &Path) -> Folders {
        Folders::arrange(Some(folder), None, None)
    }

    #[test]
    fn names_are_unique_and_unknown_ones_get_the_list_of_known_ones() {
        for (i, entry) in ENTRIES.iter().enumerate() {
            assert!(ENTRIES[..i].iter().all(|other| other.name != entry.name), "{}", entry.name);
            assert!(entry.how == How::Embedded || !entry.forms.is_empty(), "{}", entry.name);
        }
        let error = entry("cifar11").unwrap_err().to_string();
        assert!(error.contains("cifar11") && error.contains("cifar10,"), "{error}");
    }

    #[test]
    fn a_set_is_absent_then_incomplete_then_present() {
        let root = tempfile::tempdir().unwrap();
        let cifar100 = entry("cifar100").unwrap();
        assert_eq!(cifar100.state(&only(root.path())), State::Absent);
        hole(root.path().join("cifar100/train.bin"), 153_700_000);
        hole(root.path().join("cifar100/test.bin"), 7);
        let State::Incomplete { problems, .. } = cifar100.state(&only(root.path())) else { panic!() };
        assert_eq!(problems, ["test.bin has 7 bytes, not 30740000"]);
        hole(root.path().join("cifar100/test.bin"), 30_740_000);
        let folder = root.path().join("cifar100");
        assert_eq!(cifar100.state(&only(root.path())), State::Present { folder, form: "official binary" });
    }

    #[test]
    fn a_complete_copy_is_preferred_to_an_incomplete_one_found_earlier() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        hole(first.path().join("cifar-n/cifar10n_labels.npy"), 3);
        hole(second.path().join("cifar-n/cifar10n_labels.npy"), 300_128);
        let folders = Folders::arrange(Some(first.path()), None, Some(second.path()));
        let State::Present { folder, .. } = entry("cifar10n").unwrap().state(&folders) else { panic!() };
        assert_eq!(folder, second.path().join("cifar-n"));
    }

    #[test]
    fn an_empty_folder_of_pictures_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["animal10n/training", "animal10n/testing"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let animal = entry("animal10n").unwrap();
        assert!(matches!(animal.state(&only(root.path())), State::Incomplete { .. }));
        hole(root.path().join("animal10n/training/0_a.jpg"), 1);
        hole(root.path().join("animal10n/testing/0_a.jpg"), 1);
        assert!(matches!(animal.state(&only(root.path())), State::Present { form: "JPEG folders", .. }));
    }

    #[test]
    fn the_table_is_aligned_and_serialises() {
        let root = tempfile::tempdir().unwrap();
        let listing = list(&only(root.path()));
        let text = listing.to_string();
        let starts: Vec<usize> = text
            .lines()
            .zip(std::iter::once("to get it").chain(listing.rows.iter().map(|row| match row.entry.how {
                How::Embedded => "embedded",
                How::Fetch => "get",
                How::ByHand { .. } => "by hand",
            })))
            .map(|(line, how)| line.rfind(&format!("  {how} ")).unwrap())
            .collect();
        assert!(starts.iter().all(|start| *start == starts[0]), "{text}");
        let json = serde_json::to_value(&listing).unwrap();
        assert_eq!(json[0]["state"], "embedded");
        assert_eq!(json[1]["entry"]["name"], "fashion-mnist");
    }

    #[test]
    fn what_is_at_hand_is_found() {
        let folders = Folders::of_process(None);
        let Some(_) = crate::real_data::real("cifar100/train.webpstrips") else { return };
        assert!(matches!(entry("cifar100").unwrap().state(&folders), State::Present { .. }));
        for name in ["cifar10n", "cifar100n", "cifar10-embeddings", "cifar100-embeddings"] {
            assert!(matches!(entry(name).unwrap().state(&folders), State::Present { .. }), "{name}");
        }
        eprintln!("{}", list(&folders));
    }
}
