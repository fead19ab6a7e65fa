//! NegScale at the taps of a host.

use super::exclusion::{Exclusion, UNRELATED};
use super::notes::Notes;
use super::{Added, Look, Plugin, PluginState, Wants};
use crate::host::Tap;
use crate::{Error, Result};
use burn::tensor::Device;
use negscale::burn::{Adapter, Loss, confidence, exclusion};
use negscale::taxonomy::Relation;
use negscale::{
    BatchLabels, ClassAnchor, Confidence, DeltaFeatures, Memory, NegScale, PairCoverage, Settings, Targets,
    Taxonomy, TermState,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Gradients of single terms are measured in one of so many batches, and in the first of an epoch.
const MEASURED: u64 = 16;

/// The plug-in, at rest until it has a class tree.
pub(super) struct Attached {
    settings: Settings,
    plugin: Option<NegScale>,
    coverage: Option<PairCoverage>,
    /// One for each network: what is known of the features of two has nothing in common.
    adapters: Vec<Adapter>,
    /// Of the epoch's start: probability that each label is right, and features by each network, where they are wanted.
    clean: Vec<f32>,
    frozen: Vec<Vec<f32>>,
    notes: Notes,
    /// What exclusion goes by, once something is known of the labels.
    exclusion: Option<Exclusion>,
}

/// What is saved as text.
#[derive(Serialize, Deserialize)]
struct Saved {
    memories: Vec<Memory>,
    notes: Notes,
    exclusion: Option<Exclusion>,
}

impl Attached {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            plugin: None,
            coverage: None,
            adapters: Vec::new(),
            clean: Vec::new(),
            frozen: Vec::new(),
            notes: Notes::default(),
            exclusion: None,
        }
    }

    /// The adapter of a network, once there is a class tree.
    fn adapter(&mut self, net: usize) -> Option<&mut Adapter> {
        let plugin = self.plugin.as_ref()?;
        if self.adapters.len() <= net {
            self.adapters.resize_with(net + 1, || Adapter::new(plugin.clone()));
        }
        self.adapters.get_mut(net)
    }

    /// Whether class means are to be remembered now: once, as early as a network has been trained for an epoch.
    fn remembers(&self, look: &Look) -> bool {
        let has_anchor = |adapter: &Adapter| adapter.memory().anchor.is_some();
        self.settings.anchor > 0.0 && look.epoch > 0 && !self.adapters.first().is_some_and(has_anchor)
    }
}

fn to_index(labels: &[u32]) -> Vec<usize> {
    labels.iter().map(|&label| label as usize).collect()
}

/// Rows of these samples.
fn rows(of: &[f32], dim: usize, samples: &[u32]) -> Vec<f32> {
    samples.iter().flat_map(|&sample| &of[sample as usize * dim..][..dim]).copied().collect()
}

impl Plugin for Attached {
    fn attach(&mut self, tap: &Tap, net: usize, batch: u64) -> Result<Option<Added>> {
        if self.adapter(net).is_none() {
            return Ok(None);
        }
        let (given, believed) = (to_index(&tap.given), tap.believed.as_deref().map(to_index));
        let confidence = confidence(tap.logits.clone())?;
        let mut labels = BatchLabels::new(&given, &confidence).with_step(batch);
        labels.refurbished = believed.as_deref();
        let clean = (!self.clean.is_empty()).then(|| rows(&self.clean, 1, &tap.samples));
        // Before anything is known all labels are taken to be right.
        let trusting = vec![1.0; given.len()];
        labels.clean = clean.as_deref().or(self.wants_look().beliefs.then_some(&trusting));
        let dim = tap.features.dims()[1];
        let frozen = self.frozen.get(net).map(|all| rows(all, dim, &tap.samples));
        labels.frozen = frozen.as_deref();
        let excluded = self.exclusion.as_ref().filter(|exclusion| exclusion.strength > 0.0);
        let excluded = excluded.map(|of| (of.strength, rows(&of.errors, 1, &tap.samples)));
        let is_measured = batch.is_multiple_of(MEASURED) || !self.notes.has_measured();
        let Some(adapter) = self.adapter(net) else { return Ok(None) };
        // Between a card and the CPU the cosines of all pairs are the shorter way where features are wide.
        let is_far = tap.features.device().inner() != Device::flex();
        let loss = match is_far && dim > given.len() && adapter.plugin().is_of_cosines() {
            true => adapter.loss_from_cosines(tap.features.clone(), &labels)?,
            false => adapter.loss(tap.features.clone(), &labels)?,
        };
        let Loss { mut loss, terms: found, .. } = loss;
        let mut terms =
            vec![("snop-global", found.global), ("snop-local", found.local), ("dcsa", found.dcsa)];
        let settings = adapter.plugin().settings();
        if settings.anchor > 0.0 {
            terms.push(("anchor", found.anchor));
        }
        if let Some((strength, errors)) = excluded {
            let (added, value) = exclusion(adapter.plugin(), tap.logits.clone(), &labels, &errors)?;
            terms.push(("exclusion", value / settings.exclusion));
            loss = loss + added * strength;
        }
        let is_off = [found.snop_state, found.dcsa_state].iter().all(|state| *state == TermState::Off);
        if is_off && settings.anchor == 0.0 && settings.exclusion == 0.0 {
            return Ok(None);
        }
        if is_measured {
            let lengths = adapter.gradient_lengths(&tap.features, &labels)?;
            self.notes.measured(net, &lengths, found.scale);
        }
        Ok(Some(Added { loss, terms }))
    }

    fn wants_look(&self) -> Wants {
        let Settings { confidence, delta_features, anchor, exclusion, .. } = &self.settings;
        let epoch = *delta_features == DeltaFeatures::Epoch;
        Wants {
            beliefs: *confidence == Confidence::Clean || *anchor > 0.0 || *exclusion > 0.0,
            features: epoch || *anchor > 0.0,
        }
    }

