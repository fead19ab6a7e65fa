//! `inception-resnet-v2` (Szegedy et al., AAAI 2017) in the layout of timm (and of Cadene's code before it, where `classif`
//! is called `last_linear`).
//!
//! Every convolution but the residual blocks' last is followed by norm (epsilon 0.001) and ReLU. Stem; `mixed_5b`; ten
//! blocks of scale 0.17; `mixed_6a`; twenty of scale 0.10; `mixed_7a`; nine of scale 0.20 and one of scale 1 without ReLU;
//! `conv2d_7b`; mean. Features 1536. Images from 75 x 75. 3 x 299 x 299, 1000 classes: 55,843,464 parameters,
//! 13,155,794,016 multiply-adds. First weights: PyTorch's (timm sets none). Dropout before the classifier is a setting (0).

use super::initial::Site;
use super::layers::{Conv, Dense, Norm};
use super::run::Run;
use super::spec::NetSpec;
use crate::Result;
use burn::module::Module;
use negscale_kernels::{Activation, Window};

/// Convolution, norm, ReLU.
#[derive(Module, Debug)]
pub struct Unit {
    conv: Conv,
    bn: Norm,
}

impl Unit {
    fn new(site: &Site, channels: [usize; 2], window: Window) -> Self {
        let conv = Conv::new(&site.at("conv"), channels, window);
        Self { conv, bn: Norm { epsilon: 1e-3, ..Norm::new(&site.at("bn"), channels[1]) } }
    }

    fn forward<R: Run>(&self, run: &mut R, x: R::Image) -> R::Image {
        let x = run.conv(&self.conv, x);
        run.norm(&self.bn, x, Activation::Relu)
    }
}

fn walk<R: Run>(units: &[Unit], run: &mut R, x: R::Image) -> R::Image {
    units.iter().fold(x, |x, unit| unit.forward(run, x))
}

/// A row of units through these channel counts.
fn units(site: &Site, channels: &[usize], windows: &[Window]) -> Vec<Unit> {
    let pairs = channels.windows(2).zip(windows).enumerate();
    pairs.map(|(i, (pair, &window))| Unit::new(&site.at(i), [pair[0], pair[1]], window)).collect()
}

const ONE: Window = Window { kernel: [1, 1], stride: [1, 1], padding: [0, 0] };
const THREE: Window = Window { kernel: [3, 3], stride: [1, 1], padding: [1, 1] };
const HALVE: Window = Window { kernel: [3, 3], stride: [2, 2], padding: [0, 0] };

fn line(rows: usize, columns: usize) -> Window {
    Window { kernel: [rows, columns], stride: [1, 1], padding: [rows / 2, columns / 2] }
}

/// Four views of one size, side by side.
#[derive(Module, Debug)]
pub struct Mixed5b {
    branch0: Unit,
    branch1: Vec<Unit>,
    branch2: Vec<Unit>,
    /// The pool has no parameters; it holds place 0.
    branch3: (usize, Unit),
}

/// Residual block: one unit, one or two rows of units, and the convolution that joins them.
#[derive(Module, Debug)]
pub struct Block {
    branch0: Unit,
    branch1: Vec<Unit>,
    /// Only in blocks of the first kind.
    branch2: Vec<Unit>,
    conv2d: Conv,
    scale: f64,
    rectified: bool,
}

impl Block {
    /// `rows`: the channels and windows of the branches after the first.
    fn new(site: &Site, inputs: usize, first: usize, rows: &[(&[usize], &[Window])], scale: f64) -> Self {
        let branch = |name: &str, row: Option<&(&[usize], &[Window])>| {
            row.map_or_else(Vec::new, |(sizes, windows)| {
                let sizes: Vec<usize> = std::iter::once(inputs).chain(sizes.iter().copied()).collect();
                units(&site.at(name), &sizes, windows)
            })
        };
        let joined = first + rows.iter().filter_map(|(sizes, _)| sizes.last()).sum::<usize>();
        Self {
            branch0: Unit::new(&site.at("branch0"), [inputs, first], ONE),
            branch1: branch("branch1", rows.first()),
            branch2: branch("branch2", rows.get(1)),
            conv2d: Conv::biased(&site.at("conv2d"), [joined, inputs], ONE),
            scale,
            rectified: true,
        }
    }

