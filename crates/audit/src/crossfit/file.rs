//! A model of an audit as one safetensors file, bit by bit.
//!
//! | tensor | content |
//! |---|---|
//! | `scaling.means`, `scaling.factors` | what is taken off a column, and what it is multiplied by |
//! | `pool.weights` | weights of networks and Gaussians (f64) |
//! | `fold.K.network.J.{w1,b1,w2,b2}` | networks that did not see fold K |
//! | `fold.K.gaussians.{weights,bias}` | Gaussians that did not see fold K |
//! | `noise.transition`, `noise.ranking`, `noise.exponent` | what is known of the noise |
//! | `noise.of_true_labels` | 1 if predictions are those of true labels, 0 if of given ones |
//!
//! `__metadata__` has one word, [`WORD`], with [`AboutModel`] as JSON: one, because the order of several would not be the same every time.

use super::gaussians::Gaussians;
use super::mlp::Mlp;
use super::{AboutModel, AuditModel, FoldModels, FrozenAudit, Scaling};
use crate::noise_model::{Meaning, Scorer, Transition};
use crate::{Error, Result};
use negscale_atomic_file::write_bytes;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// The word under which the file says what it is.
const WORD: &str = "negscale-audit";
/// Version of the file.
const FORMAT: u32 = 1;
const LAYERS: [&str; 4] = ["w1", "b1", "w2", "b2"];

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    networks: usize,
    #[serde(flatten)]
    about: AboutModel,
}

impl AuditModel {
    /// Writes the file, whole or not at all. The same model gives the same bytes.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let bytes = self.to_bytes().map_err(failed)?;
        write_bytes(path, &bytes).map_err(failed)
    }

    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let FrozenAudit { folds, weights, scaling, scorer } = &self.frozen;
        let (dim, classes) = (self.frozen.dim(), self.frozen.classes());
        let mut tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
        let mut put = |name: String, shape: Vec<usize>, values: &[f32]| {
            tensors.push((name, Dtype::F32, shape, values.iter().flat_map(|x| x.to_le_bytes()).collect()));
        };
        put("scaling.means".into(), vec![dim], &scaling.means);
        put("scaling.factors".into(), vec![dim], &scaling.factors);
        put("noise.transition".into(), vec![classes, classes], scorer.transition.rows());
        put("noise.ranking".into(), vec![classes, classes], scorer.ranking.rows());
        put("noise.exponent".into(), vec![1], &[scorer.exponent]);
        let of_true_labels = f32::from(u8::from(scorer.meaning == Meaning::TrueLabels));
        put("noise.of_true_labels".into(), vec![1], &[of_true_labels]);
        for (fold, FoldModels { networks, gaussians }) in folds.iter().enumerate() {
            for (which, network) in networks.iter().enumerate() {
                let hidden = network.hidden;
                let shapes = [vec![dim, hidden], vec![hidden], vec![hidden, classes], vec![classes]];
                for ((layer, shape), values) in LAYERS.into_iter().zip(shapes).zip(&network.weights) {
                    put(format!("fold.{fold}.network.{which}.{layer}"), shape, values);
                }
            }
            put(format!("fold.{fold}.gaussians.weights"), vec![dim, classes], &gaussians.weights);
            put(format!("fold.{fold}.gaussians.bias"), vec![classes], &gaussians.bias);
        }
        let bytes = weights.iter().flat_map(|x| x.to_le_bytes()).collect();
        tensors.push(("pool.weights".into(), Dtype::F64, vec![weights.len()], bytes));
        let networks = folds.first().map_or(0, |fold| fold.networks.len());
        let header = Header { format: FORMAT, networks, about: self.about.clone() };
        let about = HashMap::from([(WORD.to_owned(), serde_json::to_string(&header)?)]);
        let views = tensors.iter().map(|(name, kind, shape, bytes)| {
            Ok((name.as_str(), TensorView::new(*kind, shape.clone(), bytes).map_err(io::Error::other)?))
        });
        let views = views.collect::<io::Result<Vec<_>>>()?;
        safetensors::serialize(views, Some(about)).map_err(io::Error::other)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or is not such a model.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        let from_bytes = || Self::from_bytes(&bytes);
        from_bytes().map_err(|problem| Error::Model { path: path.to_owned(), problem })
    }

    fn from_bytes(bytes: &[u8]) -> std::result::Result<Self, String> {
        let damaged = |what: &dyn std::fmt::Display| {
            format!("not a model of an audit, or damaged ({what}): fit it again, or copy it again")
        };
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| damaged(&error))?;
        let Some(word) = metadata.metadata().as_ref().and_then(|words| words.get(WORD)) else {
            return Err(
                "a safetensors file, but not a model of an audit: give the folder that `negscale audit fit` wrote"
                    .into(),
            );
        };
        let Header { format, networks, about } =
            serde_json::from_str(word).map_err(|error| damaged(&error))?;
        if format != FORMAT {
            return Err(format!("form {format} of the file, but this program reads {FORMAT}: fit it again"));
        }
        let file = SafeTensors::deserialize(bytes).map_err(|error| damaged(&error))?;
        let read = Reader { file: &file, classes: about.classes.len() };
        let frozen =
            read.frozen(about.sample.folds() as usize, networks).map_err(|problem| damaged(&problem))?;
        Self::new(frozen, about).map_err(|error| damaged(&error))
    }
}

