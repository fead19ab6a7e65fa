//! DSOS (Albert et al., WACV 2022): dynamic softening of out-of-distribution samples.
//!
//! Noise of the web is mostly pictures of nothing that is asked for. The collision entropy of the mean of prediction and label
//! ([`crate::kit::collision`]) tells clean samples, wrong labels of known classes and unknown samples apart: wrong labels are replaced by the prediction,
//! unknown samples get soft, almost uniform labels.
//!
//! Warm-up, $\lambda \sim \mathrm{Beta}(\alpha, \alpha)$ at least one half in MixUp, $H$ the entropy of a prediction:
//!
//! $$ L = \mathrm{CE}(\mathrm{MixUp}(x, y)) + \lambda_h \frac1B \sum_i H(p_i), \qquad y_i = e(\tilde y_i). $$
//!
//! Then all samples are scanned before every epoch. With $P_{known}$ and $P_{unknown}$ of each, $y_i$ is the predicted class where $P_{known} > 0.9$ (else
//! the given one), and $y_i \leftarrow \mathrm{softmax}(y_i (1 - P_{unknown}) / a)$, from one-hot to uniform; the loss stays the same.
//!
//! **Ledger.** Target: $y_i$, or the prediction of a doubtful sample whose label was not replaced. Clean probability: $1 - e_i / \log 4$, one half where samples become doubtful. Plug-ins are handed unmixed samples, in a
//! pass of their own, without those whose $1 - P_{unknown}$ is below one half.
//!
//! # Where this differs from paper and code
//! The scan is made in evaluation mode; the code's, with norms in training mode, also tunes their statistics to unmixed pictures. Correction begins
//! with the first epoch after warm-up, not with the second. Components that change places are put back. Warm-up is 20 % of
//! the epochs, not 50 %: networks on feature vectors learn wrong labels by then. A component that is densest at the ends says nothing (`slack`).

use super::card::settings;
use super::{
    Batch, Beliefs, Card, Facts, Host, Judges, Kind, Objective, Plan, Protocol, Provenance, Regime, State,
    Tap,
};
use crate::kit::collision::{clean_probability, entropy, soften, sort};
use crate::kit::loss::{negative_entropy, soft_cross_entropy};
use crate::kit::mix::Mix;
use crate::kit::rows::places;
use crate::ledger::Samples;
use crate::nets::Heads;
use crate::optim::Sgd;
use crate::schedule::{Milestone, Shape};
use crate::settings::{require, require_not_negative, require_share};
use crate::trainer::{Scene, first_largest};
use crate::{Result, settings as tables};
use negscale_data::View;

/// The card.
pub const CARD: Card = Card {
    id: "dsos",
    about: "wrong labels replaced, labels of samples of no class softened, by collision entropy",
    paper: "Albert et al., WACV 2022",
    provenance: Provenance::PaperAndCode,
    nets: 1,
    heads: Heads { projection: None, prediction: false },
    judges: Judges::First,
    beliefs: Beliefs::Own,
    cost: "3",
    settings: || tables::table(&Settings::default()),
    meanings: MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(Dsos::new(tables::read("dsos", table)?, facts)?)),
};

settings! {
    protocol: Protocol = Protocol::Blind, "blind: one setting for all noise; tuned: the published one for the noise at hand";
    warm_up: Milestone = Milestone::Share(0.2), "epochs before labels are corrected, or their share of all epochs";
    warm_up_batch: usize = 64, "samples per batch in warm-up; 0: as `batch`";
    warm_up_mix: bool = true, "whether warm-up has MixUp";
    alpha: f64 = 1.0, "MixUp weights are drawn from Beta(alpha, alpha); 0: no MixUp";
    a: f64 = 0.05, "temperature of softened labels: smaller is nearer to one-hot";
    lambda_h: f64 = 0.4, "weight of the mean entropy of predictions";
    known_above: f64 = 0.9, "probability of a wrong label of a known class above which it is replaced";
    slack: f64 = 0.0, "how far outside (0, 1) the mode of a component may lie that is believed; authors' code: 0.1";
    view: View = View::Weak, "how samples are shown in training";
    scan_view: View = View::Plain, "view in which samples are judged";
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        if self.protocol == Protocol::Tuned {
            // Published of CIFAR-100 with "heavy" noise; where that begins is ours.
            self.warm_up_mix = facts.classes <= 32 || facts.noise_kind().1 < 0.5;
        }
        self.warm_up.check("warm_up")?;
        require_not_negative("alpha", self.alpha)?;
        require("a", self.a, self.a > 0.0, "must be above 0")?;
        require_not_negative("lambda_h", self.lambda_h)?;
        require_share("known_above", self.known_above)?;
        require_not_negative("slack", self.slack)?;
        Ok(self)
    }
}

