//! ANNE (Cordeiro and Carneiro, Pattern Recognition 2025): clean samples by adaptive neighbours and class directions, on SSR+.
//!
//! $L = \mathrm{CE}(\mathrm{MixUp}(x, e(y'))) - \lambda_{fc} \cos(h(g(f(x^s))), \mathrm{sg}[g(f(x^w))])$: clean samples $x$ under labels
//! $y'$, all samples in a weak and a strong view. [`crate::kit::adaptive`] says from a scan before the epoch who is clean. Plug-ins attach
//! to $f(x^s)$: unmixed, all samples.
//!
//! Equations, settings and departures: docs/book/src/methods/anne.md.

use super::prelude::*;
use crate::kit::adaptive::{AdaptiveSettings, Selection};
use crate::kit::loss::{negative_cosine, one_hot, soft_cross_entropy};
use crate::kit::mix::Mix;
use burn::tensor::Tensor;
use negscale_data::loader::Until;
use negscale_nets::{Network, Pass};

/// The card.
pub const CARD: Card = Card {
    id: "anne",
    about: "clean samples by class directions and adaptive neighbours; relabelling; consistency of all samples",
    paper: "Cordeiro and Carneiro, Pattern Recognition 2025",
    provenance: Provenance::Code,
    nets: 1,
    heads: Heads { projection: Some(Projection::NormRelu), prediction: true },
    predicted_by: PredictedBy::First,
    beliefs: Beliefs::Own,
    cost: "11 + neighbours",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(Anne::new(read("anne", table)?, facts)?)),
};

settings! {
    /// Settings of the method.
    Settings over rule: AdaptiveSettings;
    protocol: Protocol = Protocol::Blind, Protocol::MEANING;
    warm_up: Milestone = Milestone::Share(0.1) => milestone, "epochs in which neighbours alone select samples, or their share of all epochs";
    alpha: f64 = 4.0 => not_negative, "MixUp weights are drawn from Beta(alpha, alpha); 0: no MixUp";
    lambda_fc: f64 = 1.0 => not_negative, "weight of the consistency of features";
    scan_view: View = View::Weak, "view in which samples are assessed: weak (authors' code) or plain";
    scan_every: usize = 1 => at_least_1, "samples are assessed every this many epochs";
}

impl Settings {
    /// The settings in use for a task, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        if self.protocol == Protocol::Tuned {
            let (gamma_r, gamma_e, warm_up) = tuned(facts);
            (self.rule.gamma_r, self.rule.gamma_e, self.warm_up) =
                (gamma_r, gamma_e, Milestone::Share(warm_up));
        }
        self.rule.check()?;
        self.check()?;
        Ok(self)
    }
}

/// $\gamma_r$, $\gamma_e$ and the share of warm-up. Published: CIFAR-100 with 50 % symmetric noise, Animal-10N, mini-WebVision. The
/// others are ours, near the defaults of the authors' code and of SSR+.
fn tuned(facts: &Facts) -> (f64, f64, f64) {
    match (facts.noise, facts.classes) {
        (KnownNoise::Nothing, ..=10) => (0.95, 0.3, 1.0 / 150.0),
        (KnownNoise::Nothing, _) => (0.95, 0.5, 0.0),
        (_, ..=50) => (0.9, 0.5, 10.0 / 300.0),
        (KnownNoise::Symmetric(..0.5), _) => (0.8, 0.1, 0.1),
        _ => (0.5, 0.1, 0.1),
    }
}

/// Down to a fiftieth. Mixed targets make small gradients, which norms make up for: a network without them wants larger steps.
fn regime(kind: ItemKind) -> Regime {
    let lr = if kind == ItemKind::Images { 0.02 } else { 0.05 };
    let schedule = Shape::Cosine { period: None, floor: 0.02, per_step: false };
    Regime::new(128, Sgd { lr, ..Sgd::default() }, schedule)
}

/// $-\cos(h(g(f^s)), \mathrm{sg}[g(f^w)])$, mean over samples; `weak` and `strong` are features.
pub fn consistency(net: &Network, weak: Tensor<2>, strong: Tensor<2>, pass: &Pass) -> Result<Tensor<1>> {
    let aim = net.project(weak, pass)?;
    let said = net.predict(net.project(strong, pass)?, pass)?;
    Ok(negative_cosine(said, aim))
}

struct Anne {
    settings: Settings,
    warm_up: usize,
    batch: usize,
    strong: View,
    held: Selection,
}