struct Reader<'a> {
    file: &'a SafeTensors<'a>,
    classes: usize,
}

type Read<T> = std::result::Result<T, String>;

impl Reader<'_> {
    fn bytes(&self, name: &str, kind: Dtype) -> Read<TensorView<'_>> {
        let found = self.file.tensor(name).map_err(|_| format!("`{name}` is missing"))?;
        if found.dtype() == kind { Ok(found) } else { Err(format!("`{name}` is of another type")) }
    }

    /// Numbers, as many as there must be; all are finite.
    fn numbers(&self, name: &str, count: Option<usize>) -> Read<Vec<f32>> {
        let tensor = self.bytes(name, Dtype::F32)?;
        let values: Vec<f32> =
            tensor.data().as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
        if let Some(count) = count.filter(|count| *count != values.len()) {
            return Err(format!("`{name}` has {} numbers instead of {count}", values.len()));
        }
        let is_whole = values.iter().all(|x| x.is_finite());
        if is_whole { Ok(values) } else { Err(format!("`{name}` has a number that is not finite")) }
    }

    fn frozen(&self, folds: usize, networks: usize) -> Read<FrozenAudit> {
        let classes = self.classes;
        let means = self.numbers("scaling.means", None)?;
        let dim = means.len();
        let factors = self.numbers("scaling.factors", Some(dim))?;
        let weights = self.bytes("pool.weights", Dtype::F64)?;
        let weights: Vec<f64> =
            weights.data().as_chunks::<8>().0.iter().map(|x| f64::from_le_bytes(*x)).collect();
        if dim == 0
            || classes == 0
            || folds == 0
            || weights.len() != 2
            || weights.iter().any(|x| !x.is_finite())
        {
            return Err("its sizes do not fit".into());
        }
        let matrix = |name: &str| {
            Ok::<_, String>(Transition::new(classes, self.numbers(name, Some(classes * classes))?))
        };
        let scorer = Scorer {
            exponent: self.numbers("noise.exponent", Some(1))?[0],
            meaning: match self.numbers("noise.of_true_labels", Some(1))?[0] {
                0.0 => Meaning::GivenLabels,
                _ => Meaning::TrueLabels,
            },
            transition: matrix("noise.transition")?,
            ranking: matrix("noise.ranking")?,
        };
        let network = |fold: usize, which: usize| {
            let layer = |at: usize, count: Option<usize>| {
                self.numbers(&format!("fold.{fold}.network.{which}.{}", LAYERS[at]), count)
            };
            let b1 = layer(1, None)?;
            let hidden = b1.len();
            let [w1, w2, b2] = [(0, dim * hidden), (2, hidden * classes), (3, classes)]
                .map(|(at, count)| layer(at, Some(count)));
            Ok(Mlp { dim, hidden, classes, weights: [w1?, b1, w2?, b2?] })
        };
        let fold = |fold: usize| {
            let networks = (0..networks).map(|which| network(fold, which)).collect::<Read<_>>()?;
            let weights = self.numbers(&format!("fold.{fold}.gaussians.weights"), Some(dim * classes))?;
            let bias = self.numbers(&format!("fold.{fold}.gaussians.bias"), Some(classes))?;
            Ok(FoldModels { networks, gaussians: Gaussians { dim, weights, bias } })
        };
        let folds = (0..folds).map(fold).collect::<Read<_>>()?;
        Ok(FrozenAudit { folds, weights, scaling: Scaling { means, factors }, scorer })
    }
}
