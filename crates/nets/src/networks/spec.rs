//! What a network is asked to be, and the list of networks there are.

use super::heads::Projection;
use super::initial::InitScheme;
use crate::{Error, Result};
use negscale_records::nearest;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Classes up to which what was published for CIFAR-10 is used, above it that for CIFAR-100.
pub const FEW_CLASSES: usize = 32;

/// What one sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// An image.
    Image {
        /// Channels: 1 for grey, 3 for colour.
        channels: usize,
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// A row of so many numbers, such as an embedding.
    Features(usize),
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image { channels, height, width } => write!(f, "images of {channels} x {height} x {width}"),
            Self::Features(size) => write!(f, "feature vectors of length {size}"),
        }
    }
}

/// Heads beside the classifier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Heads {
    /// Projection of the features.
    pub projection: Option<Projection>,
    /// Prediction from the projection: p-256-norm-ReLU-p, for projections of size p.
    pub prediction: bool,
}

/// A network to build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetSpec {
    /// One of [`names`](super::names).
    pub name: String,
    /// What one sample is.
    pub input: Input,
    /// Number of classes.
    pub classes: usize,
    /// Factor on all channel counts, which are then rounded to a multiple of 8, at least 8; 1 leaves them as published.
    #[serde(default = "one")]
    pub width: f64,
    /// Heads beside the classifier.
    #[serde(default)]
    pub heads: Heads,
    /// Seed of the first weights.
    #[serde(default)]
    pub seed: u64,
    /// Share of values dropped, for `vgg-19-bn` (else 0.5), `cnn-9` (0.25) and `inception-resnet-v2` (0).
    #[serde(default)]
    pub dropout: Option<f64>,
    /// Sizes of the hidden layers of `mlp` (empty: one of 512) and `mlp-bottleneck` (empty: 256 and a linear one of 128).
    #[serde(default)]
    pub hidden: Vec<usize>,
    /// Whether the classifier has a bias. A tree classifier has none.
    #[serde(default = "yes")]
    pub classifier_bias: bool,
    /// The last layer.
    #[serde(default, skip_serializing_if = "LastLayer::is_linear")]
    pub classifier: LastLayer,
}

/// What makes logits of features.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LastLayer {
    /// A trained dense layer.
    #[default]
    Linear,
    /// Fixed class vectors, of which only the scale is trained ([`Network::with_class_vectors`](super::Network::with_class_vectors)).
    Tree,
}

impl LastLayer {
    /// Their names, in this order.
    pub const NAMES: [&str; 2] = ["linear", "tree"];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[usize::from(!self.is_linear())]
    }

    /// Whether it is the usual one.
    pub fn is_linear(&self) -> bool {
        *self == Self::Linear
    }
}

fn one() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

impl NetSpec {
    /// The published network, with seed 0 and no heads.
    pub fn new(name: impl Into<String>, input: Input, classes: usize) -> Self {
        Self {
            name: name.into(),
            input,
            classes,
            width: 1.0,
            heads: Heads::default(),
            seed: 0,
            dropout: None,
            hidden: Vec::new(),
            classifier_bias: true,
            classifier: LastLayer::Linear,
        }
    }

    /// With this seed.
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// With this width factor.
    pub fn scaled(self, width: f64) -> Self {
        Self { width, ..self }
    }

    /// Without a bias of the classifier where it has none.
    pub(super) fn with_fitting_bias(self) -> Self {
        Self { classifier_bias: self.classifier_bias && self.classifier.is_linear(), ..self }
    }

    /// With these heads.
    pub fn with_heads(self, projection: Option<Projection>, prediction: bool) -> Self {
        Self { heads: Heads { projection, prediction }, ..self }
    }

    /// So many channels, scaled by the width factor.
    pub(super) fn channels(&self, published: usize) -> usize {
        if self.width == 1.0 {
            return published;
        }
        (((published as f64 * self.width) / 8.0).round() as usize).max(1) * 8
    }

    /// Channels of the input images.
    pub(super) fn image(&self) -> Result<[usize; 3]> {
        match self.input {
            Input::Image { channels, height, width } => Ok([channels, height, width]),
            Input::Features(_) => {
                Err(self.misfit("it works on images; for feature vectors use `mlp`".into()))
            }
        }
    }

    pub(super) fn misfit(&self, reason: String) -> Error {
        Error::Input { net: self.name.clone(), input: self.input.to_string(), reason }
    }