impl Anne {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let settings = settings.checked(facts)?;
        let warm_up = settings.warm_up.epochs(facts.epochs);
        let strong = if facts.kind == ItemKind::Images { View::AutoAugment } else { View::Strong };
        Ok(Self { warm_up, batch: facts.batch, strong, held: Selection::default(), settings })
    }

    /// Assesses all samples and writes it into the ledger.
    fn judge(&mut self, context: &mut HostContext) -> Result<()> {
        let scan = context.scan_features(0, self.settings.scan_view)?;
        let given = context.ledger.given();
        self.held = self.settings.rule.select(&scan, given, context.epoch.number < self.warm_up)?;
        let mut targets = scan.probabilities();
        for (i, row) in targets.chunks_mut(scan.classes).enumerate() {
            if self.held.clean[i] && self.held.labels[i] == given[i] {
                row.fill(0.0);
                row[given[i] as usize] = 1.0;
            }
        }
        context.ledger.set_targets(ledger::SampleIndices::All, &targets)?;
        Ok(context.ledger.set_clean(ledger::SampleIndices::All, &self.held.right)?)
    }
}

impl Host for Anne {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        let epoch = context.epoch.number;
        if epoch.is_multiple_of(self.settings.scan_every) || epoch == self.warm_up {
            self.judge(context)?;
        }
        let given = context.ledger.given();
        let share = |count: usize| count as f64 / given.len().max(1) as f64;
        let changed = self.held.labels.iter().zip(given).filter(|(new, given)| new != given).count();
        let clean = self.held.clean.iter().filter(|&&clean| clean).count();
        let mut plan = Plan::new(vec![Phase {
            trains: vec![0],
            views: vec![self.strong; 2],
            unlabelled_views: Some(vec![View::Weak, self.strong]),
            order: Order::Pair {
                labelled: self.held.balanced(epoch, context.ledger.classes()),
                unlabelled: (0..given.len() as u32).collect(),
                unlabelled_batch: None,
                until: Until::Unlabelled,
            },
            batch: self.batch,
            drop_last: true,
        }]);
        plan.warming_up = epoch < self.warm_up;
        plan.notes.insert("held to be clean".into(), share(clean));
        plan.notes.insert("relabelled".into(), share(changed));
        if self.held.fell_back {
            plan.notes.insert("nobody clean but by vote".into(), 1.0);
        }
        Ok(plan)
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        let Some(all) = &batch.unlabelled else { unreachable!("the only phase is a pair") };
        let (networks, labels) = (context.networks, &self.held.labels);
        let believed = |samples: &[u32]| samples.iter().map(|&i| labels[i as usize]).collect::<Vec<u32>>();
        let mut fit = None;
        if !batch.is_empty() {
            let mix = Mix::draw(&mut context.draw(batch, 0), 2 * batch.len(), self.settings.alpha, true);
            let out = networks.train(0, &mix.samples(Samples::join(batch.views.clone())))?;
            let wanted =
                one_hot(&believed(&batch.samples).repeat(2), context.ledger.classes(), context.device());
            fit = Some(soft_cross_entropy(out.logits, mix.rows(wanted)));
        }
        let weak = networks.train(0, &all.views[0])?;
        let strong = networks.train(0, &all.views[1])?;
        let same =
            consistency(networks.net(0), weak.features, strong.features.clone(), &networks.next_pass(0))?;
        let tap = Tap::new(strong, all).believing(believed(&all.samples));
        let weighted = same.clone() * self.settings.lambda_fc;
        let objective = match fit {
            Some(fit) => Objective::new(fit.clone() + weighted).with_term("fit", &fit),
            None => Objective::new(weighted),
        };
        Ok(objective.with_term("consistency", &same).with_tap(tap))
    }

    fn state(&self) -> HostState {
        let mut state = HostState::default();
        // What is right is in the ledger.
        let Selection { labels, clean, fell_back, .. } = &self.held;
        state.whole.insert("labels".into(), labels.clone());
        state.whole.insert("clean".into(), clean.iter().map(|&clean| u32::from(clean)).collect());
        state.whole.insert("fell back".into(), vec![u32::from(*fell_back)]);
        state
    }

    fn restore(&mut self, mut state: HostState) -> Result<()> {
        self.held.labels = state.take_whole("labels")?;
        self.held.clean = state.take_whole("clean")?.into_iter().map(|clean| clean == 1).collect();
        self.held.fell_back = state.take_whole("fell back")?.contains(&1);
        Ok(())
    }
}
