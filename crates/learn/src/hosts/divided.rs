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

use super::peers::{self, Peers};
use super::{Batch, Facts, Objective, Part, Plan, Protocol, Turn};
use crate::Result;
use crate::kit::loss::ramp;
use crate::kit::mix::Mix;
use crate::kit::semi::{Cost, divide};
use crate::kit::target::{co_guess, refine, sharpen};
use crate::ledger;
use crate::nets::{Output, Samples};
use crate::schedule::Milestone;
use crate::settings::require;
use crate::trainer::{Scene, first_largest, values};
use burn::tensor::Tensor;
use negscale_data::loader::Until;
use negscale_data::{Order, View};
use serde::{Deserialize, Serialize};

/// Classes up to which the table published for CIFAR-10 is used, above it that for CIFAR-100.
pub(super) const FEW_CLASSES: usize = 32;

/// Settings that DivideMix and RankMatch share. Warm-up and ramp are longer shares than the published ones (10 or 30, and 16, of
/// 300 epochs), which leave a run of twenty epochs too few steps before guesses are trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the cards say what they mean
pub struct SemiSettings {
    pub protocol: Protocol,
    pub warm_up: Milestone,
    pub warm_up_batch: usize,
    pub confidence_penalty: f64,
    pub unlabelled_batch: usize,
    pub temperature: f64,
    pub alpha: f64,
    pub lambda_u: f64,
    pub ramp: Milestone,
    pub lambda_p: f64,
}

impl Default for SemiSettings {
    fn default() -> Self {
        Self {
            protocol: Protocol::Blind,
            warm_up: Milestone::Share(0.3),
            warm_up_batch: 0,
            confidence_penalty: 0.0,
            unlabelled_batch: 0,
            temperature: 0.5,
            alpha: 4.0,
            lambda_u: 25.0,
            ramp: Milestone::Share(0.5),
            lambda_p: 1.0,
        }
    }
}

/// Meanings of a method's own settings, after those of [`SemiSettings`].
macro_rules! meanings {
    ($($own:expr),* $(,)?) => {
        &[
            ("protocol", "blind: one setting for all noise; tuned: the published one for the noise at hand"),
            ("warm_up", "epochs of warm-up, or their share of all epochs"),
            ("warm_up_batch", "samples per batch in warm-up; 0: as `batch`"),
            ("confidence_penalty", "weight of the negative entropy in warm-up"),
            ("unlabelled_batch", "unlabelled samples per batch; 0: as many as labelled ones"),
            ("temperature", "temperature T of targets: below 1 sharper, 1 leaves them alone"),
            ("alpha", "MixUp weights are drawn from Beta(alpha, alpha); 0: no MixUp"),
            ("lambda_u", "weight of the squared error on unlabelled samples"),
            ("ramp", "epochs after warm-up in which that weight grows, or their share of all epochs"),
            ("lambda_p", "weight of the uniform prior"),
            $($own),*
        ]
    };
}
pub(super) use meanings;

impl SemiSettings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        let (kind, rate) = facts.noise_kind();
        if self.protocol == Protocol::Tuned && !matches!(kind, "" | "file") {
            let is_sym = kind.starts_with("sym");
            let is_asym = kind.starts_with("asym") || kind == "pairflip";
            self.confidence_penalty = if is_asym { 1.0 } else { 0.0 };
            let is_worst = facts.noise.as_deref().is_some_and(|noise| noise.contains("worst"));
            let is_few = facts.classes <= FEW_CLASSES;
            let is_mild = match kind {
                "none" => true,
                "cifarn" => is_few && !is_worst,
                "ins" => false,
                _ if is_asym => is_few,
                _ => rate < 0.35,
            };
            self.lambda_u = match (is_few, is_mild) {
                (true, true) => 0.0,
                (true, false) if is_sym && rate >= 0.85 => 50.0,
                (true, false) | (false, true) => 25.0,
                (false, false) => 150.0,
            };
        }
        self.warm_up.check("warm_up")?;
        self.ramp.check("ramp")?;
        require("batch", facts.batch as f64, facts.batch >= 2, "must be at least 2 for this method")?;
        for (name, batch) in
            [("warm_up_batch", self.warm_up_batch), ("unlabelled_batch", self.unlabelled_batch)]
        {
            require(name, batch as f64, batch != 1, "must be 0 or at least 2")?;
        }
        require("temperature", self.temperature, self.temperature > 0.0, "must be above 0")?;
        for (name, value) in [
            ("confidence_penalty", self.confidence_penalty),
            ("alpha", self.alpha),
            ("lambda_u", self.lambda_u),
            ("lambda_p", self.lambda_p),
        ] {
            require(name, value, value >= 0.0, "must be 0 or larger")?;
        }
        Ok(self)
    }
}

/// Targets of a batch.
pub(super) struct Taught {
    /// One tensor for each part.
    pub targets: Vec<Tensor<2>>,
    /// The likeliest class of each sample, part after part.
    pub believed: Vec<u32>,
}

/// Two networks that divide the samples for each other.
pub(super) struct Divided {
    pub settings: SemiSettings,
    pub peers: Peers,
    classes: usize,
    batch: usize,
    warm_up: usize,
    ramp: usize,
}

