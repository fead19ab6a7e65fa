//! ANNE (Cordeiro and Carneiro, Pattern Recognition 2025): clean samples by adaptive neighbours and class directions, on SSR+.
//!
//! One network is asked again before every epoch. From a scan, with $z_i$ the features scaled to length 1, $p_i$ the
//! probabilities and $s_i = \max_c p_{ic}$ ([`adaptive`](crate::kit::adaptive)):
//!
//! 1. $y'_i = \arg\max_c p_{ic}$ if $s_i > \gamma_r$, else the given label $\tilde y_i$; nothing is remembered from before.
//! 2. Confidences $s$ fall into four groups, $G_1$ the most confident.
//! 3. $G_1, G_2$: clean if the posterior of alignment with the direction of class $y'_i$ is above $\gamma_e$.
//! 4. $G_3, G_4$: clean if, among $K_i$ nearest samples, $y'_i$ has at least $\theta_s$ of the winner's vote, $K_i$ from the
//!    density around the sample and its group's least number.
//!
//! In warm-up, step 4 judges everyone, with the largest $K$. A batch is of clean samples (every class of $y'$ as often as the
//! largest) in two strong views, and of all samples in a weak one $x^w$ and a strong one $x^s$:
//!
//! $$ L = \mathrm{CE}(\mathrm{MixUp}(x, e(y'))) - \lambda_{fc} \cos(h(g(f(x^s))), \mathrm{sg}[g(f(x^w))]), $$
//!
//! $f$ the features, $g$ the projection, $h$ the prediction head, sg a constant. MixUp has $\lambda \sim \mathrm{Beta}(\alpha, \alpha)$, at
//! least 1/2. Plug-ins attach to $f(x^s)$: unmixed, all samples.
//!
//! **Ledger.** Target: the given label where it is held to be clean, else $p_i$. Clean probability of the given label: the
//! posterior (step 3), or its vote by the winner's (step 4); $p_i(\tilde y_i)$ if it was replaced.
//!
//! # Where this differs from the authors' code
//! A vote has at most $N / C$ neighbours (but at least 5): more would be strangers. If nobody is clean the vote judges everyone;
//! if nobody still is, an epoch has the consistency alone. Which samples of small classes are shown once more often moves
//! on with the epochs. Feature vectors have the strong view instead of AutoAugment, and a rate of 0.05.

use super::{
    Batch, Beliefs, Card, Facts, Host, Judges, Kind, Objective, Plan, Protocol, Provenance, Regime, State,
    Tap, Turn,
};
use crate::kit::adaptive::{Rule, Selection};
use crate::kit::loss::{negative_cosine, one_hot, soft_cross_entropy};
use crate::kit::mix::Mix;
use crate::ledger;
use crate::nets::{Heads, Network, Pass, Projection, Samples};
use crate::optim::Sgd;
use crate::schedule::{Milestone, Shape};
use crate::settings::require;
use crate::trainer::Scene;
use crate::{Result, settings};
use burn::tensor::Tensor;
use negscale_data::loader::Until;
use negscale_data::{Order, View};
use serde::{Deserialize, Serialize};

/// The card.
pub const CARD: Card = Card {
    id: "anne",
    about: "clean samples by class directions and adaptive neighbours; relabelling; consistency of all samples",
    paper: "Cordeiro and Carneiro, Pattern Recognition 2025",
    provenance: Provenance::PaperAndCode,
    nets: 1,
    heads: Heads { projection: Some(Projection::NormRelu), prediction: true },
    judges: Judges::First,
    beliefs: Beliefs::Own,
    cost: "11 + neighbours",
    settings: || settings::table(&Settings::default()),
    meanings: &[
        ("protocol", "blind: one setting for all noise; tuned: the published one for the noise at hand"),
        ("warm_up", "epochs in which neighbours alone choose, or their share of all epochs"),
        ("relabel", "whether confident predictions replace labels"),
        ("gamma_r", "confidence above which they do"),
        ("gamma_e", "posterior above which a confident sample is clean"),
        ("theta_s", "share of the winner's vote that the label of a clean sample has"),
        ("fewest", "least number of neighbours asked, by group, the most confident first"),
        ("ceiling", "most neighbours asked"),
        ("alpha", "both parameters of MixUp's Beta distribution; 0: no MixUp"),
        ("lambda_fc", "weight of the consistency of features"),
        ("scan_view", "view in which samples are judged: weak (authors' code) or plain"),
        ("scan_every", "samples are judged every so many epochs"),
    ],
    regime,
    build: |table, facts| Ok(Box::new(Anne::new(settings::read("anne", table)?, facts)?)),
};

/// Settings of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the card says what they mean
pub struct Settings {
    pub protocol: Protocol,
    pub warm_up: Milestone,
    #[serde(flatten)]
    pub rule: Rule,
    pub alpha: f64,
    pub lambda_fc: f64,
    pub scan_view: View,
    pub scan_every: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            protocol: Protocol::Blind,
            warm_up: Milestone::Share(0.1),
            rule: Rule::default(),
            alpha: 4.0,
            lambda_fc: 1.0,
            scan_view: View::Weak,
            scan_every: 1,
        }
    }
}

impl Settings {
    /// The settings in use for a task, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        if self.protocol == Protocol::Tuned {
            let (gamma_r, gamma_e, warm_up) = tuned(facts);
            (self.rule.gamma_r, self.rule.gamma_e, self.warm_up) =
                (gamma_r, gamma_e, Milestone::Share(warm_up));
        }
        self.warm_up.check("warm_up")?;
        self.rule.check()?;
        require("alpha", self.alpha, self.alpha >= 0.0, "must be 0 or larger")?;
        require("lambda_fc", self.lambda_fc, self.lambda_fc >= 0.0, "must be 0 or larger")?;
        let every = self.scan_every;
        require("scan_every", every as f64, every >= 1, "must be at least 1")?;
        Ok(self)
    }
}

