//! `vgg-19-bn` (Simonyan and Zisserman, ICLR 2015, with batch norm), torchvision's layout and keys (`features.0`, ...,
//! `classifier.0`, `.3`, `.6`); timm renames the last part, so only its convolutions would match.
//!
//! Sixteen 3x3 convolutions with bias, norm and ReLU in five groups, each ended by a max-pool; means over a 7 x 7 grid;
//! two hidden layers of 4096 with ReLU and dropout (a setting: NCT removes it); classifier (bias a setting). Features: the
//! second hidden layer after its ReLU, before dropout (4096). 3 x 224 x 224, 1000 classes: 143,678,248 parameters,
//! 19,632,062,464 multiply-adds. First weights: torchvision's.

use super::initial::Site;
use super::layers::{Conv, Dense, Norm, Slot};
use super::run::Run;
use super::spec::NetSpec;
use crate::Result;
use burn::module::Module;
use negscale_kernels::{Activation, Window};

/// Channels of the convolutions of each group.
const GROUPS: [(usize, usize); 5] = [(2, 64), (2, 128), (4, 256), (4, 512), (4, 512)];
/// Rows and columns of the grid before the dense layers.
const GRID: usize = 7;

/// VGG of 19 layers.
#[derive(Module, Debug)]
pub struct Vgg {
    features: Vec<Slot>,
    classifier: Vec<Slot>,
    dropout: f64,
}

impl Vgg {
    pub(super) fn new(spec: &NetSpec, site: &Site) -> Result<Self> {
        let [mut channels, ..] = spec.image()?;
        let place = site.at("features");
        let mut features = Vec::new();
        for (count, published) in GROUPS {
            for _ in 0..count {
                let outputs = spec.channels(published);
                let index = features.len();
                features.push(Slot::Conv(Conv::biased(
                    &place.at(index),
                    [channels, outputs],
                    Window::square(3, 1, 1),
                )));
                features.push(Slot::Norm(Norm::new(&place.at(index + 1), outputs)));
                features.push(Slot::Gap(0)); // ReLU, fused into the norm
                channels = outputs;
            }
            features.push(Slot::Gap(2)); // max-pool of 2
        }
        let hidden = spec.channels(4096);
        let place = site.at("classifier");
        let dense = |index: usize, sizes, bias| Slot::Dense(Dense::new(&place.at(index), sizes, bias));
        let classifier = vec![
            dense(0, [channels * GRID * GRID, hidden], true),
            Slot::Gap(0),
            Slot::Gap(0),
            dense(3, [hidden, hidden], true),
            Slot::Gap(0),
            Slot::Gap(0),
            dense(6, [hidden, spec.classes], spec.classifier_bias),
        ];
        Ok(Self { features, classifier, dropout: spec.dropout.unwrap_or(0.5) })
    }

    pub(super) fn features<R: Run>(&self, run: &mut R, mut x: R::Image) -> R::Row {
        for slot in &self.features {
            x = match slot {
                Slot::Conv(layer) => run.conv(layer, x),
                Slot::Norm(layer) => run.norm(layer, x, Activation::Relu),
                Slot::Gap(2) => run.max_pool(x, Window::square(2, 2, 0)),
                Slot::Dense(_) | Slot::Gap(_) => x,
            };
        }
        let x = run.grid_pool(x, GRID);
        let x = self.dense(run, 0, x, Activation::Relu);
        let x = run.keep_first(x, 0);
        let x = run.dropout(x, self.dropout, "classifier.2");
        self.dense(run, 3, x, Activation::Relu)
    }

    pub(super) fn classify<R: Run>(&self, run: &mut R, features: R::Row) -> R::Row {
        let x = run.dropout(features, self.dropout, "classifier.5");
        self.dense(run, 6, x, Activation::None)
    }

    pub(super) fn last(&self) -> &Dense {
        match &self.classifier[6] {
            Slot::Dense(layer) => layer,
            _ => unreachable!("the last place holds a dense layer"),
        }
    }

    fn dense<R: Run>(&self, run: &mut R, index: usize, x: R::Row, act: Activation) -> R::Row {
        match &self.classifier[index] {
            Slot::Dense(layer) => run.dense(layer, x, act),
            _ => x,
        }
    }
}