    fn forward<R: Run>(&self, run: &mut R, x: R::Image) -> R::Image {
        let mut parts = vec![self.branch0.forward(run, x.clone()), walk(&self.branch1, run, x.clone())];
        if !self.branch2.is_empty() {
            parts.push(walk(&self.branch2, run, x.clone()));
        }
        let joined = run.join(parts);
        let act = if self.rectified { Activation::Relu } else { Activation::None };
        run.conv_scaled(&self.conv2d, joined, x, self.scale, act)
    }
}

/// Halves the size: a strided convolution, a row of units and a pool.
#[derive(Module, Debug)]
pub struct Mixed6a {
    branch0: Unit,
    branch1: Vec<Unit>,
}

/// Halves the size: three rows of units and a pool.
#[derive(Module, Debug)]
pub struct Mixed7a {
    branch0: Vec<Unit>,
    branch1: Vec<Unit>,
    branch2: Vec<Unit>,
}

/// Inception-ResNet-v2.
#[derive(Module, Debug)]
pub struct InceptionResNetV2 {
    conv2d_1a: Unit,
    conv2d_2a: Unit,
    conv2d_2b: Unit,
    conv2d_3b: Unit,
    conv2d_4a: Unit,
    mixed_5b: Mixed5b,
    repeat: Vec<Block>,
    mixed_6a: Mixed6a,
    repeat_1: Vec<Block>,
    mixed_7a: Mixed7a,
    repeat_2: Vec<Block>,
    block8: Block,
    conv2d_7b: Unit,
    pub(super) classif: Dense,
    dropout: f64,
}

impl InceptionResNetV2 {
    pub(super) fn new(spec: &NetSpec, site: &Site) -> Result<Self> {
        let [channels, ..] = spec.image()?;
        let n = |published: usize| spec.channels(published);
        let unit = |name: &str, sizes, window| Unit::new(&site.at(name), sizes, window);

        let place = site.at("mixed_5b");
        let mixed_5b = Mixed5b {
            branch0: Unit::new(&place.at("branch0"), [n(192), n(96)], ONE),
            branch1: units(&place.at("branch1"), &[n(192), n(48), n(64)], &[ONE, line(5, 5)]),
            branch2: units(&place.at("branch2"), &[n(192), n(64), n(96), n(96)], &[ONE, THREE, THREE]),
            branch3: (0, Unit::new(&place.at("branch3.1"), [n(192), n(64)], ONE)),
        };
        let wide = n(96) + n(64) + n(96) + n(64);
        let block = |i: usize| {
            let rows: [(&[usize], &[Window]); 2] =
                [(&[n(32), n(32)], &[ONE, THREE]), (&[n(32), n(48), n(64)], &[ONE, THREE, THREE])];
            Block::new(&site.at("repeat").at(i), wide, n(32), &rows, 0.17)
        };
        let repeat = (0..10).map(block).collect();

        let place = site.at("mixed_6a");
        let mixed_6a = Mixed6a {
            branch0: Unit::new(&place.at("branch0"), [wide, n(384)], HALVE),
            branch1: units(&place.at("branch1"), &[wide, n(256), n(256), n(384)], &[ONE, THREE, HALVE]),
        };
        let wider = n(384) + n(384) + wide;
        let block = |i: usize| {
            let rows: [(&[usize], &[Window]); 1] =
                [(&[n(128), n(160), n(192)], &[ONE, line(1, 7), line(7, 1)])];
            Block::new(&site.at("repeat_1").at(i), wider, n(192), &rows, 0.10)
        };
        let repeat_1 = (0..20).map(block).collect();

        let place = site.at("mixed_7a");
        let mixed_7a = Mixed7a {
            branch0: units(&place.at("branch0"), &[wider, n(256), n(384)], &[ONE, HALVE]),
            branch1: units(&place.at("branch1"), &[wider, n(256), n(288)], &[ONE, HALVE]),
            branch2: units(&place.at("branch2"), &[wider, n(256), n(288), n(320)], &[ONE, THREE, HALVE]),
        };
        let widest = n(384) + n(288) + n(320) + wider;
        let block = |site: Site, scale| {
            let rows: [(&[usize], &[Window]); 1] =
                [(&[n(192), n(224), n(256)], &[ONE, line(1, 3), line(3, 1)])];
            Block::new(&site, widest, n(192), &rows, scale)
        };
        Ok(Self {
            conv2d_1a: unit("conv2d_1a", [channels, n(32)], HALVE),
            conv2d_2a: unit("conv2d_2a", [n(32), n(32)], Window::square(3, 1, 0)),
            conv2d_2b: unit("conv2d_2b", [n(32), n(64)], THREE),
            conv2d_3b: unit("conv2d_3b", [n(64), n(80)], ONE),
            conv2d_4a: unit("conv2d_4a", [n(80), n(192)], Window::square(3, 1, 0)),
            mixed_5b,
            repeat,
            mixed_6a,
            repeat_1,
            mixed_7a,
            repeat_2: (0..9).map(|i| block(site.at("repeat_2").at(i), 0.20)).collect(),
            block8: Block { rectified: false, ..block(site.at("block8"), 1.0) },
            conv2d_7b: unit("conv2d_7b", [widest, n(1536)], ONE),
            classif: Dense::new(&site.at("classif"), [n(1536), spec.classes], spec.classifier_bias),
            dropout: spec.dropout.unwrap_or(0.0),
        })
    }

