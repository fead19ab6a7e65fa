//! DSOS (Albert et al., WACV 2022): dynamic softening of out-of-distribution samples.
//!
//! $L = \mathrm{CE}(\mathrm{MixUp}(x, y)) + \lambda_h \frac1B \sum_i H(p_i)$. After warm-up [`crate::kit::collision`] sorts all samples
//! before every epoch: wrong labels are replaced by the prediction, those of samples of no class made almost uniform. Plug-ins see unmixed
//! samples, in a pass of their own, without those of no class.
//!
//! Equations, settings and departures: docs/book/src/methods/dsos.md.

pub use super::parts::warm_up::WarmUp;
use super::prelude::*;
use crate::kit::collision::{clean_probability, entropy, soften, sort};
use crate::kit::loss::{negative_entropy, soft_cross_entropy};
use crate::kit::mix::Mix;

/// The card.
pub const CARD: Card = Card {
    id: "dsos",
    about: "wrong labels replaced, labels of samples of no class softened, by collision entropy",
    paper: "Albert et al., WACV 2022",
    provenance: Provenance::PaperAndCode,
    nets: 1,
    heads: Heads { projection: None, prediction: false },
    predicted_by: PredictedBy::First,
    beliefs: Beliefs::Own,
    cost: "3",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(Dsos::new(read("dsos", table)?, facts)?)),
};

settings! {
    /// Settings of the method.
    Settings;
    protocol: Protocol = Protocol::Blind, Protocol::MEANING;
    warm_up: WarmUp = WarmUp::default(), "epochs before labels are corrected, or their share; auto: 0.2 up to 32 classes, else 0.5";
    warm_up_batch: usize = 64, "samples per batch in warm-up; 0: as `batch`";
    warm_up_mix: bool = true, "whether warm-up uses MixUp";
    alpha: f64 = 1.0 => not_negative, "MixUp weights are drawn from Beta(alpha, alpha); 0: no MixUp";
    a: f64 = 0.05 => positive, "temperature of softened labels: smaller is closer to one-hot";
    lambda_h: f64 = 0.4 => not_negative, "weight of the mean entropy of predictions";
    known_above: f64 = 0.9 => share, "a label is replaced if the probability that it is wrong, with a known true class, is above this";
    slack: f64 = 0.0 => not_negative, "how far outside (0, 1) the mode of a usable component may lie; authors' code: 0.1";
    view: View = View::Weak, "view used in training";
    scan_view: View = View::Plain, "view in which samples are assessed";
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        if self.protocol == Protocol::Tuned {
            // Published of CIFAR-100 with "heavy" noise; where that begins is ours.
            self.warm_up_mix = facts.classes <= FEW_CLASSES || facts.noise.rate() < 0.5;
        }
        self.warm_up_for(facts.classes).check("warm_up")?;
        self.check()?;
        Ok(self)
    }

    /// By itself half of the epochs, as published for a hundred classes. With few a network is sure sooner, and learns wrong labels by then.
    fn warm_up_for(&self, classes: usize) -> Milestone {
        self.warm_up.or(|| Milestone::Share(if classes <= FEW_CLASSES { 0.2 } else { 0.5 }))
    }
}

/// As published for CIFAR-100, in fewer epochs. Feature vectors: one drop, late.
fn regime(kind: ItemKind) -> Regime {
    let (lr, at) = if kind == ItemKind::Images { (0.03, vec![0.5, 0.8]) } else { (0.02, vec![0.8]) };
    let schedule = Shape::Steps { at: at.into_iter().map(Milestone::Share).collect(), factor: 0.1 };
    Regime::new(32, Sgd { lr, ..Sgd::default() }, schedule)
}

struct Dsos {
    settings: Settings,
    warm_up: usize,
    batch: usize,
    /// The label that every sample is learnt with, and $1 - P_{unknown}$; empty before the first look at them.
    labels: Vec<u32>,
    worth: Vec<f32>,
}

