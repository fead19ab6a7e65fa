//! Runs what is not done: one process per run, several at a time.
//!
//! A run that crashes affects no other. A run stops when its standard input ends, which also happens when the sweep itself is
//! killed: no run is left behind.

use super::plan::PlannedRun;
use super::state::RunState;
use crate::error::bail;
use crate::folder::{FAILURE, OF_SWEEP, keep_apart, write};
use crate::{Keep, Result, Stop};
use anyhow::Context;
use negscale_atomic_file::OwnFolder;
use negscale_report::Outcome;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A checkpoint every epoch would be most of the time of a small run.
const CHECKPOINT_SECONDS: &str = "30";

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It is done.
    Done,
    /// It failed, for this reason.
    Failed(String),
    /// It was stopped, or another process runs it.
    Left,
}

/// How runs are executed.
#[derive(Debug, Clone)]
pub struct WorkOptions {
    /// The `negscale` program, of which every run is a process.
    pub program: PathBuf,
    /// Words between the program and its verb, where another program runs it.
    pub words: Vec<OsString>,
    /// Runs at once.
    pub jobs: usize,
    /// What to keep of a finished run.
    pub keep: Keep,
}

/// How many runs to execute at a time by default. Small networks gain little from a second thread; images use all threads.
#[must_use]
pub fn default_jobs(todo: &[&PlannedRun]) -> usize {
    if todo.iter().all(|run| run.is_small) { cores() } else { 1 }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Executes these runs. `over` is called for every run that has ended, with how it ended and how long it took.
pub fn work(
    todo: &[&PlannedRun],
    options: &WorkOptions,
    stop: &Stop,
    over: impl Fn(&PlannedRun, &End, Duration) -> Result<()> + Sync,
) -> Result<()> {
    let jobs = options.jobs.min(todo.len().max(1));
    let threads = (cores() / jobs.max(1)).max(1);
    let queue: Mutex<VecDeque<&PlannedRun>> = Mutex::new(todo.iter().copied().collect());
    let work = || -> Result<()> {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(run) = next.filter(|_| !stop.is_asked()) else { return Ok(()) };
            let begun = Instant::now();
            let end = attempt(run, options, threads, stop)?;
            over(run, &end, begun.elapsed())?;
        }
    };
    let ended: Vec<Result<()>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Result<()>>| match worker.join() {
            Ok(ended) => ended,
            Err(_) => bail!("a thread of the sweep failed; run the same command again to resume"),
        };
        workers.into_iter().map(join).collect()
    });
    ended.into_iter().collect::<Result<Vec<()>>>()?;
    stop.check()
}

/// Executes one run, unless it is done or another process has it by now.
fn attempt(run: &PlannedRun, options: &WorkOptions, threads: usize, stop: &Stop) -> Result<End> {
    match RunState::of(run) {
        RunState::Done(_) => return Ok(End::Done),
        RunState::Running => return Ok(End::Left),
        RunState::Begun | RunState::Failed(_) | RunState::Missing => {}
    }
    let place = &run.place;
    keep_apart(place, &run.recipe.data.own_files())?;
    {
        // Let go before the process of the run takes it.
        let own = OwnFolder::open(place)?;
        own.claim(OF_SWEEP.into_iter().chain([FAILURE]))?;
    }
    let failure = place.join(FAILURE);
    if failure.exists() {
        fs::remove_file(&failure).with_context(|| format!("cannot remove {}", failure.display()))?;
    }
    let mut recipe = run.recipe.clone();
    if recipe.train.threads == 0 {
        recipe.train.threads = threads;
    }
    let [settings, errors] = OF_SWEEP.map(|name| place.join(name));
    write(&settings, recipe.to_toml().as_bytes())?;
    let file = File::create(&errors).with_context(|| format!("cannot write {}", errors.display()))?;
    let mut command = Command::new(&options.program);
    command.args(&options.words);
    command.arg("train").arg(&settings).arg("--out").arg(place);
    command.args(["--quiet", "--stop-with-input"]);
    if options.keep == Keep::Results {
        command.args(["--keep", "results", "--checkpoint-every", CHECKPOINT_SECONDS]);
    }
    if matches!(Outcome::read(place), Err(negscale_report::Error::Damaged { .. })) {
        command.arg("--fresh");
    }
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(file).spawn();
    let mut child = child.context("cannot start a process for a run")?;
    let status = loop {
        if let Some(status) = child.try_wait().context("cannot wait for a run")? {
            break status;
        }
        if stop.is_asked() {
            drop(child.stdin.take());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let said = fs::read(&errors).with_context(|| format!("cannot read {}", errors.display()))?;
    let said = String::from_utf8_lossy(&said);
    let end = match RunState::of(run) {
        RunState::Done(_) if status.success() => End::Done,
        _ if matches!(status.code(), Some(130 | 143)) || stop.is_asked() => End::Left,
        // Another sweep was quicker.
        RunState::Running => End::Left,
        state => {
            let reason = reason(status, &said, &state);
            write(&failure, format!("{reason}\n").as_bytes())?;
            End::Failed(reason)
        }
    };
    for path in [settings, errors] {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(end)
}

fn reason(status: ExitStatus, said: &str, state: &RunState) -> String {
    let said = said.trim().trim_start_matches("error: ");
    let ended = if status.success() {
        format!("it ended without an error, but is {}", state.word())
    } else {
        format!("it ended with {status}")
    };
    if status.code() == Some(2) && !said.is_empty() { said.to_owned() } else { format!("{ended}\n{said}") }
}
