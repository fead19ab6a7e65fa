//! Datasets that are known by name, in the layouts in which they are given out.
//!
//! [`open`] finds one in a list of folders; each family also has functions of its own that take the folder itself.

pub mod animal;
pub mod cifar;
pub mod cifar_n;
pub mod embedded;
pub mod embeddings;
pub mod idx;
mod pictures;
mod records;
mod strips;
pub mod synsets;
pub mod webvision;

pub use cifar_n::{HumanColumns, HumanLabels};
pub use embedded::embedded;

#[cfg(test)]
use crate::real_data::real;
use crate::{Dataset, Error, ImageStore, Items, Result, Splits};
use negscale_records::did_you_mean;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A layout: the files that must be there, in one of some folders below those that are searched (`.`: directly).
struct Place<'a> {
    folders: &'a [&'a str],
    files: &'a [&'a str],
}

/// How a set in a place is read.
type Reader = fn(&Path) -> Result<Splits>;

struct Known {
    names: &'static [&'static str],
    layouts: &'static [(Place<'static>, Reader)],
}

const KNOWN: &[Known] = &[
    Known {
        names: &["cifar10", "cifar-10"],
        layouts: &[(
            Place {
                folders: &["cifar-10-batches-bin", "cifar10", "cifar10/cifar-10-batches-bin", "."],
                files: &cifar::FILES10,
            },
            cifar::cifar10,
        )],
    },
    Known {
        names: &["cifar100", "cifar-100"],
        layouts: &[
            (
                Place {
                    folders: &["cifar-100-binary", "cifar100", "cifar100/cifar-100-binary", "."],
                    files: &cifar::FILES100,
                },
                |folder| cifar::cifar100(folder, cifar::Labels::Fine),
            ),
            (Place { folders: &["cifar100", "."], files: &cifar::PACKED100 }, |folder| {
                cifar::cifar100_packed(folder, cifar::Labels::Fine)
            }),
        ],
    },
    Known {
        names: &["animal10n", "animal-10n"],
        layouts: &[
            (
                Place { folders: &["animal10n", "Animal-10N", "animal10n-bin", "."], files: &animal::FILES },
                animal::binary,
            ),
            (
                Place {
                    folders: &[
                        "animal10n",
                        "Animal-10N",
                        "animal10n/raw_image",
                        "Animal-10N/raw_image",
                        "animal10n-raw",
                        ".",
                    ],
                    files: &animal::FOLDERS,
                },
                animal::jpeg,
            ),
        ],
    },
    Known {
        names: &["mini-webvision", "webvision"],
        layouts: &[(
            Place { folders: &["webvision", "WebVision", "."], files: &webvision::FILES },
            webvision::mini,
        )],
    },
    Known {
        names: &["mnist"],
        layouts: &[(
            Place { folders: &["mnist", "mnist/raw", "MNIST/raw", "."], files: &idx::FILES },
            idx::mnist,
        )],
    },
    Known {
        names: &["fashion-mnist"],
        layouts: &[(
            Place {
                folders: &["fashion-mnist", "fashion-mnist/raw", "FashionMNIST/raw", "."],
                files: &idx::FILES,
            },
            idx::fashion_mnist,
        )],
    },
    Known {
        names: &["cifar10-embeddings"],
        layouts: &[(
            Place { folders: &["embeddings", "."], files: &embeddings::FILES10 },
            embeddings::cifar10,
        )],
    },
    Known {
        names: &["cifar100-embeddings"],
        layouts: &[(
            Place { folders: &["embeddings", "."], files: &embeddings::FILES100 },
            embeddings::cifar100,
        )],
    },
];

/// Name of the set inside the program.
pub const EMBEDDED: &str = "fashion-mnist-subset";

/// Names that [`open`] knows.
pub fn names() -> Vec<&'static str> {
    std::iter::once(EMBEDDED).chain(KNOWN.iter().map(|known| known.names[0])).collect()
}

/// Whether [`open`] knows the name, or another spelling of it.
pub fn is_known(name: &str) -> bool {
    name == EMBEDDED || find_known(name).is_some()
}

fn find_known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.names.contains(&name))
}

/// Opens a known dataset from the first folder that holds it.
///
/// `fashion-mnist-subset` needs no folder. CIFAR-100 comes with fine labels; [`cifar`] has the coarse ones.
pub fn open(name: &str, folders: &[PathBuf]) -> Result<Splits> {
    if name == EMBEDDED {
        return embedded();
    }
    let Some(known) = find_known(name) else {
        let requirement = format!("{}known datasets are {}", did_you_mean(name, names()), names().join(", "));
        return Err(Error::Setting { what: "dataset", value: name.to_owned(), requirement });
    };
    let places: Vec<&Place> = known.layouts.iter().map(|(place, _)| place).collect();
    let (layout, folder) = find(name, &places, folders)?;
    known.layouts[layout].1(&folder)
}

