//! `resnet-20` (He et al., CVPR 2016, section 4.2): the CIFAR ResNet of 16, 32 and 64 channels, three blocks each.
//!
//! Shortcuts are the paper's option A, without parameters: every second pixel, missing channels zero (half in front, half
//! behind, as in the widespread PyTorch implementation, whose keys are used: `conv1`, `bn1`, `layer1.0.conv1`, ...,
//! `linear`). Features: mean over positions (64). 3 x 32 x 32, 10 classes: 269,722 parameters (published 0.27 M),
//! 40,551,040 multiply-adds. First weights: He's normal, fan in.

use super::initial::Site;
use super::layers::{Conv, Dense, Norm};
use super::run::Run;
use super::spec::NetSpec;
use crate::Result;
use burn::module::Module;
use negscale_kernels::{Activation, Window};

/// CIFAR ResNet of 20 layers.
#[derive(Module, Debug)]
pub struct ResNet20 {
    conv1: Conv,
    bn1: Norm,
    layer1: Vec<Block>,
    layer2: Vec<Block>,
    layer3: Vec<Block>,
    pub(super) linear: Dense,
}

/// Two convolutions and a shortcut without parameters.
#[derive(Module, Debug)]
pub struct Block {
    conv1: Conv,
    bn1: Norm,
    conv2: Conv,
    bn2: Norm,
    /// Channels the shortcut must add.
    extra: usize,
}

impl Block {
    fn new(site: &Site, [inputs, outputs]: [usize; 2], stride: usize) -> Self {
        Self {
            conv1: Conv::new(&site.at("conv1"), [inputs, outputs], Window::square(3, stride, 1)),
            bn1: Norm::new(&site.at("bn1"), outputs),
            conv2: Conv::new(&site.at("conv2"), [outputs, outputs], Window::square(3, 1, 1)),
            bn2: Norm::new(&site.at("bn2"), outputs),
            extra: outputs - inputs,
        }
    }

    fn forward<R: Run>(&self, run: &mut R, x: R::Image) -> R::Image {
        let mut skip = x.clone();
        if self.conv1.window.stride != [1, 1] {
            // A mean over one pixel with stride 2 takes every second pixel.
            skip = run.avg_pool(skip, Window::square(1, 2, 0));
        }
        if self.extra > 0 {
            skip = run.widen(skip, self.extra / 2, self.extra - self.extra / 2);
        }
        let x = run.conv(&self.conv1, x);
        let x = run.norm(&self.bn1, x, Activation::Relu);
        let x = run.conv(&self.conv2, x);
        run.norm_add(&self.bn2, x, skip, Activation::Relu)
    }
}

impl ResNet20 {
    pub(super) fn new(spec: &NetSpec, site: &Site) -> Result<Self> {
        let [channels, ..] = spec.image()?;
        let [a, b, c] = [16, 32, 64].map(|channels| spec.channels(channels));
        let stage = |name: &str, inputs: usize, outputs: usize, stride: usize| {
            let site = site.at(name);
            let block = |i| {
                Block::new(
                    &site.at(i),
                    [if i == 0 { inputs } else { outputs }, outputs],
                    if i == 0 { stride } else { 1 },
                )
            };
            (0..3).map(block).collect()
        };
        Ok(Self {
            conv1: Conv::new(&site.at("conv1"), [channels, a], Window::square(3, 1, 1)),
            bn1: Norm::new(&site.at("bn1"), a),
            layer1: stage("layer1", a, a, 1),
            layer2: stage("layer2", a, b, 2),
            layer3: stage("layer3", b, c, 2),
            linear: Dense::new(&site.at("linear"), [c, spec.classes], spec.classifier_bias),
        })
    }

    pub(super) fn features<R: Run>(&self, run: &mut R, x: R::Image) -> R::Row {
        let x = run.conv(&self.conv1, x);
        let x = run.norm(&self.bn1, x, Activation::Relu);
        let blocks = self.layer1.iter().chain(&self.layer2).chain(&self.layer3);
        let x = blocks.fold(x, |x, block| block.forward(run, x));
        run.mean_pool(x)
    }

    pub(super) fn classify<R: Run>(&self, run: &mut R, features: R::Row) -> R::Row {
        run.dense(&self.linear, features, Activation::None)
    }
}
