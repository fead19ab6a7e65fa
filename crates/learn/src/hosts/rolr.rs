//! RoLR (Chen et al., AAAI 2023): robust label refurbishment, the paper's default host.
//!
//! Every sample keeps a soft target that mixes its given label $\tilde y_i$ with what two networks predict; how much of each is
//! the peer's word on whether the label is clean. Nothing is thrown away.
//!
//! Warm-up: each network by cross-entropy on the labels as given (weak view), with the mean negative entropy
//! $\sum_c p_c \log p_c$ added under asymmetric noise. Then, per epoch and network, a mixture of two Gaussians over the losses of a
//! scan gives $w_i$, the probability that the label is clean; network b is trained with a's $w$, then a with b's. Per batch:
//!
//! - $q_i = \frac12 (p_a(x^w_i) + p_b(x^w_i))$, the peer in evaluation mode, raised to the exponent $T$ and normalised;
//! - $t_i = w_i\, e(\tilde y_i) + (1 - w_i)\, q_i$;
//! - $L = -\frac1B \sum_i \sum_c t_{ic} \log p(x^s_i)_c + \lambda_p\, \mathrm{KL}(u \,\|\, \bar p)$, $u$ uniform, $\bar p$ the mean prediction on
//!   the strong views $x^s$.
//!
//! # Where this differs from the paper
//! The paper's body was not at hand: this follows the authors' code, with its evident intent where it fails to run (the clean
//! probability is that of the sample; the entropy is over classes). Epochs and warm-up are shares of whatever length is asked for.

pub use super::refurbished::Settings;
use super::refurbished::{Refurbished, Refurbishing, meanings};
use super::{Batch, Beliefs, Card, Host, Judges, Kind, Objective, Plan, Provenance, Regime, State, Tap};
use crate::nets::{Heads, Output};
use crate::optim::Sgd;
use crate::schedule::{Milestone, Shape};
use crate::trainer::Scene;
use crate::{Result, settings};

/// The card.
pub const CARD: Card = Card {
    id: "rolr",
    about: "two networks; labels refurbished by the peer's clean probability",
    paper: "Chen et al., AAAI 2023",
    provenance: Provenance::PaperAndCode,
    nets: 2,
    heads: Heads { projection: None, prediction: false },
    judges: Judges::Sum,
    beliefs: Beliefs::Own,
    cost: "22",
    settings: || settings::table(&Settings::default()),
    meanings: meanings![],
    regime,
    build: |table, facts| Ok(Box::new(RoLR(Refurbishing::new(settings::read("rolr", table)?, facts)?))),
};

/// A rate of 0.02 throughout, a tenth of it in the last fifth.
pub(super) fn regime(_: Kind) -> Regime {
    let schedule = Shape::Last { epochs: Milestone::Share(0.2), factor: 0.1 };
    Regime { epochs: 20, batch: 128, optimiser: Sgd::default().into(), schedule: schedule.into() }
}

struct RoLR(Refurbishing);

impl Host for RoLR {
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan> {
        self.0.plan(scene)
    }

    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective> {
        if let Some(objective) = self.0.warm_up_loss(batch, scene) {
            return objective;
        }
        let (team, net, weak) = (scene.team, batch.net(), &batch.views[0]);
        let shared = if self.0.shares_pass() { Some(team.train(net, weak)?) } else { None };
        let own = match &shared {
            Some(out) => out.logits.clone().detach(),
            None => team.guess(net, weak)?,
        };
        let said = [own, team.watch(1 - net, weak)?.logits];
        let Refurbished { target, believed, .. } = self.0.refurbish(batch, scene, said)?;
        let Output { features, logits } = match shared {
            Some(out) => out,
            None => team.train(net, &batch.views[1])?,
        };
        let objective = self.0.cost(logits.clone(), target);
        Ok(objective.with_tap(Tap { features, logits, given: batch.given.clone(), believed: Some(believed) }))
    }

    fn state(&self) -> State {
        self.0.peers.state()
    }

    fn restore(&mut self, state: State) -> Result<()> {
        self.0.peers.restore(state);
        Ok(())
    }
}
