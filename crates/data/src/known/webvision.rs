//! mini-WebVision: the first 50 classes of WebVision 1.0 (Li et al. 2017), pictures that a web search brought.
//!
//! `info/train_filelist_google.txt` has lines `google/q0001/<name>.jpg <label>`, `info/val_filelist.txt` lines
//! `val000001.jpg <label>` for `val_images_256/`. Labels are 0 to 999; those below 50 are kept. Only the Google part is used, as
//! in the literature. If `info/synsets.txt` is there, its first 50 identifiers must be those built in ([`MINI_WEBVISION`]).
//!
//! The second test set are the ILSVRC12 validation pictures of the same classes (50 each), looked for in the folder
//! `ilsvrc12-val` beside `info`, or in `ilsvrc12-val`, `imagenet/val` or `ILSVRC2012_img_val` beside the WebVision folder:
//! - a folder per class, named by its WordNet identifier: `n01440764/*.JPEG`; or
//! - flat `ILSVRC2012_val_00000001.JPEG` with a text file `val_synsets.txt` or
//!   `imagenet_2012_validation_synset_labels.txt`: a line per picture, either `<file> <identifier>`, or the identifier alone,
//!   line i belonging to picture i.
//!
//! Where neither is found there is no second test set.

use super::dataset;
use super::pictures::{Pictures, is_jpeg, stays_below};
use super::synsets::MINI_WEBVISION;
use crate::{Dataset, Error, Result, Splits};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Files that must be there.
pub(super) const FILES: [&str; 2] = ["info/train_filelist_google.txt", "info/val_filelist.txt"];

/// Classes of the whole WebVision 1.0.
const ALL_CLASSES: u32 = 1000;
/// Longest line of a list.
const MAX_LINE: u64 = 4096;

/// Files and their labels.
pub type Listed = (Vec<Box<str>>, Vec<u32>);

/// mini-WebVision from the folder that holds `info`, `google` and `val_images_256`.
pub fn mini(folder: &Path) -> Result<Splits> {
    check_order(&folder.join("info/synsets.txt"))?;
    let part = |name: &str, list: &str, pictures: &str| {
        let path = folder.join(list);
        let (files, labels) = file_list(&path, open(&path)?)?;
        if files.is_empty() {
            return Err(Error::format(path, None, "no line with a label below 50; is this WebVision 1.0?"));
        }
        set(name, folder.join(pictures), files, labels)
    };
    Ok(Splits {
        train: part("mini-webvision", FILES[0], "")?,
        test: Some(part("mini-webvision-val", FILES[1], "val_images_256")?),
        second_test: places(folder)
            .iter()
            .find(|place| place.is_dir())
            .map(|place| ilsvrc12(place))
            .transpose()?,
        notes: Vec::new(),
        left_out: Vec::new(),
    })
}

/// ILSVRC12's validation pictures of the 50 classes, from a folder in one of the two layouts.
pub fn ilsvrc12(folder: &Path) -> Result<Dataset> {
    let lists = ["val_synsets.txt", "imagenet_2012_validation_synset_labels.txt"];
    let (files, labels) = match lists.iter().map(|list| folder.join(list)).find(|path| path.is_file()) {
        Some(list) => synset_list(&list, open(&list)?)?,
        None => per_class(folder)?,
    };
    if files.is_empty() {
        let problem = "no images of the 50 classes: give a folder per class (n01440764/*.JPEG), or flat images and \
                       val_synsets.txt with lines `<file> <identifier>`";
        return Err(Error::format(folder, None, problem));
    }
    set("ilsvrc12-val-50", folder.to_owned(), files, labels)
}

fn places(folder: &Path) -> Vec<PathBuf> {
    let mut places = vec![folder.join("ilsvrc12-val")];
    if let Some(above) = folder.parent() {
        places.extend(["ilsvrc12-val", "imagenet/val", "ILSVRC2012_img_val"].map(|place| above.join(place)));
    }
    places
}

fn set(name: &str, root: PathBuf, files: Vec<Box<str>>, labels: Vec<u32>) -> Result<Dataset> {
    let classes = MINI_WEBVISION.iter().map(|(_, name)| name.to_string()).collect();
    dataset(name, classes, Pictures::new(root, files)?, labels)
}

fn open(path: &Path) -> Result<BufReader<File>> {
    File::open(path).map(BufReader::new).map_err(|e| Error::io(path, e))
}

