//! DISC (Li et al., CVPR 2023): dynamic instance-specific selection and correction.
//!
//! $L = L_C + \lambda_h L_H + L_M$: cross-entropy on clean samples, its generalised form on hard ones, and MixUp among all that are learnt.
//! [`crate::kit::threshold`] sorts samples between epochs, by the predictions that training itself has made. A batch of which nobody is
//! learnt changes nothing.
//!
//! Equations, settings and departures: docs/book/src/methods/disc.md.

use super::prelude::*;
use crate::kit::loss::{cross_entropy, one_hot, soft_cross_entropy};
use crate::kit::mix::Mix;
use crate::kit::rows::places;
use crate::kit::target::{insist, paced};
use crate::kit::threshold::{CorrectionRule, Set, Start, Thresholds};
use burn::tensor::Tensor;
use burn::tensor::activation::softmax;

/// The card.
pub const CARD: Card = Card {
    id: "disc",
    about: "a moving threshold for every sample; two views vote on clean, hard and corrected labels",
    paper: "Li et al., CVPR 2023",
    provenance: Provenance::Code,
    nets: 1,
    heads: Heads { projection: None, prediction: false },
    predicted_by: PredictedBy::First,
    beliefs: Beliefs::Own,
    cost: "6 + 6 of those learnt",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(Disc::new(read("disc", table)?, facts)?)),
};

settings! {
    /// Settings of the method.
    Settings;
    protocol: Protocol = Protocol::Blind, Protocol::MEANING;
    warm_up: Milestone = Milestone::Share(0.1) => milestone, "epochs of cross-entropy on all samples, or their share of all epochs";
    momentum: f64 = 0.99 => share, "momentum of the thresholds from epoch to epoch";
    span: usize = 200, "length of the run, in epochs, that momentum is meant for: momentum^(span/epochs) is used; 0: momentum itself";
    start: Start = Start::Samples, "thresholds start at 1/samples (authors' code) or at 1/classes";
    margin: f64 = 0.5 => share, "how far above its threshold a sample must be to be corrected";
    cap: f64 = 0.99 => share, "confidence that always suffices for a correction";
    lambda_h: f64 = 1.0 => not_negative, "weight of the loss on hard samples";
    q: f64 = 0.7 => positive_share, "exponent of that loss: near 0 cross-entropy, 1 the absolute error";
    alpha: f64 = 5.0 => not_negative, "MixUp weights are drawn from Beta(alpha, alpha); 0: no MixUp";
    strong_view: View = View::Strong, "the second view of every sample";
    tap_all: bool = false, "whether plug-ins see all samples with given labels, instead of only those trained on with their corrected labels";
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        if let Some(noise) = facts.noise_for(self.protocol) {
            let is_heavy = noise.rate() >= 0.6;
            self.lambda_h = if is_heavy { 0.2 } else { 1.0 };
            self.momentum = if is_heavy || noise.is_asymmetric() { 0.95 } else { 0.99 };
            self.warm_up =
                Milestone::Share(if matches!(noise, KnownNoise::Instance(_)) { 0.075 } else { 0.1 });
        }
        self.check()?;
        Ok(self)
    }
}

/// As published (no momentum), in fewer epochs; a network without norms wants larger steps.
fn regime(kind: ItemKind) -> Regime {
    let lr = if kind == ItemKind::Images { 0.1 } else { 0.2 };
    let schedule = Shape::Steps { at: vec![Milestone::Share(0.4), Milestone::Share(0.8)], factor: 0.1 };
    let optimiser = Sgd { lr, momentum: 0.0, weight_decay: 1e-3, ..Sgd::default() };
    Regime::new(128, optimiser, schedule)
}

struct Disc {
    settings: Settings,
    warm_up: usize,
    batch: usize,
    keep: f32,
    thresholds: Thresholds,
}

