//! `mlp` and `mlp-bottleneck`: dense layers with ReLU, for embeddings. Images are flattened.
//!
//! `mlp`, 512-512-10 in the usual form. Features: the last hidden layer before its ReLU (512), so that they can be negative: after it no two samples could be less than
//! orthogonal, and pushing them apart would empty the layer. The classifier begins with that ReLU. Keys `hidden.0`, ..., `fc`. 512-512-10: 267,786 parameters and
//! 267,264 multiply-adds. First weights: PyTorch's.
//!
//! `mlp-bottleneck`, 512-256-128-10 in the usual form. Its last hidden layer is linear: features (128) are what the classifier reads, and a
//! loss on them moves every unit, not only those that the classifier's ReLU lets through. 512-256-128-10: 165,514 parameters and
//! 165,120 multiply-adds.

use super::initial::Site;
use super::layers::Dense;
use super::run::Run;
use super::spec::{Input, NetSpec};
use burn::module::Module;
use negscale_kernels::Activation;

/// Dense layers with ReLU.
#[derive(Module, Debug)]
pub struct Mlp {
    hidden: Vec<Dense>,
    pub(super) fc: Dense,
    /// Whether the classifier begins with a ReLU.
    rectifies: bool,
}

impl Mlp {
    /// `usual`: sizes of the hidden layers where the spec has none.
    pub(super) fn new(spec: &NetSpec, site: &Site, usual: &[usize], rectifies: bool) -> Self {
        let mut size = match spec.input {
            Input::Image { channels, height, width } => channels * height * width,
            Input::Features(size) => size,
        };
        let sizes: &[usize] = if spec.hidden.is_empty() { usual } else { &spec.hidden };
        let mut hidden = Vec::with_capacity(sizes.len());
        for (index, &published) in sizes.iter().enumerate() {
            let outputs = spec.channels(published);
            hidden.push(Dense::new(&site.at("hidden").at(index), [size, outputs], true));
            size = outputs;
        }
        Self { hidden, fc: Dense::new(&site.at("fc"), [size, spec.classes], spec.classifier_bias), rectifies }
    }

    /// Whether the classifier begins with a ReLU.
    pub(super) fn rectifies(&self) -> bool {
        self.rectifies
    }

    pub(super) fn features<R: Run>(&self, run: &mut R, x: R::Row) -> R::Row {
        let last = self.hidden.len() - 1;
        let activation = |at| if at == last { Activation::None } else { Activation::Relu };
        self.hidden.iter().enumerate().fold(x, |x, (at, layer)| run.dense(layer, x, activation(at)))
    }

    pub(super) fn classify<R: Run>(&self, run: &mut R, features: R::Row) -> R::Row {
        let read = if self.rectifies { run.relu(features) } else { features };
        run.dense(&self.fc, read, Activation::None)
    }
}
