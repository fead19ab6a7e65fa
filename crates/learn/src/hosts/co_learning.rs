//! Co-learning (Tan et al., ACM MM 2021): a classifier on noisy labels inherits structure from a head that sees no labels.
//!
//! One encoder $h$ with a projection $g$ and a classifier $z$. Per batch two steps, with one view $x^w$ (a part of any size) and two
//! with changed colours:
//!
//! 1. the classifier alone, by an optimiser of its own: pairs close in $g(x^w)$ shall be close in $z(x^w)$
//!    ([`structure`]);
//! 2. everything: $L = \mathrm{CE}(\mathrm{MixUp}(x^w, \tilde y)) + \lambda_{con}\, L_{con}$, $L_{con}$ the contrast of the projections of the
//!    other two ([`nt_xent`]).
//!
//! MixUp has one $\lambda \sim \mathrm{Beta}(\alpha, \alpha)$ per batch, not cut at 1/2. Nobody is left out and nothing relabelled: the
//! method says nothing of its own about labels. Plug-ins attach to $h(x^w)$ of step 1, whose encoder is still that of step 2.
//!
//! # Where this differs from the authors' code
//! A forward pass of theirs that is not used is left out. All epochs are trained (there: one less), and all of the test set is scored.

use super::{
    Batch, Beliefs, Card, Facts, Host, Judges, Kind, Objective, Plan, Provenance, Regime, Tap, Turn,
};
use crate::kit::contrast::nt_xent;
use crate::kit::loss::{one_hot, soft_cross_entropy};
use crate::kit::mix::Mix;
use crate::kit::structure::structure;
use crate::nets::{Heads, Projection};
use crate::optim::Adam;
use crate::schedule::{Milestone, Shape};
use crate::settings::require;
use crate::trainer::Scene;
use crate::{Result, settings};
use burn::tensor::Tensor;
use negscale_data::{Order, View};
use serde::{Deserialize, Serialize};

/// The card.
pub const CARD: Card = Card {
    id: "co-learning",
    about: "a classifier on labels as given, its structure from a contrastive head that sees none",
    paper: "Tan et al., ACM MM 2021",
    provenance: Provenance::PaperAndCode,
    nets: 1,
    heads: Heads { projection: Some(Projection::Square), prediction: false },
    judges: Judges::First,
    beliefs: Beliefs::Predictions,
    cost: "10",
    settings: || settings::table(&Settings::default()),
    meanings: &[
        ("alpha", "MixUp weights are drawn from Beta(alpha, alpha); 0: no MixUp"),
        ("temperature", "temperature of the contrast"),
        ("lambda_con", "weight of the contrast"),
        ("lambda_str", "weight of the structure, in the classifier's own step; 0: no such step"),
        ("freedom", "degrees of freedom of a Student-t kernel for the structure; 0: exponential kernel"),
        ("view", "view that is classified"),
        ("contrast_view", "view that is contrasted, drawn twice"),
    ],
    regime,
    build: |table, facts| Ok(Box::new(CoLearning::new(settings::read("co-learning", table)?, facts)?)),
};

/// Settings of the method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)] // the card says what they mean
pub struct Settings {
    pub alpha: f64,
    pub temperature: f64,
    pub lambda_con: f64,
    pub lambda_str: f64,
    pub freedom: f64,
    pub view: View,
    pub contrast_view: View,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            alpha: 5.0,
            temperature: 0.5,
            lambda_con: 1.0,
            lambda_str: 1.0,
            freedom: 0.0,
            view: View::Zoom,
            contrast_view: View::Contrast,
        }
    }
}

impl Settings {
    /// The settings themselves, if all are in range.
    pub fn checked(self) -> Result<Self> {
        require("temperature", self.temperature, self.temperature > 0.0, "must be above 0")?;
        for (name, value) in [
            ("alpha", self.alpha),
            ("lambda_con", self.lambda_con),
            ("lambda_str", self.lambda_str),
            ("freedom", self.freedom),
        ] {
            require(name, value, value >= 0.0, "must be 0 or larger")?;
        }
        Ok(self)
    }
}

/// Adam at a constant rate for two fifths, then down to zero with little momentum.
fn regime(_: Kind) -> Regime {
    Regime {
        epochs: 20,
        batch: 128,
        optimiser: Adam::default().into(),
        schedule: Shape::Linear { start: Milestone::Share(0.4), momentum: Some(0.1) }.into(),
    }
}

struct CoLearning {
    settings: Settings,
    batch: usize,
    /// Features of the weak view from the classifier's step, for a tap in the step that follows.
    seen: Option<Tensor<2>>,
}

impl CoLearning {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        Ok(Self { settings: settings.checked()?, batch: facts.batch, seen: None })
    }
}

impl Host for CoLearning {
    fn plan(&mut self, _: &mut Scene) -> Result<Plan> {
        let Settings { view, contrast_view, .. } = self.settings;
        Ok(Plan::new(vec![Turn {
            trains: vec![0],
            views: vec![view, contrast_view, contrast_view],
            unlabelled_views: None,
            order: Order::Shuffled { passes: 1 },
            batch: self.batch,
            drop_last: true,
        }]))
    }

    fn prelude(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Option<Objective>> {
        let (team, Settings { lambda_str, freedom, .. }) = (scene.team, self.settings);
        if lambda_str == 0.0 && !scene.tapped {
            return Ok(None);
        }
        let out = team.train(0, &batch.views[0])?;
        // Without a label's gradient: only the classifier moves.
        let fixed = out.features.clone().detach();
        self.seen = scene.tapped.then_some(out.features);
        if lambda_str == 0.0 {
            return Ok(None);
        }
        let net = team.net(0);
        let projected = net.project(fixed.clone(), &team.next_pass(0))?;
        let structure = structure(projected, net.classify(fixed, &team.next_pass(0)), freedom);
        Ok(Some(Objective::new(structure.clone() * lambda_str).with_term("structure", &structure)))
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        let (team, Settings { alpha, temperature, lambda_con, .. }) = (scene.team, self.settings);
        let net = team.net(0);
        let mut projected = Vec::new();
        for view in &batch.views[1..] {
            projected.push(net.project(team.train(0, view)?.features, &team.next_pass(0))?);
        }
        let [first, second] = [projected.remove(0), projected.remove(0)];
        let contrast = nt_xent(first, second, temperature);
        let mix = Mix::draw(&mut scene.draw(batch, 0), batch.len(), alpha, false);
        let out = team.train(0, &mix.samples(batch.views[0].clone()))?;
        let wanted = one_hot(&batch.given, scene.ledger.classes(), scene.device());
        let fit = soft_cross_entropy(out.logits, mix.rows(wanted));
        let objective = Objective::new(fit.clone() + contrast.clone() * lambda_con);
        let objective = objective.with_term("fit", &fit).with_term("contrast", &contrast);
        Ok(match self.seen.take() {
            None => objective,
            Some(features) => {
                let logits = net.classify(features.clone(), &team.next_pass(0));
                objective.with_tap(Tap { features, logits, given: batch.given.clone(), believed: None })
            }
        })
    }
}
