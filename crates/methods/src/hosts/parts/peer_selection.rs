//! What methods of two networks share that judge labels for each other: the warm-up, clean probabilities from losses, and
//! keeping them.

use crate::Result;
use crate::host::{Batch, HostContext, HostState, Networks, Objective, Phase, Plan, Tap};
use crate::kit::loss::{cross_entropy, negative_entropy};
use negscale_audit::gmm::{self, GmmSettings};
use negscale_audit::ledger::SampleIndices;
use negscale_data::{Order, View};

/// A plan of warm-up: each network by itself on weak views of everything.
pub(crate) fn warm_up(batch: usize, view: View) -> Plan {
    let phase = |net| Phase {
        trains: vec![net],
        views: vec![view],
        unlabelled_views: None,
        order: Order::Shuffled { passes: 1 },
        batch,
        drop_last: true,
    };
    Plan { warming_up: true, ..Plan::new(vec![phase(0), phase(1)]) }
}

/// The loss of warm-up: cross-entropy on labels as given, and the weighted negative entropy.
pub(crate) fn warm_up_loss(batch: &Batch, networks: &Networks, confidence_penalty: f64) -> Result<Objective> {
    let out = networks.train(batch.net(), &batch.views[0])?;
    let loss = cross_entropy(out.logits.clone(), &batch.given);
    let penalty = negative_entropy(out.logits.clone()) * confidence_penalty;
    Ok(Objective::new(loss + penalty).with_tap(Tap::new(out, batch).trusting()))
}

/// What each of two networks holds of every label.
#[derive(Default)]
pub(crate) struct Peers {
    /// Clean probabilities by each network.
    pub clean: [Vec<f32>; 2],
    /// The labels that are judged, if not those given.
    pub labels: Option<Vec<u32>>,
    /// Scaled losses of recent epochs of each network, oldest first.
    losses: [Vec<Vec<f32>>; 2],
}

impl Peers {
    /// Lets a network judge labels by the mixture of its losses, the mean of the `recent` last epochs'.
    pub fn assess_losses(
        &mut self,
        net: usize,
        context: &HostContext,
        view: View,
        recent: usize,
    ) -> Result<()> {
        let labels = self.labels.as_deref().unwrap_or(context.ledger.given());
        let losses = context.scan(net, view)?.losses(labels);
        let losses: Vec<f64> = losses.into_iter().map(f64::from).collect();
        let epochs = &mut self.losses[net];
        epochs.push(gmm::scale(&losses)?.into_iter().map(|loss| loss as f32).collect());
        let surplus = epochs.len().saturating_sub(recent);
        epochs.drain(..surplus);
        let mean = |i| epochs.iter().map(|epoch| f64::from(epoch[i])).sum::<f64>() / epochs.len() as f64;
        let means: Vec<f64> = (0..losses.len()).map(mean).collect();
        let clean = gmm::clean_probabilities(&means, &GmmSettings::default())?;
        self.clean[net] = clean.into_iter().map(|w| w as f32).collect();
        Ok(())
    }

    /// Enters the mean of both networks' words into the ledger; gives the share that is held to be clean.
    pub fn enter(&self, context: &mut HostContext) -> Result<f64> {
        let both: Vec<f32> = self.clean[0].iter().zip(&self.clean[1]).map(|(a, b)| (a + b) / 2.0).collect();
        context.ledger.set_clean(SampleIndices::All, &both)?;
        Ok(both.iter().filter(|&&w| w > 0.5).count() as f64 / both.len().max(1) as f64)
    }

    /// A network's word on these samples.
    pub fn clean_probabilities(&self, net: usize, samples: &[u32]) -> Vec<f32> {
        samples.iter().map(|&i| self.clean[net][i as usize]).collect()
    }

    /// For [`Host::state`](crate::host::Host::state).
    pub fn state(&self) -> HostState {
        let mut state = HostState::default();
        for net in 0..2 {
            state.floats.insert(format!("clean{net}"), self.clean[net].clone());
            for (age, losses) in self.losses[net].iter().enumerate() {
                state.floats.insert(format!("losses{net}/{age:03}"), losses.clone());
            }
        }
        state
    }

    /// For [`Host::restore`](crate::host::Host::restore).
    pub fn restore(&mut self, mut state: HostState) -> Result<()> {
        for net in 0..2 {
            self.clean[net] = state.take_floats(&format!("clean{net}"))?;
            let prefix = format!("losses{net}/");
            let kept = state.floats.iter().filter(|(name, _)| name.starts_with(&prefix));
            self.losses[net] = kept.map(|(_, losses)| losses.clone()).collect();
        }
        Ok(())
    }
}
