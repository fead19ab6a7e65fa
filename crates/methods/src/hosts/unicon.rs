//! UNICON (Karim et al., CVPR 2022): the same number of clean samples from every class, and contrast of all others.
//!
//! Labelled are the $\lfloor R N / C \rfloor$ samples of every class of smallest $d_i = \mathrm{JSD}(\bar p_i, e(\tilde y_i))$, $R$ the
//! share below a cut-off ([`crate::kit::jsd`]); then the loss of [contrasted](crate::hosts::parts::ContrastSettings) methods on strong views.
//! Samples are divided again before each network's phase.
//!
//! Equations, settings and departures: docs/book/src/methods/unicon.md.

use super::parts::ContrastSettings;
use super::parts::contrast::{self, Contrasted, tap};
use super::parts::semi_supervised::note;
use super::prelude::*;
use crate::kit::jsd::{label_jsds, select_uniformly};
use crate::kit::semi::divide;
use serde::{Deserialize, Serialize};
use std::f64::consts::LN_2;

/// The card.
pub const CARD: Card = Card {
    id: "unicon",
    about: "as many clean samples from every class, by divergence; strong views of the others contrasted",
    paper: "Karim et al., CVPR 2022",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: Some(Projection::LinearNorm), prediction: false },
    predicted_by: PredictedBy::Sum,
    beliefs: Beliefs::Own,
    cost: "16s + 20, s the share held to be clean",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(Unicon::new(read("unicon", table)?, facts)?)),
};

/// Base of logarithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Base {
    #[serde(rename = "e")]
    E,
    #[serde(rename = "2")]
    Two,
}

settings! {
    /// Settings of the method.
    Settings over contrast: ContrastSettings;
    jsd_base: Base = Base::E, "base of the logarithms in the divergence: e (authors' code) or 2";
    d_mu: f64 = 0.7 => not_negative, "mean divergence above which the cut-off is lowered; natural logarithms never reach 0.7";
    tau: f64 = 5.0, "the cut-off is lowered by 1 / tau of the way to the smallest divergence";
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.contrast = self.contrast.checked(facts, 1.0)?;
        self.check()?;
        require("tau", self.tau, self.tau >= 1.0, "must be 1 or larger")?;
        Ok(self)
    }
}

/// A cosine down to a hundredth over four fifths of the epochs. Vectors take larger steps, as for DivideMix.
fn regime(kind: ItemKind) -> Regime {
    contrast::regime(if kind == ItemKind::Images { 0.02 } else { 0.05 }, Some(Milestone::Share(0.8)), 0.01)
}

struct Unicon {
    settings: Settings,
    shared: Contrasted,
}

impl Unicon {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let settings = settings.checked(facts)?;
        Ok(Self { shared: Contrasted::new(settings.contrast.clone(), facts), settings })
    }

    /// Divides the samples, and plans the phase of a network with it.
    fn judge(&mut self, net: usize, plan: &mut Plan, context: &mut HostContext) -> Result<()> {
        let Settings { jsd_base, d_mu, tau, .. } = self.settings;
        let mut p = context.scan(0, View::Plain)?.probabilities();
        let other = context.scan(1, View::Plain)?.probabilities();
        p.iter_mut().zip(other).for_each(|(p, other)| *p = (*p + other) / 2.0);
        let (labels, classes) = (context.ledger.given(), context.ledger.classes());
        let unit = if jsd_base == Base::Two { LN_2 } else { 1.0 };
        let d: Vec<f64> = label_jsds(&p, labels, classes)?.into_iter().map(|d| d / unit).collect();
        let (is_clean, share) = select_uniformly(&d, labels, classes, d_mu, tau)?;

        let divided = &mut self.shared.divided;
        let batch = divided.batch;
        let unlabelled = divided.unlabelled_batch(((batch as f64 / (2.0 * share)) as usize).min(4 * batch));
        let clean: Vec<f32> = d.iter().map(|d| (1.0 - d * unit / LN_2).clamp(0.0, 1.0) as f32).collect();
        let w: Vec<f32> = d.iter().map(|&d| if d < 0.5 { 1.0 } else { (1.0 - d) as f32 }).collect();
        let division = divide(&is_clean, &clean, classes, [batch, unlabelled]);
        divided.peers.clean = [w.clone(), w];
        context.ledger.set_clean(ledger::SampleIndices::All, &clean)?;
        plan.notes.insert("below the cut-off".into(), share);
        note(plan, net, &division, d.len());
        let mut phase = divided.phase(net, division, unlabelled, &self.shared.views);
        phase.drop_last = true;
        plan.phases.truncate(net);
        plan.phases.push(phase);
        Ok(())
    }
}

impl Host for Unicon {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        if let Some(plan) = self.shared.divided.warm_up(context) {
            return Ok(plan);
        }
        let mut plan = Plan::default();
        (0..2).try_for_each(|net| self.judge(net, &mut plan, context))?;
        Ok(plan)
    }

    fn replan(&mut self, phase: usize, plan: &mut Plan, context: &mut HostContext) -> Result<()> {
        if plan.warming_up { Ok(()) } else { self.judge(phase, plan, context) }
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        if let Some(objective) = self.shared.divided.warm_up_loss(batch, context) {
            return objective;
        }
        let (mut own, mut kept) = (Vec::new(), Vec::new());
        for (number, part) in batch.parts().into_iter().enumerate() {
            let keep = context.tapped && (number == 0 || self.shared.settings.tap_unlabelled);
            let (guesses, first) = self.shared.guess(batch.net(), part, context, keep)?;
            own.push(guesses);
            kept.extend(first);
        }
        let taught = self.shared.divided.teach(batch, context, &own)?;
        let objective = self.shared.fit(batch, context, &taught)?;
        // Labels of unlabelled samples are those that were guessed.
        let mut given = taught.believed.clone();
        given[..batch.len()].copy_from_slice(&batch.given);
        Ok(tap(objective, kept, batch, given, taught.believed))
    }

    fn weighs_guesses(&self) -> bool {
        true
    }

    keeps!(shared.divided.peers);
}
