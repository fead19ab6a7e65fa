//! What DivideMix and its kin share: two networks, each taught with the labels its peer holds to be clean, and with the other
//! samples as if they had none.
//!
//! For network a with peer b, $T$ a temperature and $[\,\cdot\,]_T$ sharpening:
//!
//! - refined target of a labelled sample: $r = [\, w_b\, e(\tilde y) + (1 - w_b)\, \bar p_a(x) \,]_T$;
//! - guessed target of an unlabelled one: $q = [\, \tfrac12 (\bar p_a(u) + \bar p_b(u)) \,]_T$,
//!
//! $\bar p$ the mean over the views that are asked; a in training mode, b in evaluation mode, neither with gradients. The loss
//! is that of [`crate::kit::semi`], with $\lambda_u$ growing from the end of the warm-up over `ramp` epochs.

use super::peer_selection::{self, Peers};
use super::warm_up::WarmUp;
use crate::host::SubBatch;
use crate::hosts::prelude::*;
use crate::kit::loss::ramp;
use crate::kit::mix::Mix;
use crate::kit::posterior::weigh_guesses;
use crate::kit::semi::{Cost, Division, divide};
use crate::kit::target::{co_guess, refine, sharpen};
use burn::tensor::Tensor;
use negscale_data::known::HumanLabels;
use negscale_data::loader::Until;

/// The warm-up of pictures.
pub(crate) const LONG_WARM_UP: Milestone = Milestone::Share(0.3);
/// So many steps of warm-up are enough for feature vectors.
const WARM_UP_STEPS: usize = 150;

settings! {
    /// Settings that DivideMix, RankMatch, UNICON and CrossSplit share. On pictures warm-up and ramp are longer shares than the published ones (10 or 30,
    /// and 16, of 300 epochs), which leave a run of twenty epochs too few steps before guesses are trusted.
    SemiSettings;
    protocol: Protocol = Protocol::Blind, Protocol::MEANING;
    warm_up: WarmUp = WarmUp::default(), "epochs of warm-up, or their share of all epochs; auto: 0.3, for feature vectors as few as make a tenth or 150 steps";
    warm_up_batch: usize = 0, "samples per batch in warm-up; 0: as `batch`";
    confidence_penalty: f64 = 0.0 => not_negative, "weight of the negative entropy in warm-up";
    unlabelled_batch: usize = 0, "unlabelled samples per batch; 0: in the method's usual proportion to labelled ones";
    temperature: f64 = 0.5 => positive, "temperature T of targets: below 1 sharpens them, 1 leaves them unchanged";
    alpha: f64 = 4.0 => not_negative, "MixUp weights are drawn from Beta(alpha, alpha); 0: no MixUp";
    lambda_u: f64 = 25.0 => not_negative, "weight of the squared error on unlabelled samples";
    ramp: Milestone = Milestone::Share(0.5) => milestone, "epochs after warm-up in which that weight grows, or their share of all epochs";
    lambda_p: f64 = 1.0 => not_negative, "weight of the uniform prior";
}

impl SemiSettings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        if let Some(noise) = facts.noise_for(self.protocol) {
            self.confidence_penalty = if noise.is_asymmetric() { 1.0 } else { 0.0 };
            let is_few = facts.classes <= FEW_CLASSES;
            let is_mild = match noise {
                KnownNoise::Nothing => true,
                KnownNoise::Human(labels) => is_few && labels != HumanLabels::Worse,
                KnownNoise::Asymmetric(_) => is_few,
                KnownNoise::Symmetric(rate) => rate < 0.35,
                KnownNoise::Instance(_) | KnownNoise::Unknown => false,
            };
            self.lambda_u = match (is_few, is_mild) {
                (true, true) => 0.0,
                (true, false) if matches!(noise, KnownNoise::Symmetric(0.85..)) => 50.0,
                (true, false) | (false, true) => 25.0,
                (false, false) => 150.0,
            };
        }
        self.in_range(facts)
    }

    /// The settings themselves, if all are in range.
    pub(crate) fn in_range(self, facts: &Facts) -> Result<Self> {
        self.check()?;
        self.warm_up_for(facts).check("warm_up")?;
        require("batch", facts.batch as f64, facts.batch >= 2, "must be at least 2 for this method")?;
        for (name, batch) in
            [("warm_up_batch", self.warm_up_batch), ("unlabelled_batch", self.unlabelled_batch)]
        {
            require(name, batch as f64, batch != 1, "must be 0 or at least 2")?;
        }
        Ok(self)
    }

    /// A network on feature vectors has learnt what it will of right labels within some 150 steps, and from then on memorises wrong ones: by itself the
    /// warm-up is a tenth of the epochs there, more only if they have fewer steps, and never more than the share of pictures.
    fn warm_up_for(&self, facts: &Facts) -> Milestone {
        self.warm_up.or(|| {
            let most = LONG_WARM_UP.epochs(facts.epochs);
            if facts.kind == ItemKind::Images {
                return LONG_WARM_UP;
            }
            let steps = facts.samples / size(self.warm_up_batch, facts.batch).max(1);
            let enough = WARM_UP_STEPS.div_ceil(steps.max(1));
            Milestone::Epoch(Milestone::Share(0.1).epochs(facts.epochs).max(enough).min(most))
        })
    }
}

