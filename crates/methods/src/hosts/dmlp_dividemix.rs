//! DMLP, "DivideMix" form (Tu et al., CVPR 2023): labels purified with the help of a few true ones, then DivideMix on them.
//!
//! Features and purification are those of `hosts/parts/purification.rs` and [`crate::kit::purify`]. Then [`super::dividemix`] with purified labels
//! for given ones: its $w_i$ is the probability that a purified label is right, and the ledger wants that of the given one. **It is told
//! 1,000 true labels**, at most a tenth of the samples; no other method but the first form is.
//!
//! Equations, settings and departures: docs/book/src/methods/dmlp-dividemix.md.

use super::dividemix::{self, DivideMix};
use super::parts::PurifiedSettings;
use super::parts::purification::Purifying;
use super::parts::semi_supervised::LONG_WARM_UP;
use super::parts::warm_up::WarmUp;
use super::prelude::*;

/// The card.
pub const CARD: Card = Card {
    id: "dmlp-dividemix",
    about: "labels corrected in closed form with the help of 1,000 true labels, then DivideMix",
    paper: "Tu et al., CVPR 2023",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: Some(Projection::Relu), prediction: false },
    predicted_by: PredictedBy::Sum,
    beliefs: Beliefs::Own,
    cost: "36s + 2, s the share held to be clean (6 in epochs that learn features)",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime: dividemix::regime,
    build: |table, facts| Ok(Box::new(Purer::new(read("dmlp-dividemix", table)?, facts)?)),
};

/// Those of DivideMix, for labels most of which are right.
fn mild() -> dividemix::Settings {
    let mut settings = dividemix::Settings::default();
    settings.semi.lambda_u = 0.0;
    settings.semi.warm_up = WarmUp::Set(LONG_WARM_UP);
    settings
}

settings! {
    /// Settings of the method.
    Settings over purified: PurifiedSettings, over dividemix: dividemix::Settings = mild();
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if those of DivideMix are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        let semi = &mut self.dividemix.semi;
        if let Some(noise) = facts.noise_for(semi.protocol) {
            let is_easy = facts.classes <= FEW_CLASSES && noise.rate() < 0.5;
            semi.lambda_u = if is_easy { 0.0 } else { 25.0 };
        }
        // Purified labels do not have the noise that the published settings are for.
        self.dividemix = self.dividemix.checked(&Facts { noise: KnownNoise::Unknown, ..facts.clone() })?;
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
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        if let Some(plan) = self.purifying.plan(context)? {
            return Ok(plan);
        }
        self.purifying.shift(context);
        self.dividing.divided.peers.labels = Some(self.purifying.labels.clone());
        let plan = self.dividing.plan(context)?;
        if !plan.warming_up {
            self.purifying.translate(context)?;
        }
        Ok(self.purifying.complete(plan, context))
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        if let Some(objective) = self.purifying.objective(batch, context) {
            return objective;
        }
        self.purifying.shift(context);
        let mut objective = self.dividing.objective(&self.purifying.relabel(batch), context)?;
        batch.parts().iter().try_for_each(|part| self.purifying.insist(&part.samples, context))?;
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

    fn state(&self) -> HostState {
        let mut state = self.dividing.state();
        self.purifying.save(&mut state);
        state
    }

    fn restore(&mut self, mut state: HostState) -> Result<()> {
        self.purifying.restore(&mut state)?;
        self.dividing.divided.peers.labels = Some(self.purifying.labels.clone());
        self.dividing.restore(state)
    }
}
