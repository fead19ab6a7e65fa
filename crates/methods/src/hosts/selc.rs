//! SELC (Lu and He, IJCAI 2022): self-ensemble label correction.
//!
//! After $T_e$ epochs of cross-entropy $t_i \leftarrow a\, t_i + (1 - a)\, \mathrm{sg}[p(x_i)]$ per batch, $t_i = e(\tilde y_i)$ at first,
//! and $L = -\frac1B \sum_i \sum_c t_{ic} \log p(x_i)_c$. The ledger keeps $t$. A run of $E$ epochs has $a^{50/E}$ for $a$ (`span`); pilot
//! and stages are in `hosts/parts/stages.rs`.
//!
//! Equations, settings and departures: docs/book/src/methods/selc.md.

use super::parts::stages::{Role, Stages};
use super::prelude::*;
use crate::kit::loss::{cross_entropy, soft_cross_entropy};
use crate::kit::target::{blend, lead, paced};
use burn::tensor::activation::softmax;

/// The card.
pub const CARD: Card = Card {
    id: "selc",
    about: "labels give way to a running mean of the network's own predictions",
    paper: "Lu and He, IJCAI 2022",
    provenance: Provenance::PaperAndCode,
    nets: 1,
    heads: Heads { projection: None, prediction: false },
    predicted_by: PredictedBy::First,
    beliefs: Beliefs::Own,
    cost: "3",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(Selc::new(read("selc", table)?, facts, None)?)),
};

settings! {
    /// Settings of the method.
    Settings;
    protocol: Protocol = Protocol::Blind, Protocol::MEANING;
    warm_up: Milestone = Milestone::Share(0.2) => milestone, "epochs of cross-entropy before labels are corrected, or their share";
    alpha: f64 = 0.9 => share, "momentum of the running mean of targets";
    span: usize = 50, "length of the run, in epochs, that alpha is meant for: alpha^(span/epochs) is used; 0: alpha itself";
    pilot: Milestone = Milestone::Epoch(0) => milestone, "epochs of cross-entropy (or their share) to find warm_up, after which training starts over; 0: warm_up as set";
    view: View = View::Weak, "view used in training: weak, plain, ...";
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        if self.protocol == Protocol::Tuned {
            self.warm_up = tuned(facts).map_or(self.warm_up, Milestone::Share);
        }
        self.check()?;
        Ok(self)
    }
}

/// $T_e$ by noise, as a share of 200 epochs. Published: symmetric 20, 40, 60, 80 %, asymmetric 40 %, instance-dependent; others ours.
fn tuned(facts: &Facts) -> Option<f64> {
    let is_few = facts.classes <= FEW_CLASSES;
    Some(match facts.noise {
        KnownNoise::Symmetric(rate) => match (is_few, rate) {
            (_, 0.7..) | (true, ..0.3) => 0.2,
            (false, 0.3..0.45) => 0.1,
            _ => 0.15,
        },
        KnownNoise::Asymmetric(_) | KnownNoise::Human(_) => [0.1, 0.2][usize::from(is_few)],
        KnownNoise::Instance(_) => 0.2,
        KnownNoise::Nothing | KnownNoise::Unknown => return None,
    })
}

/// The published optimiser; drops of short runs. Feature vectors are learnt in larger steps.
pub(super) fn regime(kind: ItemKind) -> Regime {
    let (lr, at) = if kind == ItemKind::Images { (0.02, vec![0.5, 0.8]) } else { (0.03, vec![0.8]) };
    let schedule = Shape::Steps { at: at.into_iter().map(Milestone::Share).collect(), factor: 0.1 };
    Regime::new(128, Sgd { lr, weight_decay: 1e-3, ..Sgd::default() }, schedule)
}

pub(super) struct Selc {
    settings: Settings,
    batch: usize,
    keep: f32,
    pub(super) stages: Stages,
}

impl Selc {
    /// SELC over all epochs, or over this share of them, with others to follow.
    pub(super) fn new(settings: Settings, facts: &Facts, share: Option<Milestone>) -> Result<Self> {
        let settings = settings.checked(facts)?;
        let stages = Stages::new(settings.pilot, share, settings.warm_up, facts.epochs);
        let keep = paced(settings.alpha, settings.span, stages.length(Role::Correct)) as f32;
        Ok(Self { batch: facts.batch, keep, stages, settings })
    }
}

impl Host for Selc {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        let plan = Plan::alone(vec![self.settings.view], self.batch);
        self.stages.stage(plan, context)
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        let out = context.networks.train(0, &batch.views[0])?;
        let tap = Tap::new(out.clone(), batch);
        if self.stages.trusts(context.epoch) {
            return Ok(Objective::new(cross_entropy(out.logits, &batch.given)).with_tap(tap.trusting()));
        }
        let said = values(softmax(out.logits.clone().inner(), 1))?;
        let (mut targets, classes) = (context.targets(&batch.samples), context.ledger.classes());
        blend(&mut targets, &said, self.keep);
        let clean: Vec<f32> = targets.chunks(classes).zip(&batch.given).map(|(t, &y)| lead(t, y)).collect();
        let believed = targets.chunks(classes).map(argmax).collect();
        context.ledger.set_targets(ledger::SampleIndices::These(&batch.samples), &targets)?;
        context.ledger.set_clean(ledger::SampleIndices::These(&batch.samples), &clean)?;
        let loss = soft_cross_entropy(out.logits, context.tensor(targets));
        Ok(Objective::new(loss).with_tap(tap.believing(believed)))
    }

    keeps!(stages);
}
