//! NegScale at the taps of a host.

use super::{Added, Plugin};
use crate::host::Tap;
use crate::{Error, Result};
use negscale::burn::confidence;
use negscale::{ClassMeans, Evaluation, NegScale, Reach, Settings, Targets, Taxonomy, TermState, Workspace};
use negscale_kernels::outside;

/// The plug-in, at rest until it has a class tree.
pub(super) struct Attached {
    settings: Settings,
    plugin: Option<NegScale>,
    reach: Option<Reach>,
    /// One for each network: running class means of two have nothing in common.
    workspaces: Vec<Workspace<f32>>,
}

impl Attached {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, plugin: None, reach: None, workspaces: Vec::new() }
    }
}

fn to_index(labels: &[u32]) -> Vec<usize> {
    labels.iter().map(|&label| label as usize).collect()
}

/// The workspace of a network.
fn of(workspaces: &mut Vec<Workspace<f32>>, net: usize) -> &mut Workspace<f32> {
    if workspaces.len() <= net {
        workspaces.resize_with(net + 1, Workspace::new);
    }
    &mut workspaces[net]
}

impl Plugin for Attached {
    fn attach(&mut self, tap: &Tap, net: usize, batch: u64) -> Result<Option<Added>> {
        let Some(plugin) = &self.plugin else { return Ok(None) };
        let (labels, believed) = (to_index(&tap.given), tap.believed.as_deref().map(to_index));
        let confidence = confidence(tap.logits.clone())?;
        let refurbished = believed.as_deref();
        let handed = negscale::Tap { refurbished, batch, ..negscale::Tap::new(&labels, &confidence) };
        let features =
            outside::read(tap.features.clone()).map_err(|reason| negscale::Error::Device { reason })?;
        let dim = tap.features.dims()[1];
        let workspace = of(&mut self.workspaces, net);
        let Evaluation { value, terms, .. } = plugin.from_features(&features, dim, &handed, workspace)?;
        if [terms.snop_state, terms.dcsa_state].iter().all(|state| *state == TermState::Off) {
            return Ok(None);
        }
        let loss = outside::scalar(tap.features.clone(), value, workspace.take_gradient());
        let terms = vec![("snop-global", terms.global), ("snop-local", terms.local), ("dcsa", terms.dcsa)];
        Ok(Some(Added { loss, terms }))
    }

    fn forget(&mut self) {
        self.workspaces.clear();
    }

    fn wants_beliefs(&self) -> bool {
        self.settings.targets == Targets::Refurbished
    }

    fn reach(&self) -> Option<&Reach> {
        self.reach.as_ref()
    }

    fn acts_during_warm_up(&self) -> bool {
        self.settings.during_warm_up
    }

    fn wants_tree(&self) -> bool {
        self.plugin.is_none()
    }

    fn set_tree(&mut self, tree: &Taxonomy) -> Result<()> {
        self.plugin = Some(NegScale::new(tree, self.settings.clone())?);
        self.reach = Some(Reach::of(&self.settings, tree)?);
        self.workspaces.clear();
        Ok(())
    }

    fn state(&self) -> Result<String> {
        let means: Vec<&ClassMeans> = self.workspaces.iter().map(Workspace::class_means).collect();
        serde_json::to_string(&means).map_err(|error| damaged(&error))
    }

    fn restore(&mut self, state: &str) -> Result<()> {
        let means: Vec<ClassMeans> = serde_json::from_str(state).map_err(|error| damaged(&error))?;
        for (net, means) in means.into_iter().enumerate() {
            of(&mut self.workspaces, net).restore_class_means(means);
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
