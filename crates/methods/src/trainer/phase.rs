//! The batches of a phase.

use super::{Progress, Trainer, task, to_part};
use crate::host::{Batch, Epoch, HostContext, Plan};
use crate::{Error, Result};
use burn::tensor::Tensor;
use std::sync::atomic::Ordering::Relaxed;

impl Trainer {
    /// Runs the rest of a phase; false if it was asked to stop.
    pub(super) fn phase(&mut self, plan: &Plan, watch: &mut impl FnMut(Progress)) -> Result<bool> {
        let (number, phases) = (self.position.phase, plan.phases.len());
        let phase = &plan.phases[number];
        let (views, unlabelled) = (phase.views.clone(), phase.unlabelled_views.clone());
        let loader = self.train.loader.showing_pair(views, unlabelled, phase.batch, phase.drop_last)?;
        let shape = loader.item_shape();
        // Every phase of every epoch has an order and views of its own.
        let stream = (self.position.epoch as u64) << 8 | number as u64;
        let batches = loader.resume(stream, &phase.order, self.position.batch)?;
        let steps = batches.total();
        let device = self.device.clone().autodiff();
        for loaded in batches {
            let loaded = loaded?;
            let batch = Batch {
                phase: number,
                trains: phase.trains.clone(),
                step: loaded.number,
                steps,
                labelled: to_part(loaded.labelled, &shape, &device),
                unlabelled: loaded.unlabelled.map(|part| to_part(part, &shape, &device)),
            };
            self.step(&batch, plan)?;
            self.position.batch += 1;
            watch(Progress {
                epoch: self.position.epoch,
                epochs: self.settings.epochs,
                done: number * steps + self.position.batch,
                of: phases * steps,
                losses: &self.position.sums,
            });
            if self.stop.load(Relaxed) {
                return Ok(false);
            }
        }
        (self.position.phase, self.position.batch) = (number + 1, 0);
        Ok(true)
    }

    fn step(&mut self, batch: &Batch, plan: &Plan) -> Result<()> {
        let pace = self.pace(batch, plan);
        self.networks.set_pace(pace)?;
        self.position.learning_rate = pace.lr;
        self.scans.forget();
        let before = match &mut self.probe {
            Some(probe) if batch.trains.contains(&0) && probe.wants(&self.position.changes) => {
                Some(probe.before(self.networks.net(0))?)
            }
            _ => None,
        };
        let mut reported: Vec<(&str, f64)> = Vec::new();
        if let Some(first) = self.host.classifier_objective(batch, &mut context!(self))? {
            for (name, value) in first.terms {
                reported.push((name, task::number(value)?));
            }
            self.check_loss(&first.loss, batch, pace.lr)?;
            let mut gradients = first.loss.backward();
            self.networks.step_classifiers(&batch.trains, &mut gradients);
        }
        let objective = self.host.objective(batch, &mut context!(self))?;
        for (name, value) in objective.terms {
            reported.push((name, task::number(value)?));
        }
        let mut loss = objective.loss;
        if let Some(plugin) = &mut self.plugin
            && (!plan.warming_up || plugin.acts_during_warm_up())
        {
            for (number, tap) in objective.taps.iter().enumerate() {
                // One tap for each network that is trained, in their order.
                let net = batch.trains.get(number).copied().unwrap_or(batch.net());
                if let Some(added) = plugin.attach(tap, net, self.position.batches)? {
                    loss = loss + added.loss;
                    reported.extend(added.terms);
                }
            }
        }
        // Handles into the graph would make the update copy every parameter.
        drop(objective.taps);
        reported.push(("total", self.check_loss(&loss, batch, pace.lr)?));
        let mut gradients = loss.backward();
        if let Some(plugin) = &mut self.plugin {
            for &net in &batch.trains {
                let network = self.networks.net(net);
                if let Some(length) = network.take_gradient_length() {
                    plugin.hear(net, length, network.rectifies());
                }
            }
        }
        self.networks.step(&batch.trains, &mut gradients);
        if let Some(probe) = &mut self.probe {
            let (net, tree) = (self.networks.net(0), self.tree.taxonomy());
            match before {
                Some(before) => probe.after(&before, net, tree, &self.classes, &mut self.position.changes)?,
                None => probe.forget(),
            }
        }
        self.position.batches += 1;
        for (name, value) in reported {
            let (sum, count) = self.position.sums.entry(name.to_owned()).or_default();
            (*sum, *count) = (*sum + value, *count + 1);
        }
        Ok(())
    }

    /// The value of a loss, if it is a number.
    fn check_loss(&self, loss: &Tensor<1>, batch: &Batch, lr: f64) -> Result<f64> {
        let value = task::number(loss.clone())?;
        if value.is_finite() {
            return Ok(value);
        }
        Err(Error::Diverged { epoch: self.position.epoch + 1, batch: batch.step + 1, value, lr })
    }
}
