//! `negscale train` as a person runs it, stops it and breaks it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::{Chance, fail as fails, folder, succeed as fine, text};

const NAMES: [&str; 4] = ["rose", "tulip", "=lorry", "<script>alert(1)</script>"];

/// A table of four clouds with a share of wrong labels, the true ones beside them.
fn write_table(path: &Path, count: usize, wrong: f64, seed: u64) {
    let mut chance = Chance(seed);
    let mut table = String::from("a,b,c,d,label,truth\n");
    for i in 0..count {
        let class = i % 4;
        let centre = [[2.0, 1.0], [2.0, -1.0], [-2.0, 1.0], [-2.0, -1.0]][class];
        let mut noise = || (0..6).map(|_| chance.next()).sum::<f64>() * 0.6;
        let row = [centre[0] + noise(), centre[1] + noise(), noise(), noise()];
        let label = if chance.next() + 0.5 < wrong { (class + 1 + i % 3) % 4 } else { class };
        let row: Vec<String> = row.iter().map(|x| format!("{x:.4}")).collect();
        writeln!(table, "{},{},{}", row.join(","), NAMES[label], NAMES[class]).unwrap();
    }
    std::fs::write(path, table).unwrap();
}

/// Data, and the arguments to train on it.
fn arrange(here: &Path) -> Vec<String> {
    write_table(&here.join("train.csv"), 600, 0.3, 1);
    write_table(&here.join("test.csv"), 200, 0.0, 2);
    let (data, test) = (here.join("train.csv"), here.join("test.csv"));
    let words = [
        "train",
        "--data",
        text(&data),
        "--test",
        text(&test),
        "--label-column",
        "label",
        "--truth-column",
        "truth",
    ];
    let more = [
        "--set",
        "host=cross-entropy",
        "--set",
        "plugin=negscale",
        "--set",
        "epochs=6",
        "--set",
        "batch=32",
        "--set",
        "hidden=[24]",
        "--set",
        "baseline=none",
    ];
    words.iter().chain(&more).map(|word| (*word).to_owned()).collect()
}

fn command(arguments: &[String], out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_negscale"));
    command.args(arguments).args(["--out", text(out)]).env_remove("NEGSCALE_DATA");
    command
}

fn objects(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Everything a run leaves that must not depend on when it was stopped.
fn remains(out: &Path) -> Vec<Vec<u8>> {
    let metrics = std::fs::read_to_string(out.join("metrics.jsonl")).unwrap();
    let timeless = metrics.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record.as_object_mut().unwrap().remove("seconds");
        record.to_string()
    });
    let mut files = vec![timeless.collect::<Vec<_>>().join("\n").into_bytes()];
    for name in ["model.safetensors", "ledger.parquet", "audit.csv", "tree.tsv"] {
        files.push(std::fs::read(out.join(name)).unwrap());
    }
    files.extend(std::fs::read(out.join("model-2.safetensors")));
    files
}

fn checkpoints(out: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(out.join("checkpoints")) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "checkpoint"));
    paths.sort();
    paths
}

/// Starts a run and stops it cleanly once so many checkpoints were written.
fn stop_after(arguments: &[String], out: &Path, written: usize) {
    stop_by("TERM", 143, arguments, out, written);
}

fn stop_by(signal: &str, code: i32, arguments: &[String], out: &Path, written: usize) {
    let mut child = command(arguments, out).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let newest = |out: &Path| checkpoints(out).last().map(|path| path.file_name().unwrap().to_owned());
    let mut seen = Vec::new();
    while seen.len() < written {
        if let Some(name) = newest(out).filter(|name| !seen.contains(name)) {
            seen.push(name);
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was stopped");
        std::thread::sleep(Duration::from_millis(1));
    }
    let killed =
        Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains("run the same command again"), "{said}");
}

/// A run long enough to be stopped in the middle.
fn long(mut arguments: Vec<String>) -> Vec<String> {
    arguments.extend(["--set", "epochs=40", "--set", "batch=4"].map(str::to_owned));
    arguments
}

