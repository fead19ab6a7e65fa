//! GCE (Zhang and Sabuncu, NeurIPS 2018): generalised cross-entropy, a loss between cross-entropy and the absolute error, truncated.
//!
//! $L_q(p) = (1 - p^q) / q$ of $p_i = p(\tilde y_i \mid x_i)$, the given label's probability, and $L = \frac1B \sum_i v_i L_q(p_i) + (1 - v_i) L_q(k)$.
//! $v_i = 1$ at first. Later, every few epochs, $v_i$ becomes 1 where $p_i > k$ and 0 elsewhere: labels that the network does not come to
//! believe no longer teach.
//!
//! Equations, settings and departures: docs/book/src/methods/gce.md.

use super::prelude::*;
use crate::kit::loss::generalised_cross_entropy_rows;
use burn::tensor::{Tensor, TensorData};

/// The card.
pub const CARD: Card = Card {
    id: "gce",
    about: "a loss that wrong labels pull less at, and not at all once the network has made up its mind",
    paper: "Zhang and Sabuncu, NeurIPS 2018",
    provenance: Provenance::Paper,
    nets: 1,
    heads: Heads { projection: None, prediction: false },
    predicted_by: PredictedBy::First,
    beliefs: Beliefs::Predictions,
    cost: "3",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(Gce::new(read("gce", table)?, facts)?)),
};

settings! {
    /// Settings of the method.
    Settings;
    q: f64 = 0.7 => positive_share, "exponent of the loss: near 0 cross-entropy, 1 the absolute error";
    truncate: bool = true, "whether labels that stay improbable are pruned; false: the loss alone";
    k: f64 = 0.5 => inside, "probability of the given label above which a sample is kept";
    prune_start: Milestone = Milestone::Share(0.6) => milestone, "epochs before the first pruning, or their share of all epochs";
    prune_every: Milestone = Milestone::Share(1.0 / 12.0) => milestone, "epochs from one pruning to the next, or their share; at least one";
    view: View = View::Weak, "how samples are shown in training: weak, plain, ...";
}

/// Refuses a number outside (0, 1).
fn inside(setting: &'static str, value: f64) -> Result<()> {
    require(setting, value, value > 0.0 && value < 1.0, "must be above 0 and below 1")
}

/// The published optimiser with larger steps, because there are fewer of them; as published, the rate drops when pruning begins.
fn regime(kind: ItemKind) -> Regime {
    let lr = if kind == ItemKind::Images { 0.1 } else { 0.05 };
    let at = vec![Milestone::Share(0.6), Milestone::Share(0.85)];
    Regime::new(128, Sgd { lr, weight_decay: 1e-4, ..Sgd::default() }, Shape::Steps { at, factor: 0.1 })
}

/// $\frac1B \sum_i v_i L_q(p_i) + (1 - v_i) L_q(k)$; `kept` are the $v_i$, each 1 or 0.
///
/// # Panics
/// If there is not one label and one $v$ per row, or a label names no class.
pub fn truncated(logits: Tensor<2>, labels: &[u32], kept: &[f32], q: f64, k: f64) -> Tensor<1> {
    assert_eq!(labels.len(), kept.len(), "one label and one weight per row");
    let losses = generalised_cross_entropy_rows(logits, labels, q);
    let v = Tensor::<1>::from_data(TensorData::new(kept.to_vec(), [kept.len()]), &losses.device());
    let pruned: Tensor<1> = 1.0 - v.clone();
    (losses * v + pruned * ((1.0 - k.powf(q)) / q)).mean()
}

struct Gce {
    settings: Settings,
    batch: usize,
    start: usize,
    every: usize,
    /// $v$, of every sample.
    kept: Vec<f32>,
}

impl Gce {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        settings.check()?;
        Ok(Self {
            batch: facts.batch,
            start: settings.prune_start.epochs(facts.epochs),
            every: settings.prune_every.epochs(facts.epochs).max(1),
            kept: vec![1.0; facts.samples],
            settings,
        })
    }

    /// Decides anew who is kept.
    fn prune(&mut self, context: &mut HostContext) -> Result<()> {
        let (scan, k, given) =
            (context.scan(0, View::Plain)?, self.settings.k as f32, context.ledger.given());
        let own: Vec<f32> = scan.losses(given).iter().map(|loss| (-loss).exp()).collect();
        let mut is_believed = vec![false; context.ledger.classes()];
        for (&p, &label) in own.iter().zip(given) {
            is_believed[label as usize] |= p > k;
        }
        // Of a class that it believes nobody to be the network has learnt too little to judge; pruned, the class would be lost.
        let keep = |(&p, &label): (&f32, &u32)| f32::from(p > k || !is_believed[label as usize]);
        self.kept = own.iter().zip(given).map(keep).collect();
        let clean: Vec<f32> = own.iter().map(|&p| p / (p + k)).collect();
        Ok(context.ledger.set_clean(ledger::SampleIndices::All, &clean)?)
    }
}

impl Host for Gce {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        let mut plan = Plan::alone(vec![self.settings.view], self.batch);
        if let Some(since) = context.epoch.number.checked_sub(self.start).filter(|_| self.settings.truncate) {
            if since.is_multiple_of(self.every) {
                self.prune(context)?;
            }
            let kept = self.kept.iter().sum::<f32>() / self.kept.len().max(1) as f32;
            plan.notes.insert("kept".into(), f64::from(kept));
        }
        Ok(plan)
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        let out = context.networks.train(0, &batch.views[0])?;
        let Settings { q, k, .. } = self.settings;
        let kept: Vec<f32> = batch.samples.iter().map(|&i| self.kept[i as usize]).collect();
        let loss = truncated(out.logits.clone(), &batch.given, &kept, q, k);
        Ok(Objective::new(loss).with_tap(Tap::new(out, batch)))
    }

    fn state(&self) -> HostState {
        HostState { floats: [("kept".to_owned(), self.kept.clone())].into(), ..HostState::default() }
    }

    fn restore(&mut self, mut state: HostState) -> Result<()> {
        self.kept = state.take_floats("kept")?;
        Ok(())
    }
}
