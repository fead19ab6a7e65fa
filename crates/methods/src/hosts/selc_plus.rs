//! SELC+ (Lu and He, IJCAI 2022): a second network learns, with MixUp, the labels that [SELC](super::selc) has corrected.
//!
//! $L = \lambda\, \mathrm{CE}(p(\lambda x_i + (1 - \lambda) x_{\pi(i)}), \hat y_i) + (1 - \lambda)\, \mathrm{CE}(\cdot, \hat y_{\pi(i)})$,
//! $\hat y_i = \arg\max_c t_{ic}$. Targets and clean probabilities stay as stage 1 left them. Plug-ins see unmixed views, in a pass of
//! their own.
//!
//! Equations, settings and departures: docs/book/src/methods/selc-plus.md.

use super::parts::stages::Role;
use super::prelude::*;
use super::selc::{self, Selc};
use crate::kit::loss::{one_hot, soft_cross_entropy};
use crate::kit::mix::Mix;

/// The card.
pub const CARD: Card = Card {
    id: "selc-plus",
    about: "SELC, then a fresh network on the labels it corrected, with MixUp",
    settings: || table(&Settings::default()),
    meanings: Settings::MEANINGS,
    regime: |kind| {
        // Half of the epochs to learn in, and no wrong labels to learn.
        let optimiser = Sgd { lr: 0.05, weight_decay: 1e-3, ..Sgd::default() }.into();
        let regime = selc::regime(kind);
        if kind == ItemKind::Images { regime } else { Regime { optimiser, ..regime } }
    },
    build: |table, facts| Ok(Box::new(SelcPlus::new(read("selc-plus", table)?, facts)?)),
    ..selc::CARD
};

settings! {
    /// Settings of the method.
    Settings over selc: selc::Settings;
    first: Milestone = Milestone::Share(0.5) => milestone, "epochs of SELC, or their share; the others are the second network's";
    mix_alpha: f64 = 0.9 => not_negative, "MixUp weights are drawn from Beta(mix_alpha, mix_alpha); 0: no MixUp";
}

struct SelcPlus {
    selc: Selc,
    mix_alpha: f64,
}

impl SelcPlus {
    fn new(settings: Settings, facts: &Facts) -> Result<Self> {
        settings.check()?;
        let Settings { selc, first, mix_alpha } = settings;
        Ok(Self { selc: Selc::new(selc, facts, Some(first))?, mix_alpha })
    }
}

impl Host for SelcPlus {
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan> {
        self.selc.plan(context)
    }

    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective> {
        if self.selc.stages.role(context.epoch) != Role::Retrain {
            return self.selc.objective(batch, context);
        }
        let rows = batch.samples.iter().filter_map(|&i| context.ledger.target(i as usize));
        let corrected: Vec<u32> = rows.map(argmax).collect();
        let mix = Mix::draw(&mut context.draw(batch, 0), batch.len(), self.mix_alpha, false);
        let out = context.networks.train(0, &mix.samples(batch.views[0].clone()))?;
        let wanted = one_hot(&corrected, context.ledger.classes(), context.device());
        let objective = Objective::new(soft_cross_entropy(out.logits, mix.rows(wanted)));
        if !context.tapped {
            return Ok(objective);
        }
        let out = context.networks.rehearse(0, &batch.views[0])?;
        Ok(objective.with_tap(Tap::new(out, batch).believing(corrected)))
    }

    fn state(&self) -> HostState {
        self.selc.state()
    }

    fn restore(&mut self, state: HostState) -> Result<()> {
        self.selc.restore(state)
    }
}
