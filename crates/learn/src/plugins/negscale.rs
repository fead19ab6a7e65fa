//! NegScale at the taps of a host.

use super::{Added, Plugin};
use crate::hosts::Tap;
use crate::{Error, Result};
use negscale::burn::{Adapter, confidence};
use negscale::{ClassMeans, NegScale, Settings, Taxonomy, TermState};

/// The plug-in, at rest until it has a class tree.
pub(super) struct Attached {
    settings: Settings,
    plugin: Option<NegScale>,
    /// One for each network: features of two have nothing in common.
    adapters: Vec<Adapter>,
}

impl Attached {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, plugin: None, adapters: Vec::new() }
    }
}

fn to_index(labels: &[u32]) -> Vec<usize> {
    labels.iter().map(|&label| label as usize).collect()
}

/// The adapter of a network.
fn of<'a>(adapters: &'a mut Vec<Adapter>, plugin: &NegScale, net: usize) -> &'a mut Adapter {
    while adapters.len() <= net {
        adapters.push(Adapter::new(plugin.clone()));
    }
    &mut adapters[net]
}

impl Plugin for Attached {
    fn attach(&mut self, tap: &Tap, net: usize, batch: u64) -> Result<Option<Added>> {
        let Some(plugin) = &self.plugin else { return Ok(None) };
        let (labels, believed) = (to_index(&tap.given), tap.believed.as_deref().map(to_index));
        let confidence = confidence(tap.logits.clone())?;
        // A host without beliefs of its own has the given labels.
        let refurbished = Some(believed.as_deref().unwrap_or(&labels));
        let handed = negscale::Tap { refurbished, batch, ..negscale::Tap::new(&labels, &confidence) };
        let extra = of(&mut self.adapters, plugin, net).loss(tap.features.clone(), &handed)?;
        if [extra.terms.snop_state, extra.terms.dcsa_state].iter().all(|state| *state == TermState::Off) {
            return Ok(None);
        }
        let terms = vec![
            ("snop-global", extra.terms.global),
            ("snop-local", extra.terms.local),
            ("dcsa", extra.terms.dcsa),
        ];
        Ok(Some(Added { loss: extra.loss, terms }))
    }

    fn forget(&mut self) {
        self.adapters.clear();
    }

    fn acts_during_warm_up(&self) -> bool {
        self.settings.during_warm_up
    }

    fn wants_tree(&self) -> bool {
        self.plugin.is_none()
    }

    fn set_tree(&mut self, tree: &Taxonomy) -> Result<()> {
        self.plugin = Some(NegScale::new(tree, self.settings.clone())?);
        self.adapters.clear();
        Ok(())
    }

    fn state(&self) -> Result<String> {
        let means: Vec<&ClassMeans> = self.adapters.iter().map(Adapter::class_means).collect();
        serde_json::to_string(&means).map_err(|error| damaged(&error))
    }

    fn restore(&mut self, state: &str) -> Result<()> {
        let means: Vec<ClassMeans> = serde_json::from_str(state).map_err(|error| damaged(&error))?;
        if let Some(plugin) = &self.plugin {
            for (net, means) in means.into_iter().enumerate() {
                of(&mut self.adapters, plugin, net).workspace().restore_class_means(means);
            }
        }
        Ok(())
    }
}

fn damaged(error: &serde_json::Error) -> Error {
    Error::Checkpoint { origin: "of the plug-in".into(), problem: error.to_string() }
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
        let settings = Settings { centre: negscale::Centre::ClassBalanced, ..Settings::default() };
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
