//! `negscale sweep`: many runs from recipes with `[matrix]` and `[arms]`, and tables over them.
//!
//! Every run has a folder named by what it is: the hash of its resolved settings, its data and the program's version. What
//! is done, begun, failed or missing is read from these folders and nowhere else, so a sweep can be stopped, resumed,
//! extended, shared between recipes and run by several processes.

mod run;

use crate::source::Place;
use crate::train::Keep;
use anyhow::Result;
use negscale_run::sweep::{RunSelection, RunState, SweepPlan, TableOptions, WORDS, first_line, plan, tables};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Run many trainings from recipes with a [matrix] table, and [arms] to compare: run them, show their progress, make tables.
#[derive(clap::Subcommand)]
pub enum Sweep {
    /// Run what is missing, and resume what was begun.
    ///
    /// Each run is a separate process. Run the same command again to resume after a stop; runs that are done are not repeated.
    /// In a sweep, no baseline is trained unless the recipe asks for one.
    Run(Box<RunArguments>),
    /// Count the runs that are done, running, begun, failed and missing.
    Status(StatusArguments),
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
    /// Number of runs at a time [default: the number of cores for features, 1 for images].
    #[arg(long)]
    jobs: Option<usize>,
    /// What to keep of a finished run.
    #[arg(long, value_enum, default_value_t = Keep::Results)]
    keep: Keep,
    /// List the runs and what each would do, without running anything.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object per run.
    #[arg(long)]
    json: bool,
}

/// Arguments of `status`.
#[derive(clap::Args)]
pub struct StatusArguments {
    #[command(flatten)]
    which: Which,
    /// Parent folder of the runs' folders.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    runs: PathBuf,
    /// Print one JSON object per run.
    #[arg(long)]
    json: bool,
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
        Sweep::Status(arguments) => status(arguments),
        Sweep::Collect(arguments) => collect(arguments),
    }
}

fn status(arguments: StatusArguments) -> Result<()> {
    let plan = arguments.which.plan(&arguments.runs)?;
    let runs = plan.distinct();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failed = Vec::new();
    for run in runs.iter().copied() {
        let state = RunState::of(run);
        *counts.entry(state.word()).or_default() += 1;
        let reason = if let RunState::Failed(reason) = &state { Some(reason.clone()) } else { None };
        if arguments.json {
            say!("{}", json!({"name": run.name, "run": run.place, "state": state.word(), "reason": reason}));
        }
        failed.extend(reason.map(|reason| (run, reason)));
    }
    if arguments.json {
        for run in &plan.waiting {
            say!("{}", json!({"name": run.name, "state": WAITING, "development_runs_left": run.left}));
        }
        return Ok(());
    }
    let counts = WORDS.iter().filter_map(|word| Some(format!("{} {word}", counts.get(word)?)));
    say!("{} runs: {}", runs.len(), counts.collect::<Vec<_>>().join(", "));
    if !plan.waiting.is_empty() {
        say!("{} more wait for the choice of their settings", plan.waiting.len());
    }
    for (run, reason) in failed {
        say!("failed: {} in {}\n  {}", run.name, run.place.display(), first_line(&reason));
    }
    Ok(())
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
