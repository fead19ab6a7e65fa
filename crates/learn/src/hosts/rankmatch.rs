//! RankMatch (Zhang et al., ICCV 2023): clean labels by a vote of confident representations, and samples pulled together whose
//! strongest features are the same ones.
//!
//! Warm-up, division between two networks, targets and loss $L_0$ are DivideMix's ([`super::dividemix`]), but for three things:
//!
//! - Who is clean is voted on ([`crate::kit::vote`]): the $K$ nearest of the most confident samples of all classes, balanced by class; a
//!   label is clean if it wins, and its weight $w$ is its share of the votes. $K$ is at most half the mean number of a class's
//!   representations.
//! - One view is weak, one strong; targets come from the weak one.
//! - $L = L_0 + \lambda_r L_{rank}$, where $L_{rank}$ ([`crate::kit::contrast`], temperature $\tau$) contrasts projected features of all
//!   unmixed views, labelled and unlabelled: alike are the two views of a sample, and views with the same $k$ strongest features
//!   ([`crate::kit::rank`]).
//!
//! # Where this differs from the paper
//! The paper's text was out of reach. From its abstract: the vote and the rank contrast. All else is our reading, every number a setting. The
//! network's own guesses come from the pass that the rank term needs anyway. Plug-ins are handed the strong views of that pass.

use super::divided::{Divided, given, meanings, view};
use super::dividemix::regime;
use super::{
    Batch, Beliefs, Card, Facts, Host, Judges, Objective, Plan, Provenance, SemiSettings, State, Tap,
};
use crate::kit::contrast::{masked_info_nce, normalise_rows};
use crate::kit::rank::positives;
use crate::kit::rows::normalise;
use crate::kit::vote::{confidence_vote, confident_pool};
use crate::nets::{Heads, Projection, Samples};
use crate::settings::require;
use crate::trainer::{Scene, values};
use crate::{Result, settings};
use negscale_data::View;
use serde::{Deserialize, Serialize};

/// The card.
pub const CARD: Card = Card {
    id: "rankmatch",
    about: "as dividemix, divided by a vote of confident samples; contrast by strongest features",
    paper: "Zhang et al., ICCV 2023",
    provenance: Provenance::Reconstruction,
    nets: 2,
    heads: Heads { projection: Some(Projection::Relu), prediction: false },
    judges: Judges::Sum,
    beliefs: Beliefs::Own,
    cost: "50s + 2, s the share held to be clean",
    settings: || settings::table(&Settings::default()),
    meanings: meanings![
        ("rho", "share of the samples that may represent their classes"),
        (
            "votes",
            "how many of the nearest representations vote, at most half of what a class has on average"
        ),
        ("top", "views are alike if their so many strongest features are the same"),
        ("rank_temperature", "temperature of the rank contrast"),
        ("lambda_r", "weight of the rank contrast"),
    ],
    regime,
    build: |table, facts| Ok(Box::new(RankMatch::new(settings::read("rankmatch", table)?, facts)?)),
};

/// Settings of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the card says what they mean
pub struct Settings {
    #[serde(flatten)]
    pub semi: SemiSettings,
    pub rho: f64,
    pub votes: usize,
    pub top: usize,
    pub rank_temperature: f64,
    pub lambda_r: f64,
}

impl Default for Settings {
    fn default() -> Self {
        let semi = SemiSettings::default();
        Self { semi, rho: 0.2, votes: 50, top: 5, rank_temperature: 0.1, lambda_r: 1.0 }
    }
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.semi = self.semi.checked(facts)?;
        let is_share = self.rho > 0.0 && self.rho <= 1.0;
        require("rho", self.rho, is_share, "must be above 0 and at most 1")?;
        require("votes", self.votes as f64, self.votes >= 1, "must be at least 1")?;
        require("top", self.top as f64, self.top >= 1, "must be at least 1")?;
        let temperature = self.rank_temperature;
        require("rank_temperature", temperature, temperature > 0.0, "must be above 0")?;
        require("lambda_r", self.lambda_r, self.lambda_r >= 0.0, "must be 0 or larger")?;
        Ok(self)
    }
}

struct RankMatch {
    settings: Settings,
    divided: Divided,
}

impl RankMatch {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let settings = settings.checked(facts)?;
        Ok(Self { divided: Divided::new(settings.semi.clone(), facts), settings })
    }

    /// Which labels win the vote of a network's features; their weights are kept.
    fn judge(&mut self, net: usize, scene: &Scene) -> Result<Vec<bool>> {
        let (scan, labels) = (scene.scan_features(net, View::Plain)?, scene.ledger.given());
        let z = normalise(&scan.features, scan.dim)?;
        let pool = confident_pool(&scan.probabilities(), labels, scan.classes, self.settings.rho)?;
        let verdict = confidence_vote(&z, scan.dim, labels, &pool, voters(&pool, self.settings.votes))?;
        self.divided.peers.clean[net] = verdict.weights.into_iter().map(|w| w as f32).collect();
        Ok(verdict.clean)
    }
}

/// How many vote: in a small set not so many that every class votes with all it has.
fn voters(pool: &[Vec<usize>], votes: usize) -> usize {
    let members: usize = pool.iter().map(Vec::len).sum();
    votes.min(members.div_ceil(2 * pool.len().max(1))).max(1)
}

impl Host for RankMatch {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        if let Some(plan) = self.divided.warm_up(scene) {
            return Ok(plan);
        }
        // Both before any update.
        let is_clean = [self.judge(0, scene)?, self.judge(1, scene)?];
        self.divided.plan(scene, &is_clean, [View::Weak, View::Strong])
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        if let Some(objective) = self.divided.warm_up_loss(batch, scene) {
            return objective;
        }
        let (parts, team) = (batch.parts(), scene.team);
        let net = team.net(batch.net());
        let pass = team.next_pass(batch.net());
        let out = net.forward(Samples::join(vec![view(&parts, 0), view(&parts, 1)]), &pass)?;
        let z = normalise_rows(net.project(out.features.clone(), &pass)?);
        let alike = positives(&values(out.features.clone())?, net.feature_size(), self.settings.top)?;
        let rank = masked_info_nce(z, &alike, self.settings.rank_temperature);

        let mut rows = 0;
        let mut own = Vec::with_capacity(parts.len());
        for part in &parts {
            own.push(vec![out.logits.clone().narrow(0, rows, part.len())]);
            rows += part.len();
        }
        let taught = self.divided.teach(batch, scene, &own)?;
        let (mut objective, _) = self.divided.fit(batch, scene, &taught.targets)?;
        objective.loss = objective.loss + rank.clone() * self.settings.lambda_r;
        let [features, logits] = [out.features, out.logits].map(|all| all.narrow(0, rows, rows));
        let tap = Tap { features, logits, given: given(&parts), believed: Some(taught.believed) };
        Ok(objective.with_term("rank", &rank).with_tap(tap))
    }

    fn state(&self) -> State {
        self.divided.peers.state()
    }

    fn restore(&mut self, state: State) -> Result<()> {
        self.divided.peers.restore(state);
        Ok(())
    }
}
