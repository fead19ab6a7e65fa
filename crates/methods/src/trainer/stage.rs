//! Stages of a run: where the schedule stands, and what is reset.

use super::similarity::Probe;
use super::{TrainSettings, Trainer, Tree};
use crate::Result;
use crate::host::{Batch, Epoch, Networks, Plan, Reset, ScannedSet};
use crate::hosts;
use crate::plugins::{self, Look, Wants};
use burn::tensor::Device;
use negscale::Taxonomy;
use negscale_nets::optim::{Optimiser, Pace};
use negscale_nets::schedule::Moment;
use negscale_nets::{Input, Network};
use std::sync::atomic::AtomicBool;

/// Untrained networks, as a stage draws them.
pub(super) fn networks(
    settings: &TrainSettings,
    input: Input,
    classes: usize,
    stage: usize,
    tree: &Tree,
    device: &Device,
) -> Result<Vec<Network>> {
    let device = device.clone().autodiff();
    let is_tapped = plugins::card(&settings.plugin)?.attaches();
    let vectors =
        if settings.classifier.is_linear() { None } else { tree.taxonomy().map(Taxonomy::class_vectors) };
    let build = |number| {
        let net = Network::build(&settings.spec(input, classes, stage, number)?, &device)?;
        let net = net.with_precision(settings.precision);
        let net = if is_tapped { net.with_meter() } else { net };
        Ok(match &vectors {
            Some(vectors) => net.with_class_vectors(&vectors.rows, vectors.dim)?,
            None => net,
        })
    };
    (0..hosts::card(&settings.host)?.nets).map(build).collect()
}

impl Trainer {
    /// Starts a plan. What it resets is reset now: a run that is stopped in this epoch resumes with the plan and does not
    /// reset once more.
    pub(super) fn begin(&mut self, plan: Plan) -> Result<()> {
        if plan.reset != Reset::Nothing {
            let nets = match plan.reset {
                Reset::Networks => {
                    self.plugin.iter_mut().for_each(|plugin| plugin.forget());
                    let stage = plan.stage.map_or(0, |stage| stage.number);
                    let (input, classes) = (self.preparation.input(), self.classes.len());
                    networks(&self.settings, input, classes, stage, &self.tree, &self.device)?
                }
                _ => (0..self.networks.len()).map(|net| self.networks.net(net).clone()).collect(),
            };
            let passes = self.networks.passes();
            let optimiser = Optimiser::new(self.settings.optimiser.clone())?;
            self.networks = Networks::new(nets, &optimiser, self.settings.seed);
            self.networks.set_passes(passes);
            self.scans.forget();
            self.probe.iter_mut().for_each(Probe::forget);
        }
        self.show_plugin(&plan)?;
        self.position.plan = Some(plan);
        Ok(())
    }

    /// Shows the plug-in what it wants to see of the training set before the epoch's first batch.
    fn show_plugin(&mut self, plan: &Plan) -> Result<()> {
        let Some(plugin) = &mut self.plugin else { return Ok(()) };
        let wants = plugin.wants_look();
        if wants == Wants::default() || (plan.warming_up && !plugin.acts_during_warm_up()) {
            return Ok(());
        }
        // Seen to the end even if the run was asked to stop: what was reset for this epoch must not be reset again.
        let never = AtomicBool::new(false);
        let scan = |net| {
            let (which, loader) = ((ScannedSet::Train, net), &self.train.loader);
            self.scans.plain(which, &self.networks, loader, true, &self.device, &never)
        };
        let nets = if wants.features { self.networks.len() } else { 0 };
        let scans = (0..nets).map(scan).collect::<Result<Vec<_>>>()?;
        let ledger = &self.train.ledger;
        let is_known = wants.beliefs && ledger.epochs().len() > 0;
        let clean = if is_known { ledger.verdicts(&self.settings.verdict)? } else { Vec::new() };
        plugin.look(&Look {
            epoch: self.position.epoch,
            given: &self.train.given,
            clean: clean.iter().map(|verdict| verdict.clean_probability as f32).collect(),
            believed: ledger.predictions().filter(|_| is_known).unwrap_or_default(),
            scans,
        })
    }

    /// Learning rate and momentum of a batch.
    pub(super) fn pace(&self, batch: &Batch, plan: &Plan) -> Pace {
        let whole = Epoch { number: self.position.epoch, of: self.settings.epochs };
        let (epoch, rate) = plan.stage.map_or((whole, 1.0), |stage| (stage.epoch, stage.rate));
        let moment = Moment { epoch: epoch.number, epochs: epoch.of, step: batch.step, steps: batch.steps };
        self.settings.schedule.pace(self.settings.optimiser.lr() * rate, moment)
    }
}
