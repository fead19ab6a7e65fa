//! Training methods. A method ("host", because plug-ins attach to it) is a plan per epoch and an objective per batch;
//! everything else (loop, networks, optimisers, views, evaluation, checkpoints) is the [trainer](crate::trainer)'s.
//!
//! ```text
//! plan      what this epoch trains: which networks, on which samples and views, turn after turn
//! objective what a batch of a turn costs: a loss with gradients, and the taps where plug-ins attach
//! ```
//!
//! A host knows nothing of plug-ins. It may read and write the [`Ledger`]; one that writes its own clean probabilities
//! and targets says so on its card. **Adding a method** is one file with a [`Card`] and an `impl Host`, and one word in
//! [`METHODS`].

pub mod anne;
mod batch;
mod card;
pub mod ccl;
pub mod co_learning;
pub mod co_teaching;
mod contrasted;
mod course;
pub mod cross_entropy;
pub mod crosssplit;
pub mod disc;
mod divided;
pub mod dividemix;
pub mod dmlp_dividemix;
pub mod dmlp_naive;
pub mod dsos;
mod easy;
mod halves;
pub mod jocor;
pub mod nct;
mod noise;
mod peers;
mod plan;
mod prelude;
mod purified;
pub mod rankmatch;
mod rate;
mod refurbished;
pub mod rolr;
pub mod selc;
pub mod selc_plus;
mod truth;
pub mod unicon;
mod warm_up;

pub use batch::{Batch, Epoch, Part};
pub use card::{Beliefs, Card, Facts, Judges, Kind, Meaning, Protocol, Provenance, Regime};
pub use contrasted::ContrastSettings;
pub use divided::SemiSettings;
pub use easy::EasySettings;
pub use noise::KnownNoise;
pub use plan::{Anew, Objective, Plan, Stage, State, Tap, Turn};
pub use purified::{PurifiedSettings, TapLabels};
pub use rate::Rate;
pub use truth::Count;

use crate::trainer::Scene;
use crate::{Error, Result};

/// A training method.
pub trait Host: Send {
    /// What this epoch trains. Called once at its begin, with the networks as the last epoch left them.
    fn plan(&mut self, scene: &mut Scene) -> Result<Plan>;

    /// A loss along which the classifiers of the batch's networks alone take a step, by optimisers of their own, before anything
    /// else is made of the batch. Its taps are not looked at. Most methods have none.
    fn prelude(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Option<Objective>> {
        let _ = (batch, scene);
        Ok(None)
    }

    /// A second look at the plan before turn `turn` of it, never the first, begins: the networks are as the turns before left
    /// them. After a stop it may be asked again, and must say the same.
    fn renew(&mut self, turn: usize, plan: &mut Plan, scene: &mut Scene) -> Result<()> {
        let _ = (turn, plan, scene);
        Ok(())
    }

    /// The loss of a batch. The networks named by the batch's turn then take a step along its gradient.
    fn objective(&mut self, batch: &Batch, scene: &mut Scene) -> Result<Objective>;

    /// The setting to change, and to what, if as it is set its taps come without the labels it believes. Asked only of methods
    /// whose card says that they have beliefs of their own.
    fn taps_without_beliefs(&self) -> Option<&'static str> {
        None
    }

    /// How many channels of its features, the first ones, each network is judged by and saved with; empty for all of all. Asked
    /// after the batches of an epoch, before the networks are judged; the same networks must give the same answer.
    fn widths(&mut self, scene: &mut Scene) -> Result<Vec<Option<usize>>> {
        let _ = scene;
        Ok(Vec::new())
    }

    /// What the host must know to go on after a stop, beside networks, optimisers, ledger and the plan of the running epoch.
    fn state(&self) -> State {
        State::default()
    }

    /// Takes up a state saved by [`state`](Self::state).
    fn restore(&mut self, state: State) -> Result<()> {
        let _ = state;
        Ok(())
    }
}

macro_rules! methods {
    ($($name:ident),+ $(,)?) => {
        /// All methods, in the order in which they are listed to people.
        pub const METHODS: &[&Card] = &[$(&$name::CARD),+];
    };
}

methods![
    cross_entropy,
    co_teaching,
    jocor,
    co_learning,
    rolr,
    dividemix,
    rankmatch,
    anne,
    selc,
    selc_plus,
    crosssplit,
    dmlp_naive,
    dmlp_dividemix,
    ccl,
    nct,
    disc,
    dsos,
    unicon,
];

/// Names of all methods.
pub fn names() -> Vec<&'static str> {
    METHODS.iter().map(|card| card.id).collect()
}

/// The card of a method.
pub fn card(name: &str) -> Result<&'static Card> {
    METHODS
        .iter()
        .find(|card| card.id == name)
        .copied()
        .ok_or_else(|| Error::unknown("training method", name, names()))
}
