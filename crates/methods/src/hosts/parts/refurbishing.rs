//! What RoLR and CCL share: two networks that refurbish labels for each other.
//!
//! $t_i = w_i\, e(\tilde y_i) + (1 - w_i)\, q_i$, with $w$ the peer's probability that a label is clean and $q$ what both networks guess; the loss is
//! $L = -\frac1B \sum_i \sum_c t_{ic} \log p(x^s_i)_c + \lambda_p\, \mathrm{KL}(u \,\|\, \bar p)$. See [`crate::hosts::rolr`].

use super::peer_selection::{self, Peers};
use crate::hosts::prelude::*;
use crate::kit::loss::{prior_penalty, soft_cross_entropy};
use crate::kit::posterior::weigh_guesses;
use crate::kit::target::{co_guess, refine, sharpen};
use burn::tensor::Tensor;

settings! {
    /// Settings of RoLR.
    Settings;
    protocol: Protocol = Protocol::Blind, Protocol::MEANING;
    warm_up: Milestone = Milestone::Share(0.2) => milestone, "epochs of warm-up, or their share of all epochs";
    warm_up_batch: usize = 64 => at_least_1, "samples per batch in warm-up";
    guess_view: View = View::Weak, "view used to guess targets";
    train_view: View = View::Strong, "view used in training: strong, or weak where strong views destroy too much";
    passes: usize = 2 => at_least_1, "passes over the data per epoch after warm-up";
    lambda_p: f64 = 1.0 => not_negative, "weight of the uniform prior";
    exponent: f64 = 1.0 => positive, "sharpening exponent T of the guessed targets; 1: none";
    confidence_penalty: f64 = 0.0 => not_negative, "weight of the negative entropy in warm-up";
    scan_view: View = View::Weak, "view in which losses are measured: weak (authors' code) or plain";
    recent_losses: usize = 1 => at_least_1, "the mixture is fitted to mean losses over this many epochs; 1: the last epoch";
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        if let Some(noise) = facts.noise_for(self.protocol) {
            self.confidence_penalty = if noise.is_asymmetric() { 1.0 } else { 0.0 };
            self.lambda_p = if matches!(noise, KnownNoise::Symmetric(0.8..)) { 2.0 } else { 1.0 };
            self.recent_losses = if noise.rate() >= 0.9 { 5 } else { 1 };
        }
        self.check()?;
        Ok(self)
    }
}

/// Two networks that refurbish labels for each other.
pub(crate) struct Refurbishing {
    pub settings: Settings,
    pub warm_up: usize,
    batch: usize,
    pub peers: Peers,
}

/// What a batch is taught.
pub(crate) struct Refurbished {
    /// $q$.
    pub guess: Tensor<2>,
    /// $t$.
    pub target: Tensor<2>,
    /// The likeliest class of each sample by $t$.
    pub believed: Vec<u32>,
}

impl Refurbishing {
    pub fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let settings = settings.checked(facts)?;
        let warm_up = settings.warm_up.epochs(facts.epochs);
        Ok(Self { warm_up, batch: facts.batch, settings, peers: Peers::default() })
    }

    /// Whether the pass that is learnt from can serve for the guess too: both see the samples as they are.
    pub fn shares_pass(&self) -> bool {
        [self.settings.guess_view, self.settings.train_view] == [View::Plain; 2]
    }

    /// What an epoch trains.
    pub fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        if context.epoch.number < self.warm_up {
            return Ok(peer_selection::warm_up(self.settings.warm_up_batch, self.settings.guess_view));
        }
        let Settings { scan_view, guess_view, train_view, recent_losses, passes, .. } = self.settings;
        // Both before any update.
        (0..2).try_for_each(|net| self.peers.assess_losses(net, context, scan_view, recent_losses))?;
        let views = if self.shares_pass() { vec![train_view] } else { vec![guess_view, train_view] };
        let phase = |net| Phase {
            trains: vec![net],
            views: views.clone(),
            unlabelled_views: None,
            order: Order::Shuffled { passes },
            batch: self.batch,
            drop_last: true,
        };
        let mut plan = Plan::new(vec![phase(1), phase(0)]);
        plan.notes.insert("held to be clean".into(), self.peers.enter(context)?);
        Ok(plan)
    }

    /// The loss of a batch of warm-up, if it is one.
    pub fn warm_up_loss(&self, batch: &Batch, context: &HostContext) -> Option<Result<Objective>> {
        let penalty = self.settings.confidence_penalty;
        (context.epoch.number < self.warm_up)
            .then(|| peer_selection::warm_up_loss(batch, context.networks, penalty))
    }

    /// Targets of a batch, also entered into the ledger, from the logits of the network itself and of its peer.
    pub fn refurbish(
        &self,
        batch: &Batch,
        context: &mut HostContext,
        said: [Tensor<2>; 2],
    ) -> Result<Refurbished> {
        let guess = sharpen(co_guess(&said), 1.0 / self.settings.exponent);
        let guess = weigh_guesses(guess, &batch.given, context.guess_weights);
        let clean = self.peers.clean_probabilities(1 - batch.net(), &batch.samples);
        let target = refine(&clean, &batch.given, guess.clone());
        let rows = values(target.clone())?;
        context.ledger.set_targets(ledger::SampleIndices::These(&batch.samples), &rows)?;
        let believed = rows.chunks(rows.len() / batch.len()).map(argmax).collect();
        Ok(Refurbished { guess, target, believed })
    }

    /// $L$ of the logits that are learnt from.
    pub fn cost(&self, logits: Tensor<2>, target: Tensor<2>) -> Objective {
        let (fit, prior) = (soft_cross_entropy(logits.clone(), target), prior_penalty(logits));
        let loss = fit.clone() + prior.clone() * self.settings.lambda_p;
        Objective::new(loss).with_term("fit", &fit).with_term("prior", &prior)
    }
}
