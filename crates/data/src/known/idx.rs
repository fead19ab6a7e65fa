//! The MNIST family: IDX files, plain (mapped) or gzipped (unpacked into memory).
//!
//! An IDX file is [0, 0, 8 = bytes, number of axes], the length of each axis as u32 big-endian, then the values. The header is
//! believed only as far as the file bears it out: plain files must have exactly the size it tells; gzipped ones are unpacked
//! up to that size, which must be within deflate's best ratio (1,032 : 1) of what is there, and one byte more is an error.

use super::records::{Count, Layout, Records};
use super::{dataset, owned};
use crate::block::Block;
use crate::{Dataset, Error, Result, Shape, Splits};
use flate2::read::MultiGzDecoder;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Classes of MNIST.
pub const MNIST: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// Classes of Fashion-MNIST.
#[rustfmt::skip]
pub const FASHION_MNIST: [&str; 10] = [
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
];

/// The four files; each may end in `.gz`.
pub(super) const FILES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

/// The most that a gzipped file may unpack to: MNIST's training pictures are 47 MB.
const MAX_UNPACKED: u64 = 2 << 30;
/// How far deflate can shrink anything.
const BEST_RATIO: u64 = 1032;
/// Longest side of a picture.
const MAX_SIDE: usize = 8192;

/// First training labels of the two sets, whose files have the same names and sizes.
const FIRST_LABELS: [(&str, [u32; 8]); 2] =
    [("mnist", [5, 0, 4, 1, 9, 2, 1, 3]), ("fashion-mnist", [9, 0, 0, 3, 0, 2, 7, 2])];

/// MNIST from the folder that holds the four files.
pub fn mnist(folder: &Path) -> Result<Splits> {
    read("mnist", folder, &MNIST)
}

/// Fashion-MNIST from the folder that holds the four files.
pub fn fashion_mnist(folder: &Path) -> Result<Splits> {
    read("fashion-mnist", folder, &FASHION_MNIST)
}

/// Any set of the family.
pub fn read(name: &str, folder: &Path, classes: &[&str]) -> Result<Splits> {
    let part = |name: &str, images, labels| {
        let [images, labels] = [images, labels].map(|file| choose(folder, file));
        let blocks = (Block::map(&images)?, Block::map(&labels)?);
        pair(name, (&images, blocks.0), (&labels, blocks.1), classes)
    };
    let train = part(name, FILES[0], FILES[1])?;
    let other = FIRST_LABELS.iter().find(|(set, first)| *set != name && train.given().starts_with(first));
    if let Some((other, _)) = other.filter(|_| FIRST_LABELS.iter().any(|(set, _)| *set == name)) {
        let problem = format!("these are the labels of `{other}`, but `{name}` was asked for");
        return Err(Error::format(choose(folder, FILES[1]), None, problem));
    }
    let test = part(&format!("{name}-test"), FILES[2], FILES[3])?;
    Ok(Splits::new(train, Some(test)))
}

/// A set from the bytes of a file of pictures and of a file of labels, plain or gzipped.
pub fn from_bytes(name: &str, images: Vec<u8>, labels: Vec<u8>, classes: &[&str]) -> Result<Dataset> {
    pair(name, (Path::new("images"), images.into()), (Path::new("labels"), labels.into()), classes)
}

/// The plain file where it is there, else the gzipped one.
fn choose(folder: &Path, file: &str) -> PathBuf {
    let (plain, packed) = (folder.join(file), folder.join(format!("{file}.gz")));
    if packed.is_file() && !plain.is_file() { packed } else { plain }
}