/// Targets of a batch.
#[derive(Default)]
pub(crate) struct Taught {
    /// One tensor for each part.
    pub targets: Vec<Tensor<2>>,
    /// The likeliest class of each sample, part after part.
    pub believed: Vec<u32>,
}

/// Two networks that divide the samples for each other.
pub(crate) struct Divided {
    pub settings: SemiSettings,
    pub peers: Peers,
    pub classes: usize,
    pub batch: usize,
    pub warm_up: usize,
    ramp: usize,
}

impl Divided {
    /// `settings` are checked ones.
    pub fn new(settings: SemiSettings, facts: &Facts) -> Self {
        Self {
            warm_up: settings.warm_up_for(facts).epochs(facts.epochs),
            ramp: settings.ramp.epochs(facts.epochs),
            peers: Peers::default(),
            classes: facts.classes,
            batch: facts.batch,
            settings,
        }
    }

    /// Unlabelled samples per batch, with the method's own number if none is set.
    pub fn unlabelled_batch(&self, usual: usize) -> usize {
        if self.settings.unlabelled_batch == 0 { usual.max(2) } else { self.settings.unlabelled_batch }
    }

    /// The plan of an epoch of warm-up, if this is one.
    pub fn warm_up(&self, context: &HostContext) -> Option<Plan> {
        (context.epoch.number < self.warm_up)
            .then(|| peer_selection::warm_up(size(self.settings.warm_up_batch, self.batch), View::Weak))
    }

    /// The loss of a batch of warm-up, if it is one.
    pub fn warm_up_loss(&self, batch: &Batch, context: &HostContext) -> Option<Result<Objective>> {
        let penalty = self.settings.confidence_penalty;
        batch.unlabelled.is_none().then(|| peer_selection::warm_up_loss(batch, context.networks, penalty))
    }

    /// The plan once both networks have judged: `is_clean` by each of them is how the other one's samples are divided.
    pub fn plan(
        &self,
        context: &mut HostContext,
        is_clean: &[Vec<bool>; 2],
        views: [View; 2],
    ) -> Result<Plan> {
        let mut plan = Plan::default();
        plan.notes.insert("held to be clean".into(), self.peers.enter(context)?);
        let unlabelled_batch = size(self.settings.unlabelled_batch, self.batch);
        for net in 0..2 {
            let (peer, batches) = (1 - net, [self.batch, unlabelled_batch]);
            let divided = divide(&is_clean[peer], &self.peers.clean[peer], self.classes, batches);
            note(&mut plan, net, &divided, context.ledger.len());
            plan.phases.push(self.phase(net, divided, unlabelled_batch, &views));
        }
        Ok(plan)
    }

    /// The phase of a network over divided samples.
    pub fn phase(&self, net: usize, divided: Division, unlabelled_batch: usize, views: &[View]) -> Phase {
        let (labelled, unlabelled, until) = (divided.labelled, divided.unlabelled, Until::Labelled);
        Phase {
            unlabelled_views: None,
            trains: vec![net],
            views: views.to_vec(),
            order: Order::Pair { labelled, unlabelled, unlabelled_batch: Some(unlabelled_batch), until },
            batch: self.batch,
            drop_last: false,
        }
    }

