//! What both forms of DMLP (Tu et al., CVPR 2023) share: features without labels, then labels purified with the help of a few true
//! ones, then new networks trained on the purified labels, in a way of each form.
//!
//! 1. **Features.** Pictures: the harness network is trained by contrast of two changed views ([`nt_xent`]), no labels, for a share of all
//!    epochs; features are what it makes of plain pictures. Feature vectors are their own.
//! 2. **Purification** ([`purify`]), at the start of the next epoch. Labels that are told ([`HostContext::truths`]) judge; the others are
//!    corrected.
//! 3. Fresh networks learn the purified labels, the told ones among them.
//!
//! **Ledger.** Target: what the purifier believes; clean probability of a given label: its share in that belief. A told label is certain.

use crate::host::{Count, Reset, Stage, SubBatch};
use crate::hosts::prelude::*;
use crate::kit::contrast::nt_xent;
use crate::kit::purify::{PurificationInput, Purify, purify};
use crate::kit::target::insist;
use serde::{Deserialize, Serialize};

/// Which labels plug-ins see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TapLabels {
    /// The purified ones, which are what is learnt.
    Purified,
    /// Those given.
    Given,
}

settings! {
    /// Settings that both forms share.
    PurifiedSettings over purify: Purify;
    true_labels: Count = Count::Whole(1000), "true labels that the method uses: a number (at most a tenth of the samples), or a share";
    feature_epochs: Milestone = Milestone::Share(0.5) => milestone, "images: epochs of learning features without labels, or their share of all epochs";
    feature_temperature: f64 = 0.5 => positive, "temperature of the contrast in these epochs";
    second_view: View = View::Weak, "view of the second branch; plain: the same as the first, as in the authors' code";
    tap_labels: TapLabels = TapLabels::Purified, "labels that plug-ins see: purified or given";
}

/// Features and purification, whatever follows.
pub(crate) struct Purifying {
    settings: PurifiedSettings,
    kind: ItemKind,
    batch: usize,
    /// Epochs of features and of what follows.
    lengths: [usize; 2],
    /// Purified labels, once there are any.
    pub labels: Vec<u32>,
    /// What the purifier holds of the given label among all but the purified one.
    right: Vec<f32>,
}

impl Purifying {
    pub fn new(settings: PurifiedSettings, facts: &Facts) -> Result<Self> {
        settings.true_labels.check("true_labels")?;
        settings.check()?;
        settings.purify.check()?;
        let first = match facts.kind {
            // At least one epoch must learn labels.
            ItemKind::Images => {
                settings.feature_epochs.epochs(facts.epochs).min(facts.epochs.saturating_sub(1))
            }
            ItemKind::Features => 0,
        };
        let lengths = [first, facts.epochs - first];
        let (labels, right) = (Vec::new(), Vec::new());
        Ok(Self { settings, kind: facts.kind, batch: facts.batch, lengths, labels, right })
    }

    /// What the form may know of the task: as many epochs as it has.
    pub fn facts(&self, facts: &Facts) -> Facts {
        Facts { epochs: self.lengths[1], ..facts.clone() }
    }

    /// Whether this epoch learns features.
    fn is_features(&self, context: &HostContext) -> bool {
        context.epoch.number < self.lengths[0]
    }

    /// The plan of an epoch that learns features. Any other first purifies the labels if that is not done, and is the form's: the context then
    /// counts epochs from the start of its stage.
    pub fn plan(&mut self, context: &mut HostContext) -> Result<Option<Plan>> {
        let stage = Stage::at(context.epoch, &self.lengths);
        if self.is_features(context) {
            let plan = Plan::alone(vec![View::Contrast; 2], self.batch);
            return Ok(Some(Plan { warming_up: true, stage: Some(stage), ..plan }));
        }
        if self.labels.is_empty() {
            self.purify(context)?;
        }
        Ok(None)
    }

    /// Counts epochs from the start of the form's stage.
    pub fn shift(&self, context: &mut HostContext) {
        context.epoch = Stage::at(context.epoch, &self.lengths).epoch;
    }

    /// Completes a plan of the form for an epoch of its stage.
    pub fn complete(&self, plan: Plan, context: &HostContext) -> Plan {
        let mut plan = plan;
        let given = context.ledger.given();
        let changed = self.labels.iter().zip(given).filter(|(new, given)| new != given).count();
        plan.notes.insert("purified".into(), changed as f64 / given.len().max(1) as f64);
        plan.notes.insert("true labels".into(), context.truths.len() as f64);
        if self.lengths[0] > 0 {
            let stage = Stage { number: 1, epoch: context.epoch, rate: 1.0 };
            plan.reset = if stage.begins() { Reset::Networks } else { Reset::Nothing };
            plan.stage = Some(stage);
        }
        plan
    }

