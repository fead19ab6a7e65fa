//! What a host answers: plans and objectives.

use burn::tensor::Tensor;
use negscale_data::{Order, View};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One pass over some samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The networks that take a step at each batch.
    pub trains: Vec<usize>,
    /// Views of each sample.
    pub views: Vec<View>,
    /// Views of the unlabelled samples of a pair, if they are shown otherwise.
    #[serde(default)]
    pub unlabelled_views: Option<Vec<View>>,
    /// Which samples, in which order.
    pub order: Order,
    /// Samples per batch.
    pub batch: usize,
    /// Whether a last batch that is not full is left out.
    pub drop_last: bool,
}

/// What an epoch trains, turn after turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The turns.
    pub turns: Vec<Turn>,
    /// Whether the host is still warming up, when plug-ins rest.
    pub warming_up: bool,
    /// Numbers worth noting with the epoch, such as how many samples were held to be clean.
    pub notes: BTreeMap<String, f64>,
}

impl Plan {
    /// A plan of these turns.
    pub fn new(turns: Vec<Turn>) -> Self {
        Self { turns, ..Self::default() }
    }
}

/// Where plug-ins attach: unmixed samples of the network being trained.
#[derive(Debug, Clone)]
pub struct Tap {
    /// Features with gradient.
    pub features: Tensor<2>,
    /// Logits of the same samples.
    pub logits: Tensor<2>,
    /// Labels as given.
    pub given: Vec<u32>,
    /// Labels as the host now believes them, if it has an opinion.
    pub believed: Option<Vec<u32>>,
}

/// The loss of a batch.
#[derive(Debug, Clone)]
pub struct Objective {
    /// What is minimised: one number with gradients.
    pub loss: Tensor<1>,
    /// Its parts, as reported; without weights.
    pub terms: Vec<(&'static str, Tensor<1>)>,
    /// Where plug-ins attach.
    pub taps: Vec<Tap>,
}

impl Objective {
    /// A loss that is reported whole.
    pub fn new(loss: Tensor<1>) -> Self {
        Self { loss, terms: Vec::new(), taps: Vec::new() }
    }

    /// With a part to report.
    pub fn with_term(mut self, name: &'static str, value: &Tensor<1>) -> Self {
        self.terms.push((name, value.clone().detach()));
        self
    }

    /// With a place where plug-ins attach.
    pub fn with_tap(mut self, tap: Tap) -> Self {
        self.taps.push(tap);
        self
    }
}

/// What a host keeps across epochs and batches, in a form that can be saved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// Numbers by name.
    pub floats: BTreeMap<String, Vec<f32>>,
    /// Counts, labels and sample numbers by name.
    pub whole: BTreeMap<String, Vec<u32>>,
}
