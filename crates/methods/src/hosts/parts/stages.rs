//! The stages of SELC and SELC+: a pilot, correction, retraining, each with a schedule and networks of its own.
//!
//! **Pilot** (ours, if asked for): cross-entropy alone, to find when correction should begin. After each of its epochs two Gaussians are
//! fitted to the scaled losses; the distance of their means grows while clean labels are learnt and shrinks when wrong ones are.
//! Correction begins [`LEAD`] of its epochs before the epoch $T$ of the largest distance.

use crate::Result;
use crate::host::{Epoch, HostContext, HostState, Plan, Reset, Stage};
use negscale_audit::gmm;
use negscale_data::View;
use negscale_nets::schedule::Milestone;
use negscale_records::statistics::argmax;

/// How long before the turning point correction begins: 10 of 200 epochs.
pub(crate) const LEAD: f64 = 0.05;

/// What an epoch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// To find out when correction should begin.
    Pilot,
    /// SELC itself.
    Correct,
    /// What may follow.
    Retrain,
}

pub(crate) struct Stages {
    stages: Vec<(Role, usize)>,
    /// Epochs of cross-entropy before correction.
    warm_up: usize,
    /// How far apart the means lay after every epoch of the pilot.
    gaps: Vec<f32>,
}

impl Stages {
    /// `correct` is the share of the epochs after the pilot that correction has; without one, all.
    pub fn new(pilot: Milestone, correct: Option<Milestone>, warm_up: Milestone, epochs: usize) -> Self {
        let pilot = pilot.epochs(epochs).min(epochs.saturating_sub(1));
        let rest = epochs - pilot;
        let correct = correct.map_or(rest, |share| share.epochs(rest).clamp(1, rest.max(1)));
        let stages =
            [(Role::Pilot, pilot), (Role::Correct, correct), (Role::Retrain, rest.saturating_sub(correct))];
        let stages = stages.into_iter().filter(|(_, length)| *length > 0).collect();
        // A share of a short run is at least an epoch: what knows nothing should not correct.
        let least = usize::from(matches!(warm_up, Milestone::Share(share) if share > 0.0));
        Self { stages, warm_up: warm_up.epochs(correct).max(least), gaps: Vec::new() }
    }

    /// Epochs of a stage.
    pub fn length(&self, role: Role) -> usize {
        self.stages.iter().find(|stage| stage.0 == role).map_or(0, |stage| stage.1)
    }

    /// What an epoch is for, and where it stands in its stage.
    fn place(&self, epoch: Epoch) -> (Role, Stage) {
        let lengths: Vec<usize> = self.stages.iter().map(|stage| stage.1).collect();
        let stage = Stage::at(epoch, &lengths);
        (self.stages[stage.number].0, stage)
    }

    /// What an epoch is for.
    pub fn role(&self, epoch: Epoch) -> Role {
        self.place(epoch).0
    }

    /// Whether labels are taken as given in an epoch of pilot or correction.
    pub fn trusts(&self, epoch: Epoch) -> bool {
        let (role, stage) = self.place(epoch);
        role == Role::Pilot || role == Role::Correct && stage.epoch.number < self.warm_up
    }

    /// Puts a plan into its stage; looks at what the pilot's last epoch has done.
    pub fn stage(&mut self, mut plan: Plan, context: &HostContext) -> Result<Plan> {
        let (role, mut stage) = self.place(context.epoch);
        let (pilot, correct) = (self.length(Role::Pilot), self.length(Role::Correct));
        if (1..=pilot).contains(&context.epoch.number) {
            self.gaps.push(gmm::gap(&context.scan(0, View::Plain)?.losses(context.ledger.given()))?);
            let lead = (LEAD * correct as f64).round() as usize;
            let turning_point = argmax(&self.gaps) as usize + 1;
            self.warm_up = turning_point.saturating_sub(lead).max(1);
            plan.notes.insert("warm-up".into(), self.warm_up as f64);
        }
        if role == Role::Pilot {
            // Rates go as they will in the stage that it is for.
            stage.epoch.of = correct;
        }
        plan.warming_up = self.trusts(context.epoch);
        if self.stages.len() > 1 {
            plan.stage = Some(stage);
            plan.reset = if stage.number > 0 && stage.begins() { Reset::Networks } else { Reset::Nothing };
        }
        Ok(plan)
    }

    /// For [`Host::state`](crate::host::Host::state).
    pub fn state(&self) -> HostState {
        let mut state = HostState::default();
        state.floats.insert("gaps".into(), self.gaps.clone());
        state.whole.insert("warm-up".into(), vec![self.warm_up as u32]);
        state
    }

    /// For [`Host::restore`](crate::host::Host::restore).
    pub fn restore(&mut self, mut state: HostState) -> Result<()> {
        self.gaps = state.take_floats("gaps")?;
        let [warm_up] = state.take_array("warm-up")?;
        self.warm_up = warm_up as usize;
        Ok(())
    }
}
