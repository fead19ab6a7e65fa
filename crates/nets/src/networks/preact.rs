//! `preact-resnet-18` (He et al., ECCV 2016), as the label-noise code bases (DivideMix and its descendants) have it, and
//! `preact-resnet-10`, a small one for few cores.
//!
//! Stem conv3x3-norm-ReLU; four stages of two blocks, 64-128-256-512. A block: o = ReLU(norm(x)); skip = o, or a 1x1
//! convolution of o where size or channels change; out = conv(ReLU(norm(conv(o)))) + skip. So the skip carries the
//! *activated* input, and nothing follows the last block: the features can be negative. Features: mean over positions (512).
//! Keys `conv1`, `bn1`, `layer1.0.bn1`, `layer2.0.shortcut.0`, `linear`. 3 x 32 x 32, 10 classes: 11,171,274 parameters
//! (the often quoted 11,171,146 is a variant without the stem's norm), 555,422,720 multiply-adds. First weights: PyTorch's.
//!
//! The small one is ours: one block per stage, and a stem that halves the picture at once. Same features and keys; 4,900,554
//! parameters, 63,362,048 multiply-adds, a ninth.

use super::initial::Site;
use super::layers::{Conv, Dense, Norm};
use super::run::Run;
use super::spec::NetSpec;
use crate::Result;
use burn::module::Module;
use negscale_kernels::{Activation, Window};

/// Pre-activation ResNet.
#[derive(Module, Debug)]
pub struct PreActResNet {
    conv1: Conv,
    bn1: Norm,
    layer1: Vec<Block>,
    layer2: Vec<Block>,
    layer3: Vec<Block>,
    layer4: Vec<Block>,
    pub(super) linear: Dense,
}

/// Norm before convolution, twice.
#[derive(Module, Debug)]
pub struct Block {
    bn1: Norm,
    conv1: Conv,
    bn2: Norm,
    conv2: Conv,
    /// Empty: the identity.
    shortcut: Vec<Conv>,
}

impl Block {
    fn new(site: &Site, [inputs, outputs]: [usize; 2], stride: usize) -> Self {
        let mut shortcut = Vec::new();
        if stride != 1 || inputs != outputs {
            shortcut.push(Conv::new(&site.at("shortcut.0"), [inputs, outputs], Window::square(1, stride, 0)));
        }
        Self {
            bn1: Norm::new(&site.at("bn1"), inputs),
            conv1: Conv::new(&site.at("conv1"), [inputs, outputs], Window::square(3, stride, 1)),
            bn2: Norm::new(&site.at("bn2"), outputs),
            conv2: Conv::new(&site.at("conv2"), [outputs, outputs], Window::square(3, 1, 1)),
            shortcut,
        }
    }

    fn forward<R: Run>(&self, run: &mut R, x: R::Image) -> R::Image {
        let x = run.norm(&self.bn1, x, Activation::Relu);
        let skip = self.shortcut.iter().fold(x.clone(), |x, conv| run.conv(conv, x));
        let x = run.conv(&self.conv1, x);
        let x = run.norm(&self.bn2, x, Activation::Relu);
        run.conv_add(&self.conv2, x, skip)
    }
}

impl PreActResNet {
    /// With so many blocks per stage, and this stride of the stem.
    pub(super) fn new(spec: &NetSpec, site: &Site, blocks: usize, stem: usize) -> Result<Self> {
        let [channels, ..] = spec.image()?;
        let [a, b, c, d] = [64, 128, 256, 512].map(|channels| spec.channels(channels));
        let stage = |name: &str, inputs: usize, outputs: usize, stride: usize| {
            let site = site.at(name);
            let first = Block::new(&site.at(0), [inputs, outputs], stride);
            let others = (1..blocks).map(|number| Block::new(&site.at(number), [outputs, outputs], 1));
            std::iter::once(first).chain(others).collect()
        };
        Ok(Self {
            conv1: Conv::new(&site.at("conv1"), [channels, a], Window::square(3, stem, 1)),
            bn1: Norm::new(&site.at("bn1"), a),
            layer1: stage("layer1", a, a, 1),
            layer2: stage("layer2", a, b, 2),
            layer3: stage("layer3", b, c, 2),
            layer4: stage("layer4", c, d, 2),
            linear: Dense::new(&site.at("linear"), [d, spec.classes], spec.classifier_bias),
        })
    }

    pub(super) fn features<R: Run>(&self, run: &mut R, x: R::Image) -> R::Row {
        let x = run.conv(&self.conv1, x);
        let x = run.norm(&self.bn1, x, Activation::Relu);
        let blocks = self.layer1.iter().chain(&self.layer2).chain(&self.layer3).chain(&self.layer4);
        let x = blocks.fold(x, |x, block| block.forward(run, x));
        run.mean_pool(x)
    }

    pub(super) fn classify<R: Run>(&self, run: &mut R, features: R::Row) -> R::Row {
        run.dense(&self.linear, features, Activation::None)
    }
}