/// Pictures and labels.
fn pair(
    name: &str,
    (images, pixels): (&Path, Block),
    (labels, numbers): (&Path, Block),
    classes: &[&str],
) -> Result<Dataset> {
    let ([count, height, width], bytes) = unpack::<3>(images, pixels)?;
    if height > MAX_SIDE || width > MAX_SIDE {
        let problem = format!("images of {width} x {height}: up to {MAX_SIDE} pixels per side can be read");
        return Err(Error::format(images, "header".to_owned(), problem));
    }
    let layout = Layout { head: head(3), skip: 0, shape: Shape { width, height, channels: 1 } };
    let records = Records::new(vec![(images.to_owned(), bytes)], layout, Count::Exactly(count))?;
    let ([found], bytes) = unpack::<1>(labels, numbers)?;
    if found != count {
        let problem = format!("{found} labels, but {} holds {count} images", images.display());
        return Err(Error::format(labels, "header".to_owned(), problem));
    }
    let given: Vec<u32> = bytes[head(1)..].iter().map(|&label| label.into()).collect();
    if let Some(at) = given.iter().position(|&label| label as usize >= classes.len()) {
        let problem =
            format!("label {}, but there are {} classes, numbered from 0", given[at], classes.len());
        return Err(Error::format(labels, format!("record {at}"), problem));
    }
    dataset(name, owned(classes), records, given)
}

/// Bytes of a header with so many axes.
const fn head(axes: usize) -> usize {
    4 + 4 * axes
}

/// Lengths of the axes, and the whole file.
fn unpack<const AXES: usize>(path: &Path, bytes: Block) -> Result<([usize; AXES], Block)> {
    let wrong = |problem: String| Error::format(path, None, problem);
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        let (axes, size) = header(&bytes).map_err(wrong)?;
        if size != bytes.len() as u64 {
            return Err(wrong(format!(
                "{} bytes, but the header gives {size}; download the file again",
                bytes.len()
            )));
        }
        return Ok((axes, bytes));
    }
    let broken = |e: std::io::Error| wrong(format!("cannot be unpacked ({e}); download the file again"));
    let mut stream = MultiGzDecoder::new(&*bytes);
    let mut unpacked = Vec::new();
    stream.by_ref().take(head(AXES) as u64).read_to_end(&mut unpacked).map_err(broken)?;
    let (axes, size) = header(&unpacked).map_err(wrong)?;
    if size > MAX_UNPACKED || size > (bytes.len() as u64).saturating_mul(BEST_RATIO) {
        let problem = format!(
            "the header gives {size} bytes, which {} gzipped ones cannot hold, or too many",
            bytes.len()
        );
        return Err(wrong(problem));
    }
    // One byte more than there should be, so that more is noticed.
    let rest = size - unpacked.len() as u64;
    stream.take(rest + 1).read_to_end(&mut unpacked).map_err(broken)?;
    if unpacked.len() as u64 != size {
        let than = if (unpacked.len() as u64) < size { "fewer" } else { "more" };
        return Err(wrong(format!(
            "{than} bytes than the {size} that the header gives; download the file again"
        )));
    }
    Ok((axes, unpacked.into()))
}

/// Lengths of the axes, none of them zero, and the size of the whole file.
fn header<const AXES: usize>(bytes: &[u8]) -> Result<([usize; AXES], u64), String> {
    let magic = bytes.get(..4).ok_or("ends in its header; download the file again")?;
    if magic != [0, 0, 8, AXES as u8] {
        return Err(format!(
            "starts with {magic:?}, but an IDX file of bytes with {AXES} axes with [0, 0, 8, {AXES}]"
        ));
    }
    let lengths = bytes.get(4..head(AXES)).ok_or("ends in its header; download the file again")?;
    let mut axes = [0; AXES];
    let mut size = 1u64;
    for (axis, length) in axes.iter_mut().zip(lengths.chunks_exact(4)) {
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]);
        *axis = length as usize;
        size = size.checked_mul(length.into()).ok_or("the header gives an impossible size")?;
    }
    if size == 0 {
        return Err(format!("the header gives axes {axes:?}: there is nothing in it"));
    }
    Ok((axes, size.saturating_add(head(AXES) as u64)))
}

#[cfg(test)]
#[path = "idx_tests.rs"]
mod tests;
