//! `negscale sweep` as a person runs it, stops it and reads its tables.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::sweeps::{arrange, remains, results, runs, said, sweep, write_table};
use support::{fail as fails, folder, succeed as fine};

const TWO_BY_TWO: &str =
    "method = [{ plugin = \"none\" }, { plugin = \"negscale\", \"negscale.lambda\" = 0.5 }]\nseed = [1, 2]";

/// `{"done": 3, "failed": 1}` and so on.
fn counts(here: &Path, out: &str) -> BTreeMap<String, usize> {
    let output = fine(&mut sweep(here, &["status", "sweep.toml", "--runs", out, "--json"]));
    let mut counts = BTreeMap::new();
    for line in said(&output).0.lines() {
        let state: Value = serde_json::from_str(line).unwrap();
        *counts.entry(state["state"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

fn counted<const N: usize>(pairs: [(&str, usize); N]) -> BTreeMap<String, usize> {
    pairs.into_iter().map(|(word, count)| (word.to_owned(), count)).collect()
}

#[test]
fn a_second_run_does_nothing_and_what_is_missing_is_done_alone() {
    let here = folder("again");
    arrange(&here, "epochs = 2", TWO_BY_TWO);
    let (_, first) = said(&fine(&mut sweep(&here, &["run", "sweep.toml"])));
    assert!(first.contains("4 to do") && first.contains("4 of 4 runs are done, 0 failed"), "{first}");
    let all = runs(&here.join("runs"));
    assert_eq!(all.len(), 4);
    for run in &all {
        let mut files: Vec<String> =
            runs(run).iter().map(|p| p.file_name().unwrap().to_string_lossy().into()).collect();
        files.retain(|name| name != "tree.tsv");
        assert_eq!(
            files,
            [".negscale-folder", "metrics.jsonl", "results.json", "settings.toml", "summary.txt"],
            "only results are kept"
        );
        assert!(results(run)["baseline"].is_null(), "no baseline within a sweep");
    }
    let before = remains(&here.join("runs"));
    let written = |run: &PathBuf| run.join("results.json").metadata().and_then(|file| file.modified()).ok();
    let times: Vec<_> = all.iter().map(written).collect();

    let (_, second) = said(&fine(&mut sweep(&here, &["run", "sweep.toml"])));
    assert!(second.contains("4 already done, 0 to do"), "{second}");

    std::fs::remove_file(all[2].join("results.json")).unwrap();
    assert_eq!(counts(&here, "runs"), counted([("done", 3), ("missing", 1)]));
    let (_, third) = said(&fine(&mut sweep(&here, &["run", "sweep.toml"])));
    assert!(third.contains("3 already done, 1 to do"), "{third}");
    assert_eq!(remains(&here.join("runs")), before);
    for (i, run) in all.iter().enumerate() {
        assert_eq!(written(run) == times[i], i != 2, "{}", run.display());
    }

    // Torn files are made again, too.
    std::fs::write(all[1].join("results.json"), "{\"test_last\": 0.").unwrap();
    assert_eq!(counts(&here, "runs"), counted([("done", 3), ("failed", 1)]));
    fine(&mut sweep(&here, &["run", "sweep.toml"]));
    assert_eq!(remains(&here.join("runs")), before);
}

#[test]
fn a_sweep_of_many_threads_and_another_place_of_the_data_has_the_same_runs() {
    let here = folder("same");
    arrange(&here, "epochs = 1", "seed = [1]");
    fine(&mut sweep(&here, &["run", "sweep.toml", "--set", "threads=2"]));
    std::fs::create_dir(here.join("elsewhere")).unwrap();
    let (_, again) = said(&fine(&mut sweep(&here, &["run", "sweep.toml", "--data-dir", "elsewhere"])));
    assert!(again.contains("1 already done"), "{again}");
    // Other data is another run.
    write_table(&here.join("test.csv"), 60, 0);
    assert_eq!(counts(&here, "runs"), counted([("missing", 1)]));
}

/// Waits until a run below has so many epochs on record.
fn wait_for(child: &mut Child, below: &Path, epochs: usize) {
    let done = |run: &PathBuf| {
        std::fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default().lines().count()
    };
    while !runs(below).iter().any(|run| done(run) >= epochs) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was stopped");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_sweep_that_was_stopped_or_killed_goes_on_to_the_same_results() {
    let here = folder("stopped");
    arrange(&here, "epochs = 60", "seed = [1, 2]\nbatch = [4]");
    fine(&mut sweep(&here, &["run", "sweep.toml", "--out", "whole"]));
    for (signal, code) in [("TERM", Some(143)), ("KILL", None)] {
        let out = here.join(signal);
        let mut command = sweep(&here, &["run", "sweep.toml", "--jobs", "2", "--out", signal]);
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        wait_for(&mut child, &out, 3);
        let killed =
            Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        assert_eq!(child.wait().unwrap().code(), code);
        // Runs of a sweep that was killed notice it and end by themselves.
        let mut state = counts(&here, signal);
        while state.contains_key("running") {
            std::thread::sleep(Duration::from_millis(20));
            state = counts(&here, signal);
        }
        assert!(state.contains_key("begun"), "{state:?}");
        fine(&mut sweep(&here, &["run", "sweep.toml", "--out", signal]));
        assert_eq!(remains(&out), remains(&here.join("whole")));
        for run in runs(&out) {
            assert!(!run.join("checkpoints").exists(), "a finished run keeps no checkpoint");
        }
    }
}

#[test]
fn a_run_that_fails_is_listed_and_the_others_are_done() {
    let here = folder("failed");
    // Labels by people are for CIFAR only, which shows when the run begins.
    arrange(&here, "epochs = 1", "noise = [\"cifarn:worse\", \"sym:0.2\"]");
    let error = fails(&mut sweep(&here, &["run", "sweep.toml"]));
    assert!(error.contains("1 of 2 runs failed") && error.contains("noise=cifarn:worse: "), "{error}");
    let (text, _) = said(&fine(&mut sweep(&here, &["status", "sweep.toml"])));
    assert!(text.contains("2 runs: 1 done, 1 failed"), "{text}");
    assert!(text.contains("failed: noise=cifarn:worse in runs"), "{text}");
    let failed = runs(&here.join("runs")).into_iter().find(|run| run.join("failure.txt").exists()).unwrap();
    assert!(failed.file_name().unwrap().to_string_lossy().contains("cifarn"));
    let (table, _) = said(&fine(&mut sweep(&here, &["collect", "sweep.toml"])));
    assert!(table.contains("1 of 2 runs are done"), "{table}");
    let lines = fails(&mut sweep(&here, &["run", "sweep.toml"]));
    assert!(lines.contains("1 already done, 1 to do"), "a failed run is tried again: {lines}");
}

#[test]
fn tables_hold_what_the_results_say() {
    let here = folder("tables");
    arrange(&here, "epochs = 2", &TWO_BY_TWO.replace("[1, 2]", "[1, 2, 3]"));
    fine(&mut sweep(&here, &["run", "sweep.toml"]));
    let (text, _) = said(&fine(&mut sweep(
        &here,
        &["collect", "sweep.toml", "--out", "tables", "--figure", "test_last"],
    )));
    assert!(text.contains("6 of 6 runs are done") && text.contains("Gain of the plug-in"), "{text}");

    let mut by_seed: BTreeMap<bool, BTreeMap<i64, f64>> = BTreeMap::new();
    for run in runs(&here.join("runs")) {
        let settings: toml::Table =
            std::fs::read_to_string(run.join("settings.toml")).unwrap().parse().unwrap();
        let with = settings["plugin"].as_str() == Some("negscale");
        let test = results(&run)["test_last"].as_f64().unwrap();
        by_seed.entry(with).or_default().insert(settings["seed"].as_integer().unwrap(), test);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let deviation = |values: &[f64]| {
        let mean = mean(values);
        (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)).sqrt()
    };
    let read = |name: &str| -> Vec<BTreeMap<String, String>> {
        let mut reader = csv::Reader::from_path(here.join("tables").join(name)).unwrap();
        reader.deserialize().map(|row| row.unwrap()).collect()
    };
    let near = |cell: &String, wanted: f64| {
        let found: f64 = cell.parse().unwrap();
        assert!((found - wanted).abs() < 1e-12, "{found} is not {wanted}");
    };
    let table = read("test_last.csv");
    assert_eq!(table.len(), 2);
    for row in &table {
        let values: Vec<f64> = by_seed[&(row["plugin"] == "negscale")].values().copied().collect();
        near(&row["test_last mean"], mean(&values));
        near(&row["test_last sd"], deviation(&values));
        assert_eq!(row["test_last n"], "3");
    }
    let pairs = read("test_last-paired.csv");
    assert_eq!(pairs.len(), 1);
    let differences: Vec<f64> =
        by_seed[&true].iter().map(|(seed, with)| with - by_seed[&false][seed]).collect();
    // Student's t for 95 % and two degrees of freedom.
    let half = 4.302_652_729_911_275 * deviation(&differences) / 3f64.sqrt();
    near(&pairs[0]["difference"], mean(&differences));
    for (end, wanted) in [("low", mean(&differences) - half), ("high", mean(&differences) + half)] {
        let found: f64 = pairs[0][&format!("difference {end}")].parse().unwrap();
        assert!((found - wanted).abs() < 1e-6, "{found} is not {wanted}");
    }
    assert_eq!(pairs[0]["difference n"], "3");
    let lines = read("runs.csv");
    assert_eq!(lines.len(), 6);
    for line in &lines {
        assert_eq!(line["epochs"], "2");
        let run = here.join("runs").join(&line["run"]);
        near(&line["test_last"], results(&run)["test_last"].as_f64().unwrap());
        assert!(
            !line["hardware"].is_empty() && line["state"] == "done" && !line["seconds"].is_empty(),
            "{line:?}"
        );
    }
    for name in ["test_last.md", "test_last.tex", "test_last-paired.md", "test_last-paired.tex"] {
        assert!(here.join("tables").join(name).metadata().unwrap().len() > 100, "{name}");
    }

    // A pair whose host alone is not done is no pair.
    let is_third = |line: &&BTreeMap<String, String>| line["plugin"] == "none" && line["seed"] == "3";
    let third = lines.iter().find(is_third).unwrap();
    std::fs::remove_file(here.join("runs").join(&third["run"]).join("results.json")).unwrap();
    let words = ["collect", "sweep.toml", "--out", "tables", "--figure", "test_last"];
    let (text, _) = said(&fine(&mut sweep(&here, &words)));
    assert!(
        text.contains("no partner with the same seeds is done yet: 1") && text.contains("5 of 6 runs"),
        "{text}"
    );
    let pairs = read("test_last-paired.csv");
    let both: Vec<f64> = [1, 2].map(|seed| by_seed[&true][&seed] - by_seed[&false][&seed]).into();
    near(&pairs[0]["difference"], mean(&both));
    near(&pairs[0]["with plug-in mean"], mean(&[by_seed[&true][&1], by_seed[&true][&2]]));
    assert_eq!(pairs[0]["difference n"], "2");

    let mixed = fails(&mut sweep(&here, &["collect", "sweep.toml", "--rows", "host"]));
    assert!(mixed.contains("differ in `plugin`") && mixed.contains("--rows"), "{mixed}");
    let unknown = fails(&mut sweep(&here, &["collect", "sweep.toml", "--figure", "test_lust"]));
    assert!(unknown.contains("`test_lust`") && unknown.contains("test_last10"), "{unknown}");
}

#[test]
fn a_dry_run_lists_and_only_chooses() {
    let here = folder("dry");
    arrange(&here, "epochs = 1", TWO_BY_TWO);
    let list = |more: &[&str]| {
        let words: Vec<&str> = ["run", "sweep.toml", "--dry-run"].iter().chain(more).copied().collect();
        said(&fine(&mut sweep(&here, &words))).0.lines().count()
    };
    assert_eq!(list(&[]), 4);
    assert_eq!(list(&["--only", "plugin=negscale"]), 2);
    assert_eq!(list(&["--only", "plugin=negscale,seed=2"]), 1);
    assert_eq!(list(&["--only", "seed=1,seed=2"]), 4);
    assert_eq!(list(&["--only", "negscale.lambda=0.50"]), 2);
    for noise in ["noise=sym:0.5", "noise=sym-incl:0.5"] {
        assert_eq!(list(&["--set", "noise=sym:0.5", "--only", noise]), 4, "{noise}");
    }
    assert_eq!(list(&["--set", "seed=7"]), 2, "cells that became the same are one run");
    assert!(!here.join("runs").exists());
    let error = fails(&mut sweep(&here, &["run", "sweep.toml", "--only", "plugin=nine"]));
    assert!(error.contains("no run has these settings"), "{error}");
    let error = fails(&mut sweep(&here, &["run", "sweep.toml", "--only", "plugn=none"]));
    assert!(error.contains("did you mean `plugin`"), "{error}");
    let error = fails(&mut sweep(&here, &["collect", "sweep.toml"]));
    assert!(error.contains("none of the 4 runs") && error.contains("negscale sweep run"), "{error}");
}

#[test]
fn slips_in_a_recipe_are_found_before_anything_runs() {
    let here = folder("slips");
    arrange(&here, "epochs = 1", "seed = [1, 2]\nmethod = [{ host = \"rorl\" }]");
    let error = fails(&mut sweep(&here, &["run", "sweep.toml"]));
    assert!(error.contains("sweep.toml, [matrix] `method`, entry 1") && error.contains("rolr"), "{error}");
    arrange(&here, "epochs = 1", "\"optimiser.lr\" = [0.1, -1]");
    let error = fails(&mut sweep(&here, &["run", "sweep.toml"]));
    assert!(error.contains("run optimiser.lr=-1") && error.contains("entry 2"), "{error}");
    assert!(!here.join("runs").exists());
    let train = Command::new(env!("CARGO_BIN_EXE_negscale"))
        .current_dir(&here)
        .args(["train", "sweep.toml"])
        .output();
    let error = String::from_utf8(train.unwrap().stderr).unwrap();
    assert!(error.contains("negscale sweep run"), "{error}");
}

#[test]
fn what_a_killed_sweep_left_beside_a_run_that_is_done_is_removed() {
    let here = folder("leftovers");
    arrange(&here, "epochs = 1", "seed = [1]");
    fine(&mut sweep(&here, &["run", "sweep.toml"]));
    let run = runs(&here.join("runs")).remove(0);
    let files = |place: &Path| std::fs::read_dir(place).unwrap().count();
    let before = files(&run);
    // The sweep was killed while its run ended: a process that is gone has a lease, settings and error output.
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let marker = run.join(".negscale-folder");
    let listed = std::fs::read_to_string(&marker).unwrap();
    assert!(listed.contains(".sweep.toml") && listed.contains(".sweep.err"), "{listed}");
    for name in [".sweep.toml", ".sweep.err"] {
        std::fs::write(run.join(name), "").unwrap();
    }
    let leases = here.join("runs/.leases");
    std::fs::create_dir(&leases).unwrap();
    let lease = leases.join(format!("{}.1", run.file_name().unwrap().to_str().unwrap()));
    let pid_space =
        std::fs::read_link("/proc/self/ns/pid").map_or_else(|_| String::new(), |p| p.display().to_string());
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let holder = serde_json::json!({
        "host": "here", "system": format!("{} {pid_space}", boot.trim()), "process": child.id(), "since": 1, "job": null,
        "round": "1-1", "beat": 0, "at": 1, "released": "left",
    });
    std::fs::write(&lease, holder.to_string()).unwrap();
    let (_, again) = said(&fine(&mut sweep(&here, &["run", "sweep.toml"])));
    assert!(again.contains("1 already done"), "{again}");
    assert_eq!(files(&run), before);
    assert!(!leases.exists(), "the lease is still there");
}
