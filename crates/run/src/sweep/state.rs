//! The progress of a run, read from its folder.

use super::collect::settings;
use super::plan::PlannedRun;
use crate::folder::{CHECKPOINTS, FAILURE};
use negscale_atomic_file::OwnFolder;
use negscale_report::{Error, Outcome};
use std::fs;

/// The progress of a run.
pub enum RunState {
    /// Its results are there.
    Done(Box<Outcome>),
    /// A process trains it.
    Running,
    /// It was stopped and can be resumed.
    Begun,
    /// The last try failed, for this reason.
    Failed(String),
    /// Not started.
    Missing,
}

/// All words of [`RunState::word`], in the order in which they are printed.
pub const WORDS: [&str; 5] = ["done", "running", "begun", "failed", "missing"];

impl RunState {
    /// In a word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Running => "running",
            Self::Begun => "begun",
            Self::Failed(_) => "failed",
            Self::Missing => "missing",
        }
    }

    /// Of a run, now.
    pub fn of(run: &PlannedRun) -> Self {
        let read = Outcome::read(&run.place);
        if let Ok(outcome) = read {
            // The name of a folder is a hash of what is in it, unless somebody renamed it.
            if settings(&outcome.settings, &[]) != settings(&run.settings, &[]) {
                return Self::Failed("the folder holds a run with other settings; move it away".into());
            }
            // Results are written once before the baseline is trained, and once more after it.
            let is_whole = run.recipe.baseline.is_none() || !outcome.baseline.is_empty();
            if is_whole {
                return Self::Done(Box::new(outcome));
            }
            return if OwnFolder::is_open(&run.place) { Self::Running } else { Self::Begun };
        }
        if OwnFolder::is_open(&run.place) {
            return Self::Running;
        }
        if let Ok(reason) = fs::read_to_string(run.place.join(FAILURE)) {
            return Self::Failed(reason.trim().to_owned());
        }
        match read {
            Err(Error::NoRun { .. }) | Ok(_) => Self::Missing,
            Err(Error::Unfinished { .. }) => {
                let saved =
                    fs::read_dir(run.place.join(CHECKPOINTS)).is_ok_and(|mut all| all.next().is_some());
                if saved { Self::Begun } else { Self::Missing }
            }
            Err(error) => Self::Failed(error.to_string()),
        }
    }
}

/// The first line of a reason.
pub fn first_line(reason: &str) -> &str {
    reason.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason was given")
}