/// $\gamma_r$, $\gamma_e$ and the share of warm-up. Published: CIFAR-100 with 50 % symmetric noise, Animal-10N, mini-WebVision. The
/// others are ours, near the defaults of the authors' code and of SSR+.
fn tuned(facts: &Facts) -> (f64, f64, f64) {
    match (facts.noise_kind(), facts.classes) {
        (("" | "none", _), ..=10) => (0.95, 0.3, 1.0 / 150.0),
        (("" | "none", _), _) => (0.95, 0.5, 0.0),
        (_, ..=50) => (0.9, 0.5, 10.0 / 300.0),
        ((kind, rate), _) if kind.starts_with("sym") && rate < 0.5 => (0.8, 0.1, 0.1),
        _ => (0.5, 0.1, 0.1),
    }
}

/// Down to a fiftieth. Mixed targets make small gradients, which norms make up for: a network without them wants larger steps.
fn regime(kind: Kind) -> Regime {
    let lr = if kind == Kind::Images { 0.02 } else { 0.05 };
    let schedule = Shape::Cosine { period: None, floor: 0.02, per_step: false };
    Regime {
        epochs: 20,
        batch: 128,
        optimiser: Sgd { lr, ..Sgd::default() }.into(),
        schedule: schedule.into(),
    }
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
        let strong = if facts.kind == Kind::Images { View::AutoAugment } else { View::Strong };
        Ok(Self { warm_up, batch: facts.batch, strong, held: Selection::default(), settings })
    }

    /// Judges all samples and writes it into the ledger.
    fn judge(&mut self, scene: &mut Scene) -> Result<()> {
        let scan = scene.scan_features(0, self.settings.scan_view)?;
        let given = scene.ledger.given();
        self.held = self.settings.rule.select(&scan, given, scene.epoch.number < self.warm_up)?;
        let mut targets = scan.probabilities();
        for (i, row) in targets.chunks_mut(scan.classes).enumerate() {
            if self.held.clean[i] && self.held.labels[i] == given[i] {
                row.fill(0.0);
                row[given[i] as usize] = 1.0;
            }
        }
        scene.ledger.set_targets(ledger::Samples::All, &targets)?;
        scene.ledger.set_clean(ledger::Samples::All, &self.held.right)
    }
}

impl Host for Anne {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        let epoch = scene.epoch.number;
        if epoch.is_multiple_of(self.settings.scan_every) || epoch == self.warm_up {
            self.judge(scene)?;
        }
        let given = scene.ledger.given();
        let share = |count: usize| count as f64 / given.len().max(1) as f64;
        let changed = self.held.labels.iter().zip(given).filter(|(new, given)| new != given).count();
        let clean = self.held.clean.iter().filter(|&&clean| clean).count();
        let mut plan = Plan::new(vec![Turn {
            trains: vec![0],
            views: vec![self.strong; 2],
            unlabelled_views: Some(vec![View::Weak, self.strong]),
            order: Order::Pair {
                labelled: self.held.balanced(epoch, scene.ledger.classes()),
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

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        let Some(all) = &batch.unlabelled else { unreachable!("the only turn is a pair") };
        let (team, labels) = (scene.team, &self.held.labels);
        let believed = |samples: &[u32]| samples.iter().map(|&i| labels[i as usize]).collect::<Vec<u32>>();
        let mut fit = None;
        if !batch.is_empty() {
            let mix = Mix::draw(&mut scene.draw(batch, 0), 2 * batch.len(), self.settings.alpha, true);
            let out = team.train(0, &mix.samples(Samples::join(batch.views.clone())))?;
            let wanted = one_hot(&believed(&batch.samples).repeat(2), scene.ledger.classes(), scene.device());
            fit = Some(soft_cross_entropy(out.logits, mix.rows(wanted)));
        }
        let weak = team.train(0, &all.views[0])?;
        let strong = team.train(0, &all.views[1])?;
        let same = consistency(team.net(0), weak.features, strong.features.clone(), &team.next_pass(0))?;
        let tap = Tap {
            features: strong.features,
            logits: strong.logits,
            given: all.given.clone(),
            believed: Some(believed(&all.samples)),
        };
        let weighted = same.clone() * self.settings.lambda_fc;
        let objective = match fit {
            Some(fit) => Objective::new(fit.clone() + weighted).with_term("fit", &fit),
            None => Objective::new(weighted),
        };
        Ok(objective.with_term("consistency", &same).with_tap(tap))
    }

    fn state(&self) -> State {
        let mut state = State::default();
        // What is right is in the ledger.
        let Selection { labels, clean, fell_back, .. } = &self.held;
        state.whole.insert("labels".into(), labels.clone());
        state.whole.insert("clean".into(), clean.iter().map(|&clean| u32::from(clean)).collect());
        state.whole.insert("fell back".into(), vec![u32::from(*fell_back)]);
        state
    }

    fn restore(&mut self, mut state: State) -> Result<()> {
        let mut whole = |name: &str| state.whole.remove(name).unwrap_or_default();
        self.held.labels = whole("labels");
        self.held.clean = whole("clean").into_iter().map(|clean| clean == 1).collect();
        self.held.fell_back = whole("fell back").contains(&1);
        Ok(())
    }
}
