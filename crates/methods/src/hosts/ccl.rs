//! CCL (Fan and Li, AAAI 2025), **a reconstruction**: RoLR's refurbished labels, with relations learnt from embeddings.
//!
//! $L = L_0 + \beta_1 L_1 + \beta_2 L_2$: $L_0$ is [`super::rolr`]'s, $L_1$ contrasts concepts across views of confident samples
//! ([`crate::kit::contrast::column_contrast`]), $L_2$ embeddings across models ([`crate::kit::contrast::cross_info_nce`]). Forms and
//! numbers are our own: do not present its accuracy as the published method's.
//!
//! Equations, settings and departures: docs/book/src/methods/ccl.md.

use super::parts::refurbishing::{Refurbished, Refurbishing};
use super::prelude::*;
use super::rolr;
use crate::kit::contrast::{column_contrast, cross_info_nce, normalise_rows, positives_by_class};
use crate::kit::loss::{negative_entropy_of_mean, ramp};
use crate::kit::rows::places;
use burn::tensor::Tensor;
use burn::tensor::activation::softmax;
use negscale_nets::Pass;

/// The card.
pub const CARD: Card = Card {
    id: "ccl",
    about: "as rolr, with concepts contrasted across views and embeddings across models",
    paper: "Fan and Li, AAAI 2025",
    provenance: Provenance::Reconstruction,
    nets: 2,
    heads: Heads { projection: Some(Projection::Concepts), prediction: false },
    predicted_by: PredictedBy::Sum,
    beliefs: Beliefs::Own,
    cost: "30",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime: rolr::regime,
    build: |table, facts| Ok(Box::new(Ccl::new(read("ccl", table)?, facts)?)),
};

settings! {
    /// Settings of the method.
    Settings over rolr: rolr::Settings;
    beta_1: f64 = 1.0 => not_negative, "weight of the contrast of concepts across views";
    beta_2: f64 = 1.0 => not_negative, "weight of the contrast of embeddings across models";
    ramp: Milestone = Milestone::Share(0.2) => milestone, "epochs after warm-up in which these weights grow, or their share of all epochs";
    concept_temperature: f64 = 0.1 => positive, "temperature at which samples are assigned to concepts";
    model_temperature: f64 = 0.3 => positive, "temperature of the contrast across models";
    confident: f64 = 0.5 => below_1, "clean probability and guess above which a sample is confident";
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.rolr = self.rolr.checked(facts)?;
        self.check()?;
        Ok(self)
    }
}

/// $L_1$ from similarities to concepts over temperature, of weak and of strong views.
pub fn decoupling(weak: Tensor<2>, strong: Tensor<2>) -> Tensor<1> {
    let empty = negative_entropy_of_mean(weak.clone());
    column_contrast(softmax(weak, 1), softmax(strong, 1), 1.0) + empty
}

struct Ccl {
    settings: Settings,
    ramp: usize,
    base: Refurbishing,
}

impl Ccl {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        let settings = settings.checked(facts)?;
        let base = Refurbishing::new(settings.rolr.clone(), facts)?;
        Ok(Self { ramp: settings.ramp.epochs(facts.epochs), base, settings })
    }

    /// Which samples are confident: by clean probability, and by the guess too.
    fn confident(&self, clean: &[f32], guess: Tensor<2>) -> Result<(Vec<bool>, Vec<usize>)> {
        let is_sure = |p: f32| f64::from(p) > self.settings.confident;
        let trusted: Vec<bool> = clean.iter().map(|&w| is_sure(w)).collect();
        let largest = values(guess.max_dim(1))?;
        let both = (0..trusted.len()).filter(|&i| trusted[i] && is_sure(largest[i])).collect();
        Ok((trusted, both))
    }
}

impl Host for Ccl {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        self.base.plan(context)
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        if let Some(objective) = self.base.warm_up_loss(batch, context) {
            return objective;
        }
        let (networks, net, peer) = (context.networks, batch.net(), 1 - batch.net());
        // One view only if guesses and learning share it.
        let (weak_view, strong_view) = (&batch.views[0], &batch.views[batch.views.len() - 1]);
        let (weak, said) = (networks.train(net, weak_view)?, networks.watch(peer, weak_view)?);
        let logits = [weak.logits.detach(), said.logits];
        let Refurbished { guess, target, believed } = self.base.refurbish(batch, context, logits)?;
        let strong = networks.train(net, strong_view)?;
        let mut objective = self.base.cost(strong.logits.clone(), target);

        // The heads have neither norms nor dropout: all passes are alike to them.
        let project = |net: usize, features: Tensor<2>| -> Result<Tensor<2>> {
            Ok(normalise_rows(networks.net(net).project(features, &Pass::evaluate())?))
        };
        let anchors = project(net, strong.features.clone())?;
        let clean = self.base.peers.clean_probabilities(peer, &batch.samples);
        let (trusted, confident) = self.confident(&clean, guess)?;
        let t = context.epoch.number as f64 + batch.step as f64 / batch.steps.max(1) as f64;
        let weight = |beta| ramp(t, self.base.warm_up as f64, self.ramp as f64, beta);
        let concepts = networks.net(net).concepts()?;
        if confident.len() >= concepts.dims()[0] {
            // Not before: of what is not used here, the tape would keep every batch.
            let (weak, concepts) = (project(net, weak.features)?, normalise_rows(concepts));
            let rows = places(&confident, &weak.device());
            let assign = |g: Tensor<2>| {
                g.select(0, rows.clone()).matmul(concepts.clone().transpose())
                    / self.settings.concept_temperature
            };
            let across_views = decoupling(assign(weak), assign(anchors.clone()));
            objective.loss = objective.loss + across_views.clone() * weight(self.settings.beta_1);
            objective = objective.with_term("across views", &across_views);
        }
        let keys = normalise_rows(networks.watch_projection(peer, said.features)?);
        let alike = positives_by_class(&believed, &trusted);
        let across_models = cross_info_nce(anchors, keys, &alike, self.settings.model_temperature);
        objective.loss = objective.loss + across_models.clone() * weight(self.settings.beta_2);
        let tap = Tap::new(strong, batch).believing(believed);
        Ok(objective.with_term("across models", &across_models).with_tap(tap))
    }

    fn weighs_guesses(&self) -> bool {
        true
    }

    keeps!(base.peers);
}
