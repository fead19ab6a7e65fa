//! Stages of a run: where the schedule stands, and what is reset.

use super::similarity::Probe;
use super::{TrainSettings, Trainer, Tree};
use crate::Result;
use crate::host::{Batch, Epoch, Networks, Plan, Reset};
use crate::hosts;
use burn::tensor::Device;
use negscale::Taxonomy;
use negscale_nets::optim::{Optimiser, Pace};
use negscale_nets::schedule::Moment;
use negscale_nets::{Input, Network};

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
    let vectors =
        if settings.classifier.is_linear() { None } else { tree.taxonomy().map(Taxonomy::class_vectors) };
    let build = |number| {
        let net = Network::build(&settings.spec(input, classes, stage, number)?, &device)?;
        let net = net.with_precision(settings.precision);
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
        self.position.plan = Some(plan);
        Ok(())
    }

    /// Learning rate and momentum of a batch.
    pub(super) fn pace(&self, batch: &Batch, plan: &Plan) -> Pace {
        let whole = Epoch { number: self.position.epoch, of: self.settings.epochs };
        let (epoch, rate) = plan.stage.map_or((whole, 1.0), |stage| (stage.epoch, stage.rate));
        let moment = Moment { epoch: epoch.number, epochs: epoch.of, step: batch.step, steps: batch.steps };
        self.settings.schedule.pace(self.settings.optimiser.lr() * rate, moment)
    }
}
