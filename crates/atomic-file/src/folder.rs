//! Folders in which the program overwrites and removes its own files only.
//!
//! Such a folder carries a marker, `.negscale-folder`: the list of the files that were written into it. A name is put on the
//! list, on the disk, before its file is written for the first time, so that no crash leaves a file of ours that is not
//! listed. What is not on the list is somebody else's: it is never replaced and never removed.
//!
//! The marker is locked as long as the folder is open, so that one process at a time works in it.

use crate::{create_folders, folder_of, keep_name, part_of};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Name of the marker.
pub const MARKER: &str = ".negscale-folder";
const HEAD: &str =
    "# Files that negscale wrote into this folder. It replaces and removes these, and no others.\n";
/// Names that an error lists.
const NAMED: usize = 3;

/// A folder of ours, held by this process alone.
#[derive(Debug)]
pub struct OwnFolder {
    place: PathBuf,
    marker: Mutex<Marker>,
}

#[derive(Debug)]
struct Marker {
    file: File,
    /// Paths below the folder, with `/` between their parts.
    names: BTreeSet<String>,
}

/// Keeps others from working in a folder.
#[derive(Debug)]
pub struct FolderGuard {
    _file: File,
}

fn in_use(place: &Path) -> io::Error {
    io::Error::new(ErrorKind::WouldBlock, format!("another process is using {}", place.display()))
}

impl OwnFolder {
    /// Opens a folder that is ours, or makes one of a place where there is nothing yet, or an empty folder.
    ///
    /// # Errors
    /// The place is not empty and carries no marker; another process has it ([`ErrorKind::WouldBlock`]); those of the system.
    /// Nothing is changed then, except that missing folders may have been made. The text names the folder.
    pub fn open(place: impl AsRef<Path>) -> io::Result<Self> {
        let place = place.as_ref();
        create_folders(place).map_err(|e| tell(place, "cannot create the folder", e))?;
        if !place.join(MARKER).try_exists().map_err(|e| name_place(place, e))? {
            refuse_others(place)?;
        }
        Self::share(place)
    }

    /// As [`open`](Self::open), but takes a folder with files of others as well: those stay theirs.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn share(place: impl AsRef<Path>) -> io::Result<Self> {
        let place = place.as_ref();
        create_folders(place).map_err(|e| tell(place, "cannot create the folder", e))?;
        let path = place.join(MARKER);
        // Two that begin at once make it both, and one of them gets the lock.
        let file = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let mut file = file.map_err(|e| tell(place, "cannot write into", e))?;
        // Whoever only looks whether somebody works here holds the lock for an instant.
        let is_locked = (0..5).any(|i| {
            std::thread::sleep(Duration::from_millis(20 * i));
            file.try_lock().is_ok()
        });
        if !is_locked {
            return Err(in_use(place));
        }
        let names = read_names(&mut file).map_err(|e| name_place(place, e))?;
        // Without its marker the folder would be somebody else's after a power cut.
        keep_name(&path).map_err(|e| name_place(place, e))?;
        Ok(Self { place: place.to_owned(), marker: Mutex::new(Marker { file, names }) })
    }

    /// Keeps others from working in a folder of ours, as long as what is returned is there. Any number may do so at once.
    ///
    /// # Errors
    /// It carries no marker ([`ErrorKind::NotFound`]); a process works in it ([`ErrorKind::WouldBlock`]). The text names the folder.
    pub fn guard(place: impl AsRef<Path>) -> io::Result<FolderGuard> {
        let place = place.as_ref();
        let file = File::open(place.join(MARKER)).map_err(|e| tell(place, "cannot look into", e))?;
        let is_locked = (0..5).any(|i| {
            std::thread::sleep(Duration::from_millis(20 * i));
            file.try_lock_shared().is_ok()
        });
        if is_locked { Ok(FolderGuard { _file: file }) } else { Err(in_use(place)) }
    }

    /// Whether a folder carries the marker.
    #[must_use]
    pub fn is_ours(place: impl AsRef<Path>) -> bool {
        place.as_ref().join(MARKER).is_file()
    }

    /// Whether a process works in it now.
    #[must_use]
    pub fn is_open(place: impl AsRef<Path>) -> bool {
        File::open(place.as_ref().join(MARKER)).is_ok_and(|file| file.try_lock_shared().is_err())
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Puts files on the list, which may then be written.
    ///
    /// # Errors
    /// A file of that name is there and not on the list; those of the system. The text names the file.
    pub fn claim<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
        let mut marker = self.marker();
        let new: BTreeSet<&str> = names.into_iter().filter(|name| !marker.names.contains(*name)).collect();
        if new.is_empty() {
            return Ok(());
        }
        for name in &new {
            if name.contains('\n') {
                return Err(io::Error::new(ErrorKind::InvalidInput, "a name may not hold a line feed"));
            }
            let path = self.place.join(name);
            if path.symlink_metadata().is_ok() {
                let problem = format!(
                    "{} exists and was not written by this program: move it away, or choose another folder",
                    path.display()
                );
                return Err(io::Error::new(ErrorKind::AlreadyExists, problem));
            }
        }
        let lines: String = new.iter().map(|name| format!("{name}\n")).collect();
        let written = marker.file.write_all(lines.as_bytes()).and_then(|()| marker.file.sync_data());
        written.map_err(|e| name_place(&self.place, e))?;
        marker.names.extend(new.into_iter().map(str::to_owned));
        Ok(())
    }

    /// Puts a file on the list and gives its path.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    pub fn file(&self, name: &str) -> io::Result<PathBuf> {
        self.claim([name])?;
        Ok(self.place.join(name))
    }

    /// Whether a file is on the list.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.marker().names.contains(name)
    }

    /// Files on the list, whether they are there or not.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.marker().names.iter().cloned().collect()
    }

    /// Removes those of the listed files that are asked for, and folders that are empty then.
    ///
    /// # Errors
    /// Those of the system, naming the file.
    pub fn remove(&self, is_asked: impl Fn(&str) -> bool) -> io::Result<()> {
        let names = self.names();
        let mut folders = BTreeSet::new();
        for name in names.iter().filter(|name| is_asked(name)) {
            let path = self.place.join(name);
            match fs::remove_file(&path) {
                Err(error) if !is_absent(&error) => {
                    return Err(tell(&path, "cannot remove", error));
                }
                _ => {}
            }
            folders.extend(path.parent().filter(|folder| *folder != self.place).map(Path::to_owned));
        }
        folders.iter().try_for_each(|folder| remove_if_empty(folder))
    }

    /// Removes all listed files and the marker, and the folder if nothing of others is in it.
    ///
    /// # Errors
    /// Those of the system, naming the file or folder.
    pub fn dissolve(self) -> io::Result<()> {
        self.remove(|_| true)?;
        let marker = self.place.join(MARKER);
        fs::remove_file(&marker).map_err(|e| tell(&marker, "cannot remove", e))?;
        remove_if_empty(&self.place)
    }

    /// Removes parts of listed files that killed processes left, and says how many. Call it before writing.
    ///
    /// # Errors
    /// Those of the system, naming the file or folder.
    pub fn remove_parts(&self) -> io::Result<usize> {
        let names = self.names();
        let mut folders: BTreeSet<PathBuf> = BTreeSet::from([self.place.clone()]);
        folders.extend(names.iter().map(|name| folder_of(&self.place.join(name)).to_owned()));
        let starts: BTreeSet<String> =
            names.iter().filter_map(|name| part_of(Path::new(name)).ok()).collect();
        let mut count = 0;
        for folder in folders {
            let entries = match fs::read_dir(&folder) {
                Err(error) if is_absent(&error) => continue,
                entries => entries.map_err(|e| tell(&folder, "cannot list", e))?,
            };
            for entry in entries {
                let entry = entry.map_err(|e| tell(&folder, "cannot list", e))?;
                let name = entry.file_name();
                let Some(start) = name.to_str().and_then(start_of_part) else { continue };
                if starts.contains(start) {
                    fs::remove_file(entry.path()).map_err(|e| tell(&entry.path(), "cannot remove", e))?;
                    count += 1;
                }
            }
        }
        Ok(count)
    }

    fn marker(&self) -> MutexGuard<'_, Marker> {
        // The list is only ever added to, so that a panic elsewhere leaves it sound.
        self.marker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `.name.` of `.name.123-4.part`.
