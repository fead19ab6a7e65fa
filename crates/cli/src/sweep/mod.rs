//! `negscale sweep`: many runs from recipes with `[matrix]` and `[arms]`, and tables over them.
//!
//! Every run has a folder named by what it is: the hash of its resolved settings, its data and the program's version. What
//! is done, begun, failed or missing is read from these folders and nowhere else, so a sweep can be stopped, resumed,
//! extended, shared between recipes and run by several processes, on one machine or on many.

mod run;
mod slurm;
mod status;
mod worker;

use crate::cluster::Cluster;
use crate::program::{Program, program};
use crate::source::Place;
use crate::train::Keep;
use anyhow::{Result, bail};
use negscale_run::sweep::{LEASE, RunSelection, SweepPlan, TableOptions, WorkOptions, plan, tables};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Run many trainings from recipes with a [matrix] table, and [arms] to compare: run them, show their progress, make tables.
#[derive(clap::Subcommand)]
pub enum Sweep {
    /// Run what is missing, and resume what was begun.
    ///
    /// Each run is a separate process. Run the same command again to resume after a stop; runs that are done are not repeated.
    /// In a sweep, no baseline is trained unless the recipe asks for one.
    Run(Box<RunArguments>),
    /// Write the plan of a sweep to a file, for workers on other machines.
    ///
    /// Prints its path. The data is opened here, once; workers open only what they run.
    Plan(PlanArguments),
    /// Do runs of a plan until none is left: start as many of these as there are machines.
    ///
    /// Workers share a folder of runs, say in it which runs they have, and take over from workers that died. Any program that starts
    /// processes can start them: ssh, GNU parallel, a scheduler.
    Work(WorkArguments),
    /// Count the runs that are done, running, begun, failed and missing, and show the workers on a cluster.
    Status(status::Arguments),
    /// Cancel the workers of a sweep on a cluster. Runs save and stop; submit again to resume.
    Cancel(CancelArguments),
    /// Make tables over finished runs: mean, standard deviation and number of runs; the plug-in's gain on the same seeds, with its interval; with [arms], its difference to every control, with Holm's correction.
    Collect(CollectArguments),
}

/// The state of a run whose settings are not chosen yet.
const WAITING: &str = "waiting";

/// Which runs.
#[derive(clap::Args)]
pub struct Which {
    /// Recipes: TOML files with a [matrix] table.
    #[arg(value_name = "RECIPE", required = true)]
    pub recipes: Vec<PathBuf>,
    /// Set a key in all runs, such as epochs=3; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Only runs with these settings, such as host=rolr,seed=1 or arm=plugin; several values for one key are alternatives.
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Where data is looked for.
    #[command(flatten)]
    pub place: Place,
}

impl Which {
    /// All runs below a folder; prints notes on how the data was read.
    fn plan(self, below: &Path) -> Result<SweepPlan> {
        let plan = plan(&self.selection(), below)?;
        plan.notes.iter().for_each(|note| eprintln!("note: {note}"));
        Ok(plan)
    }

    fn selection(self) -> RunSelection {
        let Self { recipes, set, only, place } = self;
        RunSelection { recipes, set, only, data_dir: place.data_dir }
    }
}

/// Arguments of `run`.
#[derive(clap::Args)]
pub struct RunArguments {
    #[command(flatten)]
    which: Which,
    /// Parent folder of the runs' folders.
    #[arg(long, alias = "runs", value_name = "FOLDER", default_value = "runs")]
    out: PathBuf,
    #[command(flatten)]
    worker: WorkerChoices,
    #[command(flatten)]
    on: Cluster,
    /// With --on: how often a worker whose time ends may be queued again while runs are left; it saves two minutes before.
    #[arg(long, value_name = "TIMES", requires = "on", default_value_t = 100)]
    requeue: u32,
    /// List the runs and what each would do, without running anything; with --on, print the script that would be submitted.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object per run.
    #[arg(long)]
    json: bool,
}

