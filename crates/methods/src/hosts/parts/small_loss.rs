//! What methods of two networks share that learn from samples of small loss: how much is forgotten, and who was kept.

use super::Rate;
use crate::host::SubBatch;
use crate::hosts::prelude::*;
use crate::kit::small_loss::forget_rate;
use negscale_nets::optim::Adam;

settings! {
    /// Settings that Co-teaching and JoCoR share.
    SmallLossSettings;
    protocol: Protocol = Protocol::Blind, Protocol::MEANING;
    rate: Rate = Rate::Estimate, Rate::MEANING;
    ramp: Milestone = Milestone::Epoch(5) => milestone, "epochs in which the share of dropped samples grows to the noise rate, or their share of all epochs";
    exponent: f64 = 1.0 => positive, "exponent c of that growth";
    view: View = View::Plain, "view used in training: plain (published), weak, ...";
}

impl SmallLossSettings {
    /// The settings, tuned to the noise if that is asked for, if all are in range.
    pub fn checked(mut self, facts: &Facts) -> Result<Self> {
        self.rate = self.rate.settle(self.protocol, facts)?;
        self.check()?;
        Ok(self)
    }
}

/// For pictures Adam, with a line down to 0 from two fifths on and hardly any momentum along it, as published. Small networks without
/// norms on feature vectors do better with SGD at rate `lr`, and the same line.
pub(crate) fn regime(kind: ItemKind, lr: f64) -> Regime {
    let optimiser = match kind {
        ItemKind::Images => Adam::default().into(),
        ItemKind::Features => Sgd { lr, ..Sgd::default() }.into(),
    };
    let schedule = Shape::Linear { start: Milestone::Share(0.4), momentum: Some(0.1) }.into();
    Regime { epochs: 20, batch: 128, optimiser, schedule }
}

/// How much of a batch is forgotten in this epoch, and the noise rate behind it.
///
/// An estimated rate is renewed until it is in full use, then held: from there on networks see what they have kept, so their predictions
/// echo their choice. (Renewed for ever, it fell from 0.40 to 0.28 of 0.45 wrong labels, as the networks learnt what they let in.)
#[derive(Debug, Default)]
pub(crate) struct Forget {
    share: f64,
    rate: f64,
}

impl Forget {
    /// Decides on the share for an epoch that begins, along the ramp.
    pub fn decide(
        &mut self,
        settings: &SmallLossSettings,
        context: &HostContext,
        plan: &mut Plan,
    ) -> Result<()> {
        let points = settings.ramp.epochs(context.epoch.of);
        self.learn_rate(settings.rate, context, points.saturating_sub(1))?;
        let share = forget_rate(context.epoch.number, self.rate, points, settings.exponent);
        self.set(share, plan);
        Ok(())
    }

    /// Renews the noise rate unless an epoch is past in which it was in full use. In the first, nothing can be known.
    pub fn learn_rate(&mut self, rate: Rate, context: &HostContext, last: usize) -> Result<f64> {
        if context.epoch.number <= last.max(1) {
            self.rate = rate.now(context.ledger)?;
        }
        Ok(self.rate)
    }

    /// Takes a share to forget, and notes it.
    pub fn set(&mut self, share: f64, plan: &mut Plan) {
        self.share = share;
        plan.notes.insert("noise rate assumed".into(), self.rate);
        plan.notes.insert("share forgotten".into(), share);
    }

    pub fn share(&self) -> f64 {
        self.share
    }

    /// For [`Host::state`](crate::host::Host::state).
    pub fn state(&self) -> HostState {
        // All 64 bits: rounded to fewer, the share of a batch that is kept may come to one sample less.
        let words = [self.share, self.rate].map(f64::to_bits);
        let words = words.iter().flat_map(|bits| [(bits >> 32) as u32, *bits as u32]);
        let mut state = HostState::default();
        state.whole.insert("forget".into(), words.collect());
        state
    }

    /// For [`Host::restore`](crate::host::Host::restore).
    pub fn restore(&mut self, mut state: HostState) -> Result<()> {
        let number = |high: u32, low: u32| f64::from_bits(u64::from(high) << 32 | u64::from(low));
        let [a, b, c, d] = state.take_array("forget")?;
        (self.share, self.rate) = (number(a, b), number(c, d));
        Ok(())
    }
}

/// A phase that trains both networks on the same batches.
pub(crate) fn together(batch: usize, view: View) -> Phase {
    Phase {
        trains: vec![0, 1],
        views: vec![view],
        unlabelled_views: None,
        order: Order::Shuffled { passes: 1 },
        batch,
        drop_last: true,
    }
}

/// Takes what the judges kept into the clean probabilities: the share of them that kept a sample, in the mean with what was said before
/// (so that an epoch counts half as much as the next). Where nothing is forgotten nothing is said.
pub(crate) fn enter(
    context: &mut HostContext,
    samples: &[u32],
    kept: &[&[usize]],
    forget: &Forget,
) -> Result<()> {
    if forget.share() == 0.0 {
        return Ok(());
    }
    let mut clean = vec![0.0; samples.len()];
    for &row in kept.iter().flat_map(|rows| rows.iter()) {
        clean[row] += 1.0 / kept.len() as f32;
    }
    for (clean, &sample) in clean.iter_mut().zip(samples) {
        let before = context.ledger.clean(sample as usize).unwrap_or(*clean);
        *clean = (*clean + before) / 2.0;
    }
    Ok(context.ledger.set_clean(ledger::SampleIndices::These(samples), &clean)?)
}

/// With a tap for every network: its features of the whole batch, since pairs need not be clean.
pub(crate) fn tapped(
    objective: Objective,
    outputs: impl IntoIterator<Item = Output>,
    batch: &SubBatch,
) -> Objective {
    outputs.into_iter().fold(objective, |objective, out| objective.with_tap(Tap::new(out, batch)))
}
