//! CCL (Collaborative Cross Learning, Fan and Li, AAAI 2025), **a reconstruction**: RoLR's refurbished labels, with relations learnt from
//! embeddings across views and across models.
//!
//! Warm-up, clean probabilities $w$, guesses $q$, targets $t$ and loss $L_0$ are [`super::rolr`]'s. Each network has besides a projection $g$
//! (rows of length 1) and $M$ concept vectors $m_k$ of length 1. Confident are the samples $K = \{ i : w_i > \frac12 \}$. Per batch, training a with peer b:
//!
//! - **Across views** (SDCL): $r_i = \mathrm{softmax}(g(x_i) \cdot m / 0.1)$ of weak and strong views of those in $K$ with $\max_c q_{ic} > \frac12$; columns,
//!   one for each concept, are contrasted, and no concept may lie empty:
//!   $$ L_1 = \text{columns}(R^w, R^s) - H(\overline{r^w}), $$
//!   left out with fewer than $M$ such samples ([`crate::kit::contrast::column_contrast`]).
//! - **Across models** (EIA): anchors $g_a(x^s_i)$, keys $g_b(x^w_j)$ without gradients, $P(i)$ the sample itself and, within $K$, all of the
//!   same $\arg\max t$; $L_2$ is InfoNCE at temperature 0.3 ([`crate::kit::contrast::cross_info_nce`]).
//! - $L = L_0 + \beta_1 L_1 + \beta_2 L_2$, both weights growing from 0 after warm-up.
//!
//! # Where this differs from the paper
//! Its method section was out of reach. From the abstract and summaries: refurbished labels are kept, concepts are separated by contrast on confident
//! samples across views, embeddings of two models are contrasted by refurbished labels, the losses are added. Every form and number here is our own.
//! Do not present its accuracy as the published method's.

use super::refurbished::{Refurbished, Refurbishing, meanings};
use super::rolr;
use super::{Batch, Beliefs, Card, Facts, Host, Judges, Objective, Plan, Provenance, State, Tap};
use crate::kit::contrast::{column_contrast, cross_info_nce, normalise_rows, positives_by_class};
use crate::kit::loss::{negative_entropy_of_mean, ramp};
use crate::nets::{Heads, Pass, Projection};
use crate::schedule::Milestone;
use crate::settings::require;
use crate::trainer::{Scene, values};
use crate::{Result, settings};
use burn::tensor::activation::softmax;
use burn::tensor::{Int, Tensor, TensorData};
use serde::{Deserialize, Serialize};

/// The card.
pub const CARD: Card = Card {
    id: "ccl",
    about: "as rolr, with concepts contrasted across views and embeddings across models",
    paper: "Fan and Li, AAAI 2025",
    provenance: Provenance::Reconstruction,
    nets: 2,
    heads: Heads { projection: Some(Projection::Concepts), prediction: false },
    judges: Judges::Sum,
    beliefs: Beliefs::Own,
    cost: "30",
    settings: || settings::table(&Settings::default()),
    meanings: meanings![
        ("beta_1", "weight of the contrast of concepts across views"),
        ("beta_2", "weight of the contrast of embeddings across models"),
        ("ramp", "epochs after warm-up in which these weights grow, or their share of all epochs"),
        ("concept_temperature", "temperature at which samples are assigned to concepts"),
        ("model_temperature", "temperature of the contrast across models"),
        ("confident", "clean probability and guess above which a sample is confident"),
    ],
    regime: rolr::regime,
    build: |table, facts| Ok(Box::new(Ccl::new(settings::read("ccl", table)?, facts)?)),
};

/// Settings of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the card says what they mean
pub struct Settings {
    #[serde(flatten)]
    pub rolr: rolr::Settings,
    pub beta_1: f64,
    pub beta_2: f64,
    pub ramp: Milestone,
    pub concept_temperature: f64,
    pub model_temperature: f64,
    pub confident: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rolr: rolr::Settings::default(),
            beta_1: 1.0,
            beta_2: 1.0,
            ramp: Milestone::Share(0.2),
            concept_temperature: 0.1,
            model_temperature: 0.3,
            confident: 0.5,
        }
    }
}