fn start_of_part(name: &str) -> Option<&str> {
    let rest = name.strip_suffix(".part")?;
    let (start, numbers) = rest.rsplit_once('.')?;
    let (process, count) = numbers.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(process) && is_number(count)).then(|| &name[..=start.len()])
}

fn refuse_others(place: &Path) -> io::Result<()> {
    let list = || -> io::Result<Vec<String>> {
        fs::read_dir(place)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    };
    let mut names = list().map_err(|e| tell(place, "cannot list", e))?;
    // Another process made it ours in the meantime.
    if names.is_empty() || names.iter().any(|name| name == MARKER) {
        return Ok(());
    }
    names.sort_unstable();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let problem = format!(
        "{} is not empty, and what is in it is not this program's ({}{more}): choose a new or an empty folder; nothing was changed",
        place.display(),
        names.join(", ")
    );
    Err(io::Error::new(ErrorKind::AlreadyExists, problem))
}

/// Names on the list. A last line without its end was not written to the end, and nothing was written by its name.
fn read_names(file: &mut File) -> io::Result<BTreeSet<String>> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut text)?;
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    if whole < text.len() {
        file.set_len(whole as u64)?;
        text.truncate(whole);
    }
    if text.is_empty() {
        file.write_all(HEAD.as_bytes())?;
        file.sync_data()?;
    }
    let text = String::from_utf8(text)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, format!("{MARKER} is damaged: it is no text")))?;
    // Names that lead out of the folder were not put there by us.
    let is_below =
        |name: &&str| Path::new(name).components().all(|c| matches!(c, std::path::Component::Normal(_)));
    Ok(text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .filter(is_below)
        .map(str::to_owned)
        .collect())
}

fn remove_if_empty(folder: &Path) -> io::Result<()> {
    match fs::remove_dir(folder) {
        // Not empty: somebody put a file of theirs there.
        Err(error) if !is_absent(&error) && error.kind() != ErrorKind::DirectoryNotEmpty => {
            Err(tell(folder, "cannot remove", error))
        }
        _ => Ok(()),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn tell(path: &Path, what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()))
}

fn name_place(place: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", place.display()))
}
