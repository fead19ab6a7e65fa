//! `resnet-18`, `resnet-34` (He et al., CVPR 2016), with torchvision's keys (timm's are the same): `conv1`, `bn1`,
//! `layer1.0.conv1`, `layer2.0.downsample.0`, `fc`.
//!
//! Stem: 3x3 with stride 1 for images up to 64 x 64 (the CIFAR code bases), else 7x7 with stride 2 and max-pool
//! (torchvision); the `-imagenet` names always have the latter. Shortcuts are 1x1 convolutions with norm where sizes change
//! (option B). Features: mean over positions (512).
//!
//! | | parameters | multiply-adds |
//! |---|---|---|
//! | resnet-18, 3 x 32 x 32, 10 classes | 11,173,962 | 555,422,720 |
//! | resnet-34, 3 x 32 x 32, 10 classes | 21,282,122 | 1,159,402,496 |
//! | resnet-18-imagenet, 3 x 224 x 224, 1000 classes | 11,689,512 | 1,814,073,344 |
//! | resnet-34-imagenet, 3 x 224 x 224, 1000 classes | 21,797,672 | 3,663,761,408 |
//!
//! First weights: PyTorch's with the 3x3 stem (as in the CIFAR code bases), torchvision's (He's normal, fan out) with the
//! 7x7 stem.

use super::initial::{InitScheme, Site};
use super::layers::{Conv, Dense, Norm};
use super::run::Run;
use super::spec::NetSpec;
use crate::Result;
use burn::module::Module;
use negscale_kernels::{Activation, Window};

/// ResNet of basic blocks.
#[derive(Module, Debug)]
pub struct ResNet {
    conv1: Conv,
    bn1: Norm,
    layer1: Vec<Block>,
    layer2: Vec<Block>,
    layer3: Vec<Block>,
    layer4: Vec<Block>,
    pub(super) fc: Dense,
    /// Whether a max-pool follows the stem.
    pooled: bool,
}

/// Two convolutions and a shortcut.
#[derive(Module, Debug)]
pub struct Block {
    conv1: Conv,
    bn1: Norm,
    conv2: Conv,
    bn2: Norm,
    downsample: Option<(Conv, Norm)>,
}

impl Block {
    fn new(site: &Site, [inputs, outputs]: [usize; 2], stride: usize) -> Self {
        let downsample = (stride != 1 || inputs != outputs).then(|| {
            let site = site.at("downsample");
            let conv = Conv::new(&site.at(0), [inputs, outputs], Window::square(1, stride, 0));
            (conv, Norm::new(&site.at(1), outputs))
        });
        Self {
            conv1: Conv::new(&site.at("conv1"), [inputs, outputs], Window::square(3, stride, 1)),
            bn1: Norm::new(&site.at("bn1"), outputs),
            conv2: Conv::new(&site.at("conv2"), [outputs, outputs], Window::square(3, 1, 1)),
            bn2: Norm::new(&site.at("bn2"), outputs),
            downsample,
        }
    }

    fn forward<R: Run>(&self, run: &mut R, x: R::Image) -> R::Image {
        let skip = match &self.downsample {
            Some((conv, norm)) => {
                let skip = run.conv(conv, x.clone());
                run.norm(norm, skip, Activation::None)
            }
            None => x.clone(),
        };
        let x = run.conv(&self.conv1, x);
        let x = run.norm(&self.bn1, x, Activation::Relu);
        let x = run.conv(&self.conv2, x);
        run.norm_add(&self.bn2, x, skip, Activation::Relu)
    }
}

impl ResNet {
    /// `counts` blocks per stage; `imagenet` asks for the 7x7 stem whatever the size.
    pub(super) fn new(spec: &NetSpec, site: &Site, counts: [usize; 4], imagenet: bool) -> Result<Self> {
        let [channels, height, width] = spec.image()?;
        let pooled = imagenet || height.max(width) > 64;
        let site = &Site { rule: if pooled { InitScheme::HeOut } else { InitScheme::Torch }, ..site.clone() };
        let [a, b, c, d] = [64, 128, 256, 512].map(|channels| spec.channels(channels));
        let stage = |name: &str, count: usize, inputs: usize, outputs: usize, stride: usize| {
            let site = site.at(name);
            let block = |i| match i {
                0 => Block::new(&site.at(i), [inputs, outputs], stride),
                _ => Block::new(&site.at(i), [outputs, outputs], 1),
            };
            (0..count).map(block).collect()
        };
        let stem = if pooled { Window::square(7, 2, 3) } else { Window::square(3, 1, 1) };
        Ok(Self {
            conv1: Conv::new(&site.at("conv1"), [channels, a], stem),
            bn1: Norm::new(&site.at("bn1"), a),
            layer1: stage("layer1", counts[0], a, a, 1),
            layer2: stage("layer2", counts[1], a, b, 2),
            layer3: stage("layer3", counts[2], b, c, 2),
            layer4: stage("layer4", counts[3], c, d, 2),
            fc: Dense::new(&site.at("fc"), [d, spec.classes], spec.classifier_bias),
            pooled,
        })
    }

    pub(super) fn features<R: Run>(&self, run: &mut R, x: R::Image) -> R::Row {
        let x = run.conv(&self.conv1, x);
        let mut x = run.norm(&self.bn1, x, Activation::Relu);
        if self.pooled {
            x = run.max_pool(x, Window::square(3, 2, 1));
        }
        let blocks = self.layer1.iter().chain(&self.layer2).chain(&self.layer3).chain(&self.layer4);
        let x = blocks.fold(x, |x, block| block.forward(run, x));
        run.mean_pool(x)
    }

    pub(super) fn classify<R: Run>(&self, run: &mut R, features: R::Row) -> R::Row {
        run.dense(&self.fc, features, Activation::None)
    }
}
