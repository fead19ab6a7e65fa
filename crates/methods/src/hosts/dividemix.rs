//! DivideMix (Li, Socher and Hoi, ICLR 2020): divide by loss, then learn from the wrong labels' samples without their labels.
//!
//! Targets $r = [\, w\, e(\tilde y) + (1 - w)\, \bar p_a(x) \,]_T$ and $q = [\, \frac12 (\bar p_a(u) + \bar p_b(u)) \,]_T$, then the loss
//! of [`crate::kit::semi`] on the mixed pool. Both networks judge before any update; a is trained first, then b with the changed a for its
//! peer. Plug-ins see unmixed first views (vectors), or mixed samples under the label of their larger part (pictures).
//!
//! Equations, settings and departures: docs/book/src/methods/dividemix.md.

use super::parts::SemiSettings;
use super::parts::semi_supervised::{Divided, labels};
use super::prelude::*;
use serde::{Deserialize, Serialize};

/// The card.
pub const CARD: Card = Card {
    id: "dividemix",
    about: "two networks divide samples by loss for each other; doubtful labels are replaced by guesses",
    paper: "Li et al., ICLR 2020",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: None, prediction: false },
    predicted_by: PredictedBy::Sum,
    beliefs: Beliefs::Own,
    cost: "36s + 2, s the share held to be clean",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(DivideMix::new(read("dividemix", table)?, facts)?)),
};

/// What plug-ins are handed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tapped {
    /// Unmixed for feature vectors; mixed for pictures, where a backward pass of its own costs half a step.
    Auto,
    /// First views, unmixed.
    Unmixed,
    /// The mixed samples, each under the given label of its larger part.
    Mixed,
}

settings! {
    /// Settings of the method.
    Settings over semi: SemiSettings;
    tau: f64 = 0.5 => below_1, "labels whose clean probability is above this are used";
    recent_losses: usize = 1 => at_least_1, "the mixture is fitted to mean losses over this many epochs; 1: the last epoch";
    scan_view: View = View::Plain, "view in which losses are measured";
    tap: Tapped = Tapped::Auto, "what plug-ins see: unmixed (first views; an extra backward pass) or mixed samples; auto: mixed for images, else unmixed";
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.semi = self.semi.checked(facts)?;
        if self.tap == Tapped::Auto {
            self.tap = if facts.kind == ItemKind::Images { Tapped::Mixed } else { Tapped::Unmixed };
        }
        if let Some(KnownNoise::Symmetric(rate)) = facts.noise_for(self.semi.protocol) {
            let is_heavy = rate >= 0.85;
            (self.tau, self.recent_losses) = if is_heavy { (0.6, 5) } else { (0.5, 1) };
        }
        self.check()?;
        Ok(self)
    }
}

/// A tenth of the rate in the second half. The published rate is for pictures; short runs of small networks without norms take
/// larger steps.
pub(super) fn regime(kind: ItemKind) -> Regime {
    let lr = if kind == ItemKind::Images { 0.02 } else { 0.05 };
    let schedule = Shape::Steps { at: vec![Milestone::Share(0.5)], factor: 0.1 };
    Regime::new(64, Sgd { lr, ..Sgd::default() }, schedule)
}

pub(super) struct DivideMix {
    settings: Settings,
    pub divided: Divided,
}

impl DivideMix {
    pub fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        Ok(Self::of_checked(settings.checked(facts)?, facts))
    }

    pub fn of_checked(settings: Settings, facts: &Facts) -> Self {
        Self { divided: Divided::new(settings.semi.clone(), facts), settings }
    }
}

impl Host for DivideMix {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        if let Some(plan) = self.divided.warm_up(context) {
            return Ok(plan);
        }
        let Settings { scan_view, recent_losses, tau, .. } = self.settings;
        let peers = &mut self.divided.peers;
        // Both before any update.
        (0..2).try_for_each(|net| peers.assess_losses(net, context, scan_view, recent_losses))?;
        let is_clean = peers.clean.each_ref().map(|w| w.iter().map(|&w| f64::from(w) > tau).collect());
        self.divided.plan(context, &is_clean, [View::Weak, View::Weak])
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        if let Some(objective) = self.divided.warm_up_loss(batch, context) {
            return objective;
        }
        let (net, networks, parts) = (batch.net(), context.networks, batch.parts());
        // Guesses are constants. Plug-ins may see the gradient of the passes over first views; all else is let go of at once.
        let is_unmixed = context.tapped && self.settings.tap == Tapped::Unmixed;
        let (mut own, mut first) = (vec![Vec::new(); parts.len()], None);
        for number in 0..batch.labelled.views.len() {
            let views = parts.iter().map(|part| part.views[number].clone()).collect();
            let out = networks.train_each(net, views)?;
            let sizes = parts.iter().map(|part| part.len()).collect();
            let guesses = out.logits.clone().detach().split_with_sizes(sizes, 0);
            own.iter_mut().zip(guesses).for_each(|(own, guess)| own.push(guess));
            first = first.or(Some(out).filter(|_| is_unmixed));
        }
        let taught = self.divided.teach(batch, context, &own)?;
        let (objective, mixed) = self.divided.fit(batch, context, &taught.targets)?;
        if !context.tapped {
            return Ok(objective);
        }
        Ok(objective.with_tap(if let Some(Output { features, logits }) = first {
            let (samples, given) = labels(&parts);
            Tap { features, logits, samples, given, believed: Some(taught.believed) }
        } else {
            let twice: Vec<_> = parts.iter().flat_map(|&part| [part, part]).collect();
            let (features, logits, (samples, given)) = (mixed.features, mixed.logits, labels(&twice));
            Tap { features, logits, samples, given, believed: None }
        }))
    }

    fn taps_without_beliefs(&self) -> Option<&'static str> {
        // A mixed sample has two labels, neither of which is what it is taught.
        (self.settings.tap == Tapped::Mixed).then_some("tap = \"unmixed\"")
    }

    fn weighs_guesses(&self) -> bool {
        true
    }

    keeps!(divided.peers);
}
