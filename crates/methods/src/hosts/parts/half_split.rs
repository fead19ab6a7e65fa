//! Who sees whose labels in CrossSplit, one half of the samples for each of two networks, the same throughout a run, or all for
//! both; and whose word counts how much.

use super::peer_selection::Peers;
use crate::Result;
use crate::host::HostContext;
use crate::kit::semi::{Division, divide};
use negscale_audit::ledger::SampleIndices;
use serde::{Deserialize, Serialize};

/// Whose labels a network sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabelSplit {
    /// Those of its half.
    Disjoint,
    /// All.
    None,
}

impl LabelSplit {
    /// Whether each sample's label is shown to a network.
    fn shown(self, net: usize, context: &HostContext) -> Vec<bool> {
        let samples = context.ledger.len();
        let mut is_shown = vec![self == Self::None; samples];
        if self == Self::Disjoint {
            let order = context.draw_once(0).permutation(samples);
            let (first, second) = order.split_at(samples / 2);
            for &i in if net == 0 { first } else { second } {
                is_shown[i as usize] = true;
            }
        }
        is_shown
    }

    /// The samples whose labels a network sees, ascending.
    pub(crate) fn list(self, net: usize, context: &HostContext) -> Vec<u32> {
        (0..).zip(self.shown(net, context)).filter(|(_, shown)| *shown).map(|(i, _)| i).collect()
    }

    /// Samples for a network; if all are labelled they are, once more, unlabelled too. `clean` says which to leave out where
    /// a set would end in a batch of one.
    pub(crate) fn divide(
        self,
        net: usize,
        clean: &[f32],
        batches: [usize; 2],
        context: &HostContext,
    ) -> Division {
        let classes = context.ledger.classes();
        let mut division = divide(&self.shown(net, context), clean, classes, batches);
        if self == Self::None {
            division.unlabelled = divide(&vec![true; clean.len()], clean, classes, [batches[1]; 2]).labelled;
        }
        division
    }

    /// Enters clean probabilities by whoever did not see the label, or the mean of both; gives the share above one half.
    pub(crate) fn enter(self, peers: &Peers, context: &mut HostContext) -> Result<f64> {
        if self == Self::None {
            return peers.enter(context);
        }
        let shown = self.shown(0, context).into_iter().enumerate();
        let clean: Vec<f32> = shown.map(|(i, shown)| peers.clean[usize::from(shown)][i]).collect();
        context.ledger.set_clean(SampleIndices::All, &clean)?;
        Ok(clean.iter().filter(|&&w| w > 0.5).count() as f64 / clean.len().max(1) as f64)
    }
}

/// How the peer's word counts, `since` epochs after warm-up.
pub fn gamma(since: usize, delta: usize) -> f64 {
    if since < 2 * delta {
        0.6
    } else if since < 3 * delta {
        0.8
    } else {
        1.0
    }
}

/// Puts predictions in place of targets where a label weighs less than one half: what is then believed.
pub(crate) fn prefer(targets: &mut [f32], predictions: &[f32], weights: &[f32]) {
    let classes = targets.len() / weights.len().max(1);
    let rows = targets.chunks_mut(classes.max(1)).zip(predictions.chunks(classes.max(1))).zip(weights);
    for ((target, prediction), _) in rows.filter(|(_, weight)| **weight < 0.5) {
        target.copy_from_slice(prediction);
    }
}
