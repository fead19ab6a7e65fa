//! The user's files: where results may go, what is replaced and removed, and what is left of a run.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{Chance, command, fail, fails, fine, folder, succeed, text};

/// A table of two clouds.
fn write_table(path: &Path, count: usize) {
    let mut chance = Chance(4);
    let rows = (0..count).map(|i| {
        let side = if i % 2 == 0 { 1.0 } else { -1.0 };
        format!("{:.4},{:.4},{}\n", side + chance.next(), chance.next(), ["left", "right"][i % 2])
    });
    fs::write(path, format!("a,b,label\n{}", rows.collect::<String>())).unwrap();
}

/// Two folders of pictures below a folder `things`.
fn write_pictures(here: &Path) -> PathBuf {
    let data = here.join("things");
    for (class, shade) in [("dark", 40u8), ("light", 200)] {
        fs::create_dir_all(data.join(class)).unwrap();
        for i in 0..8 {
            let file = fs::File::create(data.join(class).join(format!("{i}.png"))).unwrap();
            let mut encoder = png::Encoder::new(file, 8, 8);
            encoder.set_color(png::ColorType::Grayscale);
            encoder.write_header().unwrap().write_image_data(&[shade + i; 64]).unwrap();
        }
    }
    data
}

const SMALL: [&str; 10] = [
    "--set",
    "host=cross-entropy",
    "--set",
    "baseline=none",
    "--set",
    "hidden=[8]",
    "--set",
    "plugin=none",
    "--set",
    "batch=16",
];

fn train(data: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = command(&["train", "--data", text(data), "--out", text(out), "--quiet"]);
    command.args(SMALL).args(["--set", "epochs=2"]).args(more);
    command
}

/// Every file below a folder with its content.
fn contents(place: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found.sort();
    found
}

fn put(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "mine").unwrap();
}

#[test]
fn a_folder_with_files_of_the_user_is_refused_and_left_as_it_is_also_with_fresh() {
    let here = folder("foreign");
    let (data, out) = (here.join("table.csv"), here.join("results"));
    write_table(&data, 60);
    for name in ["audit.csv", "checkpoints/best.ckpt", "events/x", "settings.toml"] {
        put(&out.join(name));
    }
    let before = contents(&out);
    for more in [&[][..], &["--fresh"]] {
        let message = fail(&mut train(&data, &out, more));
        assert!(message.contains("is not empty") && message.contains("audit.csv"), "{message}");
        assert!(contents(&out) == before);
    }
}

#[test]
fn results_never_go_into_the_data_nor_around_it() {
    let here = folder("apart");
    let data = write_pictures(&here);
    let before = contents(&here);
    for out in [data.clone(), data.join("new/run"), here.join("new/../things/run"), here.clone()] {
        let message = fail(&mut command(&["audit", text(&data), "--out", text(&out), "--epochs", "1"]));
        assert!(message.contains("--out"), "{}: {message}", out.display());
        assert!(contents(&here) == before, "{}", out.display());
    }
    // The default folder, `runs`, would be a class.
    let message = fail(command(&["audit", ".", "--epochs", "1"]).current_dir(&data));
    assert!(message.contains("is inside the data") && message.contains("--out"), "{message}");
    assert!(contents(&here) == before);
}

#[test]
fn a_file_of_labels_is_not_read_from_the_folder_it_would_be_replaced_in() {
    let here = folder("labels");
    let (data, out) = (here.join("table.csv"), here.join("run"));
    write_table(&data, 60);
    let column = ["--label-column", "label", "--set", "batch=16", "--set", "hidden=[8]"];
    let audit = |out: &Path, more: &[&str]| {
        let mut audit = command(&["audit", text(&data), "--out", text(out), "--epochs", "2", "--quiet"]);
        audit.args(column).args(more);
        audit
    };
    succeed(&mut audit(&out, &[]));
    let corrected = out.join("corrected.csv");
    let message = fail(&mut audit(&out, &["--labels", text(&corrected), "--fresh"]));
    assert!(message.contains("corrected.csv") && message.contains("--out"), "{message}");
    assert!(corrected.exists());
}

