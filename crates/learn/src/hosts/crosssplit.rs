//! CrossSplit (Kim et al., ICML 2023): each network sees the labels of one half, and its peer, which never saw them, softens them.
//!
//! The samples are cut once into halves $D_a$, $D_b$. Network a has $D_a$ labelled and $D_b$ unlabelled, b the other way round. Nothing is
//! selected: a label counts as much as the peer agrees with it. Per turn, the peer's $J_i = \mathrm{JSD}(p_b(x_i), e(\tilde y_i))$ on plain samples
//! ([`crate::kit::jsd`]) gives $J_{min}$ and $J_{max}$ of every class, by given label. Per batch, with two weak and two strong views:
//!
//! - $q = \frac12 (p_b(x^{w1}) + p_b(x^{w2}))$ and $w = \mathrm{clip}\big((\mathrm{JSD}(e(\tilde y), q) - J_{min}[\tilde y]) / (J_{max}[\tilde y] - J_{min}[\tilde y])\big)$;
//! - $\beta = \gamma (w - \frac12) + \frac12$, $\gamma$ 0.6 in the first $2 \delta$ epochs after warm-up, 0.8 up to $3 \delta$, then 1;
//! - $t_x = [\, \beta q + (1 - \beta)\, e(\tilde y) \,]_T$ and $t_u = [\, \frac12 (p_a(u^{w1}) + p_a(u^{w2})) \,]_T$;
//! - the loss of [contrasted](crate::hosts::ContrastSettings) methods on strong views.
//!
//! **Ledger.** Clean probability: $1 - w$ of the plain sample, by the network that never saw its label (both networks' mean with
//! `split = "none"`). Targets: $t_x$ and $t_u$.
//!
//! # Where this differs from paper and code
//! The authors' code builds its loaders from all samples, so that both networks see all labels: `split = "none"`. The paper's halves are the
//! default, and then each network warms up on its own half too (the code: on all). Of $\lambda_u$, warm-up and $\delta$ the published
//! numbers are for 300 epochs; here the latter two are shares. The code keeps the best epoch.

use super::contrasted::{Contrasted, contrast_meanings, tap};
use super::divided::Taught;
use super::{
    Batch, Beliefs, Card, ContrastSettings, Facts, Host, Judges, Kind, Objective, Plan, Provenance, Regime,
    State,
};
use crate::kit::jsd::{class_ranges, label_jsd, label_jsds, place};
use crate::kit::semi::{Division, divide};
use crate::kit::target::{co_guess, refine};
use crate::ledger::Samples;
use crate::nets::{Heads, Projection};
use crate::optim::Sgd;
use crate::schedule::{Milestone, Shape};
use crate::trainer::{Scene, values};
use crate::{Result, settings};
use negscale_data::{Order, View};
use serde::{Deserialize, Serialize};

/// The card.
pub const CARD: Card = Card {
    id: "crosssplit",
    about: "each network has the labels of one half, softened by its peer, which never saw them",
    paper: "Kim et al., ICML 2023",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: Some(Projection::LinearNorm), prediction: false },
    judges: Judges::Sum,
    beliefs: Beliefs::Own,
    cost: "17; 32 without the split",
    settings: || settings::table(&Settings::default()),
    meanings: contrast_meanings![
        ("split", "disjoint: a half for each network (paper); none: all samples for both (authors' code)"),
        (
            "warm_up_on",
            "own: each network warms up on the labels that it is given; all: on all (authors' code)"
        ),
        (
            "delta",
            "epochs, or their share: gamma is 0.6 for two of these after warm-up, 0.8 for one more, then 1"
        ),
    ],
    regime,
    build: |table, facts| Ok(Box::new(CrossSplit::new(settings::read("crosssplit", table)?, facts)?)),
};

/// Whose labels a network sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Split {
    Disjoint,
    None,
}

/// What networks warm up on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum WarmUpOn {
    Own,
    All,
}