    /// Targets of a batch, also entered into the ledger. `own` are the network's logits for each part and each view asked; the
    /// peer is asked for the same views.
    pub fn teach(&self, batch: &Batch, context: &mut HostContext, own: &[Vec<Tensor<2>>]) -> Result<Taught> {
        let (peer, weights) = (1 - batch.net(), context.guess_weights);
        let mut taught = Taught::default();
        for (number, (part, own)) in batch.parts().into_iter().zip(own).enumerate() {
            let weigh = |guess| weigh_guesses(guess, &part.given, weights);
            let target = if number == 0 {
                let clean = self.peers.clean_probabilities(peer, &part.samples);
                refine(&clean, &part.given, weigh(co_guess(own)))
            } else {
                let asked = Samples::join(part.views[..own.len()].to_vec());
                let logits = context.networks.watch(peer, &asked)?.logits;
                let said = logits.split_with_sizes(vec![part.len(); own.len()], 0);
                weigh(co_guess(&own.iter().cloned().chain(said).collect::<Vec<_>>()))
            };
            self.believe(part, target, context, &mut taught)?;
        }
        Ok(taught)
    }

    /// Sharpens the target of a part, and enters it into the ledger too.
    pub fn believe(
        &self,
        part: &SubBatch,
        target: Tensor<2>,
        context: &mut HostContext,
        taught: &mut Taught,
    ) -> Result<()> {
        let rows = self.settle(target, taught)?;
        Ok(context.ledger.set_targets(ledger::SampleIndices::These(&part.samples), &rows)?)
    }

    /// Sharpens the target of a part; gives its numbers.
    pub fn settle(&self, target: Tensor<2>, taught: &mut Taught) -> Result<Vec<f32>> {
        let target = sharpen(target, self.settings.temperature);
        let rows = values(target.clone())?;
        taught.believed.extend(rows.chunks(self.classes).map(argmax));
        taught.targets.push(target);
        Ok(rows)
    }

    /// The loss of the mixed pool, and what the network makes of it: all views of a part one after the other.
    pub fn fit(
        &self,
        batch: &Batch,
        context: &HostContext,
        targets: &[Tensor<2>],
    ) -> Result<(Objective, Output)> {
        self.fit_views(batch, context, targets, 0)
    }

    /// As [`fit`](Self::fit), of the views from number `from` on.
    pub fn fit_views(
        &self,
        batch: &Batch,
        context: &HostContext,
        targets: &[Tensor<2>],
        from: usize,
    ) -> Result<(Objective, Output)> {
        let parts = batch.parts();
        let pool = Samples::join(parts.iter().flat_map(|part| part.views[from..].iter().cloned()).collect());
        let views = batch.labelled.views.len() - from;
        let repeated = targets.iter().flat_map(|target| std::iter::repeat_n(target.clone(), views));
        let targets = Tensor::cat(repeated.collect(), 0);
        let rows = targets.dims()[0];
        let mix = Mix::draw(&mut context.draw(batch, 0), rows, self.settings.alpha, true);
        let out = context.networks.train(batch.net(), &mix.samples(pool))?;
        let labelled = batch.labelled.len() * views;
        let cost = Cost::new(out.logits.clone(), mix.rows(targets), labelled);
        let t = context.epoch.number as f64 + batch.step as f64 / batch.steps.max(1) as f64;
        let lambda_u = ramp(t, self.warm_up as f64, self.ramp as f64, self.settings.lambda_u);
        let loss = cost.total(lambda_u, self.settings.lambda_p);
        let mut objective = Objective::new(loss).with_term("fit", &cost.fit).with_term("prior", &cost.prior);
        if let Some(consistency) = &cost.consistency {
            objective = objective.with_term("consistency", consistency);
        }
        Ok((objective, out))
    }
}

/// A size of batches, of which 0 means the usual one.
fn size(asked: usize, usual: usize) -> usize {
    if asked == 0 { usual } else { asked }
}

/// Notes how a network's samples are divided.
pub(crate) fn note(plan: &mut Plan, net: usize, divided: &Division, samples: usize) {
    let share = divided.labelled.len() as f64 / samples.max(1) as f64;
    plan.notes.insert(format!("labelled for net {}", net + 1), share);
    if divided.fell_back {
        plan.notes.insert(format!("too few clean for net {}", net + 1), 1.0);
    }
}

/// Samples and their given labels, part after part.
pub(crate) fn labels(parts: &[&SubBatch]) -> (Vec<u32>, Vec<u32>) {
    let pairs = |part: &&SubBatch| part.samples.clone().into_iter().zip(part.given.clone());
    parts.iter().flat_map(pairs).unzip()
}

/// One view of all parts.
pub(crate) fn view(parts: &[&SubBatch], number: usize) -> Samples {
    Samples::join(parts.iter().map(|part| part.views[number].clone()).collect())
}
