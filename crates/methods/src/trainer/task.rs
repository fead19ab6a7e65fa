//! The task: training data, test data, and how items are prepared.

use super::settings::TrainSettings;
use crate::host::Beliefs;
use crate::plugins::Tree;
use crate::{Error, Result};
use burn::tensor::Tensor;
use negscale_audit::ledger::{Ledger, SampleIndices};
use negscale_data::draw::{Draw, Purpose};
use negscale_data::{Dataset, Loader, LoaderSettings, NoiseSpec};
use negscale_nets::model::Preparation;
use negscale_nets::{Scan, accuracy, values};
use negscale_records::EpochRecord;
use std::sync::Arc;

/// The training task.
#[derive(Debug, Clone)]
pub struct Task {
    /// Training samples with given labels, some of them wrong; true labels only where known, and only for evaluation.
    pub train: Dataset,
    /// Test set.
    pub test: Option<Dataset>,
    /// A second test set.
    pub second_test: Option<Dataset>,
    /// How items become the network's input.
    pub preparation: Preparation,
    /// The class tree of the plug-in.
    pub tree: Tree,
    /// The noise that was added to the data.
    pub noise: NoiseSpec,
}

/// Logits of the evaluated networks on a set.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    /// The sum of their logits.
    pub together: &'a Scan,
    /// Each of them.
    pub alone: &'a [Arc<Scan>],
}

impl Look<'_> {
    /// The mean of their probabilities.
    fn mean_probabilities(&self) -> Vec<f32> {
        if let [scan] = self.alone {
            return scan.probabilities();
        }
        let mut mean = vec![0.0; self.together.logits.len()];
        for scan in self.alone {
            mean.iter_mut().zip(scan.probabilities()).for_each(|(sum, p)| *sum += p);
        }
        let count = self.alone.len() as f32;
        mean.iter_mut().for_each(|p| *p = (*p / count).min(1.0));
        mean
    }
}

/// A set with its loader.
pub(super) struct Shown {
    pub loader: Loader,
    pub given: Vec<u32>,
    pub truth: Option<Vec<u32>>,
    pub ledger: Ledger,
    /// Numbers of the samples in the data as it came.
    pub numbers: Vec<u32>,
}

impl Shown {
    pub fn new(
        dataset: Dataset,
        numbers: Vec<u32>,
        preparation: &Preparation,
        settings: &TrainSettings,
    ) -> Result<Self> {
        let loading =
            LoaderSettings { seed: settings.seed, threads: settings.threads, ..LoaderSettings::default() };
        Ok(Self {
            loader: preparation.loader(&dataset, loading)?,
            ledger: Ledger::new(dataset.given(), dataset.classes().len(), settings.recent)?,
            given: dataset.given().to_vec(),
            truth: dataset.truth().map(<[u32]>::to_vec),
            numbers,
        })
    }

    /// Read by the threads of another set.
    pub fn with_threads_of(mut self, other: &Shown) -> Self {
        self.loader = self.loader.with_threads_of(&other.loader);
        self
    }

    pub fn len(&self) -> usize {
        self.given.len()
    }

    /// Share of given labels that are not the true ones, where these are known.
    pub fn wrong_share(&self) -> Option<f64> {
        let truth = self.truth.as_ref()?;
        Some(1.0 - accuracy(&self.given, truth)?)
    }

    /// Enters into the ledger what the judging networks say after an epoch, together and each alone. Predictions of a warm-up
    /// count only until it is over.
    pub fn enter(&mut self, look: Look, epoch: usize, warming_up: bool, beliefs: Beliefs) -> Result<()> {
        self.ledger.begin_epoch(epoch as u64)?;
        self.ledger.record_losses(SampleIndices::All, &look.together.losses(&self.given))?;
        let mean = look.mean_probabilities();
        match (beliefs, look.alone) {
            // Of a single network both are the same.
            (Beliefs::Predictions, [_]) => self.ledger.set_targets(SampleIndices::All, &mean)?,
            (Beliefs::Predictions, _) => {
                self.ledger.set_targets(SampleIndices::All, &look.together.probabilities())?;
            }
            _ => {}
        }
        Ok(self.ledger.record_predictions(&mean, warming_up)?)
    }

    /// Compares predictions with labels as given and with the truth.
    pub fn compare(&self, predictions: &[u32], record: &mut EpochRecord) {
        record.train_accuracy = accuracy(predictions, &self.given);
        let Some(truth) = &self.truth else { return };
        let pick = |is_right: bool, labels: &[u32]| -> Option<f64> {
            let chosen = (0..self.len()).filter(|&i| (self.given[i] == truth[i]) == is_right);
            let (predicted, labels): (Vec<u32>, Vec<u32>) =
                chosen.map(|i| (predictions[i], labels[i])).unzip();
            accuracy(&predicted, &labels)
        };
        record.fit_clean = pick(true, &self.given);
        record.fit_wrong_given = pick(false, &self.given);
        record.fit_wrong_true = pick(false, truth);
    }
}

/// A set with the numbers of its samples.
pub(super) type Numbered = (Dataset, Vec<u32>);

/// The whole set.
pub(super) fn all(dataset: Dataset) -> Numbered {
    let numbers = (0..dataset.len() as u32).collect();
    (dataset, numbers)
}

/// Divides the samples into those to train on and those held out, each in their old order.
pub(super) fn divide(data: Dataset, share: f64, seed: u64) -> Result<(Numbered, Option<Numbered>)> {
    let count = (share * data.len() as f64).round() as usize;
    if data.len() <= count {
        let problem = format!("{} samples are too few to train on", data.len());
        return Err(Error::Settings { place: "data".into(), problem });
    }
    if count == 0 {
        return Ok((all(data), None));
    }
    let mut order = Draw::new(seed, Purpose::HeldOut, 0, 0).permutation(data.len());
    let mut train = order.split_off(count);
    order.sort_unstable();
    train.sort_unstable();
    let part = |numbers: Vec<u32>| {
        let chosen: Vec<usize> = numbers.iter().map(|&i| i as usize).collect();
        Ok::<_, Error>((data.subset(&chosen)?, numbers))
    };
    Ok((part(train)?, Some(part(order)?)))
}

/// Draws the samples whose true labels a method is given: this many, ascending, with their true labels.
pub(super) fn draw_truths(
    truth: Option<&[u32]>,
    asked: usize,
    seed: u64,
    host: &str,
) -> Result<Vec<(u32, u32)>> {
    if asked == 0 {
        return Ok(Vec::new());
    }
    let Some(truth) = truth else {
        let problem = format!(
            "it needs {asked} true labels, but this data has none: give data with a column of true labels, \
             add `noise` to labels that are right, or choose another `host`"
        );
        return Err(Error::Settings { place: format!("of `{host}`"), problem });
    };
    let mut chosen = Draw::new(seed, Purpose::Truth, 0, 0).permutation(truth.len());
    chosen.truncate(asked);
    chosen.sort_unstable();
    Ok(chosen.into_iter().map(|i| (i, truth[i as usize])).collect())
}

/// The value of a loss.
pub(super) fn number(tensor: Tensor<1>) -> Result<f64> {
    Ok(values(tensor)?.first().copied().map_or(f64::NAN, f64::from))
}