    pub(super) fn features<R: Run>(&self, run: &mut R, x: R::Image) -> R::Row {
        let x = self.conv2d_1a.forward(run, x);
        let x = self.conv2d_2a.forward(run, x);
        let x = self.conv2d_2b.forward(run, x);
        let x = run.max_pool(x, HALVE);
        let x = self.conv2d_3b.forward(run, x);
        let x = self.conv2d_4a.forward(run, x);
        let x = run.max_pool(x, HALVE);

        let pooled = run.avg_pool(x.clone(), THREE);
        let parts = vec![
            self.mixed_5b.branch0.forward(run, x.clone()),
            walk(&self.mixed_5b.branch1, run, x.clone()),
            walk(&self.mixed_5b.branch2, run, x),
            self.mixed_5b.branch3.1.forward(run, pooled),
        ];
        let x = run.join(parts);
        let x = self.repeat.iter().fold(x, |x, block| block.forward(run, x));

        let parts = vec![
            self.mixed_6a.branch0.forward(run, x.clone()),
            walk(&self.mixed_6a.branch1, run, x.clone()),
            run.max_pool(x, HALVE),
        ];
        let x = run.join(parts);
        let x = self.repeat_1.iter().fold(x, |x, block| block.forward(run, x));

        let parts = vec![
            walk(&self.mixed_7a.branch0, run, x.clone()),
            walk(&self.mixed_7a.branch1, run, x.clone()),
            walk(&self.mixed_7a.branch2, run, x.clone()),
            run.max_pool(x, HALVE),
        ];
        let x = run.join(parts);
        let x = self.repeat_2.iter().fold(x, |x, block| block.forward(run, x));
        let x = self.block8.forward(run, x);
        let x = self.conv2d_7b.forward(run, x);
        run.mean_pool(x)
    }

    pub(super) fn classify<R: Run>(&self, run: &mut R, features: R::Row) -> R::Row {
        let x = run.dropout(features, self.dropout, "classif");
        run.dense(&self.classif, x, Activation::None)
    }
}