#[test]
fn training_leaves_a_folder_of_plain_files_and_says_what_it_found() {
    let here = folder("plain");
    let (arguments, out) = (arrange(&here), here.join("run"));
    let output = fine(&mut command(&arguments, &out));
    let table = String::from_utf8(output.stdout).unwrap();
    for part in
        ["mean of last 10", "noisy validation", "(oracle)", "memorised", "recovered", "precision of flags"]
    {
        assert!(table.contains(part), "{part}: {table}");
    }
    for name in
        ["settings.toml", "metrics.jsonl", "ledger.parquet", "audit.csv", "model.safetensors", "report.html"]
    {
        assert!(out.join(name).metadata().unwrap().len() > 100, "{name}");
    }
    assert_eq!(std::fs::read_dir(out.join("events")).unwrap().count(), 1);
    let settings = std::fs::read_to_string(out.join("settings.toml")).unwrap();
    for key in
        ["data_fingerprint", "version", "hardware", "[optimiser]", "[negscale]", "host = \"cross-entropy\""]
    {
        assert!(settings.contains(key), "{key}: {settings}");
    }
    let audit = std::fs::read_to_string(out.join("audit.csv")).unwrap();
    assert!(audit.starts_with(
        "index,path,given,suggested,score,clean_probability,suggested_probability,tree_distance,flag\n"
    ));
    assert_eq!(audit.lines().count(), 601);
    assert!(audit.contains("'=lorry"), "a class name must not become a formula");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(!report.contains("<script") && report.contains("&#60;script") | report.contains("&lt;script"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.lines().any(|line| line.starts_with("epoch   6/6") && line.contains("right/wrong AUC")),
        "{said}"
    );
}

#[test]
fn json_has_an_object_per_epoch_and_a_last_one_with_the_results() {
    let here = folder("json");
    let (arguments, out) = (arrange(&here), here.join("run"));
    let output = fine(command(&arguments, &out).arg("--json"));
    let objects = objects(&output);
    assert_eq!(objects.len(), 7);
    assert!(
        objects[..6].iter().all(|epoch| epoch["losses"]["total"].is_f64() && epoch["test_accuracy"].is_f64())
    );
    let last = &objects[6];
    for key in
        ["test_last", "test_last10", "test_best", "noise_achieved", "audit_average_precision", "seconds"]
    {
        assert!(last[key].is_f64(), "{key}: {last}");
    }
    assert!(last["test_last10"].as_f64().unwrap() > 0.8, "{last}");
    assert!(last["audit_average_precision"].as_f64().unwrap() > 0.8, "{last}");
    assert!((last["noise_achieved"].as_f64().unwrap() - 0.3).abs() < 0.06);
    assert!(fine(command(&arguments, &here.join("quiet")).arg("--quiet")).stdout.is_empty());
    // A finished run says it again.
    let again = fine(command(&arguments, &out).arg("--json"));
    assert_eq!(self::objects(&again).last().unwrap(), last);
}

#[test]
fn the_baseline_is_trained_beside_the_method_and_shown_with_it() {
    let here = folder("baseline");
    let mut arguments = arrange(&here);
    arguments.extend(["--set", "baseline=cross-entropy", "--json"].map(str::to_owned));
    let output = fine(&mut command(&arguments, &here.join("run")));
    let objects = objects(&output);
    assert_eq!(objects.len(), 13);
    assert!(objects[12]["baseline"]["test_last10"].is_f64());
    assert!(here.join("run/baseline/model.safetensors").exists());
    assert!(std::fs::read_to_string(here.join("run/report.html")).unwrap().contains("Baseline"));
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let here = folder("threads");
    let mut arguments = arrange(&here);
    arguments.extend(["--set", "epochs=2", "--set", "threads=1"].map(str::to_owned));
    fine(&mut command(&arguments, &here.join("one")));
    *arguments.last_mut().unwrap() = "threads=2".into();
    fine(&mut command(&arguments, &here.join("two")));
    assert_eq!(remains(&here.join("one")), remains(&here.join("two")));
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_in_the_same_bits() {
    let here = folder("killed");
    let mut arguments = arrange(&here);
    // The method with the most state: two networks, their clean probabilities, targets of its own.
    arguments.extend(["--host", "rolr", "--set", "epochs=20", "--set", "batch=8"].map(str::to_owned));
    fine(command(&arguments, &here.join("straight")).arg("--quiet"));
    let (out, mut chance) = (here.join("killed"), Chance(7));
    let mut kills = 0;
    loop {
        let mut child =
            command(&arguments, &out).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(60 + (400.0 * (chance.next() + 0.5)) as u64));
        if child.try_wait().unwrap().is_some_and(|status| status.success()) {
            break;
        }
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        kills += 1;
        if kills == 12 {
            // On a slow machine it might never get through a checkpoint in time.
            fine(command(&arguments, &out).arg("--quiet"));
            break;
        }
    }
    assert!(kills > 0, "the run must be long enough to be killed");
    assert_eq!(remains(&out), remains(&here.join("straight")));
}

/// Found by the campaign of kills: killed between its last checkpoint and its events, a run lacked the last epoch there for ever.
#[test]
fn events_that_lack_the_last_epoch_are_completed_when_the_run_goes_on() {
    let here = folder("events");
    let mut arguments = arrange(&here);
    arguments.extend(["--set", "epochs=1"].map(str::to_owned));
    let out = here.join("run");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join(".negscale-folder"), "").unwrap();
    // In the place of their folder there is a file, so that the run ends there.
    std::fs::write(out.join("events"), "").unwrap();
    let message = fails(&mut command(&arguments, &out));
    assert!(message.contains("could not be saved") && checkpoints(&out).len() == 1, "{message}");
    std::fs::remove_file(out.join("events")).unwrap();
    fine(command(&arguments, &out).arg("--quiet"));
    let events = std::fs::read_dir(out.join("events")).unwrap().next().unwrap().unwrap();
    assert!(events.metadata().unwrap().len() > 200, "they hold no epoch");
}

