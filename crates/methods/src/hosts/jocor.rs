//! JoCoR (Wei et al., CVPR 2020): two networks, one loss; samples on which both are right and agree have a small loss.
//!
//! $\ell_i = (1 - \lambda) (-\log p_{i \tilde y_i} - \log q_{i \tilde y_i}) + \lambda (\mathrm{KL}(p_i \| q_i) + \mathrm{KL}(q_i \| p_i))$,
//! gradients through both arguments of both terms; $L$ is the mean of the $\lfloor (1 - R) B \rfloor$ smallest
//! ([`crate::kit::small_loss`]). Plug-ins have their full weight on each network.
//!
//! Equations, settings and departures: docs/book/src/methods/jocor.md.

use super::parts::small_loss::{self, Forget, SmallLossSettings};
use super::prelude::*;
use crate::kit::loss::joint_rows;
use crate::kit::small_loss::{easiest, mean_of};

/// The card.
pub const CARD: Card = Card {
    id: "jocor",
    about: "two networks with one loss that rewards agreement; both learn from the samples where it is small",
    paper: "Wei et al., CVPR 2020",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: None, prediction: false },
    predicted_by: PredictedBy::Sum,
    beliefs: Beliefs::Predictions,
    cost: "6",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime: |kind| small_loss::regime(kind, 0.1),
    build: |table, facts| Ok(Box::new(JoCoR::new(read("jocor", table)?, facts)?)),
};

settings! {
    /// Settings of the method.
    Settings over small_loss: SmallLossSettings;
    lambda: f64 = 0.65 => below_1, "weight of agreement between the networks, from 0 (none) to below 1";
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        if let Some(noise) = facts.noise_for(self.small_loss.protocol) {
            let is_heavy = matches!(noise, KnownNoise::Symmetric(0.65..));
            self.lambda = match (facts.classes <= FEW_CLASSES, is_heavy) {
                (true, false) => 0.9,
                (true, true) => 0.65,
                (false, _) => 0.85,
            };
        }
        self.small_loss = self.small_loss.checked(facts)?;
        self.check()?;
        Ok(self)
    }
}

struct JoCoR {
    settings: Settings,
    batch: usize,
    forget: Forget,
}

impl JoCoR {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        Ok(Self { settings: settings.checked(facts)?, batch: facts.batch, forget: Forget::default() })
    }
}

impl Host for JoCoR {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        let shared = &self.settings.small_loss;
        let mut plan = Plan::new(vec![small_loss::together(self.batch, shared.view)]);
        self.forget.decide(shared, context, &mut plan)?;
        Ok(plan)
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        let (view, given) = (&batch.views[0], &batch.given);
        let [a, b] = [context.networks.train(0, view)?, context.networks.train(1, view)?];
        let losses = joint_rows(a.logits.clone(), b.logits.clone(), given, self.settings.lambda);
        let kept = easiest(&values(losses.clone())?, self.forget.share())?;
        small_loss::enter(context, &batch.samples, &[&kept], &self.forget)?;
        let joint = mean_of(losses, &kept);
        let objective = Objective::new(joint.clone()).with_term("joint", &joint);
        Ok(small_loss::tapped(objective, [a, b], batch))
    }

    fn reads_predictions(&self) -> bool {
        self.settings.small_loss.rate == super::parts::Rate::Estimate
    }

    keeps!(forget);
}
