//! `cnn-small`: our own small network for 28 x 28 grey images, where a training step should cost little.
//!
//! conv 16 (28 x 28), max-pool, conv 32 (14 x 14), max-pool, conv 64 (7 x 7), conv 64 with stride 2 (4 x 4), mean; all 3x3,
//! each followed by batch norm and, but for the last, ReLU: features (64) can be negative. At 1 x 28 x 28 and 10 classes: 61,050 parameters, 2,509,696
//! multiply-adds, shared out almost evenly (4, 36, 36, 24 %), so that no resolution starves. First weights: He's normal.

use super::initial::Site;
use super::layers::{Conv, Dense, Norm};
use super::run::Run;
use super::spec::NetSpec;
use crate::Result;
use burn::module::Module;
use negscale_kernels::{Activation, Window};

/// Four convolutions.
#[derive(Module, Debug)]
pub struct CnnSmall {
    conv1: Conv,
    bn1: Norm,
    conv2: Conv,
    bn2: Norm,
    conv3: Conv,
    bn3: Norm,
    conv4: Conv,
    bn4: Norm,
    pub(super) fc: Dense,
}

impl CnnSmall {
    pub(super) fn new(spec: &NetSpec, site: &Site) -> Result<Self> {
        let [channels, ..] = spec.image()?;
        let [a, b, c] = [16, 32, 64].map(|channels| spec.channels(channels));
        let conv = |name, channels, stride| Conv::new(&site.at(name), channels, Window::square(3, stride, 1));
        let norm = |name, channels| Norm::new(&site.at(name), channels);
        Ok(Self {
            conv1: conv("conv1", [channels, a], 1),
            bn1: norm("bn1", a),
            conv2: conv("conv2", [a, b], 1),
            bn2: norm("bn2", b),
            conv3: conv("conv3", [b, c], 1),
            bn3: norm("bn3", c),
            conv4: conv("conv4", [c, c], 2),
            bn4: norm("bn4", c),
            fc: Dense::new(&site.at("fc"), [c, spec.classes], spec.classifier_bias),
        })
    }

    pub(super) fn features<R: Run>(&self, run: &mut R, x: R::Image) -> R::Row {
        let mut x = x;
        for (conv, norm) in [(&self.conv1, &self.bn1), (&self.conv2, &self.bn2)] {
            x = run.conv(conv, x);
            x = run.norm(norm, x, Activation::Relu);
            x = run.max_pool(x, Window::square(2, 2, 0));
        }
        x = run.conv(&self.conv3, x);
        x = run.norm(&self.bn3, x, Activation::Relu);
        x = run.conv(&self.conv4, x);
        x = run.norm(&self.bn4, x, Activation::None);
        run.mean_pool(x)
    }

    pub(super) fn classify<R: Run>(&self, run: &mut R, features: R::Row) -> R::Row {
        run.dense(&self.fc, features, Activation::None)
    }
}