#[test]
fn a_run_told_to_stop_saves_at_the_batch_and_goes_on_in_the_same_bits() {
    let here = folder("stopped");
    let arguments = long(arrange(&here));
    fine(command(&arguments, &here.join("straight")).arg("--quiet"));
    let out = here.join("stopped");
    stop_after(&arguments, &out, 1);
    stop_by("INT", 130, &arguments, &out, 2);
    fine(command(&arguments, &out).arg("--quiet"));
    assert_eq!(remains(&out), remains(&here.join("straight")));
}

#[test]
fn a_damaged_checkpoint_is_noticed_and_the_one_before_is_used() {
    let here = folder("damaged");
    let arguments = long(arrange(&here));
    fine(command(&arguments, &here.join("straight")).arg("--quiet"));
    let out = here.join("damaged");
    stop_after(&arguments, &out, 3);
    let newest = checkpoints(&out).pop().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&newest, bytes).unwrap();
    let output = fine(&mut command(&arguments, &out));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("checksum is wrong"), "{said}");
    assert_eq!(remains(&out), remains(&here.join("straight")));
}

#[test]
fn when_all_checkpoints_are_damaged_it_says_so() {
    let here = folder("all-damaged");
    let arguments = long(arrange(&here));
    let out = here.join("run");
    stop_after(&arguments, &out, 2);
    checkpoints(&out).iter().for_each(|path| std::fs::write(path, b"rubbish").unwrap());
    let message = fails(&mut command(&arguments, &out));
    assert!(message.contains("no checkpoint can be used") && message.contains("--fresh"), "{message}");
    fine(command(&arguments, &out).args(["--fresh", "--quiet"]));
}

