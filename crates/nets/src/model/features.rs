//! What the first network of a model makes of items before it decides: features, and the classifier that reads them.

use super::Model;
use crate::Result;
use crate::networks::Classifier;
use crate::scan::{Scan, scan};
use burn::module::Module;
use burn::tensor::Device;
use negscale_data::{Dataset, LoaderSettings, View};
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

    /// The classifier of the first network.
    pub fn classifier(&self) -> Result<Classifier> {
        self.nets[0].classifier()
    }
}
