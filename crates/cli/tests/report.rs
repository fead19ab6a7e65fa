//! `negscale report` over folders as runs leave them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn negscale(place: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_negscale")).current_dir(place).args(arguments).output().unwrap()
}

/// The files of a finished run that a comparison reads.
fn write_run(place: &Path, name: &str, plugin: &str, seed: u64, accuracy: f64) {
    let folder = place.join(name);
    fs::create_dir_all(&folder).unwrap();
    let weights = if plugin == "none" { "" } else { "[negscale]\nlambda = 1.0\n\n" };
    let settings = format!(
        "data = \"toy\"\nnoise = \"sym:0.5\"\nnoise_seed = 0\nhost = \"rolr\"\nplugin = \"{plugin}\"\nnet = \"mlp\"\n\
         epochs = 2\nseed = {seed}\n\n{weights}[provenance]\nrun = \"x\"\nversion = \"0.1.0\"\nhardware = \"a machine\"\n"
    );
    fs::write(folder.join("settings.toml"), settings).unwrap();
    let line = |epoch: u64| {
        format!(
            "{{\"epoch\":{epoch},\"seconds\":1.0,\"learning_rate\":0.1,\"losses\":{{}},\"test_accuracy\":{accuracy},\"fit_wrong_given\":0.2}}\n"
        )
    };
    fs::write(folder.join("metrics.jsonl"), line(0) + &line(1)).unwrap();
    let results = format!(
        "{{\"test_last\": {accuracy}, \"test_last10\": {accuracy}, \"seconds\": 2.0, \"baseline\": null}}"
    );
    fs::write(folder.join("results.json"), results).unwrap();
}

fn runs(place: &Path) {
    for (seed, accuracy) in [(1, 0.80), (2, 0.82), (3, 0.81)] {
        write_run(place, &format!("runs/none-{seed}"), "none", seed, accuracy);
        write_run(place, &format!("runs/negscale-{seed}"), "negscale", seed, accuracy + 0.02);
    }
}

#[test]
fn runs_are_compared_by_group_and_seed_by_seed() {
    let place = tempfile::tempdir().unwrap();
    runs(place.path());
    let out = negscale(place.path(), &["report", "runs", "--out", "all.html", "--plots"]);
    let (told, trouble) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    assert!(out.status.success(), "{trouble}");
    for words in ["81.00 ± 1.00 (3)", "83.00 ± 1.00 (3)", "2.00 [2.00, 2.00] (3)", "written: all.html"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let page = fs::read_to_string(place.path().join("all.html")).unwrap();
    for words in [
        "2 methods on toy",
        "6 runs",
        "2 groups",
        "3 seeds",
        "What the plug-in adds",
        "+2.00",
        "rolr + negscale",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("<script"));
    for name in ["results", "differences", "runs"] {
        for ending in ["csv", "md", "tex"] {
            let path = place.path().join(format!("all-tables/{name}.{ending}"));
            assert!(fs::metadata(&path).unwrap().len() > 20, "{}", path.display());
        }
    }
    let table = fs::read_to_string(place.path().join("all-tables/differences.csv")).unwrap();
    assert!(table.starts_with("method,\"test, last 10\",\"test, last 10 low\""), "{table}");
    let plot =
        fs::read_to_string(place.path().join("all-plots/what-the-plug-in-adds-test-accuracy.svg")).unwrap();
    assert!(plot.starts_with("<svg xmlns=") && plot.contains("prefers-color-scheme: dark"));
}

#[test]
fn an_unfinished_run_and_a_repeated_one_are_left_out_with_a_note() {
    let place = tempfile::tempdir().unwrap();
    runs(place.path());
    fs::remove_file(place.path().join("runs/none-2/results.json")).unwrap();
    write_run(place.path(), "runs/none-3-again", "none", 3, 0.1);
    let out = negscale(place.path(), &["report", "runs", "runs/none-1"]);
    let (told, trouble) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    assert!(out.status.success(), "{trouble}");
    assert!(told.contains("80.50 ± 0.71 (2)") && told.contains("comparison.html"), "{told}");
    for words in [
        "none-2: the run is not finished (2 of 2 epochs",
        "none-3-again has the same settings",
        "given twice",
    ] {
        assert!(trouble.contains(words), "{words}: {trouble}");
    }
    let page = fs::read_to_string(place.path().join("comparison.html")).unwrap();
    assert!(page.contains("the run is not finished"));
}

#[test]
fn what_is_no_run_unfinished_or_damaged_is_named_with_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    write_run(place.path(), "run", "none", 1, 0.5);
    let tries: [(&str, &str, &[&str], &str); 5] = [
        ("", "", &["report", "nowhere"], "nowhere: there is no run"),
        ("", "", &["report", "run", "--out", "run"], "name a file in it"),
        ("results.json", "{", &["report", "run"], "results.json"),
        ("metrics.jsonl", "nonsense\nnonsense\n", &["report", "run"], "metrics.jsonl, line 1"),
        ("settings.toml", "host = ", &["report", "run"], "settings.toml"),
    ];
    for (file, text, arguments, wanted) in tries {
        write_run(place.path(), "run", "none", 1, 0.5);
        if !file.is_empty() {
            fs::write(place.path().join("run").join(file), text).unwrap();
        }
        let out = negscale(place.path(), arguments);
        let trouble = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{trouble}");
        assert!(trouble.contains(wanted), "{wanted}: {trouble}");
    }
    write_run(place.path(), "run", "none", 1, 0.5);
    fs::remove_file(place.path().join("run/results.json")).unwrap();
    let out = negscale(place.path(), &["report", "run"]);
    let trouble = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.code() == Some(2) && trouble.contains("none of 1 runs is finished"), "{trouble}");
}
