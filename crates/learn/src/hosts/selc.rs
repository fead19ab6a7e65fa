//! SELC (Lu and He, IJCAI 2022): self-ensemble label correction.
//!
//! Early predictions are trustworthy, so after $T_e$ epochs of cross-entropy every label is replaced by a running mean of the
//! network's own predictions that begins at the given label. With $t_i = e(\tilde y_i)$ at first, per batch of later epochs
//!
//! $$ t_i \leftarrow a\, t_i + (1 - a)\, \mathrm{sg}[p(x_i)], \qquad L = -\frac1B \sum_i \sum_c t_{ic} \log p(x_i)_c, $$
//!
//! $x_i$ a weak view, sg a constant. After $k$ updates $a^k$ of the given label is left. The ledger's targets are $t$; its
//! clean probability is $t_y / (t_y + \max_{c \ne y} t_c)$ with $y$ the given label: above one half where that is the believed one.
//!
//! # Where this differs from paper and code
//! $a = 0.9$ is meant for 200 epochs, of which some 50 suffice for labels to give way: a run of $E$ keeps $a^{50/E}$ (`span`), so that
//! 1 or 2 % of a label are left at its end. With less kept, a short run learns its own first guesses and no more. $T_e$ is a share of the epochs; it counts epochs of
//! cross-entropy as the code does (the paper's algorithm has one less). The paper finds $T_e$ by a statistic of a mixture of
//! losses that was not at hand: with a `pilot`, networks first learn by cross-entropy alone, the epoch is noted after which the
//! means of two Gaussians over the scaled losses lie furthest apart, and training begins anew with $T_e$ a twentieth of its
//! epochs before that one. Published rates drop to a tenth after 20 % and 40 % of 200 epochs, which would leave a short run
//! half taught: here after 50 % and 80 % (feature vectors: 80 %).

use super::card::settings;
use super::course::{Course, Role};
use super::{
    Batch, Beliefs, Card, Facts, Host, Judges, Kind, Objective, Plan, Protocol, Provenance, Regime, State,
    Tap,
};
use crate::kit::loss::{cross_entropy, soft_cross_entropy};
use crate::kit::target::{blend, paced};
use crate::ledger::Samples;
use crate::nets::Heads;
use crate::optim::Sgd;
use crate::schedule::{Milestone, Shape};
use crate::settings::require_share;
use crate::trainer::{Scene, first_largest, values};
use crate::{Result, settings as tables};
use burn::tensor::activation::softmax;
use negscale_data::View;

/// The card.
pub const CARD: Card = Card {
    id: "selc",
    about: "labels give way to a running mean of the network's own predictions",
    paper: "Lu and He, IJCAI 2022",
    provenance: Provenance::PaperAndCode,
    nets: 1,
    heads: Heads { projection: None, prediction: false },
    judges: Judges::First,
    beliefs: Beliefs::Own,
    cost: "3",
    settings: || tables::table(&Settings::default()),
    meanings: MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(Selc::new(tables::read("selc", table)?, facts, None)?)),
};

settings! {
    protocol: Protocol = Protocol::Blind, "blind: one setting for all noise; tuned: the published one for the noise at hand";
    warm_up: Milestone = Milestone::Share(0.2), "epochs of cross-entropy before labels are corrected, or their share";
    alpha: f64 = 0.9, "share of a target that stays when it is updated";
    span: usize = 50, "epochs that alpha is meant for: its power span/epochs is used; 0: alpha itself";
    pilot: Milestone = Milestone::Epoch(0), "epochs, or their share, of cross-entropy to find warm_up by, then all begins anew; 0: as set";
    view: View = View::Weak, "how samples are shown in training: weak, plain, ...";
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        if self.protocol == Protocol::Tuned {
            self.warm_up = tuned(facts).map_or(self.warm_up, Milestone::Share);
        }
        self.warm_up.check("warm_up")?;
        self.pilot.check("pilot")?;
        require_share("alpha", self.alpha)?;
        Ok(self)
    }
}

