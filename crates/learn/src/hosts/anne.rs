//! ANNE (Cordeiro and Carneiro, Pattern Recognition 2025): clean samples by adaptive neighbours and class directions, on SSR+.
//!
//! One network is asked again before every epoch. From a scan, with $z_i$ the features scaled to length 1, $p_i$ the
//! probabilities and $s_i = \max_c p_{ic}$ ([`select`]):
//!
//! 1. $y'_i = \arg\max_c p_{ic}$ if $s_i > \gamma_r$, else the given label $\tilde y_i$; nothing is remembered from before.
//! 2. Confidences $s$ fall into four groups, $G_1$ the most confident ([`otsu4`]).
//! 3. $G_1, G_2$: clean if the posterior of alignment with the direction of class $y'_i$ is above $\gamma_e$ ([`fine`]).
//! 4. $G_3, G_4$: clean if, among $K_i$ nearest samples, $y'_i$ has at least $\theta_s$ of the winner's vote, $K_i$ from the
//!    density around the sample and its group's least number ([`knn`]).
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
use crate::kit::fine::fine;
use crate::kit::knn::{self, FEWEST, Voters, Votes};
use crate::kit::loss::{negative_cosine, one_hot, soft_cross_entropy};
use crate::kit::mix::Mix;
use crate::kit::otsu::{Group, otsu4};
use crate::kit::{rows, target};
use crate::ledger;
use crate::nets::{Heads, Network, Pass, Projection, Samples};
use crate::optim::Sgd;
use crate::schedule::{Milestone, Shape};
use crate::settings::require;
use crate::trainer::{Scan, Scene};
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
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)] // the card says what they mean
pub struct Settings {
    pub protocol: Protocol,
    pub warm_up: Milestone,
    pub relabel: bool,
    pub gamma_r: f64,
    pub gamma_e: f64,
    pub theta_s: f64,
    pub fewest: [usize; 4],
    pub ceiling: usize,
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
            relabel: true,
            gamma_r: 0.9,
            gamma_e: 0.5,
            theta_s: 1.0,
            fewest: [Group::G1, Group::G2, Group::G3, Group::G4].map(Group::fewest_neighbours),
            ceiling: 200,
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
            (self.gamma_r, self.gamma_e, self.warm_up) = (gamma_r, gamma_e, Milestone::Share(warm_up));
        }
        let unit = |value: f64| (0.0..=1.0).contains(&value);
        if let Milestone::Share(share) = self.warm_up {
            require("anne.warm_up", share, unit(share), "a whole number of epochs, or a share from 0 to 1")?;
        }
        let shares =
            [("anne.gamma_r", self.gamma_r), ("anne.gamma_e", self.gamma_e), ("anne.theta_s", self.theta_s)];
        for (name, value) in shares {
            require(name, value, unit(value), "must be from 0 to 1")?;
        }
        let most = self.ceiling;
        require("anne.ceiling", most as f64, most >= FEWEST, "must be at least 5")?;
        for least in self.fewest {
            let wanted = "each must be at least 1 and at most the ceiling";
            require("anne.fewest", least as f64, (1..=most).contains(&least), wanted)?;
        }
        require("anne.alpha", self.alpha, self.alpha >= 0.0, "must be 0 or larger")?;
        require("anne.lambda_fc", self.lambda_fc, self.lambda_fc >= 0.0, "must be 0 or larger")?;
        let every = self.scan_every;
        require("anne.scan_every", every as f64, every >= 1, "must be at least 1")?;
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

/// What is held of every sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// $y'$.
    pub labels: Vec<u32>,
    /// Whether $y'$ is clean.
    pub clean: Vec<bool>,
    /// Probability that the label as given is right.
    pub right: Vec<f32>,
    /// Whether nobody was clean but by the vote of everyone.
    pub fell_back: bool,
}