    /// The loss of a batch that learns features, if it is one.
    pub fn objective(&self, batch: &Batch, context: &HostContext) -> Option<Result<Objective>> {
        self.is_features(context).then(|| {
            let (networks, mut projected) = (context.networks, Vec::new());
            for view in &batch.views {
                let features = networks.train(0, view)?.features;
                projected.push(networks.net(0).project(features, &networks.next_pass(0))?);
            }
            let [first, second] = [projected.remove(0), projected.remove(0)];
            Ok(Objective::new(nt_xent(first, second, self.settings.feature_temperature)))
        })
    }

    fn purify(&mut self, context: &mut HostContext) -> Result<()> {
        let views = [View::Plain, self.settings.second_view];
        let look = |which: usize| match self.kind {
            ItemKind::Features => context.items(views[which], which as u64),
            ItemKind::Images => {
                let scan = context.scan_features(0, views[which])?;
                Ok((scan.features.clone(), scan.dim))
            }
        };
        let ((first, dim), (second, _)) = (look(0)?, look(1)?);
        let (given, classes) = (context.ledger.given(), context.ledger.classes());
        let from =
            PurificationInput { views: [&first, &second], dim, given, classes, truths: context.truths };
        let settings = &self.settings.purify;
        let pure = purify(from, settings, &mut context.draw_for_plan(0), || context.is_stopped())?;
        let held = |(i, &label): (usize, &u32)| pure.beliefs[i * classes + label as usize];
        let right: Vec<f32> = given.iter().enumerate().map(held).collect();
        context.ledger.set_targets(ledger::SampleIndices::All, &pure.beliefs)?;
        context.ledger.set_clean(ledger::SampleIndices::All, &right)?;
        let of_others = |(i, &label): (usize, &u32)| 1.0 - pure.beliefs[i * classes + label as usize];
        let others = pure.labels.iter().enumerate().map(of_others);
        self.right =
            right.iter().zip(others).map(|(&h, o)| if h > 0.0 { h / o.max(h) } else { 0.0 }).collect();
        self.labels = pure.labels;
        Ok(())
    }

    /// Makes clean probabilities of given labels out of those of purified ones, which the form has just entered: where the two differ, the given label
    /// can be right only if the purified one is wrong.
    pub fn translate(&self, context: &mut HostContext) -> Result<()> {
        let given = context.ledger.given();
        let right = |i: usize| {
            let w = context.ledger.clean(i).unwrap_or(0.5);
            if self.labels[i] == given[i] { w } else { (1.0 - w) * self.right[i] }
        };
        let mut right: Vec<f32> = (0..given.len()).map(right).collect();
        for &(i, label) in context.truths {
            right[i as usize] = if label == given[i as usize] { 1.0 } else { 0.0 };
        }
        Ok(context.ledger.set_clean(ledger::SampleIndices::All, &right)?)
    }

    /// Targets of told samples among these are what was told, whatever the form has entered.
    pub fn insist(&self, samples: &[u32], context: &mut HostContext) -> Result<()> {
        let classes = context.ledger.classes();
        for &sample in samples {
            if let Ok(at) = context.truths.binary_search_by_key(&sample, |&(i, _)| i) {
                let mut row = vec![0.0; classes];
                insist(&mut row, 0, context.truths[at].1, classes);
                context.ledger.set_targets(ledger::SampleIndices::These(&[sample]), &row)?;
            }
        }
        Ok(())
    }

    /// Purified labels of these samples.
    pub fn of(&self, samples: &[u32]) -> Vec<u32> {
        samples.iter().map(|&i| self.labels[i as usize]).collect()
    }

    /// The batch with purified labels for given ones.
    pub fn relabel(&self, batch: &Batch) -> Batch {
        let part = |part: &SubBatch| SubBatch { given: self.of(&part.samples), ..part.clone() };
        let unlabelled = batch.unlabelled.as_ref().map(part);
        Batch { labelled: part(&batch.labelled), unlabelled, ..batch.clone() }
    }

    /// A tap under the labels that plug-ins are to see; `given` are those given, in its order.
    pub fn tap(&self, tap: Tap, given: Vec<u32>) -> Tap {
        match self.settings.tap_labels {
            // Purified labels are what the method believes, unless the form has an opinion of its own.
            TapLabels::Purified if tap.believed.is_none() => tap.trusting(),
            TapLabels::Purified => tap,
            TapLabels::Given => Tap { believed: Some(tap.given), given, ..tap },
        }
    }

    /// For [`Host::state`](crate::host::Host::state), added to that of the form.
    pub fn save(&self, state: &mut HostState) {
        state.whole.insert("purified".into(), self.labels.clone());
        state.floats.insert("right".into(), self.right.clone());
    }

    /// For [`Host::restore`](crate::host::Host::restore); what is the form's stays in the state.
    pub fn restore(&mut self, state: &mut HostState) -> Result<()> {
        self.labels = state.take_whole("purified")?;
        self.right = state.take_floats("right")?;
        Ok(())
    }
}
