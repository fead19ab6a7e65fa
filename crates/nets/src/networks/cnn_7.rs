//! `cnn-7` (JoCoR, Wei et al., CVPR 2020): six 3x3 convolutions, 64, 64, pool, 128, 128, pool, 196, 16, pool, flatten, dense.
//!
//! Norm and ReLU after each convolution. Features: the flattened 16 channels (256 at 32 x 32; the classifier is made for
//! the image size the network is built for). Keys `c1`, `bn1`, ..., `linear1`. 3 x 32 x 32, 10 classes: 518,150 parameters,
//! 112,400,896 multiply-adds. First weights: PyTorch's.

use super::initial::Site;
use super::layers::{Conv, Dense, Norm};
use super::run::Run;
use super::spec::NetSpec;
use crate::Result;
use burn::module::Module;
use negscale_kernels::{Activation, Window};

/// Six convolutions.
#[derive(Module, Debug)]
pub struct Cnn7 {
    c1: Conv,
    c2: Conv,
    c3: Conv,
    c4: Conv,
    c5: Conv,
    c6: Conv,
    pub(super) linear1: Dense,
    bn1: Norm,
    bn2: Norm,
    bn3: Norm,
    bn4: Norm,
    bn5: Norm,
    bn6: Norm,
}

impl Cnn7 {
    pub(super) fn new(spec: &NetSpec, site: &Site) -> Result<Self> {
        let [channels, height, width] = spec.image()?;
        let [a, b, c, d] = [64, 128, 196, 16].map(|channels| spec.channels(channels));
        let conv = |name, sizes| Conv::biased(&site.at(name), sizes, Window::square(3, 1, 1));
        let norm = |name, size| Norm::new(&site.at(name), size);
        let features = d * (height / 8) * (width / 8);
        Ok(Self {
            c1: conv("c1", [channels, a]),
            c2: conv("c2", [a, a]),
            c3: conv("c3", [a, b]),
            c4: conv("c4", [b, b]),
            c5: conv("c5", [b, c]),
            c6: conv("c6", [c, d]),
            linear1: Dense::new(&site.at("linear1"), [features, spec.classes], spec.classifier_bias),
            bn1: norm("bn1", a),
            bn2: norm("bn2", a),
            bn3: norm("bn3", b),
            bn4: norm("bn4", b),
            bn5: norm("bn5", c),
            bn6: norm("bn6", d),
        })
    }

    pub(super) fn features<R: Run>(&self, run: &mut R, mut x: R::Image) -> R::Row {
        let groups = [
            [(&self.c1, &self.bn1), (&self.c2, &self.bn2)],
            [(&self.c3, &self.bn3), (&self.c4, &self.bn4)],
            [(&self.c5, &self.bn5), (&self.c6, &self.bn6)],
        ];
        for group in groups {
            for (conv, norm) in group {
                x = run.conv(conv, x);
                x = run.norm(norm, x, Activation::Relu);
            }
            x = run.max_pool(x, Window::square(2, 2, 0));
        }
        run.flatten(x)
    }

    pub(super) fn classify<R: Run>(&self, run: &mut R, features: R::Row) -> R::Row {
        run.dense(&self.linear1, features, Activation::None)
    }
}