#[test]
fn fresh_removes_what_the_run_wrote_and_nothing_else() {
    let here = folder("fresh");
    let (data, out) = (here.join("table.csv"), here.join("run"));
    write_table(&data, 60);
    succeed(&mut train(&data, &out, &["--set", "baseline=cross-entropy"]));
    let others =
        ["notes.txt", "checkpoints/best.ckpt", "events/x", "baseline/notes.txt"].map(|name| out.join(name));
    others.iter().for_each(|path| put(path));
    succeed(&mut train(&data, &out, &["--fresh", "--set", "epochs=1", "--keep", "results"]));
    assert!(others.iter().all(|path| fs::read(path).unwrap() == b"mine"));
    let written = ["model.safetensors", "report.html", "baseline/results.json", "baseline/model.safetensors"];
    assert!(written.iter().all(|name| !out.join(name).exists()), "the old run is gone");
    assert_eq!(fs::read_dir(out.join("events")).unwrap().count(), 1, "only the user's file is there");
    assert_eq!(fs::read_to_string(out.join("metrics.jsonl")).unwrap().lines().count(), 1);
}

#[test]
fn a_file_that_the_user_put_in_the_way_is_not_replaced() {
    let here = folder("in-the-way");
    let (data, out) = (here.join("table.csv"), here.join("run"));
    write_table(&data, 600);
    let mut child = begin(&data, &out);
    child.kill().unwrap();
    child.wait().unwrap();
    // As if made by another program, in the name of a file of this run's end.
    let list = out.join(".negscale-folder");
    let listed = fs::read_to_string(&list).unwrap().replace("report.html\n", "");
    fs::write(&list, listed).unwrap();
    put(&out.join("report.html"));
    let message = fail(&mut long(&data, &out));
    assert!(message.contains("report.html") && message.contains("move it away"), "{message}");
    assert_eq!(fs::read(out.join("report.html")).unwrap(), b"mine");
}

/// A run of many checkpoints.
fn long(data: &Path, out: &Path) -> Command {
    train(data, out, &["--set", "epochs=400", "--set", "batch=4"])
}

fn checkpoints(out: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(out.join("checkpoints")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "checkpoint")).collect()
}

