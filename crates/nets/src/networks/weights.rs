//! Weights in safetensors files, under PyTorch's keys, in 32-bit floats.
//!
//! A file written here loads into the PyTorch network of the same layout with `strict=True` (norms also get the
//! `num_batches_tracked` that PyTorch keeps and nobody reads; it is written as 0 and ignored when read), and a `state_dict`
//! saved there loads here. torchvision and timm use the same keys for ResNets; timm's VGG differs after the convolutions.

use super::network::Network;
use super::state::{ParameterEntry, ParameterKind};
use super::tree_classifier::LOG_SCALE;
use crate::{Error, Result};
use negscale_atomic_file::write_bytes;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// How strictly a file must fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loading {
    /// Leave the classifier as it is if the file's has another number of classes (or none): for weights from other data.
    pub skip_classifier: bool,
    /// Leave heads as they are if the file has none.
    pub skip_heads: bool,
}

/// First name of the classifier's parameters, in any of the networks.
pub(super) const CLASSIFIERS: [&str; 7] =
    ["fc.", "linear.", "classif.", "classifier.6.", "l_c1.", "linear1.", LOG_SCALE];
const HEADS: [&str; 3] = ["projection.", "prediction.", "concepts."];
const IGNORED: &str = "num_batches_tracked";

fn starts(path: &str, names: &[&str]) -> bool {
    names.iter().any(|name| path.starts_with(name))
}

impl Network {
    /// The bytes of a safetensors file with all parameters and buffers.
    pub fn to_safetensors(&self) -> Result<Vec<u8>> {
        self.to_safetensors_about(None)
    }

    /// As [`to_safetensors`](Self::to_safetensors), with one word and its text in the file's `__metadata__`. One, because
    /// several would be written in an order that changes from run to run.
    pub fn to_safetensors_about(&self, about: Option<(&str, String)>) -> Result<Vec<u8>> {
        let rows = self.read()?;
        let bytes: Vec<(ParameterEntry, Vec<u8>)> = rows
            .into_iter()
            .map(|(entry, values)| (entry, values.iter().flat_map(|value| value.to_le_bytes()).collect()))
            .collect();
        let format = |source| Error::Format { origin: "the network's state".into(), source };
        let zero = 0_i64.to_le_bytes();
        let mut views = BTreeMap::new();
        for (entry, bytes) in &bytes {
            let view = TensorView::new(Dtype::F32, entry.shape.clone(), bytes).map_err(format)?;
            views.insert(entry.path.clone(), view);
            if let (ParameterKind::Buffer, Some(norm)) = (entry.kind, entry.path.strip_suffix("running_var"))
            {
                views.insert(
                    format!("{norm}{IGNORED}"),
                    TensorView::new(Dtype::I64, vec![], &zero).map_err(format)?,
                );
            }
        }
        let about = about.map(|(word, text)| HashMap::from([(word.to_owned(), text)]));
        safetensors::serialize(views, about).map_err(format)
    }

    /// Writes a safetensors file, whole or not at all.
    pub fn save_safetensors(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        write_bytes(path, &self.to_safetensors()?).map_err(|source| Error::File { path: path.into(), source })
    }

    /// The network with the weights of a safetensors file.
    pub fn load_safetensors(self, path: impl AsRef<Path>, loading: Loading) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| Error::File { path: path.into(), source })?;
        self.from_safetensors(&bytes, &path.display().to_string(), loading)
    }

    /// The network with the weights of a safetensors file held in memory; `origin` names it in errors. One error lists every
    /// key that is missing, unexpected, or of another shape or type.
    #[allow(clippy::wrong_self_convention)] // it takes the network's layout and gives the same network with other values
    pub fn from_safetensors(self, bytes: &[u8], origin: &str, loading: Loading) -> Result<Self> {
        let file = SafeTensors::deserialize(bytes)
            .map_err(|source| Error::Format { origin: origin.into(), source })?;
        let entries = self.entries();
        let known: BTreeSet<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
        let spared = |path: &str| {
            (loading.skip_classifier && starts(path, &CLASSIFIERS))
                || (loading.skip_heads && starts(path, &HEADS))
        };
        let mut problems = Vec::new();
        let mut found = BTreeMap::new();
        for entry in &entries {
            match file.tensor(&entry.path) {
                Err(_) if spared(&entry.path) => {}
                Err(_) => problems.push(format!("`{}` is missing", entry.path)),
                Ok(view) if view.shape() != entry.shape && spared(&entry.path) => {}
                Ok(view) if view.shape() != entry.shape => {
                    problems.push(format!(
                        "`{}` has shape {:?}, not {:?}",
                        entry.path,
                        view.shape(),
                        entry.shape
                    ));
                }
                Ok(view) if view.dtype() != Dtype::F32 => {
                    problems.push(format!("`{}` holds {:?}, not 32-bit floats", entry.path, view.dtype()));
                }
                Ok(view) => {
                    let (numbers, _) = view.data().as_chunks::<4>();
                    let values: Vec<f32> = numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
                    found.insert(entry.path.clone(), values);
                }
            }
        }
        for name in file.names() {
            if !known.contains(name) && !name.ends_with(IGNORED) && !spared(name) {
                problems.push(format!("`{name}` is unexpected"));
            }
        }
        if !problems.is_empty() {
            return Err(Error::Weights { net: self.spec().name.clone(), origin: origin.into(), problems });
        }
        self.replace(|entry| found.remove(&entry.path))
    }
}
