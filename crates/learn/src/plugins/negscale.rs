//! NegScale at the taps of a host.

use super::{Added, Plugin};
use crate::hosts::Tap;
use crate::{Error, Result};
use negscale::burn::{Adapter, confidence};
use negscale::{ClassMeans, NegScale, Settings, Taxonomy, TermState};

/// The plug-in, at rest until it has a class tree.
pub(super) struct Attached {
    settings: Settings,
    adapter: Option<Adapter>,
}

impl Attached {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, adapter: None }
    }
}

fn to_index(labels: &[u32]) -> Vec<usize> {
    labels.iter().map(|&label| label as usize).collect()
}

impl Plugin for Attached {
    fn attach(&mut self, tap: &Tap, batch: u64) -> Result<Option<Added>> {
        let Some(adapter) = &mut self.adapter else { return Ok(None) };
        let (labels, believed) = (to_index(&tap.given), tap.believed.as_deref().map(to_index));
        let confidence = confidence(tap.logits.clone())?;
        // A host without beliefs of its own has the given labels.
        let refurbished = Some(believed.as_deref().unwrap_or(&labels));
        let handed = negscale::Tap { refurbished, batch, ..negscale::Tap::new(&labels, &confidence) };
        let extra = adapter.loss(tap.features.clone(), &handed)?;
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

    fn acts_during_warm_up(&self) -> bool {
        self.settings.during_warm_up
    }

    fn wants_tree(&self) -> bool {
        self.adapter.is_none()
    }

    fn set_tree(&mut self, tree: &Taxonomy) -> Result<()> {
        self.adapter = Some(Adapter::new(NegScale::new(tree, self.settings.clone())?));
        Ok(())
    }

    fn state(&self) -> Result<String> {
        let means = self.adapter.as_ref().map(|adapter| adapter.class_means());
        serde_json::to_string(&means).map_err(|error| damaged(&error))
    }

    fn restore(&mut self, state: &str) -> Result<()> {
        let means: Option<ClassMeans> = serde_json::from_str(state).map_err(|error| damaged(&error))?;
        if let (Some(adapter), Some(means)) = (&mut self.adapter, means) {
            adapter.workspace().restore_class_means(means);
        }
        Ok(())
    }
}

fn damaged(error: &serde_json::Error) -> Error {
    Error::Checkpoint { origin: "of the plug-in".into(), problem: error.to_string() }
}
