//! Noise files: noise drawn once, then shared by all methods.
//!
//! One JSON object: how the labels came about, what they belong to, and the labels. `hash` is a sha256 over all that
//! matters (spec, seed, convention, the hashes of class names and of clean labels, the labels), so that a file that was
//! changed by hand, or drawn for other data, is refused.

use super::spec::NoiseSpec;
use super::{Noise, clean_labels, label_list};
use crate::npy;
use crate::{Dataset, Error, Result};
use negscale_atomic_file::write_atomic;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

const FORMAT: &str = "negscale-noise-1";

#[derive(Serialize, Deserialize)]
struct Stored {
    format: String,
    spec: String,
    seed: u64,
    nominal: Option<f64>,
    achieved: f64,
    convention: String,
    items: usize,
    classes: usize,
    class_names_hash: String,
    clean_labels_hash: String,
    hash: String,
    labels: Vec<u32>,
}

impl Noise {
    /// Writes a noise file, whole or not at all. `dataset` is the one the noise was made for.
    pub fn save(&self, path: &Path, dataset: &Dataset) -> Result<()> {
        let clean = clean_labels(dataset);
        let stored = Stored {
            format: FORMAT.into(),
            spec: self.spec.to_string(),
            seed: self.seed,
            nominal: self.nominal,
            achieved: self.achieved,
            convention: self.convention.clone(),
            items: self.labels.len(),
            classes: self.transition.classes(),
            class_names_hash: hash_names(dataset),
            clean_labels_hash: hash_labels(clean),
            hash: self.hash.clone(),
            labels: self.labels.clone(),
        };
        if hash_stored(&stored) != self.hash {
            let problem = "this noise was made for other data, so it cannot be saved for this data".into();
            return Err(Error::Labels { dataset: dataset.name().into(), problem });
        }
        write_atomic(path, |file| serde_json::to_writer(file, &stored).map_err(std::io::Error::from))
            .map_err(|e| Error::io(path, e))
    }

    /// Reads a noise file and makes sure that it is whole and belongs to this dataset.
    pub fn load(path: &Path, dataset: &Dataset) -> Result<Self> {
        let io = |e| Error::io(path, e);
        let broken = |problem: String| Error::format(path, None, problem);
        // A label takes at most ten digits and a comma; the rest is short.
        let limit = (1 << 20) + dataset.len() as u64 * 16;
        let mut text = Vec::new();
        File::open(path).map_err(io)?.take(limit + 1).read_to_end(&mut text).map_err(io)?;
        if text.len() as u64 > limit {
            return Err(broken(format!("too large for the labels of {} items", dataset.len())));
        }
        Self::from_bytes(path, &text, dataset)
    }

    /// Noise from the bytes of a noise file. `path` is for messages.
    pub fn from_bytes(path: &Path, text: &[u8], dataset: &Dataset) -> Result<Self> {
        let broken = |problem: String| Error::format(path, None, problem);
        let stored: Stored = serde_json::from_slice(text)
            .map_err(|e| broken(format!("not a noise file, or cut short ({e}): make it again")))?;
        if stored.format != FORMAT {
            return Err(broken(format!("format `{}`, but this version reads `{FORMAT}`", stored.format)));
        }
        let clean = clean_labels(dataset);
        let names = match stored.class_names_hash == hash_names(dataset) {
            true => "class names agree, so it may be another split or order of the same data",
            false => "class names differ as well",
        };
        let other = |what: &str, file: usize, here: usize| {
            let name = dataset.name();
            Err(broken(format!("made for {file} {what}, but `{name}` has {here}; {names}")))
        };
        if stored.items != clean.len() {
            return other("items", stored.items, clean.len());
        }
        if stored.classes != dataset.classes().len() {
            return other("classes", stored.classes, dataset.classes().len());
        }
        if stored.clean_labels_hash != hash_labels(clean) {
            let name = dataset.name();
            return Err(broken(format!("made for other true labels than those of `{name}`; {names}")));
        }
        if stored.labels.len() != stored.items {
            let problem = format!("{} labels for {} items: make it again", stored.labels.len(), stored.items);
            return Err(broken(problem));
        }
        let hash = hash_stored(&stored);
        if hash != stored.hash {
            let problem = format!(
                "contents have hash {hash}, the file says {}: it was changed, make it again",
                stored.hash
            );
            return Err(broken(problem));
        }
        if let Some(at) = stored.labels.iter().position(|&label| label as usize >= stored.classes) {
            return Err(broken(format!("label {} of item {at} is not a class", stored.labels[at])));
        }
        let spec: NoiseSpec = stored.spec.parse().map_err(|e: Error| broken(e.to_string()))?;
        let noise = Noise::assemble(spec, stored.seed, stored.labels, stored.convention, dataset);
        let same = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let rates = match (stored.nominal, noise.nominal) {
            (Some(a), Some(b)) => same(a, b),
            (a, b) => a == b,
        };
        if !rates || !same(stored.achieved, noise.achieved) {
            let problem = format!(
                "states rates {:?} and {}, but its labels have {:?} and {}: it was changed, make it again",
                stored.nominal, stored.achieved, noise.nominal, noise.achieved
            );
            return Err(broken(problem));
        }
        Ok(Noise { hash: stored.hash, ..noise })
    }
}

/// A noise file or a plain list of labels, told apart by its first bytes.
pub(super) fn open(path: &Path, dataset: &Dataset) -> Result<Noise> {
    let io = |e| Error::io(path, e);
    let mut start = Vec::new();
    File::open(path).map_err(io)?.take(64).read_to_end(&mut start).map_err(io)?;
    let labels = match start.trim_ascii_start() {
        [b'{', ..] => return Noise::load(path, dataset),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => label_list::read_npy(path, &npy::open(path)?, dataset)?,
        _ => label_list::read_text(path, BufReader::new(File::open(path).map_err(io)?), dataset)?,
    };
    let convention = "labels read from a list; how they came about is not known".into();
    Ok(Noise::assemble(NoiseSpec::File(path.into()), 0, labels, convention, dataset))
}

/// The hash of noise over a dataset.
pub(super) fn hash(
    spec: &NoiseSpec,
    seed: u64,
    convention: &str,
    labels: &[u32],
    dataset: &Dataset,
) -> String {
    hash_parts(
        &spec.to_string(),
        seed,
        convention,
        &hash_names(dataset),
        &hash_labels(clean_labels(dataset)),
        labels,
    )
}

fn hash_stored(stored: &Stored) -> String {
    hash_parts(
        &stored.spec,
        stored.seed,
        &stored.convention,
        &stored.class_names_hash,
        &stored.clean_labels_hash,
        &stored.labels,
    )
}

fn hash_parts(spec: &str, seed: u64, convention: &str, names: &str, clean: &str, labels: &[u32]) -> String {
    // Where a list lies does not change what it is.
    let spec = if spec.starts_with("file:") { "file" } else { spec };
    let mut hash = Sha256::new();
    for part in [FORMAT, spec, convention, names, clean] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update(seed.to_le_bytes());
    labels.iter().for_each(|label| hash.update(label.to_le_bytes()));
    hex(hash)
}

fn hash_names(dataset: &Dataset) -> String {
    let mut hash = Sha256::new();
    for name in dataset.classes() {
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
    }
    hex(hash)
}

fn hash_labels(labels: &[u32]) -> String {
    let mut hash = Sha256::new();
    labels.iter().for_each(|label| hash.update(label.to_le_bytes()));
    hex(hash)
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
