//! `negscale sweep run`: a process for every run that is not done, so many at once.
//!
//! A run that crashes takes no other with it. A run is told to stop by the end of its standard input: that comes also when
//! the sweep itself is killed, so no run is left behind.

use super::RunArguments;
use super::plan::{Run, plan};
use super::state::{State, first_line};
use crate::train::folder::{FAILURE, OF_SWEEP, keep_apart, write};
use crate::train::{Keep, Signals, clock};
use anyhow::{Context, Result, bail};
use negscale_report::Outcome;
use negscale_whole::OwnFolder;
use serde_json::json;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A checkpoint every epoch would be most of the time of a small run.
const CHECKPOINT_SECONDS: &str = "30";

/// How a run ended.
enum End {
    Done,
    Failed(String),
    /// Told to stop, or somebody else has it.
    Left,
}

/// Runs what is not done.
pub fn run(arguments: RunArguments) -> Result<()> {
    let RunArguments { which, out, jobs, keep, dry_run, json } = arguments;
    if jobs == Some(0) {
        bail!("--jobs 0: nothing would run; name at least 1");
    }
    let runs = plan(&which, &out)?.runs;
    let states: Vec<State> = runs.iter().map(State::of).collect();
    if dry_run {
        for (run, state) in runs.iter().zip(&states) {
            if json {
                say!("{}", json!({"name": run.name, "run": run.place, "state": state.word()}));
            } else {
                say!("{:<8} {}  {}", state.word(), run.place.display(), run.name);
            }
        }
        return Ok(());
    }
    let todo = runs.iter().zip(&states).filter(|(_, state)| !matches!(state, State::Done(_)));
    let todo: VecDeque<&Run> = todo.map(|(run, _)| run).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Small networks gain little from a second thread, and pictures fill them all.
    let jobs = jobs.unwrap_or(if todo.iter().all(|run| run.is_small) { cores } else { 1 });
    let jobs = jobs.min(todo.len().max(1));
    let screen = Screen {
        json,
        total: runs.len(),
        todo: todo.len(),
        jobs,
        begun: Instant::now(),
        told: Mutex::new(Told { over: 0, seconds: 0.0, done: runs.len() - todo.len(), failed: Vec::new() }),
    };
    screen.open();
    let signals = Signals::listen()?;
    let queue = Mutex::new(todo);
    let work = || -> Result<()> {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(run) = next.filter(|_| !signals.is_asked()) else { return Ok(()) };
            let begun = Instant::now();
            let end = attempt(run, keep, (cores / jobs).max(1), &signals)?;
            screen.close(run, &end, begun.elapsed())?;
        }
    };
    let ended: Vec<Result<()>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Result<()>>| {
            worker
                .join()
                .unwrap_or_else(|_| bail!("a thread of the sweep failed; run the same command again"))
        };
        workers.into_iter().map(join).collect()
    });
    ended.into_iter().collect::<Result<Vec<()>>>()?;
    signals.check()?;
    screen.end()
}

/// Runs one run, unless it is done or somebody else has it by now.
fn attempt(run: &Run, keep: Keep, threads: usize, signals: &Signals) -> Result<End> {
    match State::of(run) {
        State::Done(_) => return Ok(End::Done),
        State::Running => return Ok(End::Left),
        State::Begun | State::Failed(_) | State::Missing => {}
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
    let mut command = Command::new(std::env::current_exe().context("cannot find the program itself")?);
    command.arg("train").arg(&settings).arg("--out").arg(place);
    command.args(["--quiet", "--stop-with-input"]);
    if keep == Keep::Results {
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
        if signals.is_asked() {
            drop(child.stdin.take());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let said = fs::read(&errors).with_context(|| format!("cannot read {}", errors.display()))?;
    let said = String::from_utf8_lossy(&said);
    let end = match State::of(run) {
        State::Done(_) if status.success() => End::Done,
        _ if matches!(status.code(), Some(130 | 143)) || signals.is_asked() => End::Left,
        // Another sweep was quicker.
        State::Running => End::Left,
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

fn reason(status: ExitStatus, said: &str, state: &State) -> String {
    let said = said.trim().trim_start_matches("error: ");
    let ended = if status.success() {
        format!("it ended well, but is {}", state.word())
    } else {
        format!("it ended with {status}")
    };
    if status.code() == Some(2) && !said.is_empty() { said.to_owned() } else { format!("{ended}\n{said}") }
}

/// What people and programs see.
struct Screen {
    json: bool,
    total: usize,
    todo: usize,
    jobs: usize,
    begun: Instant,
    told: Mutex<Told>,
}

struct Told {
    /// Runs that are over, however they ended.
    over: usize,
    /// What they took together.
    seconds: f64,
    done: usize,
    failed: Vec<(String, String)>,
}

impl Screen {
    fn open(&self) {
        if !self.json {
            let at_once =
                if self.jobs == 1 { "one at a time".into() } else { format!("{} at once", self.jobs) };
            let done = self.total - self.todo;
            eprintln!("{} runs: {done} done before, {} to do, {at_once}", self.total, self.todo);
        }
    }

    /// A run is over.
    fn close(&self, run: &Run, end: &End, took: Duration) -> Result<()> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.over += 1;
        let (word, rest) = match end {
            End::Done => {
                told.done += 1;
                ("done", String::new())
            }
            End::Failed(reason) => {
                told.failed.push((run.name.clone(), reason.clone()));
                ("failed", format!(": {}", first_line(reason)))
            }
            End::Left => ("left", String::new()),
        };
        let figures = match State::of(run) {
            State::Done(outcome) => outcome.figures,
            _ => Default::default(),
        };
        if self.json {
            let reason = if let End::Failed(reason) = end { Some(reason) } else { None };
            say!(
                "{}",
                json!({"name": run.name, "run": run.place, "state": word, "reason": reason, "seconds": took.as_secs_f64(),
                       "figures": figures})
            );
            return Ok(());
        }
        let test = figures.get("test_last10").map(|test| format!(", test {:.2} %", 100.0 * test));
        told.seconds += took.as_secs_f64();
        let left = told.seconds / told.over as f64 * (self.todo - told.over) as f64 / self.jobs as f64;
        let left = if told.over < self.todo {
            format!("; about {} to go", clock::duration(left))
        } else {
            String::new()
        };
        eprintln!(
            "[{}/{}] {word}: {}{} in {}{rest}{left}",
            told.over,
            self.todo,
            run.name,
            test.unwrap_or_default(),
            clock::duration(took.as_secs_f64())
        );
        Ok(())
    }

    /// All are over.
    fn end(self) -> Result<()> {
        let Told { done, failed, .. } = self.told.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !self.json {
            let took = clock::duration(self.begun.elapsed().as_secs_f64());
            let left = self.total - done - failed.len();
            let left = if left > 0 { format!(", {left} left to another process") } else { String::new() };
            eprintln!("{done} of {} runs are done, {} failed{left}; {took}", self.total, failed.len());
        }
        if failed.is_empty() {
            return Ok(());
        }
        let list: Vec<String> =
            failed.iter().map(|(name, reason)| format!("\n  {name}: {}", first_line(reason))).collect();
        bail!("{} of {} runs failed; the others are done:{}", list.len(), self.total, list.concat())
    }
}
