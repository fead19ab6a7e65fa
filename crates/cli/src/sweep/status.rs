//! `negscale sweep status`: what is done and what runs, from the folders of the runs, and the workers that a cluster knows of.

use super::{WAITING, Which, slurm};
use anyhow::Result;
use negscale_run::clock;
use negscale_run::sweep::{Holder, LEASE, Leases, PlannedRun, RunState, SavedPlan, WORDS, first_line};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Arguments of `status`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Parent folder of the runs' folders.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    runs: PathBuf,
    /// Print one JSON object per run.
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { which, runs, json } = arguments;
    let recipe = which.recipes[0].clone();
    if let [path] = which.recipes.as_slice()
        && SavedPlan::is_plan(path)
    {
        let saved = SavedPlan::read(path)?;
        let all: Vec<&PlannedRun> = saved.runs.iter().collect();
        print(&all, saved.below(), saved.waiting(), json)?;
        return slurm::print_workers(saved.folder(), json);
    }
    let plan = which.plan(&runs)?;
    print(&plan.distinct(), &runs, plan.waiting.len(), json)?;
    if json {
        for run in &plan.waiting {
            say!("{}", json!({"name": run.name, "state": WAITING, "development_runs_left": run.left}));
        }
    }
    slurm::print_workers(&SavedPlan::folder_of(&recipe, &runs), json)
}

/// Counts, and what failed.
fn print(runs: &[&PlannedRun], below: &Path, waiting: usize, json: bool) -> Result<()> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut failed, mut silent) = (Vec::new(), Vec::new());
    for run in runs.iter().copied() {
        let state = RunState::of(run);
        // A lock is seen on the machine that holds it, a lease on all.
        let holder = match state {
            RunState::Done(_) => None,
            _ => Leases::holder(below, &run.folder_name()),
        };
        let silence = holder.as_ref().map_or(0, |holder| clock::now().saturating_sub(holder.at));
        let word = match &holder {
            Some(_) if silence <= LEASE.as_secs() => RunState::Running.word(),
            _ => state.word(),
        };
        *counts.entry(word).or_default() += 1;
        let reason = if let RunState::Failed(reason) = &state { Some(reason.clone()) } else { None };
        if json {
            let by = holder.as_ref().map(Holder::words);
            say!(
                "{}",
                json!({"name": run.name, "run": run.place, "state": word, "reason": reason, "by": by})
            );
        }
        if let Some(holder) = holder.filter(|_| word != RunState::Running.word()) {
            silent.push((run, holder.words(), silence));
        }
        failed.extend(reason.map(|reason| (run, reason)));
    }
    if json {
        return Ok(());
    }
    let counts = WORDS.iter().filter_map(|word| Some(format!("{} {word}", counts.get(word)?)));
    say!("{} runs: {}", runs.len(), counts.collect::<Vec<_>>().join(", "));
    if waiting > 0 {
        say!("{waiting} more wait for the choice of their settings");
    }
    for (run, who, silence) in silent {
        let since = clock::duration(silence as f64);
        say!("no sign for {since} of {who}, which has {}: the next worker will take it over", run.name);
    }
    for (run, reason) in failed {
        say!("failed: {} in {}\n  {}", run.name, run.place.display(), first_line(&reason));
    }
    Ok(())
}
