//! What a host can see and use while it plans epochs and computes losses.

use super::{Batch, Epoch, Networks};
use crate::{Error, Result};
use burn::tensor::{Device, Tensor, TensorData};
use negscale_audit::Ledger;
use negscale_data::draw::{Draw, Purpose};
use negscale_data::{Loader, Order, View};
use negscale_nets::scan::{Scan, batch_of, scan};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// A set that is scanned: training, held-out or test samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ScannedSet {
    Train,
    HeldOut,
    /// The n-th test set.
    Test(usize),
}

/// Scans in the plain view, which hold until a network takes a step.
#[derive(Debug, Default)]
pub(crate) struct Scans(Mutex<BTreeMap<(ScannedSet, usize), Arc<Scan>>>);

impl Scans {
    /// The scan of a set by a network in the plain view, made if it is not there.
    pub(crate) fn plain(
        &self,
        (set, net): (ScannedSet, usize),
        networks: &Networks,
        loader: &Loader,
        with_features: bool,
        device: &Device,
        stop: &AtomicBool,
    ) -> Result<Arc<Scan>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.get(&(set, net))
            && (!with_features || !kept.features.is_empty())
        {
            return Ok(kept.clone());
        }
        let made = Arc::new(scan(
            &*networks.for_evaluation(net)?,
            loader,
            View::Plain,
            0,
            with_features,
            device,
            stop,
        )?);
        kept.insert((set, net), made.clone());
        Ok(made)
    }

    pub(crate) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// What a host works with.
pub struct HostContext<'a> {
    /// Which epoch.
    pub epoch: Epoch,
    /// The networks.
    pub networks: &'a Networks,
    /// What is believed of every training sample.
    pub ledger: &'a mut Ledger,
    /// Samples whose true labels the method may use, with these, ascending: empty unless the method asks for them.
    pub truths: &'a [(u32, u32)],
    /// Whether a plug-in wants taps: otherwise an extra pass for a tap can be skipped.
    pub tapped: bool,
    /// Weights of guesses, C x C, a row for each given label: how much likelier than by chance a wrong label hides each class. Nothing
    /// unless a plug-in weighs guesses ([`Host::weighs_guesses`](super::Host::weighs_guesses)); there while batches are computed.
    pub guess_weights: Option<&'a [f32]>,
    pub(crate) loader: &'a Loader,
    /// Samples that are not trained on, and their labels as given.
    pub(crate) held_out: Option<(&'a Loader, &'a [u32])>,
    pub(crate) scans: &'a Scans,
    pub(crate) device: &'a Device,
    pub(crate) seed: u64,
    pub(crate) stop: &'a AtomicBool,
}

impl HostContext<'_> {
    /// Runs a network over every training sample: logits, losses, probabilities. In the plain view the result is often cached
    /// already; a random view is drawn again for every epoch and network.
    pub fn scan(&self, net: usize, view: View) -> Result<Arc<Scan>> {
        self.look(net, view, false)
    }

    /// As [`scan`](Self::scan), with features.
    pub fn scan_features(&self, net: usize, view: View) -> Result<Arc<Scan>> {
        self.look(net, view, true)
    }

    fn look(&self, net: usize, view: View, with_features: bool) -> Result<Arc<Scan>> {
        if matches!(view, View::Plain | View::Identity) {
            let which = (ScannedSet::Train, net);
            return self.scans.plain(
                which,
                self.networks,
                self.loader,
                with_features,
                self.device,
                self.stop,
            );
        }
        // Apart from the streams of training, which count phases in the lowest byte.
        let stream = 1 << 63 | (self.epoch.number as u64) << 8 | net as u64;
        let net = self.networks.for_evaluation(net)?;
        Ok(Arc::new(scan(&net, self.loader, view, stream, with_features, self.device, self.stop)?))
    }

    /// Runs a network over the held-out samples: logits and features, and the given labels. Where none are held out, over the
    /// training samples.
    pub fn scan_held_out(&self, net: usize) -> Result<(Scan, &[u32])> {
        let (loader, given) = match self.held_out {
            Some(held_out) => held_out,
            None => (self.loader, self.ledger.given()),
        };
        let scan = scan(self.networks.net(net), loader, View::Plain, 0, true, self.device, self.stop)?;
        Ok((scan, given))
    }

    /// The training samples themselves, as networks are shown them: numbers of all samples, one after the other, and how many
    /// each has (those of images row by row, the channels of a pixel side by side). A random view is drawn again for every epoch and `which`.
    pub fn items(&self, view: View, which: u64) -> Result<(Vec<f32>, usize)> {
        let numbers = self.loader.item_shape().iter().product();
        let loader = self.loader.showing(vec![view], batch_of(numbers), false)?;
        // Apart from the streams of scans, which count networks in the lowest byte.
        let stream = 1 << 63 | (self.epoch.number as u64) << 8 | (0x80 + which);
        let mut items = Vec::new();
        for batch in loader.epoch(stream, &Order::Sequential)? {
            if self.is_stopped() {
                return Err(Error::Interrupted);
            }
            items.extend_from_slice(&batch?.views[0]);
        }
        Ok((items, numbers))
    }

    /// Whether training was asked to stop: a long plan gives up with [`Error::Interrupted`] and is made again later.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Random numbers for the plan of an epoch; `which` tells apart several needs of a host.
    pub fn draw_for_plan(&self, which: u64) -> Draw {
        // No batch has this number.
        let place = (self.epoch.number as u64) << 8;
        Draw::numbered(self.seed, Purpose::Method, which << 8, place, u64::MAX)
    }

    /// Random numbers for a batch; `which` tells apart several needs of a host.
    pub fn draw(&self, batch: &Batch, which: u64) -> Draw {
        let place = (self.epoch.number as u64) << 8 | batch.phase as u64;
        Draw::numbered(self.seed, Purpose::Method, which << 8, place, batch.step as u64)
    }

    /// What is believed of these samples, row after row.
    pub fn targets(&self, samples: &[u32]) -> Vec<f32> {
        let rows = samples.iter().filter_map(|&i| self.ledger.target(i as usize));
        rows.flatten().copied().collect()
    }

    /// Rows over the classes as a tensor, a constant.
    pub fn tensor(&self, rows: Vec<f32>) -> Tensor<2> {
        let classes = self.ledger.classes();
        let count = rows.len() / classes.max(1);
        Tensor::from_data(TensorData::new(rows, [count, classes]), self.device)
    }

    /// Random numbers for what holds through the whole run; `which` tells apart several needs of a host.
    pub fn draw_once(&self, which: u64) -> Draw {
        // No epoch has this place.
        Draw::numbered(self.seed, Purpose::Method, which << 8, u64::MAX, 0)
    }

    /// The device that tensors live on.
    pub fn device(&self) -> &Device {
        self.device
    }
}
