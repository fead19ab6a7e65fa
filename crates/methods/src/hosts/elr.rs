//! ELR (Liu et al., NeurIPS 2020): early-learning regularisation.
//!
//! $t_i \leftarrow \beta\, t_i + (1 - \beta)\, \mathrm{sg}[p(x_i)]$, $t_i = 0$ at first, and
//! $L = \frac1B \sum_i -\log p(\tilde y_i \mid x_i) + \lambda \log(1 - \langle p(x_i), t_i \rangle)$: what the network said early, before it
//! learnt wrong labels, holds against them. The host keeps $t$.
//!
//! Equations, settings and departures: docs/book/src/methods/elr.md.

use super::prelude::*;
use crate::kit::loss::cross_entropy;
use crate::kit::purify::Auto;
use crate::kit::target::{blend, lead};
use burn::tensor::Tensor;
use burn::tensor::activation::softmax;
use serde::{Deserialize, Serialize};

/// The card.
pub const CARD: Card = Card {
    id: "elr",
    about: "a running mean of the network's own predictions holds against labels that contradict it",
    paper: "Liu et al., NeurIPS 2020",
    provenance: Provenance::PaperAndCode,
    nets: 1,
    heads: Heads { projection: None, prediction: false },
    predicted_by: PredictedBy::First,
    beliefs: Beliefs::Own,
    cost: "3",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(Elr::new(read("elr", table)?, facts)?)),
};

settings! {
    /// Settings of the method.
    Settings;
    protocol: Protocol = Protocol::Blind, Protocol::MEANING;
    lambda: Choice = Choice::AUTO, "weight of the regularisation, or auto: 3 up to 32 classes, else 7";
    beta: Choice = Choice::AUTO, "share of a running target that stays, or auto: 0.7 up to 32 classes, else 0.9";
    view: View = View::Weak, "how samples are shown in training: weak, plain, ...";
}

/// A number, or the published one for such a task.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Choice {
    /// This one.
    Set(f64),
    /// By the number of classes.
    Auto(Auto),
}

impl Choice {
    const AUTO: Self = Self::Auto(Auto::Auto);

    fn or(self, published: f64) -> f64 {
        match self {
            Self::Set(value) => value,
            Self::Auto(_) => published,
        }
    }
}

impl Settings {
    /// $\lambda$ and $\beta$, if they are in range.
    pub fn settle(&self, facts: &Facts) -> Result<(f64, f64)> {
        let is_few = facts.classes <= FEW_CLASSES;
        let is_asymmetric = facts.noise_for(self.protocol).is_some_and(|noise| noise.is_asymmetric());
        let published = match (is_few, is_asymmetric) {
            (true, false) => (3.0, 0.7),
            (true, true) => (1.0, 0.9),
            (false, _) => (7.0, 0.9),
        };
        let (lambda, beta) = (self.lambda.or(published.0), self.beta.or(published.1));
        not_negative("lambda", lambda)?;
        below_1("beta", beta)?;
        Ok((lambda, beta))
    }
}

/// The published optimiser; one half wave down to a twentieth instead of one for every ten epochs.
fn regime(_: ItemKind) -> Regime {
    let schedule = Shape::Cosine { period: None, floor: 0.05, per_step: false };
    Regime::new(128, Sgd { weight_decay: 1e-3, ..Sgd::default() }, schedule)
}

/// Predictions kept off 0 and 1, as the authors' code has them.
fn predict(logits: Tensor<2>) -> Tensor<2> {
    softmax(logits, 1).clamp(1e-4, 1.0 - 1e-4)
}

/// Predictions that running targets take in: kept off 0 and 1, then summing to 1; without gradient.
pub fn observe(logits: Tensor<2>) -> Tensor<2> {
    let p = predict(logits.inner());
    p.clone() / p.sum_dim(1)
}

/// $\frac1B \sum_i \log(1 - \langle p_i, t_i \rangle)$, with gradients to $p$ alone.
pub fn regularisation(logits: Tensor<2>, targets: Tensor<2>) -> Tensor<1> {
    let apart: Tensor<2> = 1.0 - (predict(logits) * targets).sum_dim(1);
    apart.log().mean()
}

struct Elr {
    view: View,
    batch: usize,
    lambda: f64,
    beta: f32,
    /// $t$, of every sample.
    targets: Vec<f32>,
}

impl Elr {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let (lambda, beta) = settings.settle(facts)?;
        let targets = vec![0.0; facts.samples * facts.classes];
        Ok(Self { view: settings.view, batch: facts.batch, lambda, beta: beta as f32, targets })
    }

    /// Takes in what was said of some samples; gives their targets.
    fn update(&mut self, samples: &[u32], said: &[f32], classes: usize) -> Vec<f32> {
        let mut rows = Vec::with_capacity(said.len());
        for (&i, said) in samples.iter().zip(said.chunks(classes)) {
            let row = &mut self.targets[i as usize * classes..][..classes];
            blend(row, said, self.beta);
            rows.extend_from_slice(row);
        }
        rows
    }
}

impl Host for Elr {
    fn plan(&mut self, _: &mut HostContext) -> Result<Plan> {
        Ok(Plan::alone(vec![self.view], self.batch))
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        let out = context.networks.train(0, &batch.views[0])?;
        let classes = context.ledger.classes();
        let targets = self.update(&batch.samples, &values(observe(out.logits.clone()))?, classes);
        let fit = cross_entropy(out.logits.clone(), &batch.given);
        let held = regularisation(out.logits.clone(), context.tensor(targets.clone()));

        let mut beliefs = targets;
        for row in beliefs.chunks_mut(classes) {
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|t| *t /= sum);
        }
        let rows = || beliefs.chunks(classes);
        let clean: Vec<f32> = rows().zip(&batch.given).map(|(t, &y)| lead(t, y)).collect();
        context.ledger.set_targets(ledger::SampleIndices::These(&batch.samples), &beliefs)?;
        context.ledger.set_clean(ledger::SampleIndices::These(&batch.samples), &clean)?;

        let tap = Tap::new(out, batch).believing(rows().map(argmax).collect());
        let objective = Objective::new(fit.clone() + held.clone() * self.lambda).with_tap(tap);
        Ok(objective.with_term("fit", &fit).with_term("regularisation", &held))
    }

    fn state(&self) -> HostState {
        HostState { floats: [("targets".to_owned(), self.targets.clone())].into(), ..HostState::default() }
    }

    fn restore(&mut self, mut state: HostState) -> Result<()> {
        self.targets = state.take_floats("targets")?;
        Ok(())
    }
}
