//! Animal-10N (Song et al., ICML 2019): 50,000 training pictures labelled by people in a hurry (about 8 % wrong), 5,000 for
//! testing, 64 x 64.
//!
//! Two forms: `data_batch_1.bin` and `test_batch.bin` of records [id, u32 big-endian][label, u32 big-endian][3 x 64 x 64 values,
//! channel by channel], mapped; or folders `training/` and `testing/` of JPEG files whose names start with the label and an
//! underscore, such as `4_00014.jpg`, taken in the order of their names.
//!
//! # Order of the classes
//! Label 4 is cheetah and label 5 is jaguar. A loader in circulation swaps these two; that changes no accuracy, but noise
//! matrices, class trees and findings would name the wrong animal.

use super::pictures::{Pictures, is_jpeg};
use super::records::{Count, Layout, Records};
use super::{dataset, owned};
use crate::{Dataset, Error, Result, Shape, Splits};
use std::path::Path;

/// Classes of Animal-10N.
#[rustfmt::skip]
pub const ANIMAL10N: [&str; 10] = [
    "cat", "lynx", "wolf", "coyote", "cheetah", "jaguar", "chimpanzee", "orangutan", "hamster", "guinea_pig",
];

/// Files of the binary form.
pub(super) const FILES: [&str; 2] = ["data_batch_1.bin", "test_batch.bin"];
/// Folders of the other form.
pub(super) const FOLDERS: [&str; 2] = ["training", "testing"];

const LAYOUT: Layout = Layout { head: 0, skip: 8, shape: Shape { width: 64, height: 64, channels: 3 } };

const NAMES: [&str; 2] = ["animal10n", "animal10n-test"];

/// Animal-10N from the folder that holds the binary form.
pub fn binary(folder: &Path) -> Result<Splits> {
    let part = |at: usize| labelled(NAMES[at], Records::open(&[folder.join(FILES[at])], LAYOUT, Count::Any)?);
    Ok(Splits::new(part(0)?, Some(part(1)?)))
}

/// Records of the binary form from the bytes of a file.
pub fn from_bytes(bytes: Vec<u8>) -> Result<Dataset> {
    labelled(NAMES[0], Records::new(vec![(FILES[0].into(), bytes.into())], LAYOUT, Count::Any)?)
}

fn labelled(name: &str, records: Records) -> Result<Dataset> {
    let labels = records.labels(10, |head| u32::from_be_bytes([head[4], head[5], head[6], head[7]]))?;
    dataset(name, owned(&ANIMAL10N), records, labels)
}

/// Animal-10N from the folder that holds `training/` and `testing/`.
pub fn jpeg(folder: &Path) -> Result<Splits> {
    let part = |at: usize| {
        let (files, labels) = list(&folder.join(FOLDERS[at]))?;
        dataset(NAMES[at], owned(&ANIMAL10N), Pictures::new(folder.join(FOLDERS[at]), files)?, labels)
    };
    Ok(Splits::new(part(0)?, Some(part(1)?)))
}

