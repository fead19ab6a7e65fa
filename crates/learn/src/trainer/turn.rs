//! The batches of a turn.

use super::{Progress, Scene, Trainer, task, to_part};
use crate::hosts::{Batch, Epoch, Plan};
use crate::{Error, Result};
use burn::tensor::Tensor;
use std::sync::atomic::Ordering::Relaxed;

impl Trainer {
    /// Runs the rest of a turn; false if it was asked to stop.
    pub(super) fn turn(&mut self, plan: &Plan, watch: &mut impl FnMut(Progress)) -> Result<bool> {
        let (number, turns) = (self.position.turn, plan.turns.len());
        let turn = &plan.turns[number];
        let (views, unlabelled) = (turn.views.clone(), turn.unlabelled_views.clone());
        let loader = self.train.loader.showing_pair(views, unlabelled, turn.batch, turn.drop_last)?;
        let shape = loader.item_shape();
        // Every turn of every epoch has an order and views of its own.
        let stream = (self.position.epoch as u64) << 8 | number as u64;
        let batches = loader.resume(stream, &turn.order, self.position.batch)?;
        let steps = batches.total();
        let device = self.device.clone().autodiff();
        for loaded in batches {
            let loaded = loaded?;
            let batch = Batch {
                turn: number,
                trains: turn.trains.clone(),
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
                of: turns * steps,
                losses: &self.position.sums,
            });
            if self.stop.load(Relaxed) {
                return Ok(false);
            }
        }
        (self.position.turn, self.position.batch) = (number + 1, 0);
        Ok(true)
    }

    fn step(&mut self, batch: &Batch, plan: &Plan) -> Result<()> {
        let pace = self.pace(batch, plan);
        self.team.set_pace(pace)?;
        self.position.learning_rate = pace.lr;
        self.scans.forget();
        let before = match &mut self.probe {
            Some(probe) if batch.trains.contains(&0) && probe.wants(&self.position.changes) => {
                Some(probe.before(self.team.net(0))?)
            }
            _ => None,
        };
        let mut reported: Vec<(&str, f64)> = Vec::new();
        if let Some(prelude) = self.host.prelude(batch, &mut scene!(self))? {
            for (name, value) in prelude.terms {
                reported.push((name, task::number(value)?));
            }
            self.check_loss(&prelude.loss, batch, pace.lr)?;
            let mut gradients = prelude.loss.backward();
            self.team.step_classifiers(&batch.trains, &mut gradients);
        }
        let objective = self.host.objective(batch, &mut scene!(self))?;
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
        self.team.step(&batch.trains, &mut gradients);
        if let Some(probe) = &mut self.probe {
            let (net, tree) = (self.team.net(0), self.tree.taxonomy());
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
