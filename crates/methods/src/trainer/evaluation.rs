//! What is known after an epoch: the networks are run over all sets in evaluation mode.

use super::similarity::{self, record_similarity};
use super::task::Look;
use super::{Trainer, Tree};
use crate::Result;
use crate::host::{Beliefs, Epoch, HostContext, Plan, PredictedBy};
use negscale_audit::area_under_curve;
use negscale_data::{Loader, View};
use negscale_nets::{Scan, accuracy, scan};
use negscale_records::EpochRecord;
use std::sync::Arc;

/// Clean probability from which a label counts as selected as clean, in the records of epochs.
const HELD_CLEAN: f64 = 0.5;

impl Trainer {
    /// Predictions of the evaluated networks on a set, together and each alone.
    fn predict(&self, loader: &Loader) -> Result<(Scan, Vec<Arc<Scan>>)> {
        let predicting = if self.card.predicted_by == PredictedBy::Sum { self.networks.len() } else { 1 };
        let look = |net| {
            let net = self.networks.for_evaluation(net)?;
            Ok(Arc::new(scan(&net, loader, View::Plain, 0, false, &self.device, &self.stop)?))
        };
        let alone = (0..predicting).map(look).collect::<Result<Vec<_>>>()?;
        Ok((sum(alone.iter().map(Arc::as_ref)), alone))
    }

    /// Evaluates all sets. Nothing changes before every scan is there, so that an interrupted evaluation can be repeated.
    pub(super) fn evaluate(&mut self, plan: &Plan) -> Result<EpochRecord> {
        let predicting = if self.card.predicted_by == PredictedBy::Sum { self.networks.len() } else { 1 };
        let widths = self.host.widths(&mut context!(self))?;
        self.networks.set_widths(&widths);
        let wants_tree = self.plugin.as_ref().is_some_and(|plugin| plugin.wants_tree());
        let context = context!(self);
        let first = if wants_tree || self.settings.similarity {
            context.scan_features(0, View::Plain)
        } else {
            context.scan(0, View::Plain)
        }?;
        let others = (1..predicting).map(|net| context.scan(net, View::Plain)).collect::<Result<Vec<_>>>()?;
        let alone: Vec<Arc<Scan>> = [first.clone()].into_iter().chain(others).collect();
        let seen = sum(alone.iter().map(Arc::as_ref));
        let grown =
            wants_tree.then(|| self.tree.grow(&self.classes, &first, &self.train.given)).transpose()?;
        let held_out = self.held_out.as_ref().map(|held_out| self.predict(&held_out.loader)).transpose()?;
        let tests = self.tests.iter().map(|test| self.predict(&test.loader)).collect::<Result<Vec<_>>>()?;

        let mut record = EpochRecord::new(self.position.epoch as u64 + 1, 0.0, self.position.learning_rate);
        let means = self.position.sums.iter().map(|(name, (sum, count))| (name.clone(), sum / *count as f64));
        record.losses = means.collect();
        record.more = plan.notes.clone();
        record.more.extend(plan.stage.map(|stage| ("stage".to_owned(), (stage.number + 1) as f64)));
        for (net, width) in widths.into_iter().enumerate() {
            record.more.extend(width.map(|width| (format!("channels of net {}", net + 1), width as f64)));
        }
        if let (Some(plugin), Some(tree)) = (&mut self.plugin, grown) {
            plugin.set_tree(&tree)?;
            self.tree = Tree::Grown(tree);
        }
        if self.settings.similarity {
            let (tree, thresholds) = (self.tree.taxonomy(), similarity::thresholds(&self.settings)?);
            record_similarity(&mut record, &first, &self.train, tree, &self.classes, thresholds)?;
        }
        self.position.changes.enter(&mut record);
        let beliefs = self.card.beliefs;
        let look = Look { together: &seen, alone: &alone };
        self.train.enter(look, self.position.epoch, plan.warming_up, beliefs)?;
        if let (Some(shown), Some((scan, alone))) = (&mut self.held_out, &held_out) {
            // Hosts never see these samples, so what is believed of them is what is predicted.
            let look = Look { together: scan, alone };
            shown.enter(look, self.position.epoch, plan.warming_up, Beliefs::Predictions)?;
            record.validation_accuracy = accuracy(&scan.predictions(), &shown.given);
        }
        self.train.compare(&seen.predictions(), &mut record);
        for (which, (test, (together, alone))) in self.tests.iter().zip(&tests).enumerate() {
            let right = accuracy(&together.predictions(), &test.given);
            if which == 0 {
                record.test_accuracy = right;
            } else {
                record.more.extend(right.map(|right| ("second test accuracy".to_owned(), right)));
            }
            let name = if which == 0 { "test" } else { "second test" };
            if let Some(top) = together.top(5, &test.given) {
                record.more.insert(format!("{name} top-5"), top);
            }
            for (net, scan) in alone.iter().enumerate().filter(|_| alone.len() > 1) {
                let right = accuracy(&scan.predictions(), &test.given);
                record.more.extend(right.map(|right| (format!("{name} net {}", net + 1), right)));
            }
        }
        let verdicts = self.train.ledger.verdicts(&self.settings.verdict)?;
        let clean: Vec<f64> = verdicts.iter().map(|verdict| verdict.clean_probability).collect();
        record.noise_estimate =
            (!clean.is_empty()).then(|| clean.iter().map(|w| 1.0 - w).sum::<f64>() / clean.len() as f64);
        if let Some(truth) = &self.train.truth {
            let right: Vec<bool> = truth.iter().zip(&self.train.given).map(|(t, g)| t == g).collect();
            record.separation_auc = area_under_curve(&clean, &right);
            let held = || clean.iter().zip(&right).filter(|(w, _)| **w >= HELD_CLEAN);
            let hits = held().filter(|(_, is_right)| **is_right).count() as f64;
            let share = |count: usize| (count > 0).then(|| hits / count as f64);
            record.selection_precision = share(held().count());
            record.selection_recall = share(right.iter().filter(|is_right| **is_right).count());
        }
        Ok(record)
    }

    /// What is predicted for the samples of the test set, or nothing without one.
    pub fn test_predictions(&self) -> Result<Option<(Vec<u32>, Vec<u32>)>> {
        let Some(test) = self.tests.first() else { return Ok(None) };
        Ok(Some((self.predict(&test.loader)?.0.predictions(), test.given.clone())))
    }

    /// What is predicted for the training samples, and their labels as given.
    pub fn train_predictions(&self) -> Result<(Vec<u32>, Vec<u32>)> {
        Ok((self.predict(&self.train.loader)?.0.predictions(), self.train.given.clone()))
    }
}

/// The sum of logits.
fn sum<'a>(scans: impl IntoIterator<Item = &'a Scan>) -> Scan {
    let mut scans = scans.into_iter();
    let Some(mut total) = scans.next().cloned() else {
        unreachable!("every method has a network that predicts")
    };
    scans.for_each(|scan| total.add(scan));
    total
}