/// The pictures of a folder in the order of their names, with labels.
fn list(folder: &Path) -> Result<(Vec<Box<str>>, Vec<u32>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))? {
        let name = entry.map_err(|e| Error::io(folder, e))?.file_name();
        if !is_jpeg(&name.to_string_lossy()) {
            continue;
        }
        let wrong = || {
            let problem = "the name must start with a label from 0 to 9 and an underscore, as in 4_00014.jpg";
            Error::format(folder.join(&name), None, problem)
        };
        let name = name.to_str().ok_or_else(wrong)?;
        let label =
            name.split_once('_').and_then(|(label, _)| label.parse::<u32>().ok()).filter(|&label| label < 10);
        files.push((Box::<str>::from(name), label.ok_or_else(wrong)?));
    }
    if files.is_empty() {
        return Err(Error::format(folder, None, "no JPEG images; unpack the archive of Animal-10N here"));
    }
    files.sort();
    Ok(files.into_iter().unzip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Items;
    use crate::known::real;

    fn image(data: &Dataset, index: usize) -> crate::Image {
        let Items::Images(store) = data.items() else { panic!("pictures") };
        store.load(index).unwrap()
    }

    #[test]
    fn both_forms_of_the_fixture_are_read() {
        let Some(bin) = real("fixtures/animal10n-bin/test_batch.bin") else { return };
        let folder = bin.parent().unwrap();
        let raw = jpeg(&folder.parent().unwrap().join("animal10n-raw")).unwrap();
        let bin = binary(folder).unwrap();
        let (bin_test, raw_test) = (bin.test.unwrap(), raw.test.unwrap());
        assert_eq!((bin.train.len(), bin_test.len()), (40, 20));
        assert_eq!((raw.train.len(), raw_test.len()), (20, 10));
        assert_eq!(raw_test.given(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        for (data, each) in [(&bin.train, 4), (&bin_test, 2), (&raw.train, 2)] {
            for class in 0..10 {
                assert_eq!(data.given().iter().filter(|&&label| label == class).count(), each, "{data:?}");
            }
        }
        assert_eq!(image(&bin.train, 39).shape, LAYOUT.shape);
        assert_eq!(image(&raw.train, 19).shape.channels, 3);
    }

    fn record(id: u32, label: u32, first: [u8; 3]) -> Vec<u8> {
        let mut record = vec![0; LAYOUT.record()];
        record[..4].copy_from_slice(&id.to_be_bytes());
        record[4..8].copy_from_slice(&label.to_be_bytes());
        (0..3).for_each(|channel| record[8 + channel * 64 * 64] = first[channel]);
        record
    }

    #[test]
    fn records_are_big_endian_and_channel_by_channel() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join(FILES[0]),
            [record(256, 4, [1, 2, 3]), record(7, 5, [4, 5, 6])].concat(),
        )
        .unwrap();
        std::fs::write(folder.path().join(FILES[1]), record(1, 9, [0; 3])).unwrap();
        let train = binary(folder.path()).unwrap().train;
        assert_eq!(train.given(), [4, 5]);
        assert_eq!((train.classes()[4].as_str(), train.classes()[5].as_str()), ("cheetah", "jaguar"));
        assert_eq!(image(&train, 1).pixels[..4], [4, 5, 6, 0]);
    }

    #[test]
    fn broken_records_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let good = record(1, 1, [0; 3]);
        std::fs::write(folder.path().join(FILES[1]), &good).unwrap();
        // A label of 10, and one that a little-endian reader would take for 1.
        for label in [10, 1 << 24] {
            std::fs::write(folder.path().join(FILES[0]), [good.clone(), record(2, label, [0; 3])].concat())
                .unwrap();
            let message = binary(folder.path()).unwrap_err().to_string();
            assert!(message.contains("data_batch_1.bin, record 1"), "{message}");
        }
        for size in [0, 7, good.len() - 1, good.len() + 1] {
            std::fs::write(folder.path().join(FILES[0]), vec![0; size]).unwrap();
            assert!(binary(folder.path()).unwrap_err().to_string().contains("data_batch_1.bin"));
        }
    }

    #[test]
    fn names_without_a_label_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        for part in FOLDERS {
            std::fs::create_dir(folder.path().join(part)).unwrap();
        }
        assert!(jpeg(folder.path()).unwrap_err().to_string().contains("training"));
        for bad in ["cat.jpg", "10_1.jpg", "_1.jpg", "-1_1.jpg", "99999999999_1.jpg"] {
            let path = folder.path().join("training").join(bad);
            std::fs::write(&path, b"").unwrap();
            assert!(jpeg(folder.path()).unwrap_err().to_string().contains(bad));
            std::fs::remove_file(path).unwrap();
        }
    }
}
