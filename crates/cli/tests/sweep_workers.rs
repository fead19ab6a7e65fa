//! Workers of a sweep: a plan in a file, any number of processes that pull runs from it, and those that die.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::sweeps::{arrange, remains, runs, said, sweep};
use support::{fail, folder, succeed};

/// Plans a sweep and gives the path of the plan.
fn planned(here: &Path, out: &str) -> PathBuf {
    let words = ["plan", "sweep.toml", "--out", out];
    PathBuf::from(said(&succeed(&mut sweep(here, &words))).0.trim())
}

/// A worker, started in a folder that is not the one of the plan.
fn worker(plan: &Path, more: &[&str]) -> Child {
    let mut command = sweep(Path::new("/"), &["work", plan.to_str().unwrap(), "--json", "--jobs", "1"]);
    command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// How many runs ended in each way, as a worker said; those that another one did are "elsewhere".
fn ended(worker: Child) -> BTreeMap<String, usize> {
    let output = worker.wait_with_output().unwrap();
    let mut counts = BTreeMap::new();
    for line in said(&output).0.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let is_other = line["elsewhere"] == true;
        let word = if is_other { "elsewhere" } else { line["state"].as_str().unwrap() };
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    assert!(output.status.success(), "{}", said(&output).1);
    counts
}

fn epochs(below: &Path) -> usize {
    let count = |run: &PathBuf| {
        std::fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default().lines().count()
    };
    runs(below).iter().map(count).sum()
}

#[test]
fn workers_share_the_runs_of_a_plan_and_do_each_once() {
    let here = folder("shared");
    arrange(&here, "epochs = 20", "seed = [1, 2, 3, 4, 5, 6, 7, 8]");
    succeed(&mut sweep(&here, &["run", "sweep.toml", "--out", "whole"]));
    let plan = planned(&here, "runs");
    assert!(plan.ends_with("runs/sweep-sweep/plan.jsonl"), "{}", plan.display());
    let workers: Vec<Child> = (0..3).map(|_| worker(&plan, &[])).collect();
    let counts: Vec<_> = workers.into_iter().map(ended).collect();
    let done: usize = counts.iter().filter_map(|counts| counts.get("done")).sum();
    assert_eq!(done, 8, "each is done by one worker: {counts:?}");
    assert_eq!(remains(&here.join("runs")), remains(&here.join("whole")));
    assert!(!here.join("runs/.leases").exists(), "nobody has anything any more");
    let text = said(&succeed(&mut sweep(&here, &["status", plan.to_str().unwrap()]))).0;
    assert_eq!(text.trim(), "8 runs: 8 done");
    // Whoever comes late has nothing to do.
    assert!(ended(worker(&plan, &[])).is_empty());
}

#[test]
fn what_a_killed_worker_had_is_done_by_the_others() {
    let here = folder("killed");
    arrange(&here, "epochs = 60", "seed = [1, 2, 3]\nbatch = [4]");
    succeed(&mut sweep(&here, &["run", "sweep.toml", "--out", "whole"]));
    let plan = planned(&here, "runs");
    let mut victim = worker(&plan, &[]);
    while epochs(&here.join("runs")) < 3 {
        assert!(victim.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::sleep(Duration::from_millis(2));
    }
    let state = said(&succeed(&mut sweep(&here, &["status", plan.to_str().unwrap(), "--json"]))).0;
    let by = format!("process {} on ", victim.id());
    assert!(state.lines().any(|line| line.contains("\"running\"") && line.contains(&by)), "{state}");
    let other = worker(&plan, &[]);
    victim.kill().unwrap();
    victim.wait().unwrap();
    let counts = ended(other);
    assert!(counts["done"] >= 2, "{counts:?}");
    assert_eq!(remains(&here.join("runs")), remains(&here.join("whole")));
}

#[test]
fn what_searches_choose_is_planned_by_whoever_ends_them() {
    let here = folder("chosen");
    let arms = "noise = [\"sym:0.3\"]\nseed = [1, 2]\n\n[arms]\nclaim = \"tuned\"\nhost = { plugin = \"none\" }\n\
                tuned = { plugin = \"none\", search = { \"optimiser.lr\" = [1e-6, 0.05] } }\n\n[search]\nseeds = [11]";
    arrange(&here, "epochs = 2\nvalidation = 0.2", arms);
    succeed(&mut sweep(&here, &["run", "sweep.toml", "--out", "whole"]));
    let plan = planned(&here, "runs");
    let workers: Vec<Child> = (0..2).map(|_| worker(&plan, &[])).collect();
    let done: usize = workers.into_iter().map(|one| ended(one)["done"]).sum();
    assert_eq!(done, 6, "two runs of the host, two of the search, and two of what it chose");
    let chosen =
        |out: &str| std::fs::read_to_string(here.join(out).join("search-sweep/chosen.toml")).unwrap();
    assert_eq!(chosen("runs"), chosen("whole"));
}

#[test]
fn a_run_that_fails_is_tried_by_one_worker_and_again_in_the_next_round() {
    let here = folder("fails");
    arrange(&here, "epochs = 1", "noise = [\"cifarn:worse\", \"sym:0.2\"]");
    let plan = planned(&here, "runs");
    let error = fail(&mut sweep(&here, &["work", plan.to_str().unwrap()]));
    assert!(error.contains("1 of 2 runs failed") && error.contains("cifarn"), "{error}");
    let failure = |run: &PathBuf| run.join("failure.txt").metadata().and_then(|file| file.modified()).ok();
    let when = || runs(&here.join("runs")).iter().find_map(failure).unwrap();
    let first = when();
    let error = fail(&mut sweep(&here, &["work", plan.to_str().unwrap()]));
    assert!(error.contains("cifarn"), "{error}");
    assert_eq!(when(), first, "it was not tried again");
    let plan = planned(&here, "runs");
    fail(&mut sweep(&here, &["work", plan.to_str().unwrap()]));
    assert_ne!(when(), first, "a new plan is a new round");
}

#[test]
fn the_script_for_a_cluster_says_what_was_asked_for() {
    let here = folder("script");
    arrange(&here, "epochs = 1", "seed = [1, 2, 3]");
    let words = [
        "run",
        "sweep.toml",
        "--on",
        "slurm",
        "--workers",
        "2",
        "--time",
        "4h",
        "--lease",
        "30",
        "--dry-run",
        "--",
        "--partition=gpu",
        "--comment=it's ours",
    ];
    let script = said(&succeed(&mut sweep(&here, &words))).0;
    assert!(!here.join("runs").exists(), "a dry run writes nothing");
    for line in [
        "#!/bin/bash",
        "#SBATCH --job-name=negscale-sweep",
        "#SBATCH --array=0-1",
        "#SBATCH --signal=B:TERM@120",
        "#SBATCH --time=240",
        "#SBATCH --requeue",
        "#SBATCH --partition=gpu",
        r"#SBATCH '--comment=it'\''s ours'",
    ] {
        assert!(script.lines().any(|found| found == line), "{line} is missing in\n{script}");
    }
    let last = script.lines().last().unwrap();
    assert!(
        last.starts_with("exec ") && last.contains(" sweep work ") && last.contains("--lease 30"),
        "{last}"
    );
    // A shell reads it.
    let path = here.join("script.sh");
    std::fs::write(&path, &script).unwrap();
    assert!(Command::new("bash").arg("-n").arg(&path).status().unwrap().success());
    let more = said(&succeed(&mut sweep(
        &here,
        &["run", "sweep.toml", "--on", "slurm", "--workers", "64", "--dry-run"],
    )));
    assert!(more.0.contains("--array=0-2\n"), "no more workers than runs: {}", more.0);
}

#[test]
fn slips_are_told() {
    let here = folder("slips");
    arrange(&here, "epochs = 1", "seed = [1]");
    let error = fail(&mut sweep(&here, &["run", "sweep.toml", "--", "--partition=gpu"]));
    assert!(error.contains("--on slurm"), "{error}");
    let error =
        fail(&mut sweep(&here, &["run", "sweep.toml", "--on", "slurm", "--time", "soon", "--dry-run"]));
    assert!(error.contains("--time soon") && error.contains("4h"), "{error}");
    let error = fail(&mut sweep(&here, &["work", "sweep.toml"]));
    assert!(error.contains("is not the plan of a sweep") && error.contains("negscale sweep plan"), "{error}");
    let error = fail(&mut sweep(&here, &["cancel", "sweep.toml"]));
    assert!(error.contains("no workers were submitted"), "{error}");
    let mut without = sweep(&here, &["run", "sweep.toml", "--on", "slurm"]);
    let error = fail(without.env("PATH", "/nowhere"));
    assert!(error.contains("`sbatch` is not there") && error.contains("sweep plan"), "{error}");
    let plan = planned(&here, "runs");
    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replacen("\"version\":\"", "\"version\":\"9.", 1)).unwrap();
    let error = fail(&mut sweep(&here, &["work", plan.to_str().unwrap()]));
    assert!(error.contains("made by version 9."), "{error}");
}
