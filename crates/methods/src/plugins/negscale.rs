//! NegScale at the taps of a host.

use super::{Added, Plugin};
use crate::host::Tap;
use crate::{Error, Result};
use negscale::burn::{Adapter, Loss, confidence};
use negscale::taxonomy::Thresholds;
use negscale::{BatchLabels, ClassMeans, NegScale, PairCoverage, Settings, Targets, Taxonomy, TermState};

/// The plug-in, at rest until it has a class tree.
pub(super) struct Attached {
    settings: Settings,
    plugin: Option<NegScale>,
    coverage: Option<PairCoverage>,
    /// One for each network: running class means of two have nothing in common.
    adapters: Vec<Adapter>,
}

impl Attached {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, plugin: None, coverage: None, adapters: Vec::new() }
    }

    /// The adapter of a network, once there is a class tree.
    fn adapter(&mut self, net: usize) -> Option<&mut Adapter> {
        let plugin = self.plugin.as_ref()?;
        if self.adapters.len() <= net {
            self.adapters.resize_with(net + 1, || Adapter::new(plugin.clone()));
        }
        self.adapters.get_mut(net)
    }
}

fn to_index(labels: &[u32]) -> Vec<usize> {
    labels.iter().map(|&label| label as usize).collect()
}

impl Plugin for Attached {
    fn attach(&mut self, tap: &Tap, net: usize, batch: u64) -> Result<Option<Added>> {
        let Some(adapter) = self.adapter(net) else { return Ok(None) };
        let (given, believed) = (to_index(&tap.given), tap.believed.as_deref().map(to_index));
        let confidence = confidence(tap.logits.clone())?;
        let mut labels = BatchLabels::new(&given, &confidence).with_step(batch);
        labels.refurbished = believed.as_deref();
        let Loss { loss, terms, .. } = adapter.loss(tap.features.clone(), &labels)?;
        if [terms.snop_state, terms.dcsa_state].iter().all(|state| *state == TermState::Off) {
            return Ok(None);
        }
        let terms = vec![("snop-global", terms.global), ("snop-local", terms.local), ("dcsa", terms.dcsa)];
        Ok(Some(Added { loss, terms }))
    }

    fn forget(&mut self) {
        self.adapters.clear();
    }

    fn weighs_guesses(&self) -> Option<Thresholds> {
        self.settings.thresholds().ok().filter(|_| self.settings.posterior)
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

    fn state(&self) -> Result<String> {
        let means: Vec<&ClassMeans> = self.adapters.iter().map(Adapter::class_means).collect();
        serde_json::to_string(&means).map_err(damaged)
    }

    fn restore(&mut self, state: &str) -> Result<()> {
        let means: Vec<ClassMeans> = serde_json::from_str(state).map_err(damaged)?;
        for (net, means) in means.into_iter().enumerate() {
            let adapter = self.adapter(net).ok_or_else(|| damaged("class means without a class tree"))?;
            adapter.restore_class_means(means);
        }
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
        Tap { features, logits, given: vec![0, 3, 9, 5, 1, 3], believed: None }
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
