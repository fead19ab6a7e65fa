//! `negscale sweep`: many runs from recipes with `[matrix]`, and tables over them.
//!
//! Every run has a folder named by what it is: the hash of its resolved settings, its data and the program's version. What
//! is done, begun, failed or missing is read off these folders and nowhere else, so a sweep can be stopped, started again,
//! extended, shared between recipes and run by several processes.

mod run;

use crate::source::Place;
use crate::train::Keep;
use anyhow::Result;
use negscale_run::sweep::{Plan, Selection, State, TableOptions, WORDS, first_line, plan, tables};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Many runs from recipes with a [matrix] table: run them, see how far they are, make tables.
#[derive(clap::Subcommand)]
pub enum Sweep {
    /// Run what is missing, and go on with what was begun.
    ///
    /// Each run is a process of its own. Run the same command again to go on after a stop; runs that are done are not repeated.
    /// Within a sweep, no baseline is trained unless the recipe asks for one.
    Run(Box<RunArguments>),
    /// How many runs are done, running, begun, failed and missing.
    Status(StatusArguments),
    /// Tables over finished runs: mean, deviation and number; gain of the plug-in on the same seeds with its interval.
    Collect(CollectArguments),
}

/// Which runs.
#[derive(clap::Args)]
pub struct Which {
    /// Recipes: TOML files of settings with a table [matrix].
    #[arg(value_name = "RECIPE", required = true)]
    pub recipes: Vec<PathBuf>,
    /// Set any key in all runs, such as epochs=3; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Only runs with these settings, such as host=rolr,seed=1; several values of one key are alternatives.
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Where data is looked for.
    #[command(flatten)]
    pub place: Place,
}

impl Which {
    /// All runs below a folder. Notes on how the data was read are told.
    fn plan(self, below: &Path) -> Result<Plan> {
        let Self { recipes, set, only, place } = self;
        let plan = plan(&Selection { recipes, set, only, data_dir: place.data_dir }, below)?;
        plan.notes.iter().for_each(|note| eprintln!("note: {note}"));
        Ok(plan)
    }
}

/// Arguments of `run`.
#[derive(clap::Args)]
pub struct RunArguments {
    #[command(flatten)]
    which: Which,
    /// Folder below which each run has its own.
    #[arg(long, alias = "runs", value_name = "FOLDER", default_value = "runs")]
    out: PathBuf,
    /// Runs at once; without it as many as there are cores for features, one for pictures.
    #[arg(long)]
    jobs: Option<usize>,
    /// What stays of a finished run.
    #[arg(long, value_enum, default_value_t = Keep::Results)]
    keep: Keep,
    /// List the runs and what each would do, and run nothing.
    #[arg(long)]
    dry_run: bool,
    /// One JSON object per run.
    #[arg(long)]
    json: bool,
}

/// Arguments of `status`.
#[derive(clap::Args)]
pub struct StatusArguments {
    #[command(flatten)]
    which: Which,
    /// Folder of the runs.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    runs: PathBuf,
    /// One JSON object per run.
    #[arg(long)]
    json: bool,
}

/// Arguments of `collect`.
#[derive(clap::Args)]
pub struct CollectArguments {
    #[command(flatten)]
    which: Which,
    /// Folder of the runs.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    runs: PathBuf,
    /// Folder for the tables as CSV, Markdown and LaTeX, and for runs.csv with a line per run.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Settings that make the rows, such as host,plugin; without it, all that vary and are no columns or seeds.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    rows: Vec<String>,
    /// Settings that make the columns; without it, data and noise as far as they vary.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    columns: Vec<String>,
    /// Figures of results.json, a table for each.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "test_last10")]
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
    let runs = arguments.which.plan(&arguments.runs)?.runs;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failed = Vec::new();
    for run in &runs {
        let state = State::of(run);
        *counts.entry(state.word()).or_default() += 1;
        let reason = if let State::Failed(reason) = &state { Some(reason.clone()) } else { None };
        if arguments.json {
            say!("{}", json!({"name": run.name, "run": run.place, "state": state.word(), "reason": reason}));
        }
        failed.extend(reason.map(|reason| (run, reason)));
    }
    if arguments.json {
        return Ok(());
    }
    let counts = WORDS.iter().filter_map(|word| Some(format!("{} {word}", counts.get(word)?)));
    say!("{} runs: {}", runs.len(), counts.collect::<Vec<_>>().join(", "));
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
        say!("\nin {}: runs.csv, and each table as .csv, .md and .tex", out.display());
    }
    Ok(())
}
