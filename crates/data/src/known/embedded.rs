//! A subset of Fashion-MNIST inside the program, so that everything runs with no download.
//!
//! The first 1,000 training and the first 200 test pictures of every class, in file order: 10,000 and 2,000 of 28 x 28, grey.
//! Per picture one label byte and 784 values, both parts have the sha256
//!
//! | split | sha256 |
//! |---|---|
//! | train | `aaf6b9b57b6586c9a202e5a688e7bfacba8132e01a7ff130150bb6a114fc9de9` |
//! | test | `1dc67e4586362fc2086836ac0c152b2a7df417a798c1d19cbafe4453b47b5e8d` |
//!
//! The files lie in `assets/fashion-mnist`, with the script that made them and the licence (MIT, Zalando SE), which
//! [`LICENCE`] holds as well.

use super::idx::FASHION_MNIST;
use super::records::{Count, Layout, Records};
use super::strips::{Tile, unpack};
use super::{dataset, owned};
use crate::{Error, Result, Shape, Splits};
use std::path::Path;

/// The licence of the pictures.
pub const LICENCE: &str = include_str!("../../assets/fashion-mnist/LICENSE");

const LAYOUT: Layout = Layout { head: 0, skip: 1, shape: Shape { width: 28, height: 28, channels: 1 } };

struct EmbeddedSplit {
    name: &'static str,
    count: usize,
    strips: &'static [u8],
    labels: &'static [u8],
}

const TRAIN: EmbeddedSplit = EmbeddedSplit {
    name: "fashion-mnist-subset",
    count: 10_000,
    strips: include_bytes!("../../assets/fashion-mnist/train.webpstrips"),
    labels: include_bytes!("../../assets/fashion-mnist/train.labels"),
};

const TEST: EmbeddedSplit = EmbeddedSplit {
    name: "fashion-mnist-subset-test",
    count: 2_000,
    strips: include_bytes!("../../assets/fashion-mnist/test.webpstrips"),
    labels: include_bytes!("../../assets/fashion-mnist/test.labels"),
};

/// The embedded subset of Fashion-MNIST.
pub fn embedded() -> Result<Splits> {
    let open = |split: &EmbeddedSplit| {
        let records = Records::new(
            vec![(split.name.into(), records(split)?.into())],
            LAYOUT,
            Count::Exactly(split.count),
        )?;
        let labels = records.labels(10, |head| head[0].into())?;
        dataset(split.name, owned(&FASHION_MNIST), records, labels)
    };
    Ok(Splits::new(open(&TRAIN)?, Some(open(&TEST)?)))
}

fn records(split: &EmbeddedSplit) -> Result<Vec<u8>> {
    if split.labels.len() != split.count {
        return Err(Error::format(
            split.name,
            None,
            format!("{} labels for {} pictures", split.labels.len(), split.count),
        ));
    }
    let tile = Tile { width: 28, height: 28, record: LAYOUT.record() };
    unpack(Path::new(split.name), split.strips, tile, split.count, |index, pixels, record| {
        record[0] = split.labels[index];
        // Grey is stored as three equal channels.
        record[1..].iter_mut().zip(pixels.chunks_exact(3)).for_each(|(grey, pixel)| *grey = pixel[0]);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Items;
    use crate::known::idx;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_content_is_what_the_documentation_says() {
        for (split, sha256) in [
            (TRAIN, "aaf6b9b57b6586c9a202e5a688e7bfacba8132e01a7ff130150bb6a114fc9de9"),
            (TEST, "1dc67e4586362fc2086836ac0c152b2a7df417a798c1d19cbafe4453b47b5e8d"),
        ] {
            assert_eq!(format!("{:x}", Sha256::digest(records(&split).unwrap())), sha256);
        }
        assert!(TRAIN.strips.len() + TEST.strips.len() + 12_000 < 8_000_000);
        assert!(LICENCE.contains("Zalando SE"));
    }

    #[test]
    fn every_class_is_there_equally_often() {
        let splits = embedded().unwrap();
        for (split, each) in [(&splits.train, 1_000), (splits.test.as_ref().unwrap(), 200)] {
            for class in 0..10 {
                assert_eq!(split.given().iter().filter(|&&label| label == class).count(), each);
            }
        }
    }

    #[test]
    fn pictures_are_the_first_of_each_class_in_debians_package() {
        let folder = Path::new("/usr/share/datasets/fashion-mnist");
        if !folder.is_dir() {
            eprintln!("skipped: Debian's package dataset-fashion-mnist is not installed");
            return;
        }
        let (whole, subset) = (idx::fashion_mnist(folder).unwrap(), embedded().unwrap());
        assert_eq!((whole.train.len(), whole.test.as_ref().unwrap().len()), (60_000, 10_000));
        for (whole, subset, each) in
            [(whole.train, subset.train, 1_000), (whole.test.unwrap(), subset.test.unwrap(), 200)]
        {
            let mut taken = [0; 10];
            let mut chosen = Vec::new();
            for (at, &label) in whole.given().iter().enumerate() {
                taken[label as usize] += 1;
                if taken[label as usize] <= each {
                    chosen.push(at);
                }
            }
            let (Items::Images(a), Items::Images(b)) = (whole.items(), subset.items()) else {
                panic!("pictures")
            };
            assert_eq!(chosen.len(), subset.len());
            for (at, &from) in chosen.iter().enumerate() {
                assert_eq!(whole.given()[from], subset.given()[at]);
                assert_eq!(a.bytes(from).unwrap(), b.bytes(at).unwrap());
            }
        }
    }
}
