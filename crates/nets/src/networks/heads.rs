//! Heads on the features, for methods that compare samples in a space of their own.
//!
//! Each is a PyTorch `Sequential` named `projection` or `prediction`; d is the size of the features. Concepts are vectors in
//! the projected space, the weight `[concepts, 128]` of a dense layer without bias named `concepts`.

use super::initial::{InitScheme, Site};
use super::layers::{Dense, Norm, Slot};
use super::run::Run;
use super::spec::FEW_CLASSES;

use negscale_kernels::Activation;
use serde::{Deserialize, Serialize};

/// Size of the projected features, where the method does not keep the features' own size.
const PROJECTED: usize = 128;
/// Hidden size of the heads with a norm.
const HIDDEN: usize = 256;
/// Kinds of projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Projection {
    /// d-d-ReLU-128 (RankMatch).
    Relu,
    /// The same, and concept vectors in its space (CCL): two a class up to 32 classes, else one.
    Concepts,
    /// d-256-norm-ReLU-128 (ANNE).
    NormRelu,
    /// d-128-norm (UNICON, CrossSplit).
    LinearNorm,
    /// d-d-ReLU-d, the first layer without bias (Co-learning).
    Square,
}

fn dense(site: &Site, index: usize, sizes: [usize; 2], bias: bool) -> Slot {
    Slot::Dense(Dense::new(&site.at(index), sizes, bias))
}

fn norm(site: &Site, index: usize, size: usize) -> Slot {
    Slot::Norm(Norm::new(&site.at(index), size))
}

/// PyTorch's first weights, whatever the network's own are.
fn place(site: &Site, name: &str) -> Site {
    Site { rule: InitScheme::Torch, ..site.at(name) }
}

impl Projection {
    pub(super) fn build(self, site: &Site, d: usize) -> Vec<Slot> {
        let site = &place(site, "projection");
        match self {
            Self::Relu | Self::Concepts => {
                vec![dense(site, 0, [d, d], true), Slot::Gap(0), dense(site, 2, [d, PROJECTED], true)]
            }
            Self::NormRelu => hidden_norm(site, d, PROJECTED),
            Self::LinearNorm => vec![dense(site, 0, [d, PROJECTED], true), norm(site, 1, PROJECTED)],
            Self::Square => vec![dense(site, 0, [d, d], false), Slot::Gap(0), dense(site, 2, [d, d], true)],
        }
    }

    /// Size of the projection of features of size `d`.
    pub fn size(self, d: usize) -> usize {
        if self == Self::Square { d } else { PROJECTED }
    }
}

/// The concept vectors that come with a projection, if any do.
pub(super) fn concepts(site: &Site, kind: Projection, classes: usize) -> Option<Dense> {
    let count = if classes <= FEW_CLASSES { 2 * classes } else { classes };
    (kind == Projection::Concepts).then(|| Dense::new(&place(site, "concepts"), [PROJECTED, count], false))
}

pub(super) fn prediction(site: &Site, size: usize) -> Vec<Slot> {
    hidden_norm(&place(site, "prediction"), size, size)
}

fn hidden_norm(site: &Site, inputs: usize, outputs: usize) -> Vec<Slot> {
    vec![
        dense(site, 0, [inputs, HIDDEN], true),
        norm(site, 1, HIDDEN),
        Slot::Gap(0),
        dense(site, 3, [HIDDEN, outputs], true),
    ]
}

/// Multiply-adds of a head for one sample.
pub(super) fn head_size(slots: &[Slot]) -> u64 {
    let size = |slot: &Slot| match slot {
        Slot::Dense(layer) => layer.weight.lazy_shape().dims::<2>().iter().product::<usize>() as u64,
        _ => 0,
    };
    slots.iter().map(size).sum()
}

/// A head: every gap is a ReLU, fused into the layer before it.
pub(super) fn run_head<R: Run>(slots: &[Slot], run: &mut R, mut x: R::Row) -> R::Row {
    for (index, slot) in slots.iter().enumerate() {
        let rectified = matches!(slots.get(index + 1), Some(Slot::Gap(_)));
        let act = if rectified { Activation::Relu } else { Activation::None };
        x = match slot {
            Slot::Dense(layer) => run.dense(layer, x, act),
            Slot::Norm(layer) => run.norm_row(layer, x, act),
            Slot::Conv(_) | Slot::Gap(_) => x,
        };
    }
    x
}
