//! Models as files: one safetensors file per network, `model.safetensors`, `model-2.safetensors` and so on.
//!
//! Tensors have PyTorch's keys, so any program that reads safetensors gets the weights. `__metadata__` has one word,
//! `negscale`, whose text is a JSON object with all that is not a weight:
//!
//! | key | what |
//! |---|---|
//! | `version` | of this form, 1 |
//! | `network` | the [`NetSpec`] |
//! | `classes` | names, in the order of the logits |
//! | `preparation` | the [`Preparation`] |
//! | `part`, `parts` | which network of how many, from 1 |
//! | `team` | sha256 of the weights of all parts as they were saved, the same in each: parts of different models do not mix |
//! | `precision` | how products were taken in training, `f32` where it is not said; the weights are f32 either way |
//! | `about` | free text |

use super::{Model, Preparation};
use crate::networks::{Loading, NetSpec, Network, precision_name, precision_named};
use crate::{Error, Result};
use burn::tensor::Device;
use negscale_kernels::{Precision, fast_precision};
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Name of the file of a model's first network, in a run's folder.
pub const FILE: &str = "model.safetensors";
const WORD: &str = "negscale";
const VERSION: u64 = 1;
/// More networks than any method trains.
const MOST_PARTS: usize = 64;

/// What the metadata says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Header {
    version: u64,
    network: NetSpec,
    classes: Vec<String>,
    preparation: Preparation,
    part: usize,
    parts: usize,
    team: String,
    #[serde(default = "plain")]
    precision: String,
    about: BTreeMap<String, String>,
}

fn plain() -> String {
    precision_name(Precision::F32).into()
}

/// The version alone, which files of every version have.
#[derive(Deserialize)]
struct Version {
    version: u64,
}

/// `model-2.safetensors` beside `model.safetensors`.
fn beside(first: &Path, part: usize) -> PathBuf {
    if part == 1 {
        return first.to_owned();
    }
    let mut name = first.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{part}.safetensors"));
    first.with_file_name(name)
}

impl Model {
    /// Writes the files into a folder and gives their paths, the first network's first. Each is there whole or not at all.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
        let first = folder.as_ref().join(FILE);
        let mut paths = Vec::new();
        for (part, bytes) in (1..).zip(self.to_files()?) {
            let path = beside(&first, part);
            negscale_atomic_file::write_bytes(&path, &bytes)
                .map_err(|source| Error::File { path: path.clone(), source })?;
            paths.push(path);
        }
        Ok(paths)
    }

    /// What [`save`](Self::save) would write: the bytes of every file, the first network's first.
    pub fn to_files(&self) -> Result<Vec<Vec<u8>>> {
        let mut hash = Sha256::new();
        for net in &self.nets {
            hash.update(net.to_safetensors()?);
        }
        let team: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let file = |(part, net): (usize, &Network)| {
            let header = Header {
                version: VERSION,
                network: net.spec().clone(),
                classes: self.classes.clone(),
                preparation: self.preparation.clone(),
                part,
                parts: self.nets.len(),
                team: team.clone(),
                precision: precision_name(net.precision()).into(),
                about: self.about.clone(),
            };
            let header = serde_json::to_string(&header).map_err(|e| {
                problem(&beside(Path::new(FILE), part), format!("cannot be described as JSON: {e}"))
            })?;
            net.to_safetensors_about(Some((WORD, header)))
        };
        (1..).zip(&self.nets).map(file).collect()
    }

    /// Reads a model: the file of its first network, or the folder of a run with [`FILE`] in it. For evaluation take a plain
    /// device, such as `Device::flex()`.
    pub fn load(path: impl AsRef<Path>, device: &Device) -> Result<Self> {
        let first = path.as_ref();
        let first = if first.is_dir() { first.join(FILE) } else { first.to_owned() };
        if !first.exists() {
            let text = "there is no such file: give the folder of a finished run, or its model.safetensors";
            return Err(Error::File { path: first, source: std::io::Error::new(ErrorKind::NotFound, text) });
        }
        Self::assemble(&first, device, |path, _| {
            if !path.exists() {
                return Ok(None);
            }
            // Read, not mapped: a file that others rewrite meanwhile could change after it was checked.
            std::fs::read(path).map(Some).map_err(|source| Error::File { path: path.into(), source })
        })
    }

    /// The model of which these are the [files](Self::to_files).
    pub fn from_files(files: &[impl AsRef<[u8]>], device: &Device) -> Result<Self> {
        let file = |part: usize| files.get(part - 1).map(|file| file.as_ref().to_vec());
        Self::assemble(Path::new("in memory"), device, |_, part| Ok(file(part)))
    }

    /// Puts together what is read: the bytes of a part by its path and its number, if it is there.
    fn assemble(
        first: &Path,
        device: &Device,
        read: impl Fn(&Path, usize) -> Result<Option<Vec<u8>>>,
    ) -> Result<Self> {
        let bytes = read(first, 1)?.ok_or_else(|| problem(first, "is empty: it has no file"))?;
        let (header, net) = open(first, &bytes, device)?;
        if header.part != 1 {
            let text = format!(
                "is network {} of {}: give the file of the first one, whose name has no -{} before the dot",
                header.part, header.parts, header.part
            );
            return Err(problem(first, text));
        }
        let mut nets = vec![net];
        for part in 2..=header.parts {
            let path = beside(first, part);
            let Some(bytes) = read(&path, part)? else {
                let text = format!(
                    "is missing: {} is network 1 of {}; put the files side by side",
                    first.display(),
                    header.parts
                );
                return Err(problem(&path, text));
            };
            let (other, net) = open(&path, &bytes, device)?;
            if other.part != part || other.team != header.team {
                let text = format!(
                    "does not belong to {}: it is network {} of another model, or was saved at another time; \
                     take the files of one run",
                    first.display(),
                    other.part
                );
                return Err(problem(&path, text));
            }
            nets.push(net);
        }
        Self::new(nets, header.classes, header.preparation, header.about)
            .map_err(|error| problem(first, format!("its metadata is contradictory: {error}")))
    }
}