    /// The network's card, if all settings are in range.
    pub(super) fn checked(&self) -> Result<&'static NetCard> {
        let card = card(&self.name)?;
        let wrong = |setting, value: String, wanted| {
            Err(Error::Setting { net: self.name.clone(), setting, value, wanted })
        };
        if self.classes == 0 {
            return wrong("classes", "0".into(), "it must be at least 1");
        }
        if !(self.width > 0.0 && self.width <= 16.0) {
            return wrong("width", self.width.to_string(), "it must be above 0 and at most 16");
        }
        if let Some(dropout) = self.dropout.filter(|share| !(0.0..1.0).contains(share)) {
            return wrong("dropout", dropout.to_string(), "it must be at least 0 and below 1");
        }
        if self.hidden.contains(&0) {
            return wrong("hidden", format!("{:?}", self.hidden), "every layer needs at least 1 value");
        }
        if self.heads.prediction && self.heads.projection.is_none() {
            return wrong("heads.prediction", "on".into(), "it predicts from a projection; ask for one too");
        }
        let sizes = match self.input {
            Input::Image { channels, height, width } => vec![channels, height, width],
            Input::Features(size) => vec![size],
        };
        if sizes.contains(&0) {
            return Err(self.misfit("no size may be 0".into()));
        }
        Ok(card)
    }
}

/// What a network is, for people.
#[derive(Debug, Clone, Copy)]
pub struct NetCard {
    /// Name to ask for it by.
    pub id: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// What it takes.
    pub takes: &'static str,
    /// Size of the features at width 1, at its usual input.
    pub features: usize,
    /// How its weights begin.
    pub rule: InitScheme,
}

macro_rules! cards {
    ($($id:literal, $about:literal, $paper:literal, $takes:literal, $features:literal, $rule:ident;)+) => {
        &[$(NetCard { id: $id, about: $about, paper: $paper, takes: $takes, features: $features, rule: InitScheme::$rule }),+]
    };
}

/// All networks.
pub const CARDS: &[NetCard] = cards![
    "mlp", "multi-layer perceptron", "-", "feature vectors or images", 512, Torch;
    "mlp-bottleneck", "multi-layer perceptron whose last hidden layer is linear, 256-128", "-", "feature vectors or images", 128, Torch;
    "cnn-small", "four convolutions, 16-32-64-64", "-", "images from 4 x 4, made for 28 x 28", 64, HeIn;
    "resnet-20", "CIFAR ResNet, 16-32-64", "He et al. 2016", "images from 1 pixel, made for 32 x 32", 64, HeIn;
    "preact-resnet-10", "small variant for few cores: one block per stage, stem of stride 2", "-",
        "images from 1 pixel, made for 32 x 32", 512, Torch;
    "preact-resnet-18", "pre-activation ResNet of the label-noise code bases", "He et al. 2016b",
        "images from 1 pixel, made for 32 x 32", 512, Torch;
    "resnet-18", "ResNet; 3x3 stem up to 64 x 64, 7x7 stem above", "He et al. 2016", "images from 1 pixel", 512, Torch;
    "resnet-34", "ResNet; 3x3 stem up to 64 x 64, 7x7 stem above", "He et al. 2016", "images from 1 pixel", 512, Torch;
    "resnet-18-imagenet", "ResNet with the 7x7 stem", "He et al. 2016", "images from 1 pixel", 512, HeOut;
    "resnet-34-imagenet", "ResNet with the 7x7 stem", "He et al. 2016", "images from 1 pixel", 512, HeOut;
    "vgg-19-bn", "VGG-19 with batch norm", "Simonyan and Zisserman 2015", "images from 32 x 32", 4096, Vgg;
    "inception-resnet-v2", "Inception with residual blocks", "Szegedy et al. 2017", "images from 75 x 75", 1536, Torch;
    "cnn-9", "nine convolutions of Co-teaching", "Han et al. 2018", "images from 28 x 28", 128, Torch;
    "cnn-7", "six convolutions of JoCoR", "Wei et al. 2020", "images from 8 x 8", 256, Torch;
];

/// Names of all networks.
pub fn names() -> Vec<&'static str> {
    CARDS.iter().map(|card| card.id).collect()
}

/// The card of a network.
pub fn card(name: &str) -> Result<&'static NetCard> {
    CARDS
        .iter()
        .find(|card| card.id == name)
        .ok_or_else(|| Error::UnknownNet { name: name.into(), nearest: nearest(name, names()) })
}