/// Judges all samples by what the network makes of them.
pub fn select(scan: &Scan, given: &[u32], rule: &Settings, warming_up: bool) -> Result<Selection> {
    let (samples, classes, dim) = (scan.len(), scan.classes, scan.dim);
    let p = scan.probabilities();
    let z = rows::normalise(&scan.features, dim)?;
    let labels = if rule.relabel { target::relabel(given, &p, rule.gamma_r as f32) } else { given.to_vec() };
    let voters = Voters { labels: &labels, classes };
    let ceiling = rule.ceiling.min(samples / classes).max(FEWEST);
    // Whether the label is clean, and the probability that the given one is.
    let hear = |queries: &[usize], votes: Votes| -> Result<Vec<(bool, f32)>> {
        let own: Vec<u32> = queries.iter().map(|&i| labels[i]).collect();
        let agrees = votes.agree(&own, rule.theta_s)?;
        let word = |(at, agrees): (usize, bool)| {
            let (row, given) = (votes.row(at), given[queries[at]]);
            (agrees, (row[given as usize] / row.iter().copied().fold(0.0, f64::max)) as f32)
        };
        Ok(agrees.into_iter().enumerate().map(word).collect())
    };
    let everyone: Vec<usize> = (0..samples).collect();
    let (mut held, mut fell_back) = (vec![(false, 0.0); samples], false);
    if warming_up {
        held = hear(&everyone, knn::vote(&z, dim, voters, &everyone, ceiling)?)?;
    } else {
        let confidences: Vec<f32> =
            p.chunks(classes).map(|p| p.iter().copied().fold(0.0, f32::max)).collect();
        let groups = otsu4(&confidences)?.groups;
        let ask = |queries: &[usize]| {
            let fewest = |&i: &usize| rule.fewest[groups[i] as usize].min(ceiling);
            let fewest: Vec<usize> = queries.iter().map(fewest).collect();
            hear(queries, knn::adaptive_vote(&z, dim, voters, queries, &fewest, ceiling)?)
        };
        let (sure, unsure): (Vec<usize>, Vec<usize>) =
            everyone.iter().partition(|&&i| groups[i] <= Group::G2);
        let aligned = fine(&z, dim, &labels, classes, rule.gamma_e)?;
        sure.iter().for_each(|&i| held[i] = (aligned.clean[i], aligned.posterior[i] as f32));
        unsure.iter().zip(ask(&unsure)?).for_each(|(&i, word)| held[i] = word);
        fell_back = !held.iter().any(|(clean, _)| *clean);
        if fell_back {
            held = ask(&everyone)?;
        }
    }
    let (clean, mut right): (Vec<bool>, Vec<f32>) = held.into_iter().unzip();
    for i in (0..samples).filter(|&i| labels[i] != given[i]) {
        right[i] = p[i * classes + given[i] as usize];
    }
    Ok(Selection { labels, clean, right, fell_back })
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
        self.held = select(&scan, given, &self.settings, scene.epoch.number < self.warm_up)?;
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

    /// Clean samples, those of small classes several times.
    fn balanced(&self, epoch: usize, classes: usize) -> Vec<u32> {
        let mut members = vec![Vec::new(); classes];
        for (i, &label) in self.held.labels.iter().enumerate().filter(|(i, _)| self.held.clean[*i]) {
            members[label as usize].push(i as u32);
        }
        let largest = members.iter().map(Vec::len).max().unwrap_or(0);
        let fill = |class: &Vec<u32>| -> Vec<u32> {
            class.iter().copied().cycle().skip(epoch % class.len().max(1)).take(largest).collect()
        };
        members.iter().flat_map(fill).collect()
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
                labelled: self.balanced(epoch, scene.ledger.classes()),
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
            let out = team.train(0, &mix.samples(join(&batch.views[0], &batch.views[1])))?;
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

/// One batch of two.
fn join(first: &Samples, second: &Samples) -> Samples {
    match (first.clone(), second.clone()) {
        (Samples::Images(a), Samples::Images(b)) => Tensor::cat(vec![a, b], 0).into(),
        (Samples::Rows(a), Samples::Rows(b)) => Tensor::cat(vec![a, b], 0).into(),
        (first, _) => first,
    }
}