impl Dsos {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let settings = settings.checked(facts)?;
        // At least one epoch in which labels are corrected.
        let warm_up = settings.warm_up_for(facts.classes).epochs(facts.epochs);
        let warm_up = warm_up.min(facts.epochs.saturating_sub(1));
        Ok(Self { warm_up, batch: facts.batch, labels: Vec::new(), worth: Vec::new(), settings })
    }

    /// $1 - P_{unknown}$.
    fn worth(&self, sample: usize) -> f64 {
        self.worth.get(sample).copied().unwrap_or(1.0).into()
    }

    /// Assesses all samples and writes targets and clean probabilities; gives the shares of replaced and of unknown ones.
    fn judge(&mut self, context: &mut HostContext) -> Result<[f64; 2]> {
        let scan = context.scan(0, self.settings.scan_view)?;
        let (mut rows, given) = (scan.probabilities(), context.ledger.given());
        let entropies: Vec<f64> = rows.chunks(scan.classes).zip(given).map(|(p, &y)| entropy(p, y)).collect();
        let clean: Vec<f32> = entropies.iter().map(|&e| clean_probability(e) as f32).collect();
        let sorted = sort(&entropies, self.settings.slack)?;
        (self.labels, self.worth) = (given.to_vec(), Vec::with_capacity(given.len()));
        let mut replaced = 0;
        for (i, row) in rows.chunks_mut(scan.classes).enumerate() {
            let worth = 1.0 - sorted.unknown[i];
            self.worth.push(worth as f32);
            let is_known = sorted.known[i] > self.settings.known_above;
            if is_known {
                self.labels[i] = argmax(row);
                replaced += usize::from(self.labels[i] != given[i]);
            }
            if is_known || clean[i] > 0.5 {
                soften(self.labels[i], worth, self.settings.a, row);
            }
        }
        context.ledger.set_targets(ledger::SampleIndices::All, &rows)?;
        context.ledger.set_clean(ledger::SampleIndices::All, &clean)?;
        let unknown = self.worth.iter().filter(|&&worth| worth < 0.5).count();
        Ok([replaced, unknown].map(|count| count as f64 / clean.len().max(1) as f64))
    }
}

impl Host for Dsos {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        let warming_up = context.epoch.number < self.warm_up;
        let is_own = warming_up && self.settings.warm_up_batch > 0;
        let batch = if is_own { self.settings.warm_up_batch } else { self.batch };
        let mut plan = Plan::alone(vec![self.settings.view], batch);
        plan.warming_up = warming_up;
        if !warming_up {
            let [replaced, unknown] = self.judge(context)?;
            plan.notes.insert("replaced".into(), replaced);
            plan.notes.insert("unknown".into(), unknown);
        }
        Ok(plan)
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        let warming_up = context.epoch.number < self.warm_up;
        let Settings { alpha, lambda_h, warm_up_mix, .. } = self.settings;
        let classes = context.ledger.classes();
        let (mut rows, mut labels) = (vec![0.0; batch.len() * classes], batch.given.clone());
        for (at, row) in rows.chunks_mut(classes).enumerate() {
            let sample = batch.samples[at] as usize;
            if warming_up {
                row[labels[at] as usize] = 1.0;
            } else {
                labels[at] = self.labels[sample];
                soften(labels[at], self.worth(sample), self.settings.a, row);
            }
        }
        let alpha = if warming_up && !warm_up_mix { 0.0 } else { alpha };
        let mix = Mix::draw(&mut context.draw(batch, 0), batch.len(), alpha, true);
        let out = context.networks.train(0, &mix.samples(batch.views[0].clone()))?;
        let fit = soft_cross_entropy(out.logits.clone(), mix.rows(context.tensor(rows)));
        let doubt = -negative_entropy(out.logits);
        let loss = fit.clone() + doubt.clone() * lambda_h;
        let objective = Objective::new(loss).with_term("fit", &fit).with_term("entropy", &doubt);
        let is_worthy = |at: &usize| self.worth(batch.samples[*at] as usize) >= 0.5;
        let among: Vec<usize> = (0..batch.len()).filter(is_worthy).collect();
        if !context.tapped || among.is_empty() {
            return Ok(objective);
        }
        let all = Tap::new(context.networks.rehearse(0, &batch.views[0])?, batch);
        Ok(objective.with_tap(all.believing(labels).select(&among)))
    }

    fn state(&self) -> HostState {
        let mut state = HostState::default();
        state.floats.insert("worth".into(), self.worth.clone());
        state.whole.insert("labels".into(), self.labels.clone());
        state
    }

    fn restore(&mut self, mut state: HostState) -> Result<()> {
        self.worth = state.take_floats("worth")?;
        self.labels = state.take_whole("labels")?;
        Ok(())
    }
}
