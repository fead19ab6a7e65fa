//! `negscale sweep run`: runs what is not done, and shows progress.

use super::{RunArguments, WAITING, slurm};
use crate::train::Signals;
use anyhow::{Result, bail};
use negscale_run::clock;
use negscale_run::sweep::{
    End, PlannedRun, RunState, SweepPlan, WorkOptions, default_jobs, first_line, plan, record, tidy, work,
};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Runs what is not done, here or on a cluster.
pub fn run(arguments: RunArguments) -> Result<()> {
    let RunArguments { which, out, worker, on, requeue, dry_run, json } = arguments;
    let options = worker.options()?;
    let selection = which.selection();
    let first = plan(&selection, &out)?;
    first.notes.iter().for_each(|note| eprintln!("note: {note}"));
    if on.on.is_some() {
        return slurm::submit(first, selection, &out, &worker, (&on, requeue), dry_run);
    }
    on.check_local()?;
    if dry_run {
        return list(&first, json);
    }
    let signals = Signals::listen()?;
    let mut now = first;
    loop {
        perform(&now.distinct(), &out, &options, json, &signals)?;
        if now.waiting.is_empty() {
            break;
        }
        // The searches are over: what they chose can be run.
        now = plan(&selection, &out)?;
        if !now.waiting.is_empty() {
            let left = now.waiting.iter().map(|run| run.left).max().unwrap_or(0);
            eprintln!(
                "another process runs {left} or more development runs; run the same command again when it is over"
            );
            return Ok(());
        }
    }
    if let Some(path) = record(&now, &selection.recipes[0], &out)?.filter(|_| !json) {
        eprintln!("what the searches chose: {}", path.display());
    }
    Ok(())
}

/// What would be done.
fn list(plan: &SweepPlan, json: bool) -> Result<()> {
    for run in &plan.runs {
        let state = RunState::of(run).word();
        let (search, mark) = if run.is_development { (true, "search: ") } else { (false, "") };
        if json {
            say!(
                "{}",
                json!({"name": run.name, "run": run.place, "state": state, "arm": run.arm, "development": search})
            );
        } else {
            say!("{state:<8} {}  {mark}{}", run.place.display(), run.name);
        }
    }
    for run in &plan.waiting {
        if json {
            say!("{}", json!({"name": run.name, "state": WAITING, "development_runs_left": run.left}));
        } else {
            say!("{WAITING:<8} for {} development runs  {}", run.left, run.name);
        }
    }
    Ok(())
}

/// Runs what is not done of these runs below a folder; without a count of jobs, as many as fit.
pub(super) fn perform(
    runs: &[&PlannedRun],
    below: &Path,
    options: &WorkOptions,
    json: bool,
    signals: &Signals,
) -> Result<()> {
    let is_done = |run: &&PlannedRun| matches!(RunState::of(run), RunState::Done(_));
    let (done, todo): (Vec<&PlannedRun>, Vec<&PlannedRun>) = runs.iter().copied().partition(is_done);
    tidy(&done, below, options)?;
    let asked = if options.jobs == 0 { default_jobs(&todo, options.cores) } else { options.jobs };
    let jobs = asked.min(todo.len().max(1));
    let screen = Screen {
        json,
        total: runs.len(),
        todo: todo.len(),
        jobs,
        begun: Instant::now(),
        progress: Mutex::new(Progress {
            over: 0,
            seconds: 0.0,
            done: runs.len() - todo.len(),
            failed: Vec::new(),
        }),
    };
    screen.open();
    let options = WorkOptions { jobs, ..options.clone() };
    work(&todo, below, &options, signals.stop(), |run, end, took| screen.close(run, end, took))?;
    screen.end()
}

/// What people and programs see.
struct Screen {
    json: bool,
    total: usize,
    todo: usize,
    jobs: usize,
    begun: Instant,
    progress: Mutex<Progress>,
}

struct Progress {
    /// Runs that have ended, in whatever way.
    over: usize,
    /// Their total time.
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
            eprintln!("{} runs: {done} already done, {} to do, {at_once}", self.total, self.todo);
        }
    }

    /// A run has ended.
    fn close(&self, run: &PlannedRun, end: &End, took: Duration) -> negscale_run::Result<()> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.over += 1;
        let (word, rest) = match end {
            End::Done | End::DoneElsewhere => {
                progress.done += 1;
                let by = if *end == End::Done { "" } else { " by another process" };
                ("done", by.into())
            }
            End::Failed(reason) => {
                progress.failed.push((run.name.clone(), reason.clone()));
                ("failed", format!(": {}", first_line(reason)))
            }
            End::Left => ("left", String::new()),
            End::Held(who) => ("left", format!(" to {who}")),
        };
        let figures = match RunState::of(run) {
            RunState::Done(outcome) => outcome.figures,
            _ => Default::default(),
        };
        if self.json {
            let reason = if let End::Failed(reason) = end { Some(reason) } else { None };
            writeln!(
                std::io::stdout(),
                "{}",
                json!({"name": run.name, "run": run.place, "state": word, "elsewhere": *end == End::DoneElsewhere, "reason": reason, "seconds": took.as_secs_f64(),
                       "figures": figures})
            )?;
            return Ok(());
        }
        let test = figures.get("test_last10").map(|test| format!(", test {:.2} %", 100.0 * test));
        progress.seconds += took.as_secs_f64();
        let left =
            progress.seconds / progress.over as f64 * (self.todo - progress.over) as f64 / self.jobs as f64;
        let left = if progress.over < self.todo {
            format!("; about {} to go", clock::duration(left))
        } else {
            String::new()
        };
        eprintln!(
            "[{}/{}] {word}: {}{} in {}{rest}{left}",
            progress.over,
            self.todo,
            run.name,
            test.unwrap_or_default(),
            clock::duration(took.as_secs_f64())
        );
        Ok(())
    }

    /// All have ended.
    fn end(self) -> Result<()> {
        let Progress { done, failed, .. } =
            self.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !self.json {
            let took = clock::duration(self.begun.elapsed().as_secs_f64());
            let left = self.total - done - failed.len();
            let left = if left > 0 { format!(", {left} are run by another process") } else { String::new() };
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
