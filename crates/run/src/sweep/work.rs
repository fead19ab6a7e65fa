//! Runs what is not done: one process per run, several at a time.
//!
//! A run that crashes affects no other. A run stops when its standard input ends, which also happens when the sweep itself is
//! killed: no run is left behind. Whoever works on a run has its lease, so that any number of processes and machines can work on one sweep.

use super::lease::{Claim, Holder, LEASE, Lease, Leases, Release};
use super::plan::PlannedRun;
use super::state::RunState;
use crate::error::bail;
use crate::folder::{FAILURE, OF_SWEEP, keep_apart, write};
use crate::{Keep, Result, Stop, clock};
use anyhow::Context;
use negscale_atomic_file::OwnFolder;
use negscale_methods::trainer::{device_kind, open_device};
use negscale_report::Outcome;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A checkpoint every epoch would be most of the time of a small run.
const CHECKPOINT_SECONDS: &str = "30";
/// Between two looks at runs that others have.
const LOOK: Duration = Duration::from_secs(1);

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It is done.
    Done,
    /// Another process has done it.
    DoneElsewhere,
    /// It failed, for this reason.
    Failed(String),
    /// It was stopped.
    Left,
    /// Another process has it: which.
    Held(String),
}

/// What to do about runs that other processes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// Leave them to those.
    Leave,
    /// Leave them once those were seen to live, and take over from those that do not.
    Check,
    /// Wait until they are over, and take over from those that die.
    Wait,
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
    /// Cores for all of them.
    pub cores: usize,
    /// Devices for them, each for one run after another; without any, what their settings say.
    pub devices: Vec<String>,
    /// What to keep of a finished run.
    pub keep: Keep,
    /// How long a process that says nothing keeps its run.
    pub lease: Duration,
    /// What this call is known by: what failed in it is not tried again in it, by whichever process.
    pub round: String,
    /// The job of a cluster that this process is.
    pub job: Option<String>,
    /// What to do about runs that other processes have.
    pub others: Others,
}

impl WorkOptions {
    /// For a program, on all cores of this machine, in a call of its own.
    #[must_use]
    pub fn new(program: PathBuf, words: Vec<OsString>, jobs: usize, keep: Keep) -> Self {
        let round = format!("{}-{}", clock::now(), std::process::id());
        let (cores, others, devices) = (cores(), Others::Leave, Vec::new());
        Self { program, words, jobs, cores, devices, keep, lease: LEASE, round, job: None, others }
    }
}

/// How many runs to execute at a time by default. Small networks gain little from a second thread; images use all threads.
#[must_use]
pub fn default_jobs(todo: &[&PlannedRun], cores: usize) -> usize {
    if todo.iter().all(|run| run.is_small) { cores } else { 1 }
}

/// Cores of this machine that this process may use.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs to do, and those that others have.
struct Queue<'a> {
    ready: VecDeque<&'a PlannedRun>,
    held: Vec<(&'a PlannedRun, String)>,
}

/// Executes these runs, whose folders are in `below`. `over` is called for every run that is over for this process, with how it ended
/// and how long it took.
pub fn work(
    todo: &[&PlannedRun],
    below: &Path,
    options: &WorkOptions,
    stop: &Stop,
    over: impl Fn(&PlannedRun, &End, Duration) -> Result<()> + Sync,
) -> Result<()> {
    let is_misfit =
        |run: &&&PlannedRun, device: &str| device_kind(&run.recipe.train.device) != device_kind(device);
    for device in &options.devices {
        open_device(device)?;
        if let Some(run) = todo.iter().find(|run| is_misfit(run, device)) {
            let (theirs, kind) = (&run.recipe.train.device, device_kind(device));
            bail!(
                "device {device} is given to runs on {theirs}, which are others: write device = \"{kind}\" in the recipe, or leave \
                 --devices out"
            );
        }
    }
    let jobs = options.jobs.min(todo.len().max(1));
    let leases = Leases::new(below, options.lease, Holder::this(&options.round, options.job.clone()));
    let worker = Worker { options, leases, threads: (options.cores / jobs.max(1)).max(1), stop };
    let queue = Mutex::new(Queue { ready: todo.iter().copied().collect(), held: Vec::new() });
    let queue = || -> MutexGuard<'_, Queue<'_>> { queue.lock().unwrap_or_else(PoisonError::into_inner) };
    let work = |job: usize| -> Result<()> {
        let device = options.devices.get(job % options.devices.len().max(1)).map(String::as_str);
        while !stop.is_asked() {
            let next = queue().ready.pop_front();
            let Some(run) = next else {
                if queue().held.is_empty() {
                    break;
                }
                std::thread::sleep(LOOK);
                let held = std::mem::take(&mut queue().held);
                queue().ready.extend(held.into_iter().map(|(run, _)| run));
                continue;
            };
            let begun = Instant::now();
            match worker.attempt(run, device)? {
                (End::Held(who), is_alive) if options.others.wait_for(is_alive) => {
                    queue().held.push((run, who))
                }
                (end, _) => over(run, &end, begun.elapsed())?,
            }
        }
        Ok(())
    };
    let ended: Vec<Result<()>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|job| scope.spawn(move || work(job))).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Result<()>>| match worker.join() {
            Ok(ended) => ended,
            Err(_) => bail!("a thread of the sweep failed; run the same command again to resume"),
        };
        workers.into_iter().map(join).collect()
    });
    ended.into_iter().collect::<Result<Vec<()>>>()?;
    stop.check()
}

