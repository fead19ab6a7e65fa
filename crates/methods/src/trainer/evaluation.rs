//! What is known after an epoch: the networks are run over all sets in evaluation mode.

use super::similarity::{self, record_similarity};
use super::task::{Look, Shown};
use super::{Trainer, Tree};
use crate::Result;
use crate::host::{Beliefs, Epoch, HostContext, Plan, PredictedBy, ScannedSet};
use crate::plugins::Plugin;
use negscale_audit::area_under_curve;
use negscale_data::Loader;
use negscale_nets::{Scan, accuracy};
use negscale_records::EpochRecord;
use std::sync::Arc;

/// Clean probability from which a label counts as selected as clean, in the records of epochs.
const HELD_CLEAN: f64 = 0.5;

impl Trainer {
    /// Predictions of the evaluated networks on a set: scans that are there already are not made again.
    fn predict(&self, set: ScannedSet, loader: &Loader, with_features: bool) -> Result<Seen> {
        let predicting = if self.card.predicted_by == PredictedBy::Sum { self.networks.len() } else { 1 };
        let look = |net| {
            let with_features = with_features && net == 0;
            self.scans.plain((set, net), &self.networks, loader, with_features, &self.device, &self.stop)
        };
        Ok(Seen::new((0..predicting).map(look).collect::<Result<_>>()?))
    }

    /// Whether the training set is scanned after this epoch: the ledger and the curves of the report want it, a plug-in that waits for its
    /// class tree or heeds predictions, and a host that plans by the ledger's predictions. What else a host wants to know it asks for itself.
    fn is_scan_due(&self, wants_tree: bool) -> bool {
        let done = self.position.epoch + 1;
        let is_turn = done.is_multiple_of(self.settings.scan_every) || done == self.settings.epochs;
        let heeds = |plugin: &dyn Plugin| plugin.weighs_guesses() || plugin.wants_look().beliefs;
        let wants_predictions = self.host.reads_predictions() || self.plugin.as_deref().is_some_and(heeds);
        is_turn || wants_tree || wants_predictions || self.settings.similarity
    }

    /// Evaluates all sets. Nothing changes before every scan is there, so that an interrupted evaluation can be repeated.
    pub(super) fn evaluate(&mut self, plan: &Plan) -> Result<EpochRecord> {
        let widths = self.host.widths(&mut context!(self))?;
        self.networks.set_widths(&widths);
        let wants_tree = self.plugin.as_ref().is_some_and(|plugin| plugin.wants_tree());
        let with_features = wants_tree || self.settings.similarity;
        let seen = self
            .is_scan_due(wants_tree)
            .then(|| self.predict(ScannedSet::Train, &self.train.loader, with_features))
            .transpose()?;
        let grown = match &seen {
            Some(seen) if wants_tree => {
                Some(self.tree.grow(&self.classes, &seen.alone[0], &self.train.given)?)
            }
            _ => None,
        };
        let held_out = self
            .held_out
            .as_ref()
            .map(|held_out| self.predict(ScannedSet::HeldOut, &held_out.loader, false))
            .transpose()?;
        let test =
            |(which, test): (usize, &Shown)| self.predict(ScannedSet::Test(which), &test.loader, false);
        let tests = self.tests.iter().enumerate().map(test).collect::<Result<Vec<_>>>()?;

        let mut record = EpochRecord::new(self.position.epoch as u64 + 1, 0.0, self.position.learning_rate);
        let means = self.position.sums.iter().map(|(name, (sum, count))| (name.clone(), sum / *count as f64));
        record.losses = means.collect();
        record.more = plan.notes.clone();
        record.more.extend(plan.stage.map(|stage| ("stage".to_owned(), (stage.number + 1) as f64)));
        for (net, width) in widths.into_iter().enumerate() {
            record.more.extend(width.map(|width| (format!("channels of net {}", net + 1), width as f64)));
        }
        record.more.extend(self.plugin.iter_mut().flat_map(|plugin| plugin.take_notes()));
        if let (Some(plugin), Some(tree)) = (&mut self.plugin, grown) {
            plugin.set_tree(&tree)?;
            self.tree = Tree::Grown(tree);
        }
        if let (Some(seen), true) = (&seen, self.settings.similarity) {
            let (tree, thresholds) = (self.tree.taxonomy(), similarity::thresholds(&self.settings)?);
            let net = self.networks.for_evaluation(0)?;
            record_similarity(
                &mut record,
                (&seen.alone[0], &net),
                &self.train,
                tree,
                &self.classes,
                thresholds,
            )?;
        }
        self.position.changes.enter(&mut record);
        let beliefs = self.card.beliefs;
        if let Some(seen) = &seen {
            self.train.enter(seen.look(), self.position.epoch, plan.warming_up, beliefs)?;
            self.train.compare(&seen.together.predictions(), &mut record);
        }
        if let (Some(shown), Some(held_out)) = (&mut self.held_out, &held_out) {
            if seen.is_some() {
                // Hosts never see these samples, so what is believed of them is what is predicted.
                shown.enter(held_out.look(), self.position.epoch, plan.warming_up, Beliefs::Predictions)?;
            }
            record.validation_accuracy = accuracy(&held_out.together.predictions(), &shown.given);
        }
        for (which, (test, Seen { together, alone })) in self.tests.iter().zip(&tests).enumerate() {
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
        if self.train.ledger.epochs().len() == 0 {
            // Nothing has been looked at yet.
            return Ok(record);
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
        let seen = self.predict(ScannedSet::Test(0), &test.loader, false)?;
        Ok(Some((seen.together.predictions(), test.given.clone())))
    }

    /// What is predicted for the training samples, and their labels as given.
    pub fn train_predictions(&self) -> Result<(Vec<u32>, Vec<u32>)> {
        let seen = self.predict(ScannedSet::Train, &self.train.loader, false)?;
        Ok((seen.together.predictions(), self.train.given.clone()))
    }
}

/// What the predicting networks make of a set.
struct Seen {
    /// The sum of their logits.
    together: Arc<Scan>,
    alone: Vec<Arc<Scan>>,
}

impl Seen {
    fn new(alone: Vec<Arc<Scan>>) -> Self {
        let together = match alone.as_slice() {
            [] => unreachable!("every method has a network that predicts"),
            [one] => one.clone(),
            [first, others @ ..] => {
                let mut sum = Scan { features: Vec::new(), ..Scan::clone(first) };
                others.iter().for_each(|scan| sum.add(scan));
                Arc::new(sum)
            }
        };
        Self { together, alone }
    }

    fn look(&self) -> Look<'_> {
        Look { together: &self.together, alone: &self.alone }
    }
}
