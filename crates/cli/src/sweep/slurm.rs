//! Workers of a sweep under Slurm: an array of them, each pulling runs until none is left.
//!
//! Slurm starts them, limits their time, and starts them again when a node fails. What is done, and who does it, is in the folders of
//! the runs; nothing is asked of Slurm's memory but which workers it knows.

use super::WorkerChoices;
use crate::cluster::{self, Cluster, call};
use anyhow::{Context, Result, bail};
use negscale_atomic_file::{OwnFolder, write_bytes};
use negscale_run::clock;
use negscale_run::sweep::{PlannedRun, RunSelection, RunState, SavedPlan, SweepPlan};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

/// In the folder of the sweep: the script, what was submitted, and the folder of the workers' logs.
const SCRIPT: &str = "workers.sh";
const JOBS: &str = "jobs.jsonl";
const LOGS: &str = "logs";
/// Seconds before the end of its time at which a worker is told to save.
const WARNING: u32 = 120;

/// A job array that was submitted.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Submitted {
    job: String,
    workers: u32,
    /// Seconds since 1970.
    at: u64,
}

/// Writes the plan and the script, and submits it; with `dry_run`, prints the script.
pub fn submit(
    planned: SweepPlan,
    selection: RunSelection,
    below: &Path,
    worker: &WorkerChoices,
    (cluster, requeue): (&Cluster, u32),
    dry_run: bool,
) -> Result<()> {
    let is_done = |run: &&PlannedRun| matches!(RunState::of(run), RunState::Done(_));
    let runs = planned.distinct();
    let todo = runs.iter().filter(|run| !is_done(run)).count() + planned.waiting.len();
    let folder = std::path::absolute(SavedPlan::folder_of(&selection.recipes[0], below))?;
    let workers = cluster.workers.unwrap_or(1).min(todo.max(1) as u32);
    if dry_run {
        say_part!("{}", script(&SavedPlan::path_in(&folder), workers, requeue, worker, cluster)?);
        return Ok(());
    }
    if todo == 0 {
        eprintln!("{} runs, all done: nothing to submit", runs.len());
        return Ok(());
    }
    let saved = SavedPlan::of(&planned, selection, below)?;
    let own = OwnFolder::share(&folder)?;
    let path = own.file(SCRIPT)?;
    write_bytes(&path, script(saved.path(), workers, requeue, worker, cluster)?.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    fs::create_dir_all(folder.join(LOGS)).context("cannot create the folder of the logs")?;
    let job = cluster::submit(&path, &[])?;
    let jobs = own.file(JOBS)?;
    let mut all = submitted(&folder);
    all.push(Submitted { job: job.clone(), workers, at: clock::now() });
    let lines = all.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    write_bytes(&jobs, format!("{}\n", lines.join("\n")).as_bytes())
        .with_context(|| format!("cannot write {}", jobs.display()))?;
    eprintln!(
        "{todo} of {} runs to do; {workers} workers submitted as job {job}",
        runs.len() + planned.waiting.len()
    );
    eprintln!("logs: {}", folder.join(LOGS).display());
    eprintln!(
        "`negscale sweep status` and `negscale sweep cancel`, both with {}, show and end it",
        saved.path().display()
    );
    Ok(())
}

/// The job script.
fn script(
    plan: &Path,
    workers: u32,
    requeue: u32,
    worker: &WorkerChoices,
    cluster: &Cluster,
) -> Result<String> {
    let folder = plan.parent().unwrap_or(Path::new("."));
    let name = folder.file_name().unwrap_or_default().to_string_lossy().replace("sweep-", "negscale-");
    // To this process alone; its runs are told by it.
    let more = vec![format!("--array=0-{}", workers - 1), format!("--signal=B:TERM@{WARNING}")];
    let mut words: Vec<OsString> = ["sweep", "work"].map(Into::into).into();
    words.push(plan.into());
    words.extend(["--no-wait".into(), "--requeue".into(), requeue.to_string().into()]);
    words.extend(["--lease".into(), worker.lease.to_string().into()]);
    if let Some(jobs) = worker.jobs {
        words.extend(["--jobs".into(), jobs.to_string().into()]);
    }
    if !worker.devices.is_empty() {
        words.extend(["--devices".into(), worker.devices.join(",").into()]);
    }
    if worker.keep == crate::train::Keep::All {
        words.extend(["--keep".into(), "all".into()]);
    }
    let log = folder.join(LOGS).join("%A_%a.log");
    cluster.script(cluster::Job { name: &name, log: &log, more, words, end: String::new() })
}

/// Cancels the workers of a sweep.
pub fn cancel(recipe: &Path, below: &Path) -> Result<()> {
    let folder = folder(recipe, below);
    let jobs: Vec<String> = submitted(&folder).into_iter().map(|one| one.job).collect();
    if jobs.is_empty() {
        bail!("no workers were submitted from {}", folder.display());
    }
    let known: BTreeMap<String, Vec<Worker>> = workers(&jobs)?;
    if known.is_empty() {
        eprintln!("none of the jobs {} has workers left", jobs.join(", "));
        return Ok(());
    }
    call("scancel", known.keys().map(OsStr::new))?;
    let count: usize = known.values().map(Vec::len).sum();
    eprintln!("{count} workers cancelled; what was done stays, and the same `sweep run` resumes the rest");
    Ok(())
}

/// The folder of a sweep, of its recipe or its plan.
fn folder(recipe: &Path, below: &Path) -> std::path::PathBuf {
    match recipe.parent() {
        Some(folder) if SavedPlan::is_plan(recipe) => folder.to_owned(),
        _ => SavedPlan::folder_of(recipe, below),
    }
}

/// Prints the workers that the cluster knows of, if any were submitted.
pub fn print_workers(folder: &Path, json: bool) -> Result<()> {
    let jobs: Vec<String> = submitted(folder).into_iter().map(|one| one.job).collect();
    if jobs.is_empty() {
        return Ok(());
    }
    let known = match workers(&jobs) {
        Ok(known) => known,
        Err(error) => {
            eprintln!("the workers cannot be listed: {error:#}");
            return Ok(());
        }
    };
    for (job, workers) in &known {
        for worker in workers.iter().filter(|_| json) {
            say!(
                "{}",
                serde_json::json!({"job": job, "task": worker.task, "state": worker.state, "node": worker.node})
            );
        }
        if json {
            continue;
        }
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        workers.iter().for_each(|worker| *states.entry(&worker.state).or_default() += worker.count);
        let states: Vec<String> =
            states.iter().map(|(state, count)| format!("{count} {}", state.to_lowercase())).collect();
        let mut nodes: Vec<&str> = workers.iter().filter_map(|worker| worker.node.as_deref()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let nodes = if nodes.is_empty() { String::new() } else { format!(" on {}", nodes.join(", ")) };
        say!("workers, job {job}: {}{nodes}", states.join(", "));
    }
    if known.is_empty() && !json {
        say!("no workers are queued or running");
    }
    Ok(())
}

/// A worker, or several that wait, in the queue.
struct Worker {
    task: String,
    state: String,
    node: Option<String>,
    count: usize,
}

/// What is in the queue of these jobs.
fn workers(jobs: &[String]) -> Result<BTreeMap<String, Vec<Worker>>> {
    let said = call("squeue", [OsStr::new("--json")])?;
    let all: Value = serde_json::from_str(&said).context("`squeue --json` did not print JSON")?;
    let mut known: BTreeMap<String, Vec<Worker>> = BTreeMap::new();
    for job in all["jobs"].as_array().into_iter().flatten() {
        let Some(id) =
            [&job["array_job_id"], &job["job_id"]].into_iter().filter_map(number).find(|&id| id > 0)
        else {
            continue;
        };
        let id = id.to_string();
        if !jobs.contains(&id) {
            continue;
        }
        let state = job["job_state"].as_str().or_else(|| job["job_state"][0].as_str()).unwrap_or("UNKNOWN");
        // Done with, and still in Slurm's memory for some minutes.
        if ![
            "PENDING",
            "RUNNING",
            "SUSPENDED",
            "COMPLETING",
            "CONFIGURING",
            "REQUEUED",
            "REQUEUE_HOLD",
            "RESIZING",
            "SIGNALING",
            "STOPPED",
        ]
        .contains(&state)
        {
            continue;
        }
        let waiting = job["array_task_string"].as_str().filter(|text| !text.is_empty());
        let task =
            waiting.map_or_else(|| number(&job["array_task_id"]).unwrap_or(0).to_string(), str::to_owned);
        let node = job["nodes"].as_str().filter(|node| !node.is_empty()).map(str::to_owned);
        let count = waiting.map_or(1, tasks);
        known.entry(id).or_default().push(Worker { task, state: state.into(), node, count });
    }
    Ok(known)
}

/// A number, which newer versions wrap.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value["number"].as_u64())
}

/// How many tasks `1-3,7` are; `%2` behind them is a limit.
fn tasks(text: &str) -> usize {
    let text = text.split('%').next().unwrap_or_default();
    let count = |part: &str| match part.split_once('-') {
        Some((first, last)) => match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) => (last + 1).saturating_sub(first),
            _ => 1,
        },
        None => 1,
    };
    text.split(',').map(count).sum()
}