    fn look(&mut self, look: &Look) -> Result<()> {
        self.clean.clone_from(&look.clean);
        if self.settings.delta_features == DeltaFeatures::Epoch {
            self.frozen = look.scans.iter().map(|scan| scan.features.clone()).collect();
        }
        let Some(plugin) = self.plugin.clone() else { return Ok(()) };
        if self.settings.exclusion > 0.0 && !look.believed.is_empty() {
            let exclusion = Exclusion::of(plugin.relations(), look);
            self.notes.note(UNRELATED, exclusion.unrelated);
            self.exclusion = Some(exclusion);
        }
        if self.remembers(look) {
            let labels = to_index(look.given);
            let clean = (!look.clean.is_empty()).then_some(&look.clean[..]);
            for (net, scan) in look.scans.iter().enumerate() {
                let classes = plugin.classes();
                let anchor = ClassAnchor::remember(&scan.features, scan.dim, &labels, clean, classes)?;
                if let Some(adapter) = self.adapter(net) {
                    adapter.memory_mut().anchor = Some(anchor);
                }
            }
        }
        Ok(())
    }

    fn hear(&mut self, net: usize, length: f64, is_rectified: bool) {
        self.notes.heard(net, length, is_rectified);
        if let Some(adapter) = self.adapter(net) {
            adapter.memory_mut().balance.hear(length);
        }
    }

    fn take_notes(&mut self) -> BTreeMap<String, f64> {
        std::mem::take(&mut self.notes).means()
    }

    fn forget(&mut self) {
        self.adapters.clear();
        self.frozen.clear();
    }

    fn weighs_guesses(&self) -> bool {
        self.settings.posterior
    }

    fn relations(&self) -> Option<&[Relation]> {
        self.plugin.as_ref().map(NegScale::relations)
    }

    fn wants_beliefs(&self) -> bool {
        self.settings.targets == Targets::Refurbished
    }

    fn pair_coverage(&self) -> Option<&PairCoverage> {
        self.coverage.as_ref()
    }

    fn acts_during_warm_up(&self) -> bool {
        self.settings.during_warm_up
    }

    fn wants_tree(&self) -> bool {
        self.plugin.is_none()
    }

    fn set_tree(&mut self, tree: &Taxonomy) -> Result<()> {
        self.plugin = Some(NegScale::new(tree, self.settings.clone())?);
        self.coverage = Some(PairCoverage::of(&self.settings, tree)?);
        self.adapters.clear();
        Ok(())
    }

    fn state(&self) -> Result<PluginState> {
        let memories = self.adapters.iter().map(|adapter| adapter.memory().clone()).collect();
        let (notes, exclusion) = (self.notes.clone(), self.exclusion.clone());
        let mut floats = BTreeMap::from([("clean".to_owned(), self.clean.clone())]);
        floats.extend(exclusion.iter().map(|exclusion| ("errors".to_owned(), exclusion.errors.clone())));
        let saved = Saved { memories, notes, exclusion };
        let text = serde_json::to_string(&saved).map_err(damaged)?;
        let frozen = self.frozen.iter().enumerate();
        floats.extend(frozen.map(|(net, features)| (format!("frozen{net}"), features.clone())));
        Ok(PluginState { text, floats })
    }

    fn restore(&mut self, mut state: PluginState) -> Result<()> {
        let Saved { memories, notes, exclusion } = serde_json::from_str(&state.text).map_err(damaged)?;
        for (net, memory) in memories.into_iter().enumerate() {
            let adapter = self.adapter(net).ok_or_else(|| damaged("a memory without a class tree"))?;
            *adapter.memory_mut() = memory;
        }
        (self.notes, self.exclusion) = (notes, exclusion);
        if let Some(exclusion) = &mut self.exclusion {
            exclusion.errors = state.floats.remove("errors").unwrap_or_default();
        }
        self.clean = state.floats.remove("clean").unwrap_or_default();
        self.frozen = (0..).map_while(|net| state.floats.remove(&format!("frozen{net}"))).collect();
        Ok(())
    }
}

fn damaged(problem: impl std::fmt::Display) -> Error {
    Error::Checkpoint { origin: "of the plug-in".into(), problem: problem.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, Tensor, TensorData};

    fn tap(shift: f32) -> Tap {
        let device = Device::flex().autodiff();
        let numbers = (0..6 * 4).map(|i| ((i * 7 % 11) as f32 - 5.0) / 3.0 + shift).collect::<Vec<_>>();
        let features = Tensor::<2>::from_data(TensorData::new(numbers, [6, 4]), &device).require_grad();
        let logits = features.clone().slice([0..6, 0..3]);
        Tap { features, logits, samples: (0..6).collect(), given: vec![0, 3, 9, 5, 1, 3], believed: None }
    }

    #[test]
    fn class_means_of_one_network_know_nothing_of_another() {
        let settings = Settings::default().with_centre(negscale::Centre::ClassBalanced);
        let tree = Taxonomy::builtin("cifar10").unwrap();
        let terms = |steps: &[(usize, f32)]| {
            let mut plugin = Attached::new(settings.clone());
            plugin.set_tree(&tree).unwrap();
            let mut terms = Vec::new();
            for &(net, shift) in steps {
                terms = plugin.attach(&tap(shift), net, 0).unwrap().unwrap().terms;
            }
            terms
        };
        let alone = terms(&[(0, 0.0), (0, 0.1)]);
        assert_eq!(terms(&[(0, 0.0), (1, 3.0), (0, 0.1)]), alone);
        assert_ne!(terms(&[(0, 0.0), (0, 3.0), (0, 0.1)]), alone);
    }
}