/// Number of the layout and the folder in which all its files are.
fn find<'a, P: std::borrow::Borrow<Place<'a>>>(
    name: &str,
    places: &[P],
    folders: &[PathBuf],
) -> Result<(usize, PathBuf)> {
    for folder in folders {
        for (layout, place) in places.iter().enumerate() {
            let Place { folders: below, files } = place.borrow();
            for below in below.iter() {
                let folder = if *below == "." { folder.clone() } else { folder.join(below) };
                if files.iter().all(|file| is_there(&folder.join(file))) && !belongs_elsewhere(files, &folder)
                {
                    return Ok((layout, folder));
                }
            }
        }
    }
    let layouts: Vec<String> = places
        .iter()
        .map(|place| {
            let Place { folders, files } = place.borrow();
            let folders: Vec<_> = folders
                .iter()
                .map(|folder| if *folder == "." { "the folder itself" } else { folder })
                .collect();
            format!("{} (all in one of: {})", files.join(", "), folders.join("; "))
        })
        .collect();
    let searched: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let searched = if searched.is_empty() {
        "no folder at all; give one with --data-dir".to_owned()
    } else {
        searched.join("; ")
    };
    let looked_for = format!(
        "Looked for {}. Searched: {searched}. The environment variable NEGSCALE_DATA can name more folders",
        layouts.join(", or for ")
    );
    Err(Error::Missing { name: name.to_owned(), looked_for })
}

/// Whether a file or folder is there, IDX files also gzipped.
fn is_there(path: &Path) -> bool {
    let gzipped = || {
        path.to_str().filter(|path| path.ends_with("-ubyte")).map(|path| PathBuf::from(format!("{path}.gz")))
    };
    path.exists() || gzipped().is_some_and(|path| path.exists())
}

/// Animal-10N has names of CIFAR-10: what has a second batch is CIFAR-10.
fn belongs_elsewhere(files: &[&str], folder: &Path) -> bool {
    files == animal::FILES && folder.join("data_batch_2.bin").exists()
}

/// Class names.
fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

/// A set of pictures whose truth is not known apart from its labels.
fn dataset(
    name: &str,
    classes: Vec<String>,
    store: impl ImageStore + 'static,
    given: Vec<u32>,
) -> Result<Dataset> {
    Dataset::new(name, classes, Items::Images(Arc::new(store)), given, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_set_says_what_was_looked_for_and_where() {
        let folder = tempfile::tempdir().unwrap();
        let message = open("cifar100", &[folder.path().to_owned()]).unwrap_err().to_string();
        for part in
            ["train.bin", "train.webpstrips", "cifar-100-binary", &folder.path().display().to_string()]
        {
            assert!(message.contains(part), "{message}");
        }
        assert!(open("cifar10", &[]).unwrap_err().to_string().contains("no folder at all"));
        for name in names().into_iter().filter(|name| *name != EMBEDDED) {
            assert!(matches!(open(name, &[folder.path().to_owned()]), Err(Error::Missing { .. })), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let message = open("cifar1000", &[]).unwrap_err().to_string();
        assert!(message.contains("cifar1000") && message.contains("mini-webvision"), "{message}");
    }

    #[test]
    fn the_embedded_set_needs_no_folder() {
        assert_eq!(open(EMBEDDED, &[]).unwrap().train.len(), 10_000);
    }

    #[test]
    fn a_folder_of_cifar10_is_not_taken_for_animal10n() {
        let folder = tempfile::tempdir().unwrap();
        for file in cifar::FILES10 {
            std::fs::write(folder.path().join(file), b"").unwrap();
        }
        assert!(matches!(open("animal10n", &[folder.path().to_owned()]), Err(Error::Missing { .. })));
        // CIFAR-10 is found and its emptiness told.
        assert!(
            open("cifar10", &[folder.path().to_owned()])
                .unwrap_err()
                .to_string()
                .contains("data_batch_1.bin")
        );
    }

    #[test]
    fn real_sets_are_found_by_name() {
        let Some(embeddings) = real("embeddings/cifar10_labels.npy") else { return };
        let data = embeddings.parent().unwrap().parent().unwrap().to_owned();
        let folders = [data.join("absent"), data.clone(), data.join("fixtures")];
        for (name, train, test) in [
            ("cifar10-embeddings", 50_000, 10_000),
            ("cifar100-embeddings", 50_000, 10_000),
            ("animal10n", 40, 20),
            ("webvision", 16, 8),
        ] {
            let splits = open(name, &folders).unwrap();
            assert_eq!((splits.train.len(), splits.test.unwrap().len()), (train, test), "{name}");
        }
    }
}
