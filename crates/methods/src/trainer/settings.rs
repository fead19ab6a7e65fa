//! Settings of a training run, resolved: every one has its value.

use super::device::open_device;
use crate::host::ItemKind;
use crate::{Error, Result, hosts, plugins};
use negscale_audit::VerdictSettings;
use negscale_audit::ledger::RECENT_EPOCHS;
use negscale_nets::optim::OptimiserSettings;
use negscale_nets::schedule::Schedule;
use negscale_nets::{LastLayer, NetSpec, Precision};

/// What is trained, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainSettings {
    /// The training method: one of [`hosts::names`].
    pub host: String,
    /// Its own settings; those that are absent take their defaults.
    pub host_settings: toml::Table,
    /// The plug-in: one of [`plugins::names`].
    pub plugin: String,
    /// Settings of NegScale; those that are absent take their defaults.
    pub plugin_settings: toml::Table,
    /// The network: one of [`negscale_nets::names`].
    pub net: String,
    /// Factor on its channel counts.
    pub width: f64,
    /// Hidden layers of `mlp` and `mlp-bottleneck`; empty for their usual ones.
    pub hidden: Vec<usize>,
    /// The last layer: trained, or fixed vectors by the class tree.
    pub classifier: LastLayer,
    /// How products are taken, in training and evaluation.
    pub precision: Precision,
    /// Epochs, at least 1.
    pub epochs: usize,
    /// Samples per batch, at least 1.
    pub batch: usize,
    /// The optimiser.
    pub optimiser: OptimiserSettings,
    /// Schedule of its learning rate.
    pub schedule: Schedule,
    /// Seed of weights, order, views and all else that is drawn in training.
    pub seed: u64,
    /// Share of the samples held out, with labels as given, to select the best epoch; 0 for none.
    pub validation: f64,
    /// Threads that make batches; 0 for as many as there are cores.
    pub threads: usize,
    /// Where tensors live: `cpu`, or a GPU that the program was built for.
    pub device: String,
    /// How many epochs' losses the ledger keeps.
    pub recent: usize,
    /// The training set is scanned for the ledger after every so many epochs, and after the last; at least 1.
    pub scan_every: usize,
    /// The verdict for hosts without one of their own.
    pub verdict: VerdictSettings,
    /// Whether the similarity of all pairs of training samples is recorded after every epoch.
    pub similarity: bool,
    /// Number of samples whose similarity is measured before and after a step; 0 for none. Changes no result.
    pub probe: usize,
    /// Steps of an epoch that are measured like this.
    pub probe_steps: usize,
}

/// Time and memory of a probe grow with the square of its samples.
const LARGEST_PROBE: usize = 4096;
/// Steps of an epoch that a probe measures by default.
const PROBE_STEPS: usize = 10;

impl TrainSettings {
    /// A host as it is trained by default, with a network, without a plug-in.
    pub fn of(host: &str, net: &str, kind: ItemKind) -> Result<Self> {
        let regime = (hosts::card(host)?.regime)(kind);
        Ok(Self {
            host: host.into(),
            host_settings: toml::Table::new(),
            plugin: "none".into(),
            plugin_settings: toml::Table::new(),
            net: net.into(),
            width: 1.0,
            hidden: Vec::new(),
            classifier: LastLayer::Linear,
            precision: Precision::F32,
            epochs: regime.epochs,
            batch: regime.batch,
            optimiser: regime.optimiser,
            schedule: regime.schedule,
            seed: 1,
            validation: 0.05,
            threads: 0,
            device: "cpu".into(),
            recent: RECENT_EPOCHS,
            scan_every: 1,
            verdict: VerdictSettings::default(),
            similarity: false,
            probe: 0,
            probe_steps: PROBE_STEPS,
        })
    }

    /// The settings themselves, if every name is known and every number in range.
    pub fn checked(self) -> Result<Self> {
        let range = |setting, value: String, wanted| Err(Error::Range { setting, value, wanted });
        hosts::card(&self.host)?;
        plugins::card(&self.plugin)?;
        negscale_nets::card(&self.net)?;
        open_device(&self.device)?;
        if self.precision != Precision::F32 && self.device != "cpu" {
            return range(
                "precision",
                "bf16".into(),
                "must be f32 on a GPU: bf16 is computed on the CPU only",
            );
        }
        if self.epochs == 0 {
            return range("epochs", "0".into(), "must be at least 1");
        }
        if self.batch == 0 {
            return range("batch", "0".into(), "must be at least 1");
        }
        if !(0.0..=0.5).contains(&self.validation) {
            return range(
                "validation",
                self.validation.to_string(),
                "must be a share of the samples from 0 to 0.5",
            );
        }
        if self.scan_every == 0 {
            return range("scan_every", "0".into(), "must be at least 1: after every epoch");
        }
        if self.recent == 0 {
            return range("recent", "0".into(), "must be at least 1");
        }
        if self.probe == 1 || self.probe > LARGEST_PROBE {
            return range("probe", self.probe.to_string(), "must be 0 for none, or from 2 to 4096 samples");
        }
        if self.probe_steps == 0 {
            return range("probe_steps", "0".into(), "must be at least 1; to measure no step, set probe = 0");
        }
        Ok(Self { optimiser: self.optimiser.checked()?, schedule: self.schedule.checked()?, ..self })
    }

    /// The network to build, the `number`-th of the method's, as a stage begins with it.
    pub(super) fn spec(
        &self,
        input: negscale_nets::Input,
        classes: usize,
        stage: usize,
        number: usize,
    ) -> Result<NetSpec> {
        let card = hosts::card(&self.host)?;
        let seed = self.seed.wrapping_mul(16).wrapping_add(number as u64);
        let seed = seed ^ (stage as u64) << 48;
        let spec = NetSpec::new(self.net.clone(), input, classes).seeded(seed).scaled(self.width);
        Ok(NetSpec { heads: card.heads, hidden: self.hidden.clone(), classifier: self.classifier, ..spec })
    }
}
