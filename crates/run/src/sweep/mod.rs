//! Many runs from recipes with `[matrix]`, and tables over them.
//!
//! Every run has a folder named by what it is: the hash of its resolved settings, its data and the program's version. What
//! is done, begun, failed or missing is read off these folders and nowhere else, so a sweep can be stopped, started again,
//! extended, shared between recipes and run by several processes.

mod collect;
mod pairs;
mod plan;
mod state;
mod work;

pub use collect::{TableOptions, tables};
pub use plan::{Plan, Run, Selection, plan};
pub use state::{State, WORDS, first_line};
pub use work::{End, WorkOptions, default_jobs, work};
