//! CIFAR-10 and CIFAR-100 (Krizhevsky 2009) in their official binary layout, and CIFAR-100 packed.
//!
//! A record is the label (CIFAR-100: coarse, then fine), one byte each, then 1,024 red, 1,024 green and 1,024 blue values, row
//! by row. Files are mapped. The packed form holds the same records as WebP strips (`train.webpstrips`, `test.webpstrips`) with
//! labels beside them (`train.labels`, `test.labels`: coarse and fine, two bytes per picture); it is unpacked into memory
//! once, to the very records of the official files, so that both forms have the same fingerprint.

use super::records::{Count, Layout, Records};
use super::strips::{Tile, unpack};
use super::{dataset, owned};
use crate::block::Block;
use crate::{Dataset, Error, Result, Shape, Splits};
use std::path::{Path, PathBuf};

/// Classes of CIFAR-10.
#[rustfmt::skip]
pub const CIFAR10: [&str; 10] = [
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
];

/// Fine classes of CIFAR-100.
#[rustfmt::skip]
pub const CIFAR100_FINE: [&str; 100] = [
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle",
    "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle",
    "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur",
    "dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard",
    "lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster", "man", "maple_tree", "motorcycle",
    "mountain", "mouse", "mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear",
    "pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon",
    "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail",
    "snake", "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone",
    "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale",
    "willow_tree", "wolf", "woman", "worm",
];

/// CIFAR-100's twenty superclasses, in order, each with its five classes. The classes themselves are numbered
/// alphabetically over all hundred.
#[rustfmt::skip]
pub const CIFAR100_SUPERCLASSES: [(&str, [&str; 5]); 20] = [
    ("aquatic_mammals", ["beaver", "dolphin", "otter", "seal", "whale"]),
    ("fish", ["aquarium_fish", "flatfish", "ray", "shark", "trout"]),
    ("flowers", ["orchid", "poppy", "rose", "sunflower", "tulip"]),
    ("food_containers", ["bottle", "bowl", "can", "cup", "plate"]),
    ("fruit_and_vegetables", ["apple", "mushroom", "orange", "pear", "sweet_pepper"]),
    ("household_electrical_devices", ["clock", "keyboard", "lamp", "telephone", "television"]),
    ("household_furniture", ["bed", "chair", "couch", "table", "wardrobe"]),
    ("insects", ["bee", "beetle", "butterfly", "caterpillar", "cockroach"]),
    ("large_carnivores", ["bear", "leopard", "lion", "tiger", "wolf"]),
    ("large_man-made_outdoor_things", ["bridge", "castle", "house", "road", "skyscraper"]),
    ("large_natural_outdoor_scenes", ["cloud", "forest", "mountain", "plain", "sea"]),
    ("large_omnivores_and_herbivores", ["camel", "cattle", "chimpanzee", "elephant", "kangaroo"]),
    ("medium_mammals", ["fox", "porcupine", "possum", "raccoon", "skunk"]),
    ("non-insect_invertebrates", ["crab", "lobster", "snail", "spider", "worm"]),
    ("people", ["baby", "boy", "girl", "man", "woman"]),
    ("reptiles", ["crocodile", "dinosaur", "lizard", "snake", "turtle"]),
    ("small_mammals", ["hamster", "mouse", "rabbit", "shrew", "squirrel"]),
    ("trees", ["maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"]),
    ("vehicles_1", ["bicycle", "bus", "motorcycle", "pickup_truck", "train"]),
    ("vehicles_2", ["lawn_mower", "rocket", "streetcar", "tank", "tractor"]),
];

/// Coarse classes of CIFAR-100, five fine ones in each.
pub const CIFAR100_COARSE: [&str; 20] = {
    let mut names = [""; 20];
    let mut at = 0;
    while at < names.len() {
        names[at] = CIFAR100_SUPERCLASSES[at].0;
        at += 1;
    }
    names
};

/// Mean and standard deviation of each channel, for pixels from 0 to 1.
pub(crate) type Channels = [(f64, f64); 3];