fn problem(path: &Path, problem: impl Into<String>) -> Error {
    Error::Model { origin: path.display().to_string(), problem: problem.into() }
}

fn open(path: &Path, bytes: &[u8], device: &Device) -> Result<(Header, Network)> {
    let header = read_header(path, bytes)?;
    check_sizes(path, &header, bytes.len())?;
    let net = Network::build(&header.network, device)?;
    let net = net.from_safetensors(bytes, &path.display().to_string(), Loading::default())?;
    let Some(trained) = precision_named(&header.precision) else {
        let text = format!("its precision `{}` is not known: update the program", header.precision);
        return Err(problem(path, text));
    };
    // As it was trained where this CPU is fast at it; elsewhere in f32, which is slower nowhere and never less exact.
    let precision = if trained == fast_precision() { trained } else { Precision::F32 };
    Ok((header, net.with_precision(precision)))
}

fn read_header(path: &Path, bytes: &[u8]) -> Result<Header> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| {
        problem(
            path,
            format!(
                "not a safetensors file, or a damaged one ({error}): give a run's folder or the \
                 model.safetensors in it; if it is that, train or copy it again"
            ),
        )
    })?;
    let Some(text) = metadata.metadata().as_ref().and_then(|words| words.get(WORD)) else {
        let text = "a safetensors file, but not a model saved by this program: it names neither the network of the weights nor \
                    the classes. Give a run's folder or the model.safetensors in it";
        return Err(problem(path, text));
    };
    let damaged = |error: serde_json::Error| {
        problem(path, format!("its metadata `{WORD}` is damaged ({error}): train or copy it again"))
    };
    let Version { version } = serde_json::from_str(text).map_err(damaged)?;
    if version > VERSION {
        let text = format!(
            "has version {version}, which is newer than this program's {VERSION}: update the program"
        );
        return Err(problem(path, text));
    }
    serde_json::from_str(text).map_err(damaged)
}

/// Refuses headers that promise more than the file can hold, before anything is built from them.
fn check_sizes(path: &Path, header: &Header, bytes: usize) -> Result<()> {
    let spec = &header.network;
    let fits = header.version >= 1
        && (1..=MOST_PARTS).contains(&header.parts)
        && (1..=header.parts).contains(&header.part)
        && spec.classes == header.classes.len()
        && spec.input == header.preparation.input()
        && spec.hidden.iter().all(|&size| size <= bytes / 4);
    if !fits {
        let text = format!(
            "its metadata is contradictory: network `{}` for {} and {} classes, part {} of {}; train or copy it again",
            spec.name, spec.input, spec.classes, header.part, header.parts
        );
        return Err(problem(path, text));
    }
    header.preparation.checked()
}