/// $T_e$ by noise, as a share of 200 epochs. Published: symmetric 20, 40, 60, 80 %, asymmetric 40 %, instance-dependent; others ours.
fn tuned(facts: &Facts) -> Option<f64> {
    let (kind, rate) = facts.noise_kind();
    let is_few = facts.classes <= 32;
    Some(match kind {
        _ if kind.starts_with("sym") => match (is_few, rate) {
            (_, 0.7..) => 0.2,
            (true, 0.3..) | (false, 0.45..) => 0.15,
            (true, _) => 0.2,
            (false, 0.3..) => 0.1,
            (false, _) => 0.15,
        },
        _ if kind.starts_with("asym") || matches!(kind, "pairflip" | "cifarn") => {
            [0.1, 0.2][usize::from(is_few)]
        }
        "ins" => 0.2,
        _ => return None,
    })
}

/// The published optimiser; drops of short runs. Feature vectors are learnt in larger steps.
pub(super) fn regime(kind: Kind) -> Regime {
    let (lr, at) = if kind == Kind::Images { (0.02, vec![0.5, 0.8]) } else { (0.03, vec![0.8]) };
    let schedule = Shape::Steps { at: at.into_iter().map(Milestone::Share).collect(), factor: 0.1 };
    let optimiser = Sgd { lr, weight_decay: 1e-3, ..Sgd::default() };
    Regime { epochs: 20, batch: 128, optimiser: optimiser.into(), schedule: schedule.into() }
}

/// $t_y / (t_y + \max_{c \ne y} t_c)$.
fn lead(row: &[f32], label: u32) -> f32 {
    let others = row.iter().enumerate().filter(|(class, _)| *class != label as usize);
    let own = row[label as usize];
    let rival = others.fold(0.0f32, |most, (_, &t)| most.max(t));
    if own > 0.0 { own / (own + rival) } else { 0.0 }
}

pub(super) struct Selc {
    settings: Settings,
    batch: usize,
    keep: f32,
    pub(super) course: Course,
}

impl Selc {
    /// SELC over all epochs, or over this share of them, with others to follow.
    pub(super) fn new(settings: Settings, facts: &Facts, share: Option<Milestone>) -> Result<Self> {
        let settings = settings.checked(facts)?;
        let course = Course::new(settings.pilot, share, settings.warm_up, facts.epochs);
        let keep = paced(settings.alpha, settings.span, course.length(Role::Correct)) as f32;
        Ok(Self { batch: facts.batch, keep, course, settings })
    }
}

impl Host for Selc {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        let plan = Plan::alone(vec![self.settings.view], self.batch);
        self.course.stage(plan, scene)
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        let out = scene.team.train(0, &batch.views[0])?;
        let tap = Tap {
            features: out.features,
            logits: out.logits.clone(),
            given: batch.given.clone(),
            believed: None,
        };
        if self.course.trusts(scene.epoch) {
            return Ok(Objective::new(cross_entropy(out.logits, &batch.given)).with_tap(tap));
        }
        let said = values(softmax(out.logits.clone().inner(), 1))?;
        let (mut targets, classes) = (scene.targets(&batch.samples), scene.ledger.classes());
        blend(&mut targets, &said, self.keep);
        let clean: Vec<f32> = targets.chunks(classes).zip(&batch.given).map(|(t, &y)| lead(t, y)).collect();
        let believed = targets.chunks(classes).map(first_largest).collect();
        scene.ledger.set_targets(Samples::These(&batch.samples), &targets)?;
        scene.ledger.set_clean(Samples::These(&batch.samples), &clean)?;
        let loss = soft_cross_entropy(out.logits, scene.tensor(targets));
        Ok(Objective::new(loss).with_tap(Tap { believed: Some(believed), ..tap }))
    }

    fn state(&self) -> State {
        self.course.state()
    }

    fn restore(&mut self, state: State) -> Result<()> {
        self.course.restore(state);
        Ok(())
    }
}
