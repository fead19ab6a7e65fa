//! RoLR (Chen et al., AAAI 2023): robust label refurbishment, the paper's default host.
//!
//! $t_i = w_i\, e(\tilde y_i) + (1 - w_i)\, q_i$, $w_i$ the peer's probability that the label is clean, $q_i$ what both networks guess;
//! $L = -\frac1B \sum_i \sum_c t_{ic} \log p(x^s_i)_c + \lambda_p\, \mathrm{KL}(u \,\|\, \bar p)$. Most of it is in `hosts/parts/refurbishing.rs`.
//! Both networks judge before any update; b is trained first, with a's $w$, then a with b's.
//!
//! Equations, settings and departures: docs/book/src/methods/rolr.md.

pub use super::parts::refurbishing::Settings;
use super::parts::refurbishing::{Refurbished, Refurbishing};
use super::prelude::*;

/// The card.
pub const CARD: Card = Card {
    id: "rolr",
    about: "two networks; labels refurbished by the peer's clean probability",
    paper: "Chen et al., AAAI 2023",
    provenance: Provenance::Code,
    nets: 2,
    heads: Heads { projection: None, prediction: false },
    predicted_by: PredictedBy::Sum,
    beliefs: Beliefs::Own,
    cost: "22",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime,
    build: |table, facts| Ok(Box::new(RoLR(Refurbishing::new(read("rolr", table)?, facts)?))),
};

/// A rate of 0.02 throughout, a tenth of it in the last fifth.
pub(super) fn regime(_: ItemKind) -> Regime {
    let schedule = Shape::Last { epochs: Milestone::Share(0.2), factor: 0.1 };
    Regime::new(128, Sgd::default(), schedule)
}

struct RoLR(Refurbishing);

impl Host for RoLR {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        self.0.plan(context)
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        if let Some(objective) = self.0.warm_up_loss(batch, context) {
            return objective;
        }
        let (networks, net, weak) = (context.networks, batch.net(), &batch.views[0]);
        let shared = if self.0.shares_pass() { Some(networks.train(net, weak)?) } else { None };
        let own = match &shared {
            Some(out) => out.logits.clone().detach(),
            None => networks.guess(net, weak)?,
        };
        let said = [own, networks.watch(1 - net, weak)?.logits];
        let Refurbished { target, believed, .. } = self.0.refurbish(batch, context, said)?;
        let out = match shared {
            Some(out) => out,
            None => networks.train(net, &batch.views[1])?,
        };
        let objective = self.0.cost(out.logits.clone(), target);
        Ok(objective.with_tap(Tap::new(out, batch).believing(believed)))
    }

    fn weighs_guesses(&self) -> bool {
        true
    }

    fn state(&self) -> HostState {
        self.0.peers.state()
    }

    fn restore(&mut self, state: HostState) -> Result<()> {
        self.0.peers.restore(state)
    }
}
