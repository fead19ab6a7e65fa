//! RankMatch (Zhang et al., ICCV 2023), **a reconstruction**: clean labels by a vote of confident samples, contrast by strongest features.
//!
//! As [`super::dividemix`], with $L = L_0 + \lambda_r L_{rank}$: who is clean is voted on ([`crate::kit::vote`]); $L_{rank}$ contrasts
//! projected features of all unmixed views ([`crate::kit::contrast`]), alike if their strongest places are the same ([`crate::kit::rank`]).
//! The network's own guesses and the strong views for plug-ins are from the pass of that term.
//!
//! Equations, settings and departures: docs/book/src/methods/rankmatch.md.

use super::dividemix::regime;
use super::parts::SemiSettings;
use super::parts::semi_supervised::{Divided, labels, view};
use super::prelude::*;
use crate::kit::contrast::{masked_info_nce, normalise_rows};
use crate::kit::rank::positives;
use crate::kit::rows::normalise;
use crate::kit::vote::{confidence_vote, confident_pool, voters};

/// The card.
pub const CARD: Card = Card {
    id: "rankmatch",
    about: "as dividemix, divided by a vote of confident samples; contrast by strongest features",
    paper: "Zhang et al., ICCV 2023",
    provenance: Provenance::Reconstruction,
    nets: 2,
    heads: Heads { projection: Some(Projection::Relu), prediction: false },
    predicted_by: PredictedBy::Sum,
    beliefs: Beliefs::Own,
    cost: "50s + 2, s the share held to be clean",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(RankMatch::new(read("rankmatch", table)?, facts)?)),
};

settings! {
    /// Settings of the method.
    Settings over semi: SemiSettings;
    rho: f64 = 0.2 => positive_share, "share of the samples that may represent their classes";
    votes: usize = 50 => at_least_1, "how many of the nearest representatives vote; at most half of a class's average number";
    top: usize = 5 => at_least_1, "views are alike if this many strongest features are the same";
    rank_temperature: f64 = 0.1 => positive, "temperature of the rank contrast";
    lambda_r: f64 = 1.0 => not_negative, "weight of the rank contrast";
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.semi = self.semi.checked(facts)?;
        self.check()?;
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
    fn judge(&mut self, net: usize, context: &HostContext) -> Result<Vec<bool>> {
        let (scan, labels) = (context.scan_features(net, View::Plain)?, context.ledger.given());
        let z = normalise(&scan.features, scan.dim)?;
        let pool = confident_pool(&scan.probabilities(), labels, scan.classes, self.settings.rho)?;
        let verdict = confidence_vote(&z, scan.dim, labels, &pool, voters(&pool, self.settings.votes))?;
        self.divided.peers.clean[net] = verdict.weights.into_iter().map(|w| w as f32).collect();
        Ok(verdict.clean)
    }
}

impl Host for RankMatch {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        if let Some(plan) = self.divided.warm_up(context) {
            return Ok(plan);
        }
        // Both before any update.
        let is_clean = [self.judge(0, context)?, self.judge(1, context)?];
        self.divided.plan(context, &is_clean, [View::Weak, View::Strong])
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        if let Some(objective) = self.divided.warm_up_loss(batch, context) {
            return objective;
        }
        let (parts, networks) = (batch.parts(), context.networks);
        let net = networks.net(batch.net());
        let pass = networks.next_pass(batch.net());
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
        let taught = self.divided.teach(batch, context, &own)?;
        let (mut objective, _) = self.divided.fit(batch, context, &taught.targets)?;
        objective.loss = objective.loss + rank.clone() * self.settings.lambda_r;
        let [features, logits] = [out.features, out.logits].map(|all| all.narrow(0, rows, rows));
        let (samples, given) = labels(&parts);
        let tap = Tap { features, logits, samples, given, believed: Some(taught.believed) };
        Ok(objective.with_term("rank", &rank).with_tap(tap))
    }

    fn weighs_guesses(&self) -> bool {
        true
    }

    keeps!(divided.peers);
}