/// What published code uses for CIFAR-10. Its deviations are means of the pictures' own, hence smaller than those over all
/// pixels (0.2470, 0.2435, 0.2616).
pub(crate) const CIFAR10_CHANNELS: Channels = [(0.4914, 0.2023), (0.4822, 0.1994), (0.4465, 0.2010)];
/// What published code uses for CIFAR-100.
pub(crate) const CIFAR100_CHANNELS: Channels = [(0.507, 0.267), (0.487, 0.256), (0.441, 0.276)];

/// Which labels of CIFAR-100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    /// 100 classes.
    Fine,
    /// 20 classes.
    Coarse,
}

const SHAPE: Shape = Shape { width: 32, height: 32, channels: 3 };
const LAYOUT10: Layout = Layout { head: 0, skip: 1, shape: SHAPE };
const LAYOUT100: Layout = Layout { head: 0, skip: 2, shape: SHAPE };

/// Files of CIFAR-10, the last for testing.
pub(super) const FILES10: [&str; 6] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
    "test_batch.bin",
];
/// Files of CIFAR-100.
pub(super) const FILES100: [&str; 2] = ["train.bin", "test.bin"];
/// Files of CIFAR-100, packed.
pub(super) const PACKED100: [&str; 4] =
    ["train.webpstrips", "train.labels", "test.webpstrips", "test.labels"];

/// CIFAR-10 from the folder that holds `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`.
pub fn cifar10(folder: &Path) -> Result<Splits> {
    let paths = FILES10.map(|file| folder.join(file));
    let part = |name: &str, paths: &[PathBuf]| {
        labelled10(name, Records::open(paths, LAYOUT10, Count::Exactly(10_000))?)
    };
    Ok(Splits::new(part("cifar10", &paths[..5])?, Some(part("cifar10-test", &paths[5..])?)))
}

/// CIFAR-10's records, any number of them, from the bytes of a file.
pub fn cifar10_from_bytes(bytes: Vec<u8>) -> Result<Dataset> {
    labelled10("cifar10", Records::new(vec![(FILES10[0].into(), bytes.into())], LAYOUT10, Count::Any)?)
}

fn labelled10(name: &str, records: Records) -> Result<Dataset> {
    let labels = records.labels(10, |head| head[0].into())?;
    dataset(name, owned(&CIFAR10), records, labels)
}

/// CIFAR-100's records, any number of them, from the bytes of a file.
pub fn cifar100_from_bytes(bytes: Vec<u8>, labels: Labels) -> Result<Dataset> {
    let records = Records::new(vec![(FILES100[0].into(), bytes.into())], LAYOUT100, Count::Any)?;
    choose("cifar100", records, labels)
}

/// Packed pictures of CIFAR-100, two bytes of labels for each, from the bytes of the two files.
pub fn cifar100_packed_from_bytes(strips: &[u8], numbers: &[u8], labels: Labels) -> Result<Dataset> {
    let count = numbers.len() / 2;
    check_labels(Path::new(PACKED100[1]), numbers, count)?;
    choose("cifar100", unpack_records(PACKED100[0].into(), strips, numbers, count)?, labels)
}

/// CIFAR-100 from the folder that holds `train.bin` and `test.bin`.
pub fn cifar100(folder: &Path, labels: Labels) -> Result<Splits> {
    let part = |name: &str, file: &str, count| {
        let records = Records::open(&[folder.join(file)], LAYOUT100, Count::Exactly(count))?;
        choose(name, records, labels)
    };
    Ok(Splits::new(part("cifar100", FILES100[0], 50_000)?, Some(part("cifar100-test", FILES100[1], 10_000)?)))
}

/// CIFAR-100 from the folder that holds the packed form.
pub fn cifar100_packed(folder: &Path, labels: Labels) -> Result<Splits> {
    let part = |name: &str, part: &str, count| choose(name, packed(folder, part, count)?, labels);
    Ok(Splits::new(part("cifar100", "train", 50_000)?, Some(part("cifar100-test", "test", 10_000)?)))
}

fn choose(name: &str, records: Records, labels: Labels) -> Result<Dataset> {
    // Both are checked, whichever is asked for: a wrong one means a wrong file.
    let coarse = records.labels(20, |head| head[0].into())?;
    let fine = records.labels(100, |head| head[1].into())?;
    match labels {
        Labels::Fine => dataset(name, owned(&CIFAR100_FINE), records, fine),
        Labels::Coarse => dataset(&format!("{name}-coarse"), owned(&CIFAR100_COARSE), records, coarse),
    }
}