/// Calls `take` with the number (from 1) and text of every line that is not empty, never holding more than one.
fn lines(
    path: &Path,
    mut file: impl BufRead,
    mut take: impl FnMut(usize, &str) -> Result<(), String>,
) -> Result<()> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read =
            file.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(|e| Error::io(path, e))?;
        if read == 0 {
            break;
        }
        let wrong = |problem: String| Error::format(path, format!("line {number}"), problem);
        if read as u64 == MAX_LINE {
            return Err(wrong(format!("longer than {MAX_LINE} bytes: this is not such a list")));
        }
        let text = std::str::from_utf8(&line).map_err(|_| wrong("not UTF-8 text".into()))?.trim();
        if !text.is_empty() {
            take(number, text).map_err(wrong)?;
        }
    }
    Ok(())
}

/// Lines `<file> <label>`, of which those with a label below 50 are kept. `path` is for messages.
pub fn file_list(path: &Path, text: impl BufRead) -> Result<Listed> {
    let (mut files, mut labels) = (Vec::new(), Vec::new());
    lines(path, text, |_, line| {
        let expected =
            || format!("`{line}` is not `<file> <label>` with a label from 0 to {}", ALL_CLASSES - 1);
        let (file, label) = line.rsplit_once(char::is_whitespace).ok_or_else(expected)?;
        let label = label.parse().ok().filter(|&label: &u32| label < ALL_CLASSES).ok_or_else(expected)?;
        let file = file.trim_end();
        if !stays_below(file) {
            return Err(format!("`{file}` leaves the folder of the dataset"));
        }
        if (label as usize) < MINI_WEBVISION.len() {
            files.push(file.into());
            labels.push(label);
        }
        Ok(())
    })?;
    Ok((files, labels))
}

/// Labels mean classes only if the set counts them as we do.
fn check_order(path: &Path) -> Result<()> {
    if !path.is_file() {
        return Ok(());
    }
    let mut at = 0;
    lines(path, open(path)?, |_, line| {
        let expected = MINI_WEBVISION.get(at);
        at += 1;
        match expected {
            Some((id, name)) if !line.starts_with(id) => {
                Err(format!("`{line}` where class {} is {id} ({name}): is this WebVision 1.0?", at - 1))
            }
            _ => Ok(()),
        }
    })
}

fn class(id: &str) -> Option<u32> {
    MINI_WEBVISION.iter().position(|(known, _)| *known == id).map(|at| at as u32)
}

fn is_id(text: &str) -> bool {
    text.len() == 9 && text.starts_with('n') && text[1..].bytes().all(|byte| byte.is_ascii_digit())
}

/// Lines `<file> <identifier>`, or identifiers alone, for flat pictures. `list` is for messages.
pub fn synset_list(list: &Path, text: impl BufRead) -> Result<Listed> {
    let (mut files, mut labels) = (Vec::new(), Vec::new());
    let mut picture = 0;
    lines(list, text, |_, line| {
        picture += 1;
        let (file, id) = match line.rsplit_once(char::is_whitespace) {
            Some((file, id)) => (file.trim_end().to_owned(), id),
            None => (format!("ILSVRC2012_val_{picture:08}.JPEG"), line),
        };
        if !is_id(id) {
            return Err(format!("`{id}` is not a WordNet identifier such as n01440764"));
        }
        if !stays_below(&file) {
            return Err(format!("`{file}` leaves the folder of the dataset"));
        }
        if let Some(label) = class(id) {
            files.push(file.into());
            labels.push(label);
        }
        Ok(())
    })?;
    Ok((files, labels))
}

/// A folder per class, its pictures in the order of their names.
fn per_class(folder: &Path) -> Result<Listed> {
    let (mut files, mut labels) = (Vec::new(), Vec::new());
    for (label, (id, _)) in MINI_WEBVISION.iter().enumerate() {
        let path = folder.join(id);
        if !path.is_dir() {
            continue;
        }
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(|e| Error::io(&path, e))? {
            let name = entry.map_err(|e| Error::io(&path, e))?.file_name().to_string_lossy().into_owned();
            if is_jpeg(&name) {
                names.push(name);
            }
        }
        names.sort();
        labels.resize(labels.len() + names.len(), label as u32);
        files.extend(names.into_iter().map(|name| format!("{id}/{name}").into()));
    }
    Ok((files, labels))
}

#[cfg(test)]
#[path = "webvision_tests.rs"]
mod tests;
