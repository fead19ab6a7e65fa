//! Similarity of samples, recorded while training: is dissimilarity invariant under label noise?
//!
//! Setting `similarity`: after every epoch, mean cosine over all pairs of training samples, by the features of the first network
//! ([`negscale_similarity::similarity`](mod@negscale_similarity::similarity)).
//!
//! | key | pairs |
//! |---|---|
//! | `similarity same`, `related`, `neutral`, `unrelated` | all, related or not by given labels |
//! | `similarity true same`, ... | all, by true labels |
//! | `similarity clean-clean same`, `clean-noisy`, `cross-noise`, ... | the paper's categories, by true labels |
//!
//! and `drift same`, `related`, ...: the mean absolute change of the cosine that one gradient step on free features would make, for a step of size 1
//! ([`negscale_similarity::drift`](mod@negscale_similarity::drift)), by given labels.
//!
//! Setting `probe`: before and after each of the first `probe_steps` steps of an epoch, features of so many fixed samples; mean
//! change of a pair's cosine per step as `step change same` and so on, by given labels.
//!
//! Without a class tree there is no telling related from unrelated classes: then there are `same` and `different`.

use super::settings::TrainSettings;
use super::task::{Numbered, Shown};
use crate::{Result, settings};
use burn::tensor::Device;
use negscale::Taxonomy;
use negscale::taxonomy::Thresholds;
use negscale_data::View;
use negscale_data::draw::{Draw, Purpose};
use negscale_nets::Network;
use negscale_nets::model::Preparation;
use negscale_nets::{Scan, scan};
use negscale_records::EpochRecord;
use negscale_similarity::drift::Classifier;
use negscale_similarity::steps::step_change;
use negscale_similarity::{ByRelation, Labels, RELATIONS, Units, drift, similarity};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Thresholds of the plug-in's settings; the paper's where there are none.
pub(super) fn thresholds(settings: &TrainSettings) -> Result<Thresholds> {
    let read: negscale::Settings = settings::read("negscale", &settings.plugin_settings)?;
    Ok(read.thresholds()?)
}

/// The tree, or the flat one where there is none; and what relations are called.
fn relations<'a>(
    tree: Option<&'a Taxonomy>,
    classes: &[String],
) -> Result<(Cow<'a, Taxonomy>, [&'static str; 4])> {
    Ok(match tree {
        Some(tree) => (Cow::Borrowed(tree), RELATIONS),
        // All of its classes are equally far apart, at whichever side of the thresholds.
        None => (Cow::Owned(Taxonomy::flat(classes)?), ["same", "different", "different", "different"]),
    })
}

/// Enters the similarity of all pairs of training samples.
pub(super) fn record_similarity(
    record: &mut EpochRecord,
    (seen, net): (&Scan, &Network),
    shown: &Shown,
    tree: Option<&Taxonomy>,
    classes: &[String],
    thresholds: Thresholds,
) -> Result<()> {
    let (tree, names) = relations(tree, classes)?;
    let labels = Labels::new(&shown.given, shown.truth.as_deref(), &tree, thresholds)?;
    let units = Units::new(&seen.features, seen.dim)?;
    let found = similarity(&units, &labels)?;
    let mut enter = |kind: &str, values: &ByRelation<negscale_similarity::Spread>| {
        for (name, spread) in names.iter().zip(values.list()) {
            record.more.extend(spread.map(|spread| (format!("similarity {kind}{name}"), spread.mean)));
        }
    };
    enter("", &found.given);
    if let Some(known) = &found.known {
        enter("true ", &known.truth);
        enter("clean-clean ", &known.by_truth.clean_clean);
        enter("clean-noisy ", &known.by_truth.clean_noisy);
        enter("cross-noise ", &known.cross_noise);
    }
    let negscale_nets::Classifier { weight, rectifies, .. } = net.classifier()?;
    let moved = drift(&units, &seen.logits, Classifier { weights: &weight, rectifies }, &labels)?;
    for (name, step) in names.iter().zip(moved.iter().flat_map(|moved| moved.given.list())) {
        record.more.extend(step.map(|step| (format!("drift {name}"), step.absolute)));
    }
    Ok(())
}

/// Changes per step in this epoch so far: part of where a run stands.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Changes {
    /// Steps that were measured.
    steps: usize,
    /// Sum and number of the steps' means, by key.
    sums: BTreeMap<String, (f64, u64)>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.steps == 0
    }

    pub fn enter(&self, record: &mut EpochRecord) {
        let means = self.sums.iter().map(|(key, (sum, count))| (key.clone(), sum / *count as f64));
        record.more.extend(means);
    }
}

/// Some fixed samples that are measured before and after a step.
pub(super) struct Probe {
    shown: Shown,
    steps: usize,
    device: Device,
    thresholds: Thresholds,
    /// Features after the last step; those before the next one are the same.
    kept: Option<Vec<f32>>,
}

impl Probe {
    /// The samples of these settings, if any, drawn from the training samples.
    pub fn new(
        (data, numbers): &Numbered,
        preparation: &Preparation,
        settings: &TrainSettings,
        device: &Device,
    ) -> Result<Option<Self>> {
        if settings.probe == 0 {
            return Ok(None);
        }
        // Held-out samples are drawn from the stream before.
        let mut chosen = Draw::new(settings.seed, Purpose::HeldOut, 1, 0).permutation(data.len());
        chosen.truncate(settings.probe);
        chosen.sort_unstable();
        let chosen: Vec<usize> = chosen.into_iter().map(|i| i as usize).collect();
        let numbers = chosen.iter().map(|&i| numbers[i]).collect();
        let shown = Shown::new(data.subset(&chosen)?, numbers, preparation, settings)?;
        let (device, thresholds) = (device.clone(), thresholds(settings)?);
        Ok(Some(Self { shown, steps: settings.probe_steps, device, thresholds, kept: None }))
    }

    /// Read by the threads of another set.
    pub fn with_threads_of(mut self, other: &Shown) -> Self {
        self.shown = self.shown.with_threads_of(other);
        self
    }

    /// Whether the next step is to be measured.
    pub fn wants(&self, changes: &Changes) -> bool {
        changes.steps < self.steps
    }

    fn look(&self, net: &Network) -> Result<Vec<f32>> {
        // A step is not stopped in the middle.
        let never = AtomicBool::new(false);
        Ok(scan(net, &self.shown.loader, View::Plain, 0, true, &self.device, &never)?.features)
    }

    /// Features before a step.
    pub fn before(&mut self, net: &Network) -> Result<Vec<f32>> {
        self.kept.take().map_or_else(|| self.look(net), Ok)
    }

    /// Enters what the step changed.
    pub fn after(
        &mut self,
        before: &[f32],
        net: &Network,
        tree: Option<&Taxonomy>,
        classes: &[String],
        changes: &mut Changes,
    ) -> Result<()> {
        let after = self.look(net)?;
        let (tree, names) = relations(tree, classes)?;
        let labels = Labels::new(&self.shown.given, None, &tree, self.thresholds)?;
        let dim = net.feature_size();
        let found = step_change(&Units::new(before, dim)?, &Units::new(&after, dim)?, &labels)?;
        for (name, mean) in names.iter().zip(found.list()) {
            let Some(mean) = mean else { continue };
            let (sum, count) = changes.sums.entry(format!("step change {name}")).or_default();
            (*sum, *count) = (*sum + mean.mean, *count + 1);
        }
        changes.steps += 1;
        self.kept = Some(after);
        Ok(())
    }

    /// Forgets features that a change of the networks made stale.
    pub fn forget(&mut self) {
        self.kept = None;
    }
}