impl Disc {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let settings = settings.checked(facts)?;
        Ok(Self {
            // Before anything was seen there are no sets.
            warm_up: settings.warm_up.epochs(facts.epochs).max(1),
            batch: facts.batch,
            keep: paced(settings.momentum, settings.span, facts.epochs) as f32,
            thresholds: Thresholds::new(
                facts.samples,
                settings.start.threshold(facts.samples, facts.classes),
            ),
            settings,
        })
    }
}

impl Host for Disc {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        let Settings { margin, cap, strong_view, .. } = self.settings;
        let mut plan = Plan::alone(vec![View::Weak, strong_view], self.batch);
        plan.warming_up = context.epoch.number < self.warm_up;
        if context.epoch.number > 0 {
            self.thresholds.judge(CorrectionRule { margin: margin as f32, cap: cap as f32 });
            context.ledger.set_clean(ledger::SampleIndices::All, &self.thresholds.clean_probabilities())?;
            self.thresholds.advance(self.keep);
            for (name, set) in [("clean", Set::Clean), ("hard", Set::Hard), ("corrected", Set::Corrected)] {
                plan.notes.insert(name.into(), self.thresholds.share(set));
            }
        }
        Ok(plan)
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        let networks = context.networks;
        let out = networks.train(0, &Samples::join(batch.views.clone()))?;
        let said = values(softmax(out.logits.clone().inner(), 1))?;
        let (weak, strong) = said.split_at(said.len() / 2);
        let warming_up = context.epoch.number < self.warm_up;
        let mut rows = self.thresholds.record(&batch.samples, &batch.given, [weak, strong]);
        let chosen =
            if warming_up { Vec::new() } else { self.thresholds.choose(&batch.samples, &batch.given) };
        let is_sure = |at: usize| self.thresholds.sets[batch.samples[at] as usize] != Set::Hard;
        for &(at, label) in chosen.iter().filter(|&&(at, _)| is_sure(at)) {
            insist(&mut rows, at, label, context.ledger.classes());
        }
        context.ledger.set_targets(ledger::SampleIndices::These(&batch.samples), &rows)?;
        let [features, logits] = [out.features, out.logits.clone()].map(|x| x.narrow(0, 0, batch.len()));
        let all = Tap::new(Output { features, logits }, batch);
        if warming_up {
            let loss = cross_entropy(out.logits, &batch.given.repeat(2)) * 2.0;
            return Ok(Objective::new(loss).with_tap(all.trusting()));
        }
        let (chosen, labels): (Vec<usize>, Vec<u32>) = chosen.into_iter().unzip();
        if chosen.is_empty() {
            return Ok(Objective::nothing(context.device()));
        }
        let [clean, hard] = self.thresholds.costs(&batch.samples, &batch.given, out.logits, self.settings.q);
        let among = places(&chosen, &all.logits.device());
        let wanted = one_hot(&labels, context.ledger.classes(), context.device());
        let mut mixed = Vec::new();
        for (number, view) in batch.views.iter().enumerate() {
            let draw = &mut context.draw(batch, number as u64);
            let mix = Mix::draw(draw, labels.len(), self.settings.alpha, true);
            let out = networks.train(0, &mix.samples(view.select(among.clone())))?;
            mixed.push(soft_cross_entropy(out.logits, mix.rows(wanted.clone())));
        }
        let mixed = Tensor::cat(mixed, 0).sum();
        let loss = clean.clone() + hard.clone() * self.settings.lambda_h + mixed.clone();
        let tap = if self.settings.tap_all {
            all
        } else {
            Tap { given: labels.clone(), believed: Some(labels), ..all.select(&chosen) }
        };
        let objective = Objective::new(loss).with_term("clean", &clean).with_term("hard", &hard);
        Ok(objective.with_term("mixed", &mixed).with_tap(tap))
    }

    fn taps_without_beliefs(&self) -> Option<&'static str> {
        self.settings.tap_all.then_some("tap_all = false")
    }

    fn state(&self) -> HostState {
        self.thresholds.save()
    }

    fn restore(&mut self, state: HostState) -> Result<()> {
        self.thresholds = Thresholds::restore(state)?;
        Ok(())
    }
}