impl Divided {
    /// `settings` are checked ones.
    pub fn new(settings: SemiSettings, facts: &Facts) -> Self {
        Self {
            warm_up: settings.warm_up.epochs(facts.epochs),
            ramp: settings.ramp.epochs(facts.epochs),
            peers: Peers::default(),
            classes: facts.classes,
            batch: facts.batch,
            settings,
        }
    }

    /// A size of batches, of which 0 means the usual one.
    fn size(&self, asked: usize) -> usize {
        if asked == 0 { self.batch } else { asked }
    }

    /// The plan of an epoch of warm-up, if this is one.
    pub fn warm_up(&self, scene: &Scene) -> Option<Plan> {
        (scene.epoch.number < self.warm_up)
            .then(|| peers::warm_up(self.size(self.settings.warm_up_batch), View::Weak))
    }

    /// The loss of a batch of warm-up, if it is one.
    pub fn warm_up_loss(&self, batch: &Batch, scene: &Scene) -> Option<Result<Objective>> {
        let penalty = self.settings.confidence_penalty;
        batch.unlabelled.is_none().then(|| peers::warm_up_loss(batch, scene.team, penalty))
    }

    /// The plan once both networks have judged: `is_clean` by each of them is how the other one's samples are divided.
    pub fn plan(&self, scene: &mut Scene, is_clean: &[Vec<bool>; 2], views: [View; 2]) -> Result<Plan> {
        let mut plan = Plan::default();
        plan.notes.insert("held to be clean".into(), self.peers.enter(scene)?);
        let unlabelled_batch = self.size(self.settings.unlabelled_batch);
        for net in 0..2 {
            let (peer, batches) = (1 - net, [self.batch, unlabelled_batch]);
            let divided = divide(&is_clean[peer], &self.peers.clean[peer], self.classes, batches);
            let share = divided.labelled.len() as f64 / scene.ledger.len().max(1) as f64;
            plan.notes.insert(format!("labelled for net {}", net + 1), share);
            if divided.fell_back {
                plan.notes.insert(format!("too few clean for net {}", net + 1), 1.0);
            }
            let (labelled, unlabelled) = (divided.labelled, divided.unlabelled);
            let until = Until::Labelled;
            plan.turns.push(Turn {
                unlabelled_views: None,
                trains: vec![net],
                views: views.to_vec(),
                order: Order::Pair { labelled, unlabelled, unlabelled_batch: Some(unlabelled_batch), until },
                batch: self.batch,
                drop_last: false,
            });
        }
        Ok(plan)
    }

    /// Targets of a batch, also entered into the ledger. `own` are the network's logits for each part and each view asked; the
    /// peer is asked for the same views.
    pub fn teach(&self, batch: &Batch, scene: &mut Scene, own: &[Vec<Tensor<2>>]) -> Result<Taught> {
        let (peer, temperature) = (1 - batch.net(), self.settings.temperature);
        let mut taught = Taught { targets: Vec::new(), believed: Vec::new() };
        for (number, (part, own)) in batch.parts().into_iter().zip(own).enumerate() {
            let target = if number == 0 {
                refine(&self.peers.word(peer, &part.samples), &part.given, co_guess(own))
            } else {
                let asked = part.views.iter().take(own.len());
                let mut logits = own.clone();
                for view in asked {
                    logits.push(scene.team.watch(peer, view)?.logits);
                }
                co_guess(&logits)
            };
            let target = sharpen(target, temperature);
            let rows = values(target.clone())?;
            scene.ledger.set_targets(ledger::Samples::These(&part.samples), &rows)?;
            taught.believed.extend(rows.chunks(self.classes).map(first_largest));
            taught.targets.push(target);
        }
        Ok(taught)
    }

    /// The loss of the mixed pool, and what the network makes of it: all views of a part one after the other.
    pub fn fit(&self, batch: &Batch, scene: &Scene, targets: &[Tensor<2>]) -> Result<(Objective, Output)> {
        let parts = batch.parts();
        let pool = Samples::join(parts.iter().flat_map(|part| part.views.iter().cloned()).collect());
        let repeated =
            parts.iter().zip(targets).flat_map(|(part, target)| part.views.iter().map(|_| target.clone()));
        let targets = Tensor::cat(repeated.collect(), 0);
        let rows = targets.dims()[0];
        let mix = Mix::draw(&mut scene.draw(batch, 0), rows, self.settings.alpha, true);
        let out = scene.team.train(batch.net(), &mix.samples(pool))?;
        let labelled = batch.labelled.len() * batch.labelled.views.len();
        let cost = Cost::new(out.logits.clone(), mix.rows(targets), labelled);
        let t = scene.epoch.number as f64 + batch.step as f64 / batch.steps.max(1) as f64;
        let lambda_u = ramp(t, self.warm_up as f64, self.ramp as f64, self.settings.lambda_u);
        let loss = cost.total(lambda_u, self.settings.lambda_p);
        let mut objective = Objective::new(loss).with_term("fit", &cost.fit).with_term("prior", &cost.prior);
        if let Some(consistency) = &cost.consistency {
            objective = objective.with_term("consistency", consistency);
        }
        Ok((objective, out))
    }
}

/// Given labels, part after part.
pub(super) fn given(parts: &[&Part]) -> Vec<u32> {
    parts.iter().flat_map(|part| part.given.iter().copied()).collect()
}

/// One view of all parts.
pub(super) fn view(parts: &[&Part], number: usize) -> Samples {
    Samples::join(parts.iter().map(|part| part.views[number].clone()).collect())
}
