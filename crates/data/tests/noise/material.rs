//! Made-up datasets, and real ones where they are at hand.

use negscale_data::noise::{Noise, NoiseContext, apply, cifar};
use negscale_data::{Dataset, FeatureStore, Image, ImageStore, Items, Result, Shape};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

/// Vectors computed from their number.
pub struct Vectors {
    pub len: usize,
    pub dim: usize,
    pub value: fn(usize, usize) -> f32,
}

impl FeatureStore for Vectors {
    fn len(&self) -> usize {
        self.len
    }
    fn dim(&self) -> usize {
        self.dim
    }
    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        (0..self.dim).for_each(|at| out[at] = (self.value)(index, at));
        Ok(())
    }
}

/// Pictures computed from their number.
pub struct Pictures {
    pub len: usize,
    pub shape: fn(usize) -> Shape,
    pub value: fn(usize, usize) -> u8,
}

impl ImageStore for Pictures {
    fn len(&self) -> usize {
        self.len
    }
    fn load(&self, index: usize) -> Result<Image> {
        let shape = (self.shape)(index);
        Ok(Image { shape, pixels: (0..shape.len()).map(|at| (self.value)(index, at)).collect() })
    }
    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        self.load(index).map(|image| Cow::Owned(image.pixels))
    }
}

/// A number that looks random, from two others.
pub fn scramble(a: usize, b: usize) -> u64 {
    let mut x = (a as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (b as u64 + 1).wrapping_mul(0xd1b5_4a32_d192_ed03);
    x = (x ^ (x >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 29)
}

pub fn vectors(len: usize, dim: usize) -> Items {
    let value = |i, at| (scramble(i, at) % 2001) as f32 / 1000.0 - 1.0;
    Items::Features(Arc::new(Vectors { len, dim, value }))
}

pub fn numbered(classes: usize) -> Vec<String> {
    (0..classes).map(|c| format!("class {c}")).collect()
}

pub fn cifar10_names() -> Vec<String> {
    cifar::CIFAR10.map(String::from).to_vec()
}

pub fn cifar100_names() -> Vec<String> {
    let mut names: Vec<String> =
        cifar::CIFAR100_SUPERCLASSES.iter().flat_map(|(_, members)| members.map(String::from)).collect();
    names.sort();
    names
}

/// `each` items of every class, in mixed order.
pub fn balanced(classes: Vec<String>, each: usize) -> Dataset {
    let count = classes.len();
    let labels: Vec<u32> = (0..count * each).map(|i| (i * 7 % count.max(1)) as u32).collect();
    assert!(count == 0 || !count.is_multiple_of(7));
    Dataset::new("balanced", classes, vectors(labels.len(), 8), labels, None).unwrap()
}

pub fn noise(spec: &str, dataset: &Dataset, seed: u64) -> Noise {
    apply(&spec.parse().unwrap(), dataset, seed, &NoiseContext::default()).unwrap()
}

pub fn refused(spec: &str, dataset: &Dataset) -> String {
    apply(&spec.parse().unwrap(), dataset, 1, &NoiseContext::default()).unwrap_err().to_string()
}

pub(crate) use negscale_data::real_data::real;

/// The numbers of a .npy file, whose header has 128 bytes.
pub fn npy_bytes(path: PathBuf) -> Vec<u8> {
    std::fs::read(path).unwrap().split_off(128)
}

/// True labels of the training images, from the labels that lie beside the embeddings.
pub fn real_labels(set: &str) -> Option<Vec<u32>> {
    let bytes = npy_bytes(real(&format!("embeddings/{set}_labels.npy"))?);
    Some(bytes[..50_000].iter().map(|&label| label.into()).collect())
}

/// Frozen embeddings of the training images.
pub fn real_embeddings(set: &str, names: Vec<String>) -> Option<Dataset> {
    struct Table(Vec<u8>);
    impl FeatureStore for Table {
        fn len(&self) -> usize {
            50_000
        }
        fn dim(&self) -> usize {
            128
        }
        fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
            let row = &self.0[index * 256..(index + 1) * 256];
            for (out, half) in out.iter_mut().zip(row.chunks_exact(2)) {
                let half = u16::from_le_bytes([half[0], half[1]]);
                let (exponent, fraction) = (i32::from(half >> 10 & 31), f32::from(half & 1023));
                let size = match exponent {
                    0 => fraction * 2f32.powi(-24),
                    _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
                };
                *out = if half >> 15 == 1 { -size } else { size };
            }
            Ok(())
        }
    }
    let labels = real_labels(set)?;
    let table = npy_bytes(real(&format!("embeddings/{set}_efflite0_pca128.npy"))?);
    Some(Dataset::new(set, names, Items::Features(Arc::new(Table(table))), labels, None).unwrap())
}