/// Settings of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the card says what they mean
pub struct Settings {
    #[serde(flatten)]
    pub contrast: ContrastSettings,
    pub split: Split,
    pub warm_up_on: WarmUpOn,
    pub delta: Milestone,
}

impl Default for Settings {
    fn default() -> Self {
        let delta = Milestone::Share(10.0 / 300.0);
        Self {
            contrast: ContrastSettings::default(),
            split: Split::Disjoint,
            warm_up_on: WarmUpOn::Own,
            delta,
        }
    }
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.contrast = self.contrast.checked(facts, 0.1)?;
        self.delta.check("delta")?;
        Ok(self)
    }
}

/// A cosine down to a fiftieth.
fn regime(kind: Kind) -> Regime {
    let lr = if kind == Kind::Images { 0.1 } else { 0.05 };
    let schedule = Shape::Cosine { period: None, floor: 0.02, per_step: false };
    Regime {
        epochs: 20,
        batch: 64,
        optimiser: Sgd { lr, ..Sgd::default() }.into(),
        schedule: schedule.into(),
    }
}

struct CrossSplit {
    settings: Settings,
    delta: usize,
    shared: Contrasted,
    /// Least and largest $J$ of every class, by the peer of the network whose turn it is.
    ranges: Vec<[f32; 2]>,
}

/// How the peer's word counts, `since` epochs after warm-up.
pub fn gamma(since: usize, delta: usize) -> f64 {
    match since {
        _ if since < 2 * delta => 0.6,
        _ if since < 3 * delta => 0.8,
        _ => 1.0,
    }
}

impl CrossSplit {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let settings = settings.checked(facts)?;
        let shared = Contrasted::new(settings.contrast.clone(), facts);
        Ok(Self { delta: settings.delta.epochs(facts.epochs), shared, ranges: Vec::new(), settings })
    }

    /// Whether each sample's label is shown to a network: the same halves throughout the run.
    fn shown(&self, net: usize, scene: &Scene) -> Vec<bool> {
        let samples = scene.ledger.len();
        let mut is_shown = vec![self.settings.split == Split::None; samples];
        if self.settings.split == Split::Disjoint {
            let order = scene.draw_once(0).permutation(samples);
            let (first, second) = order.split_at(samples / 2);
            for &i in if net == 0 { first } else { second } {
                is_shown[i as usize] = true;
            }
        }
        is_shown
    }

    /// Lets the peer judge the labels that a network is shown, and keeps what a turn of that network needs.
    fn judge(&mut self, net: usize, scene: &Scene) -> Result<()> {
        let peer = 1 - net;
        let (labels, classes) = (scene.ledger.given(), scene.ledger.classes());
        let d = label_jsds(&scene.scan(peer, View::Plain)?.probabilities(), labels, classes)?;
        let ranges = class_ranges(&d, labels, classes)?;
        let clean = |(&d, &label): (&f64, &u32)| (1.0 - place(d, ranges[label as usize])) as f32;
        self.shared.divided.peers.clean[peer] = d.iter().zip(labels).map(clean).collect();
        self.ranges = ranges.into_iter().map(|range| range.map(|d| d as f32)).collect();
        Ok(())
    }

    /// Enters clean probabilities by whoever was not shown the label; gives the share above one half.
    fn enter(&self, scene: &mut Scene) -> Result<f64> {
        let peers = &self.shared.divided.peers;
        if self.settings.split == Split::None {
            return peers.enter(scene);
        }
        let shown = self.shown(0, scene).into_iter().enumerate();
        let clean: Vec<f32> = shown.map(|(i, shown)| peers.clean[usize::from(shown)][i]).collect();
        scene.ledger.set_clean(Samples::All, &clean)?;
        Ok(clean.iter().filter(|&&w| w > 0.5).count() as f64 / clean.len().max(1) as f64)
    }

    /// Samples for a network; without a split all of them are labelled and, once more, unlabelled.
    fn divide(&self, net: usize, unlabelled: usize, scene: &Scene) -> Division {
        let divided = &self.shared.divided;
        let (w, batches) = (&divided.peers.clean[1 - net], [divided.batch, unlabelled]);
        let mut division = divide(&self.shown(net, scene), w, divided.classes, batches);
        if self.settings.split == Split::None {
            let second = divide(&vec![true; w.len()], w, divided.classes, [unlabelled; 2]);
            division.unlabelled = second.labelled;
        }
        division
    }
}