/// No file may grow beyond a few kilobytes, which is how a disk without room behaves towards large files.
#[cfg(unix)]
#[test]
fn a_disk_without_room_is_a_clear_error_and_the_last_checkpoint_stays() {
    let here = folder("full");
    let arguments = long(arrange(&here));
    fine(command(&arguments, &here.join("straight")).arg("--quiet"));
    let out = here.join("full");
    stop_after(&arguments, &out, 2);
    let before: Vec<(PathBuf, Vec<u8>)> =
        checkpoints(&out).into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    let mut cramped = Command::new("bash");
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
    cramped
        .args(["-c", script, "bash", env!("CARGO_BIN_EXE_negscale")])
        .args(&arguments)
        .args(["--out", text(&out)]);
    let message = fails(cramped.env_remove("NEGSCALE_DATA"));
    assert!(
        message.contains("could not be saved") && message.contains("last checkpoint is intact"),
        "{message}"
    );
    for (path, bytes) in before {
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{}", path.display());
    }
    let strays = std::fs::read_dir(out.join("checkpoints"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("part"));
    assert_eq!(strays.count(), 0, "half a file was left behind");
    fine(command(&arguments, &out).arg("--quiet"));
    assert_eq!(remains(&out), remains(&here.join("straight")));
}

#[test]
fn a_folder_of_another_run_is_refused_with_the_differences() {
    let here = folder("another");
    let (mut arguments, out) = (arrange(&here), here.join("run"));
    fine(command(&arguments, &out).arg("--quiet"));
    arguments.extend(["--set", "optimiser.lr=0.5"].map(str::to_owned));
    let message = fails(&mut command(&arguments, &out));
    assert!(
        message.contains("optimiser.lr is 0.02 there but 0.5 here") && message.contains("--fresh"),
        "{message}"
    );
    arguments.truncate(arguments.len() - 2);
    write_table(&here.join("train.csv"), 600, 0.3, 9);
    let message = fails(&mut command(&arguments, &out));
    assert!(message.contains("the data itself has changed"), "{message}");
    fine(command(&arguments, &out).args(["--fresh", "--quiet"]));
}

#[test]
fn two_processes_do_not_train_in_one_folder() {
    let here = folder("two");
    let (arguments, out) = (long(arrange(&here)), here.join("run"));
    let mut first = command(&arguments, &out).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    while !out.join("settings.toml").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let message = fails(&mut command(&arguments, &out));
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(message.contains("another process"), "{message}");
}

#[test]
fn bad_input_is_refused_by_name() {
    let here = folder("bad");
    let arguments = arrange(&here);
    let out = here.join("run");
    let with = |more: &[&str]| {
        let message = fails(command(&arguments, &out).args(more));
        assert!(!out.join("metrics.jsonl").exists(), "nothing may be trained: {message}");
        message
    };
    assert!(with(&["--host", "corss-entropy"]).contains("cross-entropy"));
    assert!(with(&["--plugin", "negscal"]).contains("negscale"));
    assert!(with(&["--net", "cnn-small"]).contains("mlp"), "features need mlp");
    assert!(with(&["--set", "epocs=3"]).contains("epochs"));
    assert!(with(&["--set", "tree=nowhere.tsv"]).contains("nowhere.tsv"));
    assert!(with(&["--noise", "sym:2"]).contains("between 0 and 1"));
    assert!(with(&["--device", "cuda"]).contains("--features cuda"));
    let message = fails(&mut command(&["train".into(), "--data".into(), "nowhere.csv".into()], &out));
    assert!(message.contains("nowhere.csv"), "{message}");
    let file = here.join("file");
    std::fs::write(&file, "").unwrap();
    let message = fails(&mut command(&arguments, &file.join("run")));
    assert!(message.contains("cannot create the folder"), "{message}");
}

#[test]
fn a_trained_model_evaluates_to_what_the_run_said() {
    let here = folder("eval");
    let (arguments, out) = (arrange(&here), here.join("run"));
    let output = fine(command(&arguments, &out).arg("--json"));
    let wanted = objects(&output).last().unwrap()["test_last"].as_f64().unwrap();
    let test = here.join("test.csv");
    let mut eval = Command::new(env!("CARGO_BIN_EXE_negscale"));
    eval.args([
        "eval",
        text(&out),
        "--data",
        text(&test),
        "--label-column",
        "label",
        "--truth-column",
        "truth",
        "--json",
    ]);
    let found: Value = serde_json::from_slice(&fine(&mut eval).stdout).unwrap();
    assert_eq!(found["top_1"].as_f64().unwrap(), wanted, "{found}");
}

/// Folders of pictures, one for each class: light and dark ones, a few in the wrong folder.
fn write_pictures(here: &Path, count: usize) {
    let mut chance = Chance(5);
    for i in 0..count {
        let class = ["light", "dark"][(i + usize::from(i % 9 == 0)) % 2];
        let folder = here.join(class);
        std::fs::create_dir_all(&folder).unwrap();
        let brightness = if i % 2 == 0 { 190.0 } else { 60.0 };
        let pixels: Vec<u8> = (0..40 * 30).map(|_| (brightness + 80.0 * chance.next()) as u8).collect();
        let file = std::fs::File::create(folder.join(format!("{i:03}.png"))).unwrap();
        let mut encoder = png::Encoder::new(file, 40, 30);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    }
}

#[test]
fn folders_of_pictures_are_trained_on_and_their_files_named_in_the_audit() {
    let here = folder("pictures");
    write_pictures(&here.join("data"), 60);
    let (data, out) = (here.join("data"), here.join("run"));
    let words = ["train", "--data", text(&data), "--epochs", "2", "--set", "batch=8", "--set", "side=16"];
    let mut arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    arguments.extend(["--set", "baseline=none", "--json"].map(str::to_owned));
    let output = fine(&mut command(&arguments, &out));
    let objects = objects(&output);
    assert!(objects[2]["test_last"].is_null(), "there is no test set: {}", objects[2]);
    assert!(objects[2]["noise_estimated"].is_f64());
    let audit = std::fs::read_to_string(out.join("audit.csv")).unwrap();
    assert_eq!(audit.lines().count(), 61);
    assert!(audit.contains("000.png"), "{}", &audit[..200]);
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.matches("data:image/png").count() >= 60);
    assert!(out.join("model-2.safetensors").exists(), "the default method has two networks");
    let mut predict = Command::new(env!("CARGO_BIN_EXE_negscale"));
    let found = fine(predict.args(["predict", text(&out), "--data", text(&data.join("light"))]));
    assert!(String::from_utf8(found.stdout).unwrap().lines().count() > 20);
}

