//! SELC+ (Lu and He, IJCAI 2022): a second network learns, with MixUp, the labels that [SELC](super::selc) has corrected.
//!
//! Stage 1 is SELC; it leaves targets $t$ and $\hat y_i = \arg\max_c t_{ic}$. Stage 2: fresh weights, the same schedule from its begin, and
//! per batch, with one $\lambda \sim \mathrm{Beta}(\alpha', \alpha')$ and one permutation $\pi$,
//!
//! $$ L = \lambda\, \mathrm{CE}(p(\lambda x_i + (1 - \lambda) x_{\pi(i)}), \hat y_i) + (1 - \lambda)\, \mathrm{CE}(\cdot, \hat y_{\pi(i)}). $$
//!
//! Targets and clean probabilities stay as stage 1 left them. Plug-ins are handed the unmixed views, in a pass of their own.
//!
//! # Where this differs from paper and code
//! What SELC's page says of its own. Both stages share the epochs of a run (`first`); published are 200 each. The code's pass over
//! unmixed samples, whose only effect is on batch statistics, is left out.

use super::card::join;
use super::course::Role;
use super::selc::{self, Selc};
use super::{Batch, Card, Facts, Host, Kind, Meaning, Objective, Plan, Regime, State, Tap};
use crate::kit::loss::{one_hot, soft_cross_entropy};
use crate::kit::mix::Mix;
use crate::optim::Sgd;
use crate::schedule::Milestone;
use crate::settings::require;
use crate::trainer::{Scene, first_largest};
use crate::{Result, settings};
use serde::{Deserialize, Serialize};

const OWN: &[Meaning] = &[
    ("first", "epochs of SELC, or their share; the others are the second network's"),
    ("mix_alpha", "MixUp weights are drawn from Beta(mix_alpha, mix_alpha); 0: no MixUp"),
];

/// The card.
pub const CARD: Card = Card {
    id: "selc-plus",
    about: "SELC, then a fresh network on the labels it corrected, with MixUp",
    settings: || settings::table(&Settings::default()),
    meanings: &join::<{ selc::MEANINGS.len() + OWN.len() }>(selc::MEANINGS, OWN),
    regime: |kind| {
        // Half of the epochs to learn in, and no wrong labels to learn.
        let optimiser = Sgd { lr: 0.05, weight_decay: 1e-3, ..Sgd::default() }.into();
        let regime = selc::regime(kind);
        if kind == Kind::Images { regime } else { Regime { optimiser, ..regime } }
    },
    build: |table, facts| Ok(Box::new(SelcPlus::new(settings::read("selc-plus", table)?, facts)?)),
    ..selc::CARD
};

/// Settings of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the card says what they mean
pub struct Settings {
    #[serde(flatten)]
    pub selc: selc::Settings,
    pub first: Milestone,
    pub mix_alpha: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { selc: selc::Settings::default(), first: Milestone::Share(0.5), mix_alpha: 0.9 }
    }
}

struct SelcPlus {
    selc: Selc,
    mix_alpha: f64,
}

impl SelcPlus {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let Settings { selc, first, mix_alpha } = settings;
        first.check("first")?;
        require("mix_alpha", mix_alpha, mix_alpha >= 0.0, "must be 0 or larger")?;
        Ok(Self { selc: Selc::new(selc, facts, Some(first))?, mix_alpha })
    }
}

impl Host for SelcPlus {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        self.selc.plan(scene)
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        if self.selc.course.role(scene.epoch) != Role::Retrain {
            return self.selc.objective(batch, scene);
        }
        let rows = batch.samples.iter().filter_map(|&i| scene.ledger.target(i as usize));
        let corrected: Vec<u32> = rows.map(first_largest).collect();
        let mix = Mix::draw(&mut scene.draw(batch, 0), batch.len(), self.mix_alpha, false);
        let out = scene.team.train(0, &mix.samples(batch.views[0].clone()))?;
        let wanted = one_hot(&corrected, scene.ledger.classes(), scene.device());
        let objective = Objective::new(soft_cross_entropy(out.logits, mix.rows(wanted)));
        if !scene.tapped {
            return Ok(objective);
        }
        let out = scene.team.rehearse(0, &batch.views[0])?;
        let (given, believed) = (batch.given.clone(), Some(corrected));
        Ok(objective.with_tap(Tap { features: out.features, logits: out.logits, given, believed }))
    }

    fn state(&self) -> State {
        self.selc.state()
    }

    fn restore(&mut self, state: State) -> Result<()> {
        self.selc.restore(state)
    }
}
