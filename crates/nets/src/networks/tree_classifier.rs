//! `classifier = "tree"`: fixed class vectors in place of a trained last layer.
//!
//! Logit $c$ is $s\, v_c^\top f / |f|$ with features $f$, unit vectors $v_c$, and $s = e^\theta$. Only $\theta$ is trained; it begins at $\ln 10$. The vectors are the weight of the last layer,
//! which has no bias and gets no gradient. They are those of the [classes](Network::with_class_vectors), turned into the space of the features by a rotation that
//! the network's seed draws: the first columns of a random orthogonal matrix. Features are read as plug-ins see them: neither the ReLU with which `mlp` begins its
//! classifier nor the dropout of `vgg-19-bn` come between.

use super::initial::{Site, Spread, normals};
use super::layers::Dense;
use super::network::Network;
use super::run::{Run, Tensors};
use super::spec::LastLayer;
use crate::{Error, Result};
use burn::module::{Param, ParamId};
use burn::tensor::Tensor;
use negscale_kernels::Activation;

/// Path of $\theta$.
pub(super) const LOG_SCALE: &str = "log_scale";
/// $s$ at the start.
const FIRST_SCALE: f32 = 10.0;
/// Added to squared lengths, so that features of 0 have logits of 0 and a gradient.
const TINY: f64 = 1e-12;

/// $\theta$ at the start.
pub(super) fn log_scale(site: &Site) -> Param<Tensor<1>> {
    site.parameter(LOG_SCALE, [1], Spread::Constant(FIRST_SCALE.ln()))
}

/// Logits of features.
pub(super) fn classify(
    run: &mut Tensors,
    features: Tensor<2>,
    vectors: &Dense,
    log_scale: Tensor<1>,
) -> Tensor<2> {
    let features = run.keep_first(features, 1);
    let length = (features.clone().powi_scalar(2).sum_dim(1) + TINY).sqrt();
    // Off the record: the vectors have no gradient, and what has none is not trained.
    let fixed =
        Dense { weight: Param::initialized(ParamId::new(), vectors.weight.val().detach()), bias: None };
    run.dense(&fixed, features / length, Activation::None) * log_scale.exp().unsqueeze()
}

impl Network {
    /// The network with a tree classifier whose vectors are these, `dim` numbers for each class, turned into the space of its features. The weights of a network without a
    /// tree classifier are left alone.
    pub fn with_class_vectors(self, vectors: &[f64], dim: usize) -> Result<Self> {
        let (spec, size) = (self.spec(), self.feature_size());
        if spec.classifier != LastLayer::Tree {
            return Ok(self);
        }
        if vectors.len() != spec.classes * dim {
            let value = format!("tree, with {} numbers for {} classes", vectors.len(), spec.classes);
            let wanted = "the class tree must have the classes of the data";
            return Err(Error::Setting { net: spec.name.clone(), setting: "classifier", value, wanted });
        }
        if size < dim {
            let value = format!("tree, whose class vectors need {dim} dimensions, with {size} features");
            let wanted = "choose a network with more features (`width`, `hidden`), a class tree with fewer nodes, or classifier = \"linear\"";
            return Err(Error::Setting { net: spec.name.clone(), setting: "classifier", value, wanted });
        }
        let axes = rotation(spec.seed, dim, size);
        let mut rows = vec![0.0; spec.classes * size];
        for (row, vector) in rows.chunks_mut(size).zip(vectors.chunks(dim.max(1))) {
            for (axis, &length) in axes.chunks(size).zip(vector) {
                row.iter_mut().zip(axis).for_each(|(sum, &part)| *sum += length * part);
            }
        }
        let rows: Vec<f32> = rows.into_iter().map(|value| value as f32).collect();
        let path = format!("{}.weight", self.last_path());
        self.replace(|entry| (entry.path == path).then(|| rows.clone()))
    }
}

/// So many orthonormal rows of this size: normal numbers, each row made orthogonal to those before it (twice, against rounding).
fn rotation(seed: u64, count: usize, size: usize) -> Vec<f64> {
    let mut rows: Vec<f64> = normals(seed, "class vectors", count * size, 1.0);
    for at in 0..count {
        let (done, rest) = rows.split_at_mut(at * size);
        let row = &mut rest[..size];
        for before in done.chunks(size).chain(done.chunks(size)) {
            let along: f64 = row.iter().zip(before).map(|(a, b)| a * b).sum();
            row.iter_mut().zip(before).for_each(|(a, b)| *a -= along * b);
        }
        let length = row.iter().map(|a| a * a).sum::<f64>().sqrt();
        row.iter_mut().for_each(|a| *a /= length);
    }
    rows
}
