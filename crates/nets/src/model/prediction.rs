//! Probabilities of the classes, batch by batch, in the order of the items and in bounded memory.

use super::{Evaluation, Model};
use crate::networks::{Network, Pass};
use crate::scan::to_samples;
use crate::{Error, Result};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use negscale_data::Dataset;
use negscale_data::loader::{Batches, Loader, LoaderSettings, Order};

/// Numbers of a batch: 256 small pictures, or a few large ones, whose activations take far more memory than themselves.
const BATCH_NUMBERS: usize = 1 << 21;
const MOST_ITEMS: usize = 256;

/// Probabilities of some items that follow each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// Number of the first item.
    pub first: usize,
    /// For each item, the probabilities of all classes.
    pub probabilities: Vec<f32>,
}

/// The rows of all items, in order. After an error there are no more.
pub struct Predictions {
    nets: Vec<Network>,
    device: Device,
    batches: Batches,
    shape: Vec<usize>,
    first: usize,
}

impl Predictions {
    /// Of networks, such as those in training, for a loader whose first view is plain.
    pub fn new(nets: &[Network], loader: &Loader) -> Result<Self> {
        // Without a record of the computation, whatever device they train on.
        let nets: Vec<Network> = nets.iter().map(Module::valid).collect();
        let device = nets.iter().flat_map(Module::devices).next().unwrap_or_else(Device::flex);
        let batches = loader.epoch(0, &Order::Sequential)?;
        Ok(Self { nets, device, batches, shape: loader.item_shape(), first: 0 })
    }

    fn rows(&self, items: usize, values: Vec<f32>) -> Result<Vec<f32>> {
        let samples = to_samples(values, items, &self.shape, &self.device);
        let mut sum: Option<Tensor<2>> = None;
        for net in &self.nets {
            let logits = net.forward(samples.clone(), &Pass::evaluate())?.logits;
            sum = Some(match sum {
                Some(sum) => sum + logits,
                None => logits,
            });
        }
        let Some(logits) = sum else { return Ok(Vec::new()) };
        let classes = logits.dims()[1];
        let values = logits.into_data().try_to_vec::<f32>();
        let mut values =
            values.map_err(|e| Error::Values { path: "logits".into(), reason: format!("{e:?}") })?;
        for (item, row) in values.chunks_mut(classes.max(1)).enumerate() {
            if row.iter().any(|logit| !logit.is_finite()) {
                let problem = format!(
                    "item {} gets logits that are no finite numbers: the training has diverged (a lower learning rate \
                     helps), or the item itself holds such numbers",
                    self.first + item
                );
                return Err(Error::Samples { what: "prediction", problem });
            }
            softmax(row);
        }
        Ok(values)
    }
}

fn softmax(row: &mut [f32]) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f64 = row.iter().map(|&logit| ((logit - most) as f64).exp()).sum();
    row.iter_mut().for_each(|logit| *logit = (((*logit - most) as f64).exp() / total) as f32);
}

impl Iterator for Predictions {
    type Item = Result<Rows>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.first == usize::MAX {
            return None;
        }
        let made = match self.batches.next()? {
            Ok(mut batch) => {
                let view = batch.views.swap_remove(0);
                self.rows(batch.len(), view).map(|rows| (batch.len(), rows))
            }
            Err(error) => Err(error.into()),
        };
        let first = self.first;
        self.first = made.as_ref().map_or(usize::MAX, |(items, _)| first + items);
        Some(made.map(|(_, probabilities)| Rows { first, probabilities }))
    }
}

impl Model {
    /// Probabilities of the classes for all items, labelled or not; `threads` prepare items (0 = as many as there are cores).
    pub fn predictions(&self, dataset: &Dataset, threads: usize) -> Result<Predictions> {
        let batch = (BATCH_NUMBERS / self.preparation.len().max(1)).clamp(1, MOST_ITEMS);
        // Every item is seen once: there is nothing to keep.
        let settings = LoaderSettings { batch, threads, cache_bytes: 0, ..LoaderSettings::default() };
        Predictions::new(&self.nets, &self.preparation.loader(dataset, settings)?)
    }

    /// Calls `each` with the number of the first item and the rows of probabilities of every batch, in order.
    pub fn predict(
        &self,
        dataset: &Dataset,
        threads: usize,
        mut each: impl FnMut(usize, &[f32]) -> Result<()>,
    ) -> Result<()> {
        for rows in self.predictions(dataset, threads)? {
            let rows = rows?;
            each(rows.first, &rows.probabilities)?;
        }
        Ok(())
    }

    /// How well the labels are met: the true ones where they are known, else those given. Classes are matched by
    /// [`class_map`](Self::class_map).
    pub fn evaluate(&self, dataset: &Dataset, threads: usize) -> Result<Evaluation> {
        let map = self.class_map(dataset.classes())?;
        let labels = dataset.truth().unwrap_or(dataset.given());
        let mut evaluation = Evaluation::new(self.classes.len());
        self.predict(dataset, threads, |first, rows| {
            let items = rows.len() / self.classes.len();
            let labels: Vec<u32> = labels[first..first + items].iter().map(|&l| map[l as usize]).collect();
            evaluation.add(rows, &labels)
        })?;
        Ok(evaluation)
    }
}