impl Host for CrossSplit {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        if let Some(mut plan) = self.shared.divided.warm_up(scene) {
            if (self.settings.split, self.settings.warm_up_on) == (Split::Disjoint, WarmUpOn::Own) {
                for (net, turn) in plan.turns.iter_mut().enumerate() {
                    let shown = (0u32..).zip(self.shown(net, scene));
                    turn.order = Order::Among(shown.filter(|(_, shown)| *shown).map(|(i, _)| i).collect());
                }
            }
            return Ok(plan);
        }
        // The first network's turn comes first: what it needs is kept last.
        [1, 0].into_iter().try_for_each(|net| self.judge(net, scene))?;
        let divided = &self.shared.divided;
        let unlabelled = match divided.settings.unlabelled_batch {
            0 => (divided.batch / 2).max(2),
            asked => asked,
        };
        let turn =
            |net| divided.turn(net, self.divide(net, unlabelled, scene), unlabelled, &self.shared.views);
        let mut plan = Plan::new(vec![turn(0), turn(1)]);
        plan.notes.insert("held to be clean".into(), self.enter(scene)?);
        Ok(plan)
    }

    fn renew(&mut self, turn: usize, plan: &mut Plan, scene: &mut Scene) -> Result<()> {
        if !plan.warming_up {
            self.judge(turn, scene)?;
            plan.notes.insert("held to be clean".into(), self.enter(scene)?);
        }
        Ok(())
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        if let Some(objective) = self.shared.divided.warm_up_loss(batch, scene) {
            return objective;
        }
        let (net, team, divided) = (batch.net(), scene.team, &self.shared.divided);
        let (mut taught, mut kept) = (Taught::default(), Vec::new());
        let q = co_guess(&[
            team.watch(1 - net, &batch.views[0])?.logits,
            team.watch(1 - net, &batch.views[1])?.logits,
        ]);
        let gamma = gamma(scene.epoch.number - divided.warm_up, self.delta);
        let rows = values(q.clone())?;
        let label_weight = |(row, &label): (&[f32], &u32)| {
            let label = label as usize;
            let w = place(label_jsd(f64::from(row[label])), self.ranges[label].map(f64::from));
            (0.5 - gamma * (w - 0.5)) as f32
        };
        let weights: Vec<f32> = rows.chunks(divided.classes).zip(&batch.given).map(label_weight).collect();
        divided.believe(&batch.labelled, refine(&weights, &batch.given, q), scene, &mut taught)?;
        let mut given = batch.given.clone();
        if scene.tapped {
            kept.push(team.rehearse(net, &batch.views[0])?);
        }
        for part in batch.parts().into_iter().skip(1) {
            let keep = scene.tapped && self.shared.settings.tap_unlabelled;
            let (own, first) = self.shared.guess(net, part, scene, keep)?;
            divided.believe(part, co_guess(&own), scene, &mut taught)?;
            given.extend(&part.given);
            kept.extend(first);
        }
        Ok(tap(self.shared.fit(batch, scene, &taught)?, kept, given, taught.believed))
    }

    fn state(&self) -> State {
        let mut state = self.shared.divided.peers.state();
        state.floats.insert("ranges".into(), self.ranges.as_flattened().to_vec());
        state
    }

    fn restore(&mut self, mut state: State) -> Result<()> {
        let ranges = state.floats.remove("ranges").unwrap_or_default();
        self.ranges = ranges.chunks_exact(2).map(|range| [range[0], range[1]]).collect();
        self.shared.divided.peers.restore(state);
        Ok(())
    }
}
