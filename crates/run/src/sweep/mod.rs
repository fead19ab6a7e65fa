//! Many runs from recipes with `[matrix]` and `[arms]`, and tables over them.
//!
//! Every run has a folder named by what it is: the hash of its resolved settings, its data and the program's version. What
//! is done, begun, failed or missing is read from these folders and nowhere else, so a sweep can be stopped, resumed,
//! extended, shared between recipes and run by several processes.

mod collect;
mod controls;
mod lease;
mod pairs;
mod plan;
mod saved;
mod search;
mod state;
mod work;

pub use collect::{TableOptions, tables};
pub use lease::{Claim, Holder, LEASE, Leases, Release};
pub use plan::{PlannedRun, RunSelection, SweepPlan, WaitingRun, plan};
pub use saved::SavedPlan;
pub use search::{Choice, record};
pub use state::{RunState, WORDS, first_line};
pub use work::{End, Others, WorkOptions, cores, default_jobs, tidy, work};