/// As published for CIFAR-100, in fewer epochs. Feature vectors: one drop, late.
fn regime(kind: Kind) -> Regime {
    let (lr, at) = if kind == Kind::Images { (0.03, vec![0.5, 0.8]) } else { (0.02, vec![0.8]) };
    let schedule = Shape::Steps { at: at.into_iter().map(Milestone::Share).collect(), factor: 0.1 };
    let optimiser = Sgd { lr, ..Sgd::default() };
    Regime { epochs: 20, batch: 32, optimiser: optimiser.into(), schedule: schedule.into() }
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
        let warm_up = settings.warm_up.epochs(facts.epochs).min(facts.epochs.saturating_sub(1));
        Ok(Self { warm_up, batch: facts.batch, labels: Vec::new(), worth: Vec::new(), settings })
    }

    /// $1 - P_{unknown}$.
    fn worth(&self, sample: usize) -> f64 {
        self.worth.get(sample).copied().unwrap_or(1.0).into()
    }

    /// Judges all samples and writes targets and clean probabilities; gives the shares of replaced and of unknown ones.
    fn judge(&mut self, scene: &mut Scene) -> Result<[f64; 2]> {
        let scan = scene.scan(0, self.settings.scan_view)?;
        let (mut rows, given) = (scan.probabilities(), scene.ledger.given());
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
                self.labels[i] = first_largest(row);
                replaced += usize::from(self.labels[i] != given[i]);
            }
            if is_known || clean[i] > 0.5 {
                soften(self.labels[i], worth, self.settings.a, row);
            }
        }
        scene.ledger.set_targets(Samples::All, &rows)?;
        scene.ledger.set_clean(Samples::All, &clean)?;
        let unknown = self.worth.iter().filter(|&&worth| worth < 0.5).count();
        Ok([replaced, unknown].map(|count| count as f64 / clean.len().max(1) as f64))
    }
}

impl Host for Dsos {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        let warming_up = scene.epoch.number < self.warm_up;
        let is_own = warming_up && self.settings.warm_up_batch > 0;
        let batch = if is_own { self.settings.warm_up_batch } else { self.batch };
        let mut plan = Plan::alone(vec![self.settings.view], batch);
        plan.warming_up = warming_up;
        if !warming_up {
            let [replaced, unknown] = self.judge(scene)?;
            plan.notes.insert("replaced".into(), replaced);
            plan.notes.insert("unknown".into(), unknown);
        }
        Ok(plan)
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        let warming_up = scene.epoch.number < self.warm_up;
        let Settings { alpha, lambda_h, warm_up_mix, .. } = self.settings;
        let classes = scene.ledger.classes();
        let (mut rows, mut labels) = (vec![0.0; batch.len() * classes], batch.given.clone());
        for (at, row) in rows.chunks_mut(classes).enumerate() {
            let sample = batch.samples[at] as usize;
            labels[at] = self.labels.get(sample).copied().unwrap_or(labels[at]);
            soften(labels[at], self.worth(sample), self.settings.a, row);
        }
        let alpha = if warming_up && !warm_up_mix { 0.0 } else { alpha };
        let mix = Mix::draw(&mut scene.draw(batch, 0), batch.len(), alpha, true);
        let out = scene.team.train(0, &mix.samples(batch.views[0].clone()))?;
        let fit = soft_cross_entropy(out.logits.clone(), mix.rows(scene.tensor(rows)));
        let doubt = -negative_entropy(out.logits);
        let loss = fit.clone() + doubt.clone() * lambda_h;
        let objective = Objective::new(loss).with_term("fit", &fit).with_term("entropy", &doubt);
        let is_worthy = |at: &usize| self.worth(batch.samples[*at] as usize) >= 0.5;
        let among: Vec<usize> = (0..batch.len()).filter(is_worthy).collect();
        if !scene.tapped || among.is_empty() {
            return Ok(objective);
        }
        let worthy = batch.views[0].select(places(&among, &scene.device().clone().autodiff()));
        let out = scene.team.rehearse(0, &worthy)?;
        let pick = |labels: &[u32]| among.iter().map(|&at| labels[at]).collect();
        let (given, believed) = (pick(&batch.given), Some(pick(&labels)));
        Ok(objective.with_tap(Tap { features: out.features, logits: out.logits, given, believed }))
    }

    fn state(&self) -> State {
        let mut state = State::default();
        state.floats.insert("worth".into(), self.worth.clone());
        state.whole.insert("labels".into(), self.labels.clone());
        state
    }

    fn restore(&mut self, mut state: State) -> Result<()> {
        self.worth = state.floats.remove("worth").unwrap_or_default();
        self.labels = state.whole.remove("labels").unwrap_or_default();
        Ok(())
    }
}
