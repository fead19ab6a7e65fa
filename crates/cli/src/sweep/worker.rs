//! `negscale sweep plan` and `negscale sweep work`: a plan in a file, and workers that do its runs.

use super::{PlanArguments, WorkArguments, slurm};
use crate::train::Signals;
use anyhow::{Context, Result, bail};
use negscale_run::sweep::{
    Claim, Holder, Leases, Others, PlannedRun, RunState, SavedPlan, WorkOptions, record,
};
use std::time::Duration;

/// Between two looks at what another worker does.
const LOOK: Duration = Duration::from_secs(2);

/// Writes a plan.
pub fn plan(arguments: PlanArguments) -> Result<()> {
    let PlanArguments { which, out } = arguments;
    let selection = which.selection();
    let planned = negscale_run::sweep::plan(&selection, &out)?;
    planned.notes.iter().for_each(|note| eprintln!("note: {note}"));
    let saved = SavedPlan::of(&planned, selection, &out)?;
    eprintln!("{} runs planned, {} wait for the choice of their settings", saved.runs.len(), saved.waiting());
    say!("{}", saved.path().display());
    Ok(())
}

/// Does runs of a plan until none is left.
pub fn work(arguments: WorkArguments) -> Result<()> {
    let WorkArguments { plan, worker, no_wait, requeue, json } = arguments;
    let options = worker.options()?;
    let mut saved = SavedPlan::read(&plan)?;
    let here = saved.begins_in();
    std::env::set_current_dir(here).with_context(|| {
        format!(
            "the plan was made in {}, which this machine cannot enter; paths in it begin there",
            here.display()
        )
    })?;
    let signals = Signals::listen()?;
    let slurm = slurm::Job::of_process();
    let options = WorkOptions {
        round: saved.round().to_owned(),
        job: slurm.as_ref().map(slurm::Job::name),
        others: if no_wait { Others::Check } else { Others::Wait },
        cores: slurm.as_ref().and_then(|job| job.cores).unwrap_or(options.cores),
        ..options
    };
    let leases = Leases::new(saved.below(), options.lease, Holder::this(&options.round, options.job.clone()));
    // Workers begin at different places of the plan, so that they do not ask for the same runs one after the other.
    let begin = slurm.as_ref().and_then(|job| job.task).unwrap_or(std::process::id() as usize);
    loop {
        let mut runs: Vec<&PlannedRun> = saved.runs.iter().collect();
        let count = runs.len().max(1);
        runs.rotate_left(begin.wrapping_mul(count / 7 + 1) % count);
        let ended = super::run::perform(&runs, saved.below(), &options, json, &signals);
        if let (Some(job), true) = (&slurm, signals.stop().is_asked()) {
            job.requeue(requeue, &runs);
        }
        ended?;
        if saved.waiting() == 0 || !runs.iter().all(|run| matches!(RunState::of(run), RunState::Done(_))) {
            break;
        }
        saved = renew(&saved, &leases, &signals)?;
    }
    Ok(())
}

/// The plan with the runs that waited for their choice, made by this process or by another one.
fn renew(saved: &SavedPlan, leases: &Leases, signals: &Signals) -> Result<SavedPlan> {
    let name = saved.folder().file_name().unwrap_or_default().to_string_lossy().into_owned();
    loop {
        signals.stop().check()?;
        match leases.claim(&name)? {
            Claim::Ours(lease) => {
                let now = SavedPlan::read(saved.path())?;
                if now.waiting() < saved.waiting() {
                    lease.end();
                    return Ok(now);
                }
                let planned = now.renew()?;
                lease.end();
                if planned.waiting.len() == saved.waiting() {
                    bail!(
                        "the searches of {} are over, and chose nothing; plan again",
                        saved.path().display()
                    );
                }
                if let Some(path) = record(&planned, &saved.selection().recipes[0], saved.below())? {
                    eprintln!("what the searches chose: {}", path.display());
                }
                return SavedPlan::read(saved.path()).map_err(Into::into);
            }
            Claim::Theirs { .. } => std::thread::sleep(LOOK),
            Claim::Failed | Claim::Deadly(_) => {
                bail!(
                    "{} could not be planned again by other workers; see their logs",
                    saved.path().display()
                )
            }
        }
    }
}
