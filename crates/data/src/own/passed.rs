//! What is passed over in folders of pictures, and saying so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Pictures of kinds that are not decoded, by their extensions.
const UNSUPPORTED: [&str; 16] = [
    "avif", "bmp", "gif", "heic", "heif", "ico", "jfif", "jp2", "jpe", "jxl", "pgm", "ppm", "svg", "tga",
    "tif", "tiff",
];

/// The extension (in small letters), if it is that of a picture that cannot be read.
pub(super) fn kind_that_cannot_be_read(extension: &str) -> Option<&'static str> {
    UNSUPPORTED.into_iter().find(|kind| *kind == extension)
}

/// What was passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passed {
    /// Names that begin with a dot.
    pub hidden: usize,
    /// No pictures by their extension.
    pub foreign: usize,
    /// Pictures of kinds that are not decoded, by extension.
    pub unsupported: BTreeMap<&'static str, usize>,
    /// Pictures beside the class folders, which belong to no class.
    pub loose: usize,
    /// Links to folders, below a class.
    pub linked_folders: usize,
    /// Links that lead nowhere.
    pub dangling: Vec<PathBuf>,
}

impl Passed {
    /// Adds what was passed over elsewhere.
    pub fn add(&mut self, other: Self) {
        self.hidden += other.hidden;
        self.foreign += other.foreign;
        other.unsupported.into_iter().for_each(|(kind, n)| *self.unsupported.entry(kind).or_default() += n);
        self.loose += other.loose;
        self.linked_folders += other.linked_folders;
        self.dangling.extend(other.dangling);
    }

    fn unsupported_words(&self) -> Option<String> {
        let kinds: Vec<String> =
            self.unsupported.iter().map(|(kind, n)| count(*n, &format!(".{kind} file"))).collect();
        (!kinds.is_empty()).then(|| kinds.join(", "))
    }

    fn dangling_words(&self) -> Option<String> {
        let first = self.dangling.first()?.display();
        let what = if self.dangling.len() == 1 { "link that leads" } else { "links that lead" };
        Some(format!("{} {what} nowhere (the first is {first})", self.dangling.len()))
    }

    /// What is there that somebody may have taken for pictures.
    pub(super) fn in_place_of_pictures(&self) -> Option<String> {
        let convert = self.unsupported_words().map(|kinds| format!("{kinds}: convert them to PNG or JPEG"));
        let dangling = self.dangling_words().map(|links| format!("{links}: fix or remove them"));
        let both: Vec<String> = convert.into_iter().chain(dangling).collect();
        (!both.is_empty()).then(|| both.join("; and "))
    }

    /// What a person should know, a sentence each. Hidden files are nobody's concern.
    pub fn notes(&self, root: &Path) -> Vec<String> {
        let loose = (self.loose > 0)
            .then(|| format!("{} outside the class folders skipped: no class", count(self.loose, "image")));
        let foreign =
            (self.foreign > 0).then(|| format!("{} skipped: not images", count(self.foreign, "other file")));
        let linked = (self.linked_folders > 0).then(|| {
            format!("{} skipped: links to folders are not followed", count(self.linked_folders, "link"))
        });
        let notes = [
            self.unsupported_words().map(|kinds| format!("{kinds} skipped: convert them to PNG or JPEG")),
            self.dangling_words().map(|links| format!("{links} skipped")),
            linked,
            loose,
            foreign,
        ];
        notes.into_iter().flatten().map(|note| format!("{}: {note}", root.display())).collect()
    }
}

/// A number with a noun.
fn count(n: usize, noun: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{s}")
}
