//! Plans and objectives: what a host returns.

use super::{Epoch, SubBatch};
use crate::{Error, Result};
use burn::tensor::{Device, Int, Tensor, TensorData};
use negscale_data::{Order, View};
use negscale_nets::Output;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One pass over some samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
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

/// A part of a run with a schedule of its own: learning rates go as if the run were these epochs alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its number, from 0.
    pub number: usize,
    /// Where it stands, and how long it is.
    pub epoch: Epoch,
    /// Factor on the learning rate.
    pub rate: f64,
}

impl Stage {
    /// Where an epoch stands in a run of stages of these lengths. What is left over belongs to the last one that has epochs.
    pub fn at(epoch: Epoch, lengths: &[usize]) -> Self {
        let last = lengths.iter().rposition(|&length| length > 0).unwrap_or(0);
        let (mut number, mut begin) = (0, 0);
        while number < last && epoch.number >= begin + lengths[number] {
            begin += lengths[number];
            number += 1;
        }
        let end = if number == last { epoch.of } else { epoch.of.min(begin + lengths[number]) };
        Self { number, epoch: Epoch { number: epoch.number - begin, of: end - begin }, rate: 1.0 }
    }

    /// Whether this is its first epoch.
    pub fn begins(&self) -> bool {
        self.epoch.number == 0
    }
}

/// What is reset at the start of an epoch, once it is planned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reset {
    /// Nothing: training continues.
    #[default]
    Nothing,
    /// The state of the optimisers.
    Optimisers,
    /// The networks and the state of the optimisers: new weights, drawn from the seed and the number of the stage.
    Networks,
}

/// What an epoch trains, phase after phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The phases.
    #[serde(alias = "turns")]
    pub phases: Vec<Phase>,
    /// Whether the host is still warming up; plug-ins are then off by default.
    pub warming_up: bool,
    /// Numbers worth noting with the epoch, such as how many samples were held to be clean.
    pub notes: BTreeMap<String, f64>,
    /// The stage of a run of several; without one, the schedule goes over all epochs.
    #[serde(default)]
    pub stage: Option<Stage>,
    /// What is reset at the start of this epoch.
    #[serde(default, alias = "anew")]
    pub reset: Reset,
}

impl Plan {
    /// One pass of the first network over all samples.
    pub fn alone(views: Vec<View>, batch: usize) -> Self {
        let order = Order::Shuffled { passes: 1 };
        let trains = vec![0];
        Self::new(vec![Phase { trains, views, unlabelled_views: None, order, batch, drop_last: true }])
    }

    /// A plan of these phases.
    pub fn new(phases: Vec<Phase>) -> Self {
        Self { phases, ..Self::default() }
    }
}

/// Where plug-ins attach: unmixed samples of the network being trained.
#[derive(Debug, Clone)]
pub struct Tap {
    /// Features with gradient.
    pub features: Tensor<2>,
    /// Logits of the same samples.
    pub logits: Tensor<2>,
    /// Numbers of the samples; of a mixed one, that of its larger part.
    pub samples: Vec<u32>,
    /// Labels as given.
    pub given: Vec<u32>,
    /// Labels as the host now believes them, if it has an opinion; while it warms up, those given.
    pub believed: Option<Vec<u32>>,
}

impl Tap {
    /// What a network made of samples, under their labels as given.
    pub fn new(out: Output, of: &SubBatch) -> Self {
        let Output { features, logits } = out;
        Self { features, logits, samples: of.samples.clone(), given: of.given.clone(), believed: None }
    }

    /// Some of its samples, by their rows.
    pub fn select(self, rows: &[usize]) -> Self {
        let places: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        let among = TensorData::new(places, [rows.len()]);
        let among = Tensor::<1, Int>::from_data(among, &self.logits.device());
        let [features, logits] = [self.features, self.logits].map(|all| all.select(0, among.clone()));
        let pick = |all: &[u32]| rows.iter().map(|&row| all[row]).collect::<Vec<u32>>();
        let believed = self.believed.as_deref().map(pick);
        Self { features, logits, samples: pick(&self.samples), given: pick(&self.given), believed }
    }

    /// While a method warms up it believes the labels as given.
    pub fn trusting(self) -> Self {
        Self { believed: Some(self.given.clone()), ..self }
    }

    /// With labels as the host believes them.
    pub fn believing(self, labels: Vec<u32>) -> Self {
        Self { believed: Some(labels), ..self }
    }
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

    /// The loss of a batch that teaches nothing: a number that no parameter had a part in, so that none moves.
    pub fn nothing(device: &Device) -> Self {
        let zero = TensorData::new(vec![0f32], [1]);
        Self::new(Tensor::from_data(zero, &device.clone().autodiff()).require_grad())
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

/// State of a host across epochs and batches, in a form that can be saved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostState {
    /// Numbers by name.
    pub floats: BTreeMap<String, Vec<f32>>,
    /// Counts, labels and sample numbers by name.
    pub whole: BTreeMap<String, Vec<u32>>,
}

impl HostState {
    /// Takes out numbers that were saved under a name.
    pub fn take_floats(&mut self, name: &str) -> Result<Vec<f32>> {
        self.floats.remove(name).ok_or_else(|| missing(name))
    }

    /// Takes out counts, labels or sample numbers that were saved under a name.
    pub fn take_whole(&mut self, name: &str) -> Result<Vec<u32>> {
        self.whole.remove(name).ok_or_else(|| missing(name))
    }

    /// The same, of which there must be so many.
    pub fn take_array<const N: usize>(&mut self, name: &str) -> Result<[u32; N]> {
        <[u32; N]>::try_from(self.take_whole(name)?).map_err(|_| missing(name))
    }
}

fn missing(name: &str) -> Error {
    let problem =
        format!("`{name}` is missing or of another length: it was saved by another version; start over");
    Error::Checkpoint { origin: "of the training method".into(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_of_a_run_stands_in_one_stage() {
        let places = |of: usize, lengths: &[usize]| -> Vec<[usize; 3]> {
            let at = |number| Stage::at(Epoch { number, of }, lengths);
            (0..of).map(at).map(|s| [s.number, s.epoch.number, s.epoch.of]).collect()
        };
        assert_eq!(places(3, &[]), [[0, 0, 3], [0, 1, 3], [0, 2, 3]]);
        assert_eq!(places(4, &[1, 3]), [[0, 0, 1], [1, 0, 3], [1, 1, 3], [1, 2, 3]]);
        assert_eq!(places(3, &[1, 1]), [[0, 0, 1], [1, 0, 2], [1, 1, 2]], "the rest is the last one's");
        assert_eq!(places(2, &[3, 3]), [[0, 0, 2], [0, 1, 2]], "a run that ends early");
        assert_eq!(places(2, &[0, 2]), [[1, 0, 2], [1, 1, 2]], "a stage without epochs is passed over");
        assert_eq!(places(2, &[1, 0]), [[0, 0, 2], [0, 1, 2]]);
    }
}