/// Starts a long run, or resumes it, and waits for its next checkpoint.
fn begin(data: &Path, out: &Path) -> Child {
    let before = checkpoints(out);
    let mut child = long(data, out).stderr(Stdio::piped()).spawn().unwrap();
    while checkpoints(out).iter().all(|path| before.contains(path)) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was stopped");
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

#[test]
fn parts_of_a_killed_run_are_gone_after_the_next_start() {
    let here = folder("parts");
    let (data, out) = (here.join("table.csv"), here.join("run"));
    write_table(&data, 600);
    let mut child = begin(&data, &out);
    child.kill().unwrap();
    child.wait().unwrap();
    let saved = checkpoints(&out)[0].file_name().unwrap().to_str().unwrap().to_owned();
    let parts = [".results.json.7-1.part".to_owned(), format!("checkpoints/.{saved}.7-0.part")];
    parts.iter().for_each(|name| put(&out.join(name)));
    put(&out.join(".film.7-1.part"));
    let mut child = begin(&data, &out);
    let gone = parts.iter().all(|name| !out.join(name).exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(gone && out.join(".film.7-1.part").exists());
}

#[test]
fn a_finished_run_keeps_no_checkpoint_says_its_results_again_and_misses_what_was_taken() {
    let here = folder("finished");
    let (data, out) = (here.join("table.csv"), here.join("run"));
    write_table(&data, 60);
    let mut words = vec!["train", "--data", text(&data), "--out", text(&out), "--epochs", "2"];
    words.extend(SMALL);
    words.extend(["--set", "baseline=cross-entropy"]);
    let first = fine(&words);
    assert!(!out.join("checkpoints").exists() && !out.join("baseline/checkpoints").exists());
    let before = contents(&out);
    let again = succeed(&mut command(&words));
    assert_eq!(String::from_utf8(again.stdout).unwrap(), first);
    assert!(String::from_utf8_lossy(&again.stderr).contains("is already complete"));
    assert!(contents(&out) == before, "nothing is written anew");
    // Where it was moved to, it says where it is.
    let moved = here.join("moved");
    fs::rename(&out, &moved).unwrap();
    words[4] = text(&moved);
    assert!(fine(&words).contains("moved/report.html"));
    fs::remove_file(moved.join("model.safetensors")).unwrap();
    let message = fails(&words);
    assert!(message.contains("model.safetensors") && message.contains("--fresh"), "{message}");
}

#[cfg(unix)]
#[test]
fn two_signals_at_once_count_as_one_and_the_run_is_saved() {
    let here = folder("signals");
    let data = here.join("table.csv");
    write_table(&data, 600);
    for round in 0..4 {
        let out = here.join(format!("run{round}"));
        let child = begin(&data, &out);
        let pid = child.id().to_string();
        // As `timeout` does: to the process, and to its group.
        let sent = Command::new("bash").args(["-c", "kill -TERM $0; kill -TERM $0", &pid]).output().unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(143), "{said} {}", String::from_utf8_lossy(&sent.stderr));
        assert!(said.contains("run the same command again"), "it was saved: {said}");
    }
}

#[test]
fn a_folder_of_tables_is_not_mixed_with_files_of_the_user() {
    let here = folder("tables");
    let (data, out, page) = (here.join("table.csv"), here.join("run"), here.join("page.html"));
    write_table(&data, 60);
    succeed(&mut train(&data, &out, &[]));
    put(&here.join("page-tables/runs.csv"));
    let message = fails(&["report", text(&out), "--out", text(&page)]);
    assert!(message.contains("page-tables") && message.contains("is not empty"), "{message}");
    assert_eq!(fs::read(here.join("page-tables/runs.csv")).unwrap(), b"mine");
    let other = here.join("other.html");
    fine(&["report", text(&out), "--out", text(&other)]);
    fine(&["report", text(&out), "--out", text(&other)]);
}

#[test]
fn an_audit_without_data_shows_examples_and_the_demonstration_has_a_name() {
    let bare = command(&["audit"]).output().unwrap();
    let said = String::from_utf8_lossy(&bare.stderr).into_owned();
    assert_eq!(bare.status.code(), Some(2));
    assert!(
        said.contains("Examples:") && said.contains("--demo") && said.contains("embeddings.npy"),
        "{said}"
    );
    let message = fails(&["audit", "--epochs", "1"]);
    assert!(message.contains("no data to audit") && message.contains("--demo"), "{message}");
    let here = folder("demo");
    let out = here.join("out");
    let words = ["audit", "--demo", "--epochs", "1", "--set", "samples=300", "--json", "--out", text(&out)];
    let figures: Value = serde_json::from_str(&fine(&words)).unwrap();
    assert_eq!(figures["samples"], 300);
    assert!(figures["truth"]["noise"].as_f64().unwrap() > 0.3, "half of the labels are drawn anew");
}

#[test]
fn the_version_names_the_command_and_epochs_count_from_one() {
    assert!(fine(&["--version"]).starts_with("negscale "));
    let here = folder("epochs");
    let (data, out) = (here.join("table.csv"), here.join("run"));
    write_table(&data, 60);
    let mut words = vec!["train", "--data", text(&data), "--out", text(&out), "--epochs", "2", "--json"];
    words.extend(SMALL);
    let lines: Vec<Value> = fine(&words).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&lines[0]["epoch"], &lines[1]["epoch"], &lines[2]["epochs"]),
        (&1.into(), &2.into(), &2.into())
    );
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("epoch 2") && !report.contains("epoch 0"));
}
