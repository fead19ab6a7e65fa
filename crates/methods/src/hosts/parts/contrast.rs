//! What UNICON and CrossSplit share: weak views make targets, strong views are learnt from, and the two strong views of an
//! unlabelled sample must find each other.
//!
//! A batch has two weak and two strong views of labelled samples $x$ and unlabelled ones $u$. With $L_0$ the loss of
//! [`crate::kit::semi`] on the mixed strong views and $g$ the projection of features,
//!
//! $$ L = L_0 + \lambda_c\, \text{NT-Xent}(g(u^{s1}), g(u^{s2})) $$
//!
//! ([`crate::kit::contrast::nt_xent`]). Plug-ins are handed the first weak views, unmixed: those of labelled samples, and on demand
//! the others too.

use super::SemiSettings;
use super::semi_supervised::{Divided, LONG_WARM_UP, Taught, labels};
use super::warm_up::WarmUp;
use crate::host::SubBatch;
use crate::hosts::prelude::*;
use crate::kit::contrast::nt_xent;
use crate::kit::target::co_guess;
use burn::tensor::Tensor;

/// How many of the views are weak; as many strong ones follow.
const WEAK: usize = 2;

settings! {
    /// Settings that UNICON and CrossSplit share.
    ContrastSettings over semi: SemiSettings = SemiSettings { lambda_u: 30.0, warm_up: WarmUp::Set(LONG_WARM_UP), ..SemiSettings::default() };
    lambda_c: f64 = 0.025 => not_negative, "weight of the contrast between strong views of unlabelled samples";
    contrast_temperature: f64 = 0.05 => positive, "temperature of that contrast";
    tap_unlabelled: bool = false, "whether plug-ins see unlabelled samples too";
}

impl ContrastSettings {
    /// The settings, if all are in range. Tuned, there is a `penalty` on confidence in warm-up under asymmetric noise: the one
    /// number that was published for some noise only.
    pub(crate) fn checked(mut self, facts: &Facts, penalty: f64) -> Result<Self> {
        if let Some(noise) = facts.noise_for(self.semi.protocol) {
            self.semi.confidence_penalty = if noise.is_asymmetric() { penalty } else { 0.0 };
        }
        self.semi = self.semi.in_range(facts)?;
        self.check()?;
        Ok(self)
    }
}

/// Twenty epochs along a cosine, with batches of 64: a short run needs the steps.
pub(crate) fn regime(lr: f64, period: Option<Milestone>, floor: f64) -> Regime {
    let optimiser = Sgd { lr, ..Sgd::default() }.into();
    let schedule = Shape::Cosine { period, floor, per_step: false }.into();
    Regime { epochs: 20, batch: 64, optimiser, schedule }
}

/// Two networks taught by weak views and trained on strong ones.
pub(crate) struct Contrasted {
    pub settings: ContrastSettings,
    pub divided: Divided,
    /// Two weak, two strong.
    pub views: [View; 2 * WEAK],
}

impl Contrasted {
    /// `settings` are checked ones.
    pub fn new(settings: ContrastSettings, facts: &Facts) -> Self {
        let strong = if facts.kind == ItemKind::Images { View::AutoAugment } else { View::Strong };
        Self {
            divided: Divided::new(settings.semi.clone(), facts),
            views: [View::Weak, View::Weak, strong, strong],
            settings,
        }
    }

    /// What the trained network says of the weak views of a part, in training mode; with `keep`, also the first pass whole,
    /// with its gradients.
    pub fn guess(
        &self,
        net: usize,
        part: &SubBatch,
        context: &HostContext,
        keep: bool,
    ) -> Result<(Vec<Tensor<2>>, Option<Output>)> {
        let first = context.networks.train(net, &part.views[0])?;
        let mut guesses = vec![first.logits.clone().detach()];
        for view in &part.views[1..WEAK] {
            guesses.push(context.networks.guess(net, view)?);
        }
        Ok((guesses, keep.then_some(first)))
    }

    /// What a network that is not trained says of the weak views of a part.
    pub fn ask(&self, net: usize, part: &SubBatch, context: &HostContext) -> Result<Tensor<2>> {
        let said = part.views[..WEAK].iter().map(|view| Ok(context.networks.watch(net, view)?.logits));
        Ok(co_guess(&said.collect::<Result<Vec<_>>>()?))
    }

    /// $L$.
    pub fn fit(&self, batch: &Batch, context: &HostContext, taught: &Taught) -> Result<Objective> {
        let (mut objective, _) = self.divided.fit_views(batch, context, &taught.targets, WEAK)?;
        let Some(part) = batch.unlabelled.as_ref().filter(|part| !part.is_empty()) else {
            return Ok(objective);
        };
        let net = context.networks.net(batch.net());
        let project = |number: usize| {
            let pass = context.networks.next_pass(batch.net());
            let out = net.forward(part.views[number].clone(), &pass)?;
            net.project(out.features, &pass)
        };
        let contrast = nt_xent(project(WEAK)?, project(WEAK + 1)?, self.settings.contrast_temperature);
        objective.loss = objective.loss + contrast.clone() * self.settings.lambda_c;
        Ok(objective.with_term("contrast", &contrast))
    }
}

/// With a place for plug-ins where passes were kept for it: of the labelled part, or of both, under these labels.
pub(crate) fn tap(
    objective: Objective,
    kept: Vec<Output>,
    batch: &Batch,
    given: Vec<u32>,
    believed: Vec<u32>,
) -> Objective {
    if kept.is_empty() {
        return objective;
    }
    let (features, logits) = kept.into_iter().map(|out| (out.features, out.logits)).unzip();
    let (features, logits) = (Tensor::cat(features, 0), Tensor::cat(logits, 0));
    let [rows, _] = logits.dims();
    let first = |labels: Vec<u32>| labels.into_iter().take(rows).collect();
    let samples = first(labels(&batch.parts()).0);
    let (given, believed) = (first(given), Some(first(believed)));
    objective.with_tap(Tap { features, logits, samples, given, believed })
}
