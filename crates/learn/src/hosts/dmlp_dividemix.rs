//! DMLP, "DivideMix" form (Tu et al., CVPR 2023): labels purified with the help of a few true ones, then DivideMix on them.
//!
//! Features and purification are those of `hosts/purified.rs` and [`crate::kit::purify`]. Then [`dividemix`] with the purified labels for given
//! ones: its $w_i$ is the probability that a purified label is right.
//!
//! **Ledger.** Clean probability of a given label: $w_i$ where the purifier left it, else $(1 - w_i)\, o_i(\tilde y_i)$ with $o$ the purifier's belief.
//!
//! **It is told 1,000 true labels**, at most a tenth of the samples; no other method but the first form is.
//!
//! # Where this differs from the paper and the authors' code
//! As the "Naive" form. Nothing is released of this stage. $\lambda_u$ is 0, since most labels are right by then; under protocol `tuned` 25, but for
//! up to 32 classes and less than half of the labels redrawn.

use super::divided::FEW_CLASSES;
use super::dividemix::{self, DivideMix};
use super::purified::{MEANINGS, Purifying};
use super::{
    Batch, Beliefs, Card, Facts, Host, Judges, Meaning, Objective, Plan, Protocol, Provenance,
    PurifiedSettings, State,
};
use crate::nets::{Heads, Projection};
use crate::trainer::Scene;
use crate::{Result, settings};
use serde::{Deserialize, Serialize};

/// The card.
pub const CARD: Card = Card {
    id: "dmlp-dividemix",
    about: "labels purified by closed form and 1,000 true labels that it is told, then DivideMix",
    paper: "Tu et al., CVPR 2023",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: Some(Projection::Relu), prediction: false },
    judges: Judges::Sum,
    beliefs: Beliefs::Own,
    cost: "36s + 2, s the share held to be clean (6 in epochs that learn features)",
    settings: || settings::table(&Settings::default()),
    meanings: &ALL_MEANINGS,
    regime: dividemix::regime,
    build: |table, facts| Ok(Box::new(Purer::new(settings::read("dmlp-dividemix", table)?, facts)?)),
};

const THEIRS: &[Meaning] = dividemix::CARD.meanings;
const ALL_MEANINGS: [Meaning; MEANINGS.len() + THEIRS.len()] = {
    let mut all = [("", ""); MEANINGS.len() + THEIRS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < MEANINGS.len() { MEANINGS[at] } else { THEIRS[at - MEANINGS.len()] };
        at += 1;
    }
    all
};

/// Settings of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the card says what they mean
pub struct Settings {
    #[serde(flatten)]
    pub purified: PurifiedSettings,
    #[serde(flatten)]
    pub dividemix: dividemix::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        let mut dividemix = dividemix::Settings::default();
        dividemix.semi.lambda_u = 0.0;
        Self { purified: PurifiedSettings::default(), dividemix }
    }
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if those of DivideMix are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        let semi = &mut self.dividemix.semi;
        if semi.protocol == Protocol::Tuned && facts.noise.is_some() {
            let is_easy = facts.classes <= FEW_CLASSES && facts.noise_kind().1 < 0.5;
            semi.lambda_u = if is_easy { 0.0 } else { 25.0 };
        }
        // Purified labels do not have the noise that the published settings are for.
        self.dividemix = self.dividemix.checked(&Facts { noise: None, ..facts.clone() })?;
        Ok(self)
    }
}

struct Purer {
    purifying: Purifying,
    dividing: DivideMix,
}

impl Purer {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let settings = settings.checked(facts)?;
        let purifying = Purifying::new(settings.purified, facts)?;
        let dividing = DivideMix::of_checked(settings.dividemix, &purifying.facts(facts));
        Ok(Self { purifying, dividing })
    }
}

impl Host for Purer {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        if let Some(plan) = self.purifying.plan(scene)? {
            return Ok(plan);
        }
        self.purifying.shift(scene);
        self.dividing.divided.peers.labels = Some(self.purifying.labels.clone());
        let plan = self.dividing.plan(scene)?;
        if !plan.warming_up {
            self.purifying.translate(scene)?;
        }
        Ok(self.purifying.complete(plan, scene))
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        if let Some(objective) = self.purifying.objective(batch, scene) {
            return objective;
        }
        self.purifying.shift(scene);
        let mut objective = self.dividing.objective(&self.purifying.relabel(batch), scene)?;
        let taps = objective.taps.into_iter().map(|tap| {
            // Mixed samples stand twice, part by part.
            let parts = batch.parts();
            let once: usize = parts.iter().map(|part| part.len()).sum();
            let times = tap.given.len() / once.max(1);
            let given = parts.iter().flat_map(|part| part.given.repeat(times)).collect();
            self.purifying.tap(tap, given)
        });
        objective.taps = taps.collect();
        Ok(objective)
    }

    fn state(&self) -> State {
        let mut state = self.dividing.state();
        self.purifying.save(&mut state);
        state
    }

    fn restore(&mut self, mut state: State) -> Result<()> {
        self.purifying.restore(&mut state);
        self.dividing.divided.peers.labels = Some(self.purifying.labels.clone());
        self.dividing.restore(state)
    }
}