impl Settings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.rolr = self.rolr.checked(facts)?;
        self.ramp.check("ramp")?;
        for (name, value) in [("beta_1", self.beta_1), ("beta_2", self.beta_2)] {
            require(name, value, value >= 0.0, "must be 0 or larger")?;
        }
        let temperatures = [self.concept_temperature, self.model_temperature];
        for (name, value) in ["concept_temperature", "model_temperature"].into_iter().zip(temperatures) {
            require(name, value, value > 0.0, "must be above 0")?;
        }
        require("confident", self.confident, (0.0..1.0).contains(&self.confident), "must be in [0, 1)")?;
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
    fn confident(&self, clean: &[f32], guess: Tensor<2>) -> Result<(Vec<bool>, Vec<i64>)> {
        let is_sure = |p: f32| f64::from(p) > self.settings.confident;
        let trusted: Vec<bool> = clean.iter().map(|&w| is_sure(w)).collect();
        let largest = values(guess.max_dim(1))?;
        let both =
            (0i64..).zip(trusted.iter().zip(largest)).filter(|(_, (trusted, q))| **trusted && is_sure(*q));
        let both = both.map(|(i, _)| i).collect();
        Ok((trusted, both))
    }
}

impl Host for Ccl {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        self.base.plan(scene)
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        if let Some(objective) = self.base.warm_up_loss(batch, scene) {
            return objective;
        }
        let (team, net, peer) = (scene.team, batch.net(), 1 - batch.net());
        // One view only if guesses and learning share it.
        let (weak_view, strong_view) = (&batch.views[0], &batch.views[batch.views.len() - 1]);
        let (weak, said) = (team.train(net, weak_view)?, team.watch(peer, weak_view)?);
        let logits = [weak.logits.detach(), said.logits];
        let Refurbished { guess, target, believed } = self.base.refurbish(batch, scene, logits)?;
        let strong = team.train(net, strong_view)?;
        let mut objective = self.base.cost(strong.logits.clone(), target);

        // The heads have neither norms nor dropout: all passes are alike to them.
        let project = |net: usize, features: Tensor<2>| -> Result<Tensor<2>> {
            Ok(normalise_rows(team.net(net).project(features, &Pass::evaluate())?))
        };
        let (weak, anchors) = (project(net, weak.features)?, project(net, strong.features.clone())?);
        let clean = self.base.peers.word(peer, &batch.samples);
        let (trusted, confident) = self.confident(&clean, guess)?;
        let t = scene.epoch.number as f64 + batch.step as f64 / batch.steps.max(1) as f64;
        let weight = |beta| ramp(t, self.base.warm_up as f64, self.ramp as f64, beta);
        let concepts = normalise_rows(team.net(net).concepts()?);
        if confident.len() >= concepts.dims()[0] {
            let rows = TensorData::new(confident.clone(), [confident.len()]);
            let rows = Tensor::<1, Int>::from_data(rows, &weak.device());
            let assign = |g: Tensor<2>| {
                g.select(0, rows.clone()).matmul(concepts.clone().transpose())
                    / self.settings.concept_temperature
            };
            let across_views = decoupling(assign(weak), assign(anchors.clone()));
            objective.loss = objective.loss + across_views.clone() * weight(self.settings.beta_1);
            objective = objective.with_term("across views", &across_views);
        }
        let keys = project(peer, said.features)?.detach();
        let alike = positives_by_class(&believed, &trusted);
        let across_models = cross_info_nce(anchors, keys, &alike, self.settings.model_temperature);
        objective.loss = objective.loss + across_models.clone() * weight(self.settings.beta_2);
        let (features, logits, given) = (strong.features, strong.logits, batch.given.clone());
        let tap = Tap { features, logits, given, believed: Some(believed) };
        Ok(objective.with_term("across models", &across_models).with_tap(tap))
    }

    fn state(&self) -> State {
        self.base.peers.state()
    }

    fn restore(&mut self, state: State) -> Result<()> {
        self.base.peers.restore(state);
        Ok(())
    }
}
