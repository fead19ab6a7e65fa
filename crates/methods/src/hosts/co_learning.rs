//! Co-learning (Tan et al., ACM MM 2021): a classifier on noisy labels inherits structure from a head that sees no labels.
//!
//! Per batch two steps: the classifier alone ([`crate::kit::structure`]), by an optimiser of its own (`classifier_objective`); then everything by
//! $L = \mathrm{CE}(\mathrm{MixUp}(x^w, \tilde y)) + \lambda_{con}\, L_{con}$ ([`crate::kit::contrast::nt_xent`]). Plug-ins attach to the
//! features of $x^w$ from the first step, whose encoder is still that of the second.
//!
//! Equations, settings and departures: docs/book/src/methods/co-learning.md.

use super::prelude::*;
use crate::kit::contrast::nt_xent;
use crate::kit::loss::{one_hot, soft_cross_entropy};
use crate::kit::mix::Mix;
use crate::kit::structure::structure;
use burn::tensor::Tensor;
use negscale_nets::Pass;
use negscale_nets::optim::Adam;

/// The card.
pub const CARD: Card = Card {
    id: "co-learning",
    about: "a classifier on labels as given, its structure from a contrastive head that sees none",
    paper: "Tan et al., ACM MM 2021",
    provenance: Provenance::Code,
    nets: 1,
    heads: Heads { projection: Some(Projection::Square), prediction: false },
    predicted_by: PredictedBy::First,
    beliefs: Beliefs::Predictions,
    cost: "10",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(CoLearning::new(read("co-learning", table)?, facts)?)),
};

settings! {
    /// Settings of the method.
    Settings;
    alpha: f64 = 5.0 => not_negative, "MixUp weights are drawn from Beta(alpha, alpha); 0: no MixUp";
    temperature: f64 = 0.5 => positive, "temperature of the contrast";
    lambda_con: f64 = 1.0 => not_negative, "weight of the contrast";
    lambda_str: f64 = 1.0 => not_negative, "weight of the structure loss in the classifier's own step; 0: no such step";
    freedom: f64 = 0.0 => not_negative, "degrees of freedom of a Student-t kernel for the structure loss; 0: exponential kernel";
    view: View = View::Zoom, "view used for classification";
    contrast_view: View = View::Contrast, "view used for contrast, drawn twice";
}

/// Adam at a constant rate for two fifths, then down to zero with little momentum.
fn regime(_: ItemKind) -> Regime {
    Regime::new(128, Adam::default(), Shape::Linear { start: Milestone::Share(0.4), momentum: Some(0.1) })
}

struct CoLearning {
    settings: Settings,
    batch: usize,
    /// Features of the weak view from the classifier's step, for a tap in the step that follows.
    seen: Option<Tensor<2>>,
}

impl CoLearning {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        settings.check()?;
        Ok(Self { settings, batch: facts.batch, seen: None })
    }
}

impl Host for CoLearning {
    fn plan(&mut self, _: &mut HostContext) -> Result<Plan> {
        let Settings { view, contrast_view, .. } = self.settings;
        Ok(Plan::alone(vec![view, contrast_view, contrast_view], self.batch))
    }

    fn classifier_objective(
        &mut self,
        batch: &Batch,
        context: &mut HostContext,
    ) -> Result<Option<Objective>> {
        let Settings { lambda_str, freedom, .. } = self.settings;
        let networks = context.networks;
        if lambda_str == 0.0 && !context.tapped {
            return Ok(None);
        }
        // For a plug-in alone it must leave no trace.
        let shown = &batch.views[0];
        let out = if lambda_str == 0.0 { networks.rehearse(0, shown)? } else { networks.train(0, shown)? };
        // Without a label's gradient: only the classifier moves.
        let fixed = out.features.clone().detach();
        self.seen = context.tapped.then_some(out.features);
        if lambda_str == 0.0 {
            return Ok(None);
        }
        let net = networks.net(0);
        let projected = net.project(fixed.clone(), &networks.next_pass(0))?;
        let structure = structure(projected, net.classify(fixed, &networks.next_pass(0)), freedom);
        Ok(Some(Objective::new(structure.clone() * lambda_str).with_term("structure", &structure)))
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        let Settings { alpha, temperature, lambda_con, .. } = self.settings;
        let networks = context.networks;
        let net = networks.net(0);
        let mut projected = Vec::new();
        for view in &batch.views[1..] {
            projected.push(net.project(networks.train(0, view)?.features, &networks.next_pass(0))?);
        }
        let [first, second] = [projected.remove(0), projected.remove(0)];
        let contrast = nt_xent(first, second, temperature);
        let mix = Mix::draw(&mut context.draw(batch, 0), batch.len(), alpha, false);
        let out = networks.train(0, &mix.samples(batch.views[0].clone()))?;
        let wanted = one_hot(&batch.given, context.ledger.classes(), context.device());
        let fit = soft_cross_entropy(out.logits, mix.rows(wanted));
        let objective = Objective::new(fit.clone() + contrast.clone() * lambda_con);
        let objective = objective.with_term("fit", &fit).with_term("contrast", &contrast);
        Ok(match self.seen.take() {
            None => objective,
            Some(features) => {
                let logits = net.classify(features.clone(), &Pass::evaluate());
                objective.with_tap(Tap::new(Output { features, logits }, batch))
            }
        })
    }
}