fn submitted(folder: &Path) -> Vec<Submitted> {
    let text = fs::read_to_string(folder.join(JOBS)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The job that this process is.
pub struct Job {
    id: String,
    /// Its number in the array.
    pub task: Option<usize>,
    restarts: u32,
    /// Cores it was given.
    pub cores: Option<usize>,
}

impl Job {
    /// As Slurm says it in the environment.
    pub fn of_process() -> Option<Self> {
        let read = |name: &str| env::var(name).ok();
        let count = |name: &str| read(name).and_then(|text| text.parse::<usize>().ok());
        let task = count("SLURM_ARRAY_TASK_ID");
        let id = match (read("SLURM_ARRAY_JOB_ID"), task) {
            (Some(array), Some(task)) => format!("{array}_{task}"),
            _ => read("SLURM_JOB_ID")?,
        };
        let cores = count("SLURM_CPUS_PER_TASK").or_else(|| count("SLURM_CPUS_ON_NODE"));
        let restarts = count("SLURM_RESTART_COUNT").unwrap_or(0) as u32;
        Some(Self { id, task, restarts, cores })
    }

    /// Such as `17_3`.
    pub fn name(&self) -> String {
        self.id.clone()
    }

    /// Queues this job again, if runs are left and it was not cancelled. Slurm then ends this process.
    pub fn requeue(&self, limit: u32, runs: &[&PlannedRun]) {
        let left = runs.iter().filter(|run| !matches!(RunState::of(run), RunState::Done(_))).count();
        if limit == 0 || left == 0 {
            return;
        }
        if self.restarts >= limit {
            eprintln!(
                "{left} runs are left, and this worker was queued {limit} times again already: submit the sweep again"
            );
            return;
        }
        // A job that is being cancelled runs no more.
        let state = call("squeue", ["--noheader", "--format=%T", "--jobs", &self.id]).unwrap_or_default();
        if state.trim() != "RUNNING" {
            eprintln!(
                "{left} runs are left; not queued again: {}",
                if state.trim().is_empty() { "UNKNOWN" } else { state.trim() }
            );
            return;
        }
        match call("scontrol", ["requeue", &self.id]) {
            Ok(_) => eprintln!("{left} runs are left; this worker is queued again"),
            Err(error) => {
                eprintln!("{left} runs are left, and this worker could not be queued again: {error:#}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_wait_are_counted() {
        assert_eq!([tasks("3"), tasks("1-3,7"), tasks("0-63%4")], [1, 4, 64]);
    }
}