/// Found by the campaign of odd data: it said which number was outside of its range, and not what to do.
#[test]
fn a_rate_that_explodes_ends_in_a_word_about_the_rate() {
    let here = folder("explodes");
    let arguments = arrange(&here);
    for host in ["cross-entropy", "rolr", "dividemix"] {
        let message = fails(command(&arguments, &here.join(host)).args([
            "--host",
            host,
            "--set",
            "optimiser.lr=1e30",
            "--quiet",
        ]));
        assert!(message.contains("diverged") && message.contains("optimiser.lr"), "{host}: {message}");
    }
}

/// Found by the campaign of limits: it panicked, and with a backtrace asked for it never ended.
#[cfg(target_os = "linux")]
#[test]
fn without_memory_for_threads_it_says_so() {
    let script = "ulimit -v 60000; exec \"$@\"";
    let mut cramped = Command::new("bash");
    cramped.args([
        "-c",
        script,
        "bash",
        env!("CARGO_BIN_EXE_negscale"),
        "data",
        "inspect",
        "fashion-mnist-subset",
    ]);
    let output = cramped.env("RUST_BACKTRACE", "0").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    // Where the program itself just fits, an allocation may be what fails.
    let is_said = said.contains("cannot start threads") || said.contains("memory allocation of");
    assert!(output.status.success() || is_said, "{said}");
}
