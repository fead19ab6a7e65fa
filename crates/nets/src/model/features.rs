//! What the first network of a model makes of items before it decides: features, and the classifier that reads them.

use super::Model;
use crate::Result;
use crate::networks::Pass;
use crate::scan::{Scan, scan, values};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use negscale_data::{Dataset, LoaderSettings, View};
use negscale_kernels::Precision;
use std::sync::atomic::AtomicBool;

impl Model {
    fn device(&self) -> Device {
        self.nets.iter().flat_map(Module::devices).next().unwrap_or_else(Device::flex)
    }

    /// Features and logits of the first network for all items, in order; `threads` prepare items (0 = as many as there are
    /// cores). Takes 4 (d + C) bytes an item.
    pub fn scan(&self, dataset: &Dataset, threads: usize) -> Result<Scan> {
        // Every item is seen once: there is nothing to keep.
        let settings = LoaderSettings { threads, cache_bytes: 0, ..LoaderSettings::default() };
        let loader = self.preparation.loader(dataset, settings)?;
        scan(&self.nets[0], &loader, View::Plain, 0, true, &self.device(), &AtomicBool::new(false))
    }

    /// The classifier of the first network without its bias, C x d: row k is multiplied with features to give logit k.
    pub fn classifier(&self) -> Result<Vec<f32>> {
        // The weights themselves, not as a pass would round them.
        let (net, device) = (self.nets[0].valid().with_precision(Precision::F32), self.device());
        let (d, classes) = (net.feature_size(), self.classes.len());
        // Whatever its layers are called, it is an affine map: what it makes of unit vectors, less what it makes of nothing.
        let of = |features: Tensor<2>| values(net.classify(features, &Pass::evaluate()));
        let (units, nothing) = (of(Tensor::eye(d, &device))?, of(Tensor::zeros([1, d], &device))?);
        let weight = |k: usize, at: usize| units[at * classes + k] - nothing[k];
        Ok((0..classes).flat_map(|k| (0..d).map(move |at| (k, at))).map(|(k, at)| weight(k, at)).collect())
    }
}
