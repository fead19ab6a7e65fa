//! What a training method is to the rest of the program: a [`Card`] and an implementation of [`Host`].
//!
//! ```text
//! plan      what this epoch trains: which networks, on which samples and views, phase by phase
//! objective the loss of a batch of a phase, with gradients, and the taps where plug-ins attach
//! ```
//!
//! A host knows nothing of plug-ins, nor of the loop that runs it. It may read and write the [ledger](negscale_audit::ledger::Ledger); one that writes its
//! own clean probabilities and targets says so on its card. The methods themselves are in [`hosts`](crate::hosts).

mod batch;
pub(crate) mod card;
mod context;
mod known_noise;
mod networks;
mod plan;
mod true_labels;

pub use batch::{Batch, Epoch, SubBatch};
pub use card::{Beliefs, Card, Facts, ItemKind, Meaning, PredictedBy, Protocol, Provenance, Regime};
pub use context::HostContext;
pub(crate) use context::{ScannedSet, Scans};
pub use known_noise::KnownNoise;
pub use networks::Networks;
pub use plan::{HostState, Objective, Phase, Plan, Reset, Stage, Tap};
pub use true_labels::Count;

use crate::Result;

/// A training method.
pub trait Host: Send {
    /// What this epoch trains. Called once at its start, with the networks as the last epoch left them.
    fn plan(&mut self, context: &mut HostContext) -> Result<Plan>;

    /// A loss along which the classifiers of the batch's networks alone take a step, by optimisers of their own, before anything
    /// else is made of the batch. Its taps are not looked at. Most methods have none.
    fn classifier_objective(
        &mut self,
        batch: &Batch,
        context: &mut HostContext,
    ) -> Result<Option<Objective>> {
        let _ = (batch, context);
        Ok(None)
    }

    /// Revises the plan before phase `phase`, never the first: the networks are as the phases before left
    /// them. After a stop it may be called again, and must give the same answer.
    fn replan(&mut self, phase: usize, plan: &mut Plan, context: &mut HostContext) -> Result<()> {
        let _ = (phase, plan, context);
        Ok(())
    }

    /// The loss of a batch. The networks named by the batch's phase then take a step along its gradient.
    fn objective(&mut self, batch: &Batch, context: &mut HostContext) -> Result<Objective>;

    /// The setting to change, and to what, if as it is set its taps come without the labels it believes. Asked only of methods
    /// whose card says that they have beliefs of their own.
    fn taps_without_beliefs(&self) -> Option<&'static str> {
        None
    }

    /// Whether its guesses of labels heed the context's `guess_weights`.
    fn weighs_guesses(&self) -> bool {
        false
    }

    /// Whether it reads the ledger's predictions when it plans: then they are made after every epoch, whatever `scan_every` says.
    fn reads_predictions(&self) -> bool {
        false
    }

    /// How many channels of its features, the first ones, each network is judged by and saved with; empty for all of all. Asked
    /// after the batches of an epoch, before the networks are judged; the same networks must give the same answer.
    fn widths(&mut self, context: &mut HostContext) -> Result<Vec<Option<usize>>> {
        let _ = context;
        Ok(Vec::new())
    }

    /// State needed to resume, apart from networks, optimisers, ledger and the plan of the running epoch.
    fn state(&self) -> HostState {
        HostState::default()
    }

    /// Restores a state saved by [`state`](Self::state).
    fn restore(&mut self, state: HostState) -> Result<()> {
        let _ = state;
        Ok(())
    }
}
