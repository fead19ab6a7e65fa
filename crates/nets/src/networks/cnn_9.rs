//! `cnn-9` (Co-teaching, Han et al., NeurIPS 2018): three groups of three 3x3 convolutions.
//!
//! 3 x 128, max-pool, dropout; 3 x 256, max-pool, dropout; 512, 256, 128 without padding; mean. Norm and leaky ReLU (0.01)
//! after each convolution; dropout takes whole channels (0.25, a setting) and works in training only. Features 128. Keys
//! `c1`, `bn1`, ..., `l_c1`. 3 x 32 x 32, 10 classes: 4,434,570 parameters, 745,538,816 multiply-adds. First weights:
//! PyTorch's.
//!
//! # Where this differs from the published code
//! There, dropout is called without saying whether it is training; read by today's PyTorch it would also drop in tests.

use super::initial::Site;
use super::layers::{Conv, Dense, Norm};
use super::run::Run;
use super::spec::NetSpec;
use crate::Result;
use burn::module::Module;
use negscale_kernels::{Activation, Window};

const LEAKY: Activation = Activation::Leaky(0.01);

/// Nine convolutions.
#[derive(Module, Debug)]
pub struct Cnn9 {
    c1: Conv,
    c2: Conv,
    c3: Conv,
    c4: Conv,
    c5: Conv,
    c6: Conv,
    c7: Conv,
    c8: Conv,
    c9: Conv,
    pub(super) l_c1: Dense,
    bn1: Norm,
    bn2: Norm,
    bn3: Norm,
    bn4: Norm,
    bn5: Norm,
    bn6: Norm,
    bn7: Norm,
    bn8: Norm,
    bn9: Norm,
    dropout: f64,
}

impl Cnn9 {
    pub(super) fn new(spec: &NetSpec, site: &Site) -> Result<Self> {
        let [channels, ..] = spec.image()?;
        let [a, b, c] = [128, 256, 512].map(|channels| spec.channels(channels));
        let conv = |name, sizes, padding| Conv::biased(&site.at(name), sizes, Window::square(3, 1, padding));
        let norm = |name, size| Norm::new(&site.at(name), size);
        Ok(Self {
            c1: conv("c1", [channels, a], 1),
            c2: conv("c2", [a, a], 1),
            c3: conv("c3", [a, a], 1),
            c4: conv("c4", [a, b], 1),
            c5: conv("c5", [b, b], 1),
            c6: conv("c6", [b, b], 1),
            c7: conv("c7", [b, c], 0),
            c8: conv("c8", [c, b], 0),
            c9: conv("c9", [b, a], 0),
            l_c1: Dense::new(&site.at("l_c1"), [a, spec.classes], spec.classifier_bias),
            bn1: norm("bn1", a),
            bn2: norm("bn2", a),
            bn3: norm("bn3", a),
            bn4: norm("bn4", b),
            bn5: norm("bn5", b),
            bn6: norm("bn6", b),
            bn7: norm("bn7", c),
            bn8: norm("bn8", b),
            bn9: norm("bn9", a),
            dropout: spec.dropout.unwrap_or(0.25),
        })
    }

    pub(super) fn features<R: Run>(&self, run: &mut R, mut x: R::Image) -> R::Row {
        let groups = [
            [(&self.c1, &self.bn1), (&self.c2, &self.bn2), (&self.c3, &self.bn3)],
            [(&self.c4, &self.bn4), (&self.c5, &self.bn5), (&self.c6, &self.bn6)],
            [(&self.c7, &self.bn7), (&self.c8, &self.bn8), (&self.c9, &self.bn9)],
        ];
        for (group, place) in groups.into_iter().zip(["group1", "group2", ""]) {
            for (conv, norm) in group {
                x = run.conv(conv, x);
                x = run.norm(norm, x, LEAKY);
            }
            if !place.is_empty() {
                x = run.max_pool(x, Window::square(2, 2, 0));
                x = run.drop_channels(x, self.dropout, place);
            }
        }
        run.mean_pool(x)
    }

    pub(super) fn classify<R: Run>(&self, run: &mut R, features: R::Row) -> R::Row {
        run.dense(&self.l_c1, features, Activation::None)
    }
}
