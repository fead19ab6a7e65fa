//! `negscale audit` of rows of numbers: judged without training, with reasons, and with predictions that somebody has made.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Output};
use support::{Chance, folder, text};

const NAMES: [&str; 3] = ["rose", "tulip", "=lorry"];

/// A table of three clouds, every eighth label wrong; its predictions are sure of the cloud. Gives which labels are wrong.
fn write_table(path: &Path, count: usize, spread: f64) -> Vec<bool> {
    let mut chance = Chance(3);
    let mut table = String::from("a,b,c,label\n");
    let mut predictions = format!("{}\n", NAMES.join(","));
    let mut is_wrong = Vec::new();
    for i in 0..count {
        let class = i % 3;
        let mut noise = || (0..6).map(|_| chance.next()).sum::<f64>() * spread;
        let row = [0, 1, 2].map(|j| if j == class { 3.0 } else { 0.0 } + noise());
        let label = if i % 8 == 5 { (class + 1) % 3 } else { class };
        is_wrong.push(label != class);
        writeln!(table, "{:.4},{:.4},{:.4},{}", row[0], row[1], row[2], NAMES[label]).unwrap();
        let p = [0, 1, 2].map(|j| if j == class { "0.9" } else { "0.05" });
        writeln!(predictions, "{}", p.join(",")).unwrap();
    }
    std::fs::write(path, table).unwrap();
    std::fs::write(path.with_extension("probs.csv"), predictions).unwrap();
    is_wrong
}

fn audit(data: &Path, out: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_negscale"));
    command.args(["audit", text(data), "--label-column", "label", "--out", text(out)]).args(more);
    command.env_remove("NEGSCALE_DATA").output().unwrap()
}

fn summary(out: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(out.join("audit.json")).unwrap()).unwrap()
}

#[track_caller]
fn fine(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn rows_are_judged_without_training_and_every_flag_has_reasons() {
    let here = folder("rows");
    let (data, out) = (here.join("flowers.csv"), here.join("out"));
    let wrong = write_table(&data, 600, 0.4);
    let count = wrong.iter().filter(|&&wrong| wrong).count();
    fine(&audit(&data, &out, &[]));
    let summary = summary(&out);
    let flagged = summary["flagged"].as_u64().unwrap() as usize;
    assert!(flagged.abs_diff(count) <= 12, "{flagged} flagged, {count} wrong");
    assert_eq!(summary["method"], "cross-fit");
    assert!(!out.join("model.safetensors").exists());
    let mut table = csv::Reader::from_path(out.join("audit.csv")).unwrap();
    let columns = table.headers().unwrap().clone();
    let at = |name: &str| columns.iter().position(|column| column == name).unwrap();
    let (flag, reasons, given, suggested) = (at("flag"), at("reasons"), at("given"), at("suggested"));
    let rows: Vec<csv::StringRecord> = table.records().map(|row| row.unwrap()).collect();
    for row in &rows {
        assert_eq!(&row[flag] == "true", row[reasons].contains("nearest neighbours"), "{row:?}");
        assert!(&row[flag] == "false" || row[given] != row[suggested], "{row:?}");
    }
    let found = rows[..count].iter().filter(|row| wrong[row[0].parse::<usize>().unwrap()]).count();
    assert!(found * 100 >= count * 95, "{found} of {count}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("labels look wrong"));
    // The settings that were written repeat the same audit.
    let settings = out.join("settings.toml");
    let mut again = Command::new(env!("CARGO_BIN_EXE_negscale"));
    again.args(["audit", text(&settings), "--out", text(&here.join("again"))]).env_remove("NEGSCALE_DATA");
    fine(&again.output().unwrap());
    let read = |out: &Path| std::fs::read(out.join("audit.csv")).unwrap();
    assert!(read(&out) == read(&here.join("again")));
}

#[test]
fn predictions_that_somebody_has_made_are_taken_as_they_are() {
    let here = folder("probs");
    let (data, out) = (here.join("flowers.csv"), here.join("out"));
    let wrong = write_table(&data, 600, 0.4);
    let probs = data.with_extension("probs.csv");
    fine(&audit(&data, &out, &["--pred-probs", text(&probs)]));
    let summary = summary(&out);
    assert_eq!(summary["method"], "given predictions");
    // The settings know the file, and repeat the audit.
    let again = here.join("again");
    let mut same = Command::new(env!("CARGO_BIN_EXE_negscale"));
    same.args(["audit", text(&out.join("settings.toml")), "--out", text(&again)]).env_remove("NEGSCALE_DATA");
    fine(&same.output().unwrap());
    let read = |out: &Path| std::fs::read(out.join("audit.csv")).unwrap();
    assert!(read(&out) == read(&again));
    let count = wrong.iter().filter(|&&wrong| wrong).count();
    assert!((summary["noise"]["rate"].as_f64().unwrap() - count as f64 / 600.0).abs() < 0.03, "{summary}");
    std::fs::write(&probs, "0.9,0.3,0.1\n".repeat(600)).unwrap();
    let refused = audit(&data, &here.join("bad"), &["--pred-probs", text(&probs)]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("flowers.probs.csv") && said.contains('1'), "{said}");
    assert!(!here.join("bad").exists(), "nothing is half-written");
}

#[test]
fn labels_that_cannot_be_judged_are_left_alone_and_fail_a_check_with_code_2() {
    let here = folder("nothing");
    let (data, out) = (here.join("noise.csv"), here.join("out"));
    let mut chance = Chance(9);
    let mut table = String::from("a,b,label\n");
    for _ in 0..300 {
        let [a, b, label] = [0, 1, 2].map(|_| chance.next());
        let name = NAMES[((label + 0.5) * 3.0).clamp(0.0, 2.9) as usize];
        writeln!(table, "{a:.4},{b:.4},{name}").unwrap();
    }
    std::fs::write(&data, table).unwrap();
    let output = audit(&data, &out, &["--check", "0.5"]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be judged"));
    let summary = summary(&out);
    assert!(summary["noise"]["rate"].is_null() && summary["flagged"] == 0 && summary["changed"] == 0);
    let corrected = std::fs::read_to_string(out.join("corrected.csv")).unwrap();
    assert!(!corrected.contains("true"));
}

#[test]
fn rows_that_are_in_both_parts_are_told() {
    let here = folder("both");
    let (data, test, out) = (here.join("flowers.csv"), here.join("test.csv"), here.join("out"));
    write_table(&data, 300, 0.4);
    let lines = std::fs::read_to_string(&data).unwrap();
    let few: Vec<&str> = lines.lines().take(4).collect();
    std::fs::write(&test, few.join("\n") + "\n9,9,9,rose\n").unwrap();
    fine(&audit(&data, &out, &["--test", text(&test)]));
    let across = summary(&out)["near_copies_in_test"].as_array().unwrap().clone();
    assert_eq!(across.len(), 3, "{across:?}");
    assert!(across.iter().all(|set| set.as_array().unwrap().len() == 2));
}