fn packed(folder: &Path, part: &str, count: usize) -> Result<Records> {
    let path = folder.join(format!("{part}.labels"));
    let labels = Block::map(&path)?;
    check_labels(&path, &labels, count)?;
    let path = folder.join(format!("{part}.webpstrips"));
    let strips = Block::map(&path)?;
    unpack_records(path, &strips, &labels, count)
}

fn check_labels(path: &Path, labels: &[u8], count: usize) -> Result<()> {
    if labels.len() == 2 * count {
        return Ok(());
    }
    let problem =
        format!("{} bytes, but two labels for each of {count} images are {}", labels.len(), 2 * count);
    Err(Error::format(path, None, problem))
}

/// Records with two bytes of `labels` for each of `count` pictures.
fn unpack_records(path: PathBuf, strips: &[u8], labels: &[u8], count: usize) -> Result<Records> {
    let tile = Tile { width: SHAPE.width, height: SHAPE.height, record: LAYOUT100.record() };
    let plane = SHAPE.width * SHAPE.height;
    let records = unpack(&path, strips, tile, count, |index, pixels, record| {
        let (head, planes) = record.split_at_mut(LAYOUT100.skip);
        head.copy_from_slice(&labels[2 * index..2 * index + 2]);
        for (at, pixel) in pixels.chunks_exact(3).enumerate() {
            for channel in 0..3 {
                planes[channel * plane + at] = pixel[channel];
            }
        }
    })?;
    Records::new(vec![(path, records.into())], LAYOUT100, Count::Exactly(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::real;
    use crate::{ImageStore, Items};
    use sha2::{Digest, Sha256};
    use std::fs::{self, File};
    use std::io::{Seek, SeekFrom, Write};

    /// Official sizes, zeros inside: holes on the disk.
    fn hollow(folder: &Path, files: &[(&str, u64)]) {
        for (file, size) in files {
            File::create(folder.join(file)).unwrap().set_len(*size).unwrap();
        }
    }

    fn write(folder: &Path, file: &str, at: u64, bytes: &[u8]) {
        let mut file = File::options().write(true).open(folder.join(file)).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(bytes).unwrap();
    }

    fn message<T>(result: Result<T>) -> String {
        result.err().expect("an error").to_string()
    }

    #[test]
    fn superclasses_hold_every_fine_class_once() {
        let mut members: Vec<&str> = CIFAR100_SUPERCLASSES.iter().flat_map(|(_, five)| *five).collect();
        members.sort();
        assert_eq!(members, CIFAR100_FINE);
        assert_eq!((CIFAR100_COARSE[0], CIFAR100_COARSE[19]), ("aquatic_mammals", "vehicles_2"));
    }

    #[test]
    fn cifar10_is_read_in_file_order() {
        let folder = tempfile::tempdir().unwrap();
        hollow(folder.path(), &FILES10.map(|file| (file, 30_730_000)));
        write(folder.path(), "data_batch_2.bin", 3 * 3073, &[7, 1]);
        write(folder.path(), "data_batch_2.bin", 3 * 3073 + 1 + 1024, &[2]);
        write(folder.path(), "data_batch_2.bin", 3 * 3073 + 1 + 2048, &[3]);
        let splits = cifar10(folder.path()).unwrap();
        assert_eq!((splits.train.len(), splits.test.as_ref().unwrap().len()), (50_000, 10_000));
        assert_eq!((splits.train.given()[10_003], splits.train.classes()[7].as_str()), (7, "horse"));
        let Items::Images(store) = splits.train.items() else { panic!("pictures") };
        assert_eq!(store.load(10_003).unwrap().pixels[..4], [1, 2, 3, 0]);

        write(folder.path(), "data_batch_4.bin", 77 * 3073, &[10]);
        let said = message(cifar10(folder.path()));
        assert!(said.contains("data_batch_4.bin, record 77") && said.contains("label 10"), "{said}");
    }

    #[test]
    fn files_of_wrong_size_or_absent_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        assert!(message(cifar10(folder.path())).contains("data_batch_1.bin"));
        for size in [0, 1, 30_729_999, 30_730_001, 30_726_927] {
            hollow(folder.path(), &FILES10.map(|file| (file, 30_730_000)));
            hollow(folder.path(), &[("data_batch_3.bin", size)]);
            let said = message(cifar10(folder.path()));
            assert!(said.contains("data_batch_3.bin"), "{said}");
        }
        hollow(folder.path(), &[("train.bin", 153_700_000), ("test.bin", 30_739_999)]);
        assert!(message(cifar100(folder.path(), Labels::Fine)).contains("test.bin"));
    }

    #[test]
    fn cifar100_has_coarse_and_fine_labels() {
        let folder = tempfile::tempdir().unwrap();
        hollow(folder.path(), &[("train.bin", 153_700_000), ("test.bin", 30_740_000)]);
        write(folder.path(), "train.bin", 3074, &[11, 99]);
        assert_eq!(cifar100(folder.path(), Labels::Fine).unwrap().train.given()[1], 99);
        let coarse = cifar100(folder.path(), Labels::Coarse).unwrap().train;
        assert_eq!((coarse.given()[1], coarse.classes().len()), (11, 20));
        write(folder.path(), "test.bin", 5 * 3074, &[0, 100]);
        assert!(message(cifar100(folder.path(), Labels::Coarse)).contains("test.bin, record 5"));
        write(folder.path(), "test.bin", 5 * 3074, &[20, 0]);
        assert!(message(cifar100(folder.path(), Labels::Fine)).contains("test.bin, record 5"));
    }

    #[test]
    fn packed_labels_of_wrong_size_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        hollow(folder.path(), &[("train.labels", 99_998)]);
        assert!(message(cifar100_packed(folder.path(), Labels::Fine)).contains("train.labels"));
        hollow(folder.path(), &[("train.labels", 100_000), ("train.webpstrips", 1 << 20)]);
        assert!(message(cifar100_packed(folder.path(), Labels::Fine)).contains("train.webpstrips"));
    }

    #[test]
    fn packed_cifar100_unpacks_to_the_official_files() {
        let Some(folder) = real("cifar100/train.webpstrips") else { return };
        let folder = folder.parent().unwrap();
        let copy = tempfile::tempdir().unwrap();
        for (part, count, sha256) in [
            ("train", 50_000, "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"),
            ("test", 10_000, "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"),
        ] {
            let records = packed(folder, part, count).unwrap();
            let coarse = records.labels(20, |head| head[0].into()).unwrap();
            let fine = records.labels(100, |head| head[1].into()).unwrap();
            let mut bytes = Vec::with_capacity(count * LAYOUT100.record());
            for i in 0..records.len() {
                bytes.extend([coarse[i] as u8, fine[i] as u8]);
                bytes.extend_from_slice(&records.bytes(i).unwrap());
            }
            assert_eq!(format!("{:x}", Sha256::digest(&bytes)), sha256, "{part}");
            fs::write(copy.path().join(format!("{part}.bin")), bytes).unwrap();
        }
        let packed = choose("cifar100-test", packed(folder, "test", 10_000).unwrap(), Labels::Fine).unwrap();
        let official = cifar100(copy.path(), Labels::Fine).unwrap().test.unwrap();
        assert_eq!(packed.fingerprint().unwrap(), official.fingerprint().unwrap());
        let (Items::Images(a), Items::Images(b)) = (packed.items(), official.items()) else {
            panic!("pictures")
        };
        assert_eq!(a.load(4_321).unwrap(), b.load(4_321).unwrap());
    }

    #[test]
    fn real_cifar10_fits_the_labels_of_cifar10n() {
        use crate::known::{HumanLabels, open};
        let (Some(_), Some(table)) = (real("cifar10/data_batch_5.bin"), real("cifar-n/cifar10n_labels.npy"))
        else {
            return;
        };
        let folders = std::env::var_os("NEGSCALE_DATA").unwrap_or_default();
        let train = open("cifar10", &std::env::split_paths(&folders).collect::<Vec<_>>()).unwrap().train;
        let Items::Images(store) = train.items() else { panic!("pictures") };
        let mut hash = Sha256::new();
        for i in 0..10_000 {
            hash.update([train.given()[i] as u8]);
            hash.update(store.bytes(i).unwrap());
        }
        let first_batch = "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5";
        assert_eq!(format!("{:x}", hash.finalize()), first_batch);
        HumanLabels::Worse.lay_over(&train, &table).unwrap();
    }
}