/// How runs are executed.
#[derive(clap::Args)]
pub struct WorkerChoices {
    /// Number of runs at a time, for each worker [default: the number of cores for features, 1 for images].
    #[arg(long)]
    jobs: Option<usize>,
    /// Devices of this machine, one for each run at a time, such as cuda:0,cuda:1; the recipe names their kind (device = "cuda").
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    devices: Vec<String>,
    /// What to keep of a finished run.
    #[arg(long, value_enum, default_value_t = Keep::Results)]
    keep: Keep,
    /// How long a process that says nothing keeps its run, until others take it over.
    #[arg(long, value_name = "SECONDS", default_value_t = LEASE.as_secs(), value_parser = clap::value_parser!(u64).range(2..))]
    lease: u64,
}

impl WorkerChoices {
    /// How a program executes runs by these.
    fn options(&self) -> Result<WorkOptions> {
        if self.jobs == Some(0) {
            bail!("--jobs 0: nothing would run; use at least 1");
        }
        // Without a word, a run for each device, or as many as fit.
        let jobs = self.jobs.unwrap_or(self.devices.len());
        let Program { path, words } = program()?;
        let options = WorkOptions::new(path, words, jobs, self.keep.into());
        Ok(WorkOptions { lease: Duration::from_secs(self.lease), devices: self.devices.clone(), ..options })
    }
}

/// Arguments of `plan`.
#[derive(clap::Args)]
pub struct PlanArguments {
    #[command(flatten)]
    which: Which,
    /// Parent folder of the runs' folders; every worker must see it by this path.
    #[arg(long, alias = "runs", value_name = "FOLDER", default_value = "runs")]
    out: PathBuf,
}

/// Arguments of `work`.
#[derive(clap::Args)]
pub struct WorkArguments {
    /// The plan: a file written by `negscale sweep plan`.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    worker: WorkerChoices,
    /// End when other workers have all that is left, instead of waiting for them.
    #[arg(long)]
    no_wait: bool,
    /// Under Slurm: requeue this job when its time ends and runs are left, at most this often.
    #[arg(long, value_name = "TIMES", default_value_t = 0)]
    requeue: u32,
    /// Print one JSON object per run.
    #[arg(long)]
    json: bool,
}

/// Arguments of `cancel`.
#[derive(clap::Args)]
pub struct CancelArguments {
    /// The recipe, or the plan.
    #[arg(value_name = "RECIPE")]
    recipe: PathBuf,
    /// Parent folder of the runs' folders.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    runs: PathBuf,
}

/// Arguments of `collect`.
#[derive(clap::Args)]
pub struct CollectArguments {
    #[command(flatten)]
    which: Which,
    /// Parent folder of the runs' folders.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    runs: PathBuf,
    /// Folder to write the tables to, as CSV, Markdown and LaTeX, and runs.csv with one line per run.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Settings for the rows, such as host,plugin [default: all that vary, except columns and seeds].
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    rows: Vec<String>,
    /// Settings for the columns [default: data and noise, if they vary].
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    columns: Vec<String>,
    /// Figures from results.json, one table each [default: test_last10; with arms test_last10,test_last].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    figure: Vec<String>,
}

/// Runs the verb.
pub fn run(what: Sweep) -> Result<()> {
    match what {
        Sweep::Run(arguments) => run::run(*arguments),
        Sweep::Plan(arguments) => worker::plan(arguments),
        Sweep::Work(arguments) => worker::work(arguments),
        Sweep::Status(arguments) => status::run(arguments),
        Sweep::Cancel(arguments) => slurm::cancel(&arguments.recipe, &arguments.runs),
        Sweep::Collect(arguments) => collect(arguments),
    }
}

fn collect(arguments: CollectArguments) -> Result<()> {
    let CollectArguments { which, runs, out, rows, columns, figure } = arguments;
    let options = TableOptions { out, rows, columns, figures: figure };
    let tables: Vec<String> =
        tables(&which.plan(&runs)?, &options)?.iter().map(|table| table.to_text()).collect();
    say_part!("{}", tables.join("\n"));
    if let Some(out) = &options.out {
        say!(
            "\nwritten to {}: runs.csv, and each table as .csv, .md and .tex; with arms each difference as .svg",
            out.display()
        );
    }
    Ok(())
}