/// Removes what killed processes left beside runs that are done: settings, error output, leases.
///
/// # Errors
/// Those of the system.
pub fn tidy(done: &[&PlannedRun], below: &Path, options: &WorkOptions) -> Result<()> {
    let leases = Leases::new(below, options.lease, Holder::this(&options.round, options.job.clone()));
    for run in done {
        let name = run.folder_name();
        let is_left = OF_SWEEP.iter().any(|file| run.place.join(file).exists());
        if !is_left && !leases.has(&name) {
            continue;
        }
        // Others that work there still will tidy up themselves.
        let Claim::Ours(lease) = leases.claim(&name)? else { continue };
        if let Ok(own) = OwnFolder::open(&run.place) {
            own.remove(|name| OF_SWEEP.contains(&name))?;
        }
        lease.end();
    }
    Ok(())
}

impl Others {
    fn wait_for(self, is_alive: bool) -> bool {
        match self {
            Self::Leave => false,
            Self::Check => !is_alive,
            Self::Wait => true,
        }
    }
}

/// What executes runs.
struct Worker<'a> {
    options: &'a WorkOptions,
    leases: Leases,
    threads: usize,
    stop: &'a Stop,
}

impl Worker<'_> {
    /// Executes one run, unless it is done or another process has it by now; with whether that process was seen to live.
    fn attempt(&self, run: &PlannedRun, device: Option<&str>) -> Result<(End, bool)> {
        if let RunState::Done(_) = RunState::of(run) {
            return Ok((End::DoneElsewhere, true));
        }
        let mut lease = match self.leases.claim(&run.folder_name())? {
            Claim::Ours(lease) => lease,
            Claim::Theirs { holder, is_alive } => {
                let who = holder.map_or_else(|| "another process".into(), |holder| holder.words());
                return Ok((End::Held(who), is_alive));
            }
            Claim::Failed => {
                let reason = match RunState::of(run) {
                    RunState::Failed(reason) => reason,
                    state => format!("it failed, and is {} now", state.word()),
                };
                return Ok((End::Failed(reason), true));
            }
            Claim::Deadly(count) => {
                let reason = format!(
                    "the processes of this run vanished {count} times: it may need more memory than there is; see the logs"
                );
                if let Ok(own) = OwnFolder::open(&run.place) {
                    own.claim([FAILURE])?;
                    write(&run.place.join(FAILURE), format!("{reason}\n").as_bytes())?;
                }
                return Ok((End::Failed(reason), true));
            }
        };
        // It may have been done, or begun by hand, before the lease was ours.
        let end = match RunState::of(run) {
            RunState::Done(_) => Ok(End::DoneElsewhere),
            RunState::Running => Ok(End::Held("another process on this machine".into())),
            RunState::Begun | RunState::Failed(_) | RunState::Missing => {
                self.execute(run, device, &mut lease)
            }
        };
        match &end {
            Ok(End::Done | End::DoneElsewhere) => lease.end(),
            Ok(End::Failed(_)) => lease.release(Release::Failed)?,
            Ok(End::Left | End::Held(_)) | Err(_) => lease.release(Release::Left)?,
        }
        Ok((end?, false))
    }

    /// Executes a run that is ours as long as the lease is.
    fn execute(&self, run: &PlannedRun, device: Option<&str>, lease: &mut Lease) -> Result<End> {
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
            recipe.train.threads = self.threads;
        }
        if let Some(device) = device {
            recipe.train.device = device.into();
        }
        let [settings, errors] = OF_SWEEP.map(|name| place.join(name));
        write(&settings, recipe.to_toml().as_bytes())?;
        let file = File::create(&errors).with_context(|| format!("cannot write {}", errors.display()))?;
        let mut child = self
            .command(place, &settings)
            .stderr(file)
            .spawn()
            .context("cannot start a process for a run")?;
        let mut is_ours = true;
        let status = loop {
            if let Some(status) = child.try_wait().context("cannot wait for a run")? {
                break status;
            }
            is_ours = lease.beat();
            if !is_ours || self.stop.is_asked() {
                drop(child.stdin.take());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let said = fs::read(&errors).with_context(|| format!("cannot read {}", errors.display()))?;
        let said = String::from_utf8_lossy(&said);
        let end = match RunState::of(run) {
            RunState::Done(_) if status.success() => End::Done,
            _ if !is_ours => return Ok(End::Held("a process that took it over".into())),
            _ if matches!(status.code(), Some(130 | 143)) || self.stop.is_asked() => End::Left,
            // Another sweep was quicker.
            RunState::Running => End::Held("another process on this machine".into()),
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

    /// The process of a run.
    fn command(&self, place: &Path, settings: &Path) -> Command {
        let mut command = Command::new(&self.options.program);
        command.args(&self.options.words);
        command.arg("train").arg(settings).arg("--out").arg(place);
        command.args(["--quiet", "--stop-with-input"]);
        if self.options.keep == Keep::Results {
            command.args(["--keep", "results", "--checkpoint-every", CHECKPOINT_SECONDS]);
        }
        if matches!(Outcome::read(place), Err(negscale_report::Error::Damaged { .. })) {
            command.arg("--fresh");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command
    }
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
