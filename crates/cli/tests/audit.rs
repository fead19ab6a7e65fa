//! `negscale audit` as a person runs it: finds wrong labels, checks, corrects, goes on, and says what is wrong with its input.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::{Chance, folder, text};

const NAMES: [&str; 4] = ["rose", "tulip", "=lorry", "boat"];

/// A table of four clouds; a share of the labels is wrong. Gives which.
fn write_table(path: &Path, count: usize, wrong: f64) -> Vec<bool> {
    let mut chance = Chance(1);
    let mut table = String::from("a,b,c,d,label\n");
    let mut is_wrong = Vec::new();
    for i in 0..count {
        let class = i % 4;
        let centre = [[2.0, 1.5], [2.0, -1.5], [-2.0, 1.5], [-2.0, -1.5]][class];
        let mut noise = || (0..6).map(|_| chance.next()).sum::<f64>() * 0.5;
        let row = [centre[0] + noise(), centre[1] + noise(), noise(), noise()];
        let label = if chance.next() + 0.5 < wrong { (class + 1 + i % 3) % 4 } else { class };
        is_wrong.push(label != class);
        let row: Vec<String> = row.iter().map(|x| format!("{x:.4}")).collect();
        writeln!(table, "{},{}", row.join(","), NAMES[label]).unwrap();
    }
    std::fs::write(path, table).unwrap();
    is_wrong
}

fn negscale(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_negscale"));
    command.args(words).env_remove("NEGSCALE_DATA");
    command
}

/// Small batches and a small network: the tables here are small.
const SMALL: [&str; 6] = ["--set", "batch=32", "--set", "hidden=[24]", "--set", "rolr.warm_up_batch=32"];

fn audit(data: &Path, out: &Path, more: &[&str]) -> Output {
    negscale(&["audit", text(data), "--out", text(out)]).args(SMALL).args(more).output().unwrap()
}

#[track_caller]
fn fine(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn rows(path: &Path) -> Vec<csv::StringRecord> {
    csv::Reader::from_path(path).unwrap().records().map(|row| row.unwrap()).collect()
}

#[test]
fn wrong_labels_come_first_and_corrected_ones_can_be_trained_on() {
    let here = folder("finds");
    let (data, out) = (here.join("flowers.csv"), here.join("out"));
    let wrong = write_table(&data, 800, 0.15);
    let count = wrong.iter().filter(|&&wrong| wrong).count();
    let output = audit(&data, &out, &["--label-column", "label"]);
    fine(&output);
    let said = String::from_utf8(output.stdout).unwrap();
    for part in ["estimated share of wrong labels", "probably", "corrected.csv", "report.html"] {
        assert!(said.contains(part), "{said}");
    }
    let listed = rows(&out.join("audit.csv"));
    assert_eq!(listed.len(), 800);
    let found = listed[..count].iter().filter(|row| wrong[row[0].parse::<usize>().unwrap()]).count();
    assert!(found * 10 > count * 8, "{found} of {count} wrong labels are among the first {count}");
    let summary: Value = serde_json::from_slice(&std::fs::read(out.join("audit.json")).unwrap()).unwrap();
    let rate = summary["noise"]["rate"].as_f64().unwrap();
    assert!((rate - count as f64 / 800.0).abs() < 0.06, "{rate} for {count} of 800");
    assert!(summary["truth"].is_null());
    assert_eq!(summary["noise"]["given_by_true"].as_array().unwrap().len(), 4);
    assert!(out.join("report.html").exists());

    let corrected = rows(&out.join("corrected.csv"));
    assert!(corrected.iter().enumerate().all(|(i, row)| row[0] == i.to_string()));
    let changed = corrected.iter().filter(|row| &row[4] == "true").count();
    assert_eq!(summary["changed"], changed);
    assert!(corrected.iter().all(|row| (row[2] == row[3]) == (&row[4] == "false")));
    let right = |row: &csv::StringRecord| {
        row[2].trim_start_matches('\'') == NAMES[row[0].parse::<usize>().unwrap() % 4]
    };
    let better = corrected.iter().filter(|row| right(row)).count();
    assert!(better > 800 - count / 2, "{better} of 800 labels are right after correction");
    let again = negscale(&["train", "--data", text(&data), "--labels", text(&out.join("corrected.csv"))])
        .args([
            "--set",
            "host=cross-entropy",
            "--set",
            "epochs=1",
            "--set",
            "baseline=none",
            "--set",
            "batch=32",
        ])
        .args(["--set", "hidden=[24]", "--quiet", "--out", text(&here.join("again"))])
        .output()
        .unwrap();
    fine(&again);
    let given = |path: PathBuf| {
        let mut given: Vec<(usize, String)> =
            rows(&path).iter().map(|row| (row[0].parse().unwrap(), row[2].replace('\'', ""))).collect();
        given.sort_unstable();
        given
    };
    let trained_on = given(here.join("again").join("audit.csv"));
    assert!(trained_on == given(out.join("corrected.csv")), "the corrected labels were learnt from");
}

#[test]
fn the_check_decides_the_exit_code() {
    let here = folder("check");
    let (data, out) = (here.join("flowers.csv"), here.join("out"));
    write_table(&data, 600, 0.2);
    let columns = ["--label-column", "label"];
    let with = |more: &[&str]| audit(&data, &out, &[&columns[..], more].concat());
    fine(&with(&["--check", "0.9"]));
    let above = with(&["--check", "0.01", "--json"]);
    assert_eq!(above.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&above.stderr).contains("more than 1.00 %"));
    let summary: Value = serde_json::from_slice(&above.stdout).unwrap();
    assert_eq!(summary["check"]["passed"], false);
    for wrong in ["--check=5", "--check=nan", "--check=x"] {
        assert_eq!(with(&[wrong]).status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn an_audit_goes_on_and_ends_with_the_same_list() {
    let here = folder("resume");
    let (data, out) = (here.join("flowers.csv"), here.join("out"));
    write_table(&data, 400, 0.2);
    let more = ["--label-column", "label", "--epochs", "12"];
    let kept = ["audit.csv", "corrected.csv", "ledger.parquet"];
    let read = |out: &Path| kept.map(|name| std::fs::read(out.join(name)).unwrap());
    let straight = here.join("straight");
    fine(&audit(&data, &straight, &more));
    let mut child =
        negscale(&["audit", text(&data), "--out", text(&out)]).args(SMALL).args(more).spawn().unwrap();
    let is_whole = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().path().extension().is_some_and(|extension| extension == "checkpoint")
    };
    while !std::fs::read_dir(out.join("checkpoints")).is_ok_and(|mut entries| entries.any(is_whole)) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let again = audit(&data, &out, &more);
    fine(&again);
    assert!(String::from_utf8_lossy(&again.stderr).contains("resumes"));
    assert!(read(&out) == read(&straight));
    let other = audit(&data, &out, &["--label-column", "label", "--epochs", "5"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&other.stderr).contains("epochs is 12 there but 5 here"));
}

#[test]
fn pictures_are_audited_by_their_folders_and_trained_on_with_corrected_labels() {
    let here = folder("pictures");
    let data = here.join("things");
    let mut chance = Chance(3);
    for (class, name) in ["dark", "light"].iter().enumerate() {
        std::fs::create_dir_all(data.join(name)).unwrap();
        for i in 0..24 {
            // Two of each are in the wrong folder.
            let base = if (class == 1) != (i < 2) { 170.0 } else { 60.0 };
            let pixels: Vec<u8> = (0..8 * 8).map(|_| (base + 40.0 * chance.next()) as u8).collect();
            let file = std::fs::File::create(data.join(name).join(format!("{i:02}.png"))).unwrap();
            let mut encoder = png::Encoder::new(file, 8, 8);
            encoder.set_color(png::ColorType::Grayscale);
            encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
        }
    }
    let out = here.join("out");
    let small =
        ["--set", "epochs=4", "--set", "batch=8", "--set", "rolr.warm_up_batch=8", "--set", "width=0.25"];
    let output =
        negscale(&["audit", text(&data), "--out", text(&out), "--json"]).args(small).output().unwrap();
    fine(&output);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (summary["samples"].as_u64(), summary["settings"]["baseline"].as_str()),
        (Some(48), Some("none"))
    );
    let corrected = rows(&out.join("corrected.csv"));
    assert!(corrected[0][1].ends_with("00.png") && &corrected[0][3] == "dark");
    let labels = out.join("corrected.csv");
    let again = negscale(&["train", "--data", text(&data), "--labels", text(&labels), "--quiet"])
        .args(["--set", "host=cross-entropy", "--set", "baseline=none", "--out", text(&here.join("again"))])
        .args(["--set", "epochs=1", "--set", "batch=8", "--set", "width=0.25"])
        .output()
        .unwrap();
    fine(&again);
    let given: Vec<String> = rows(&here.join("again").join("audit.csv"))
        .iter()
        .map(|row| format!("{}{}", &row[0], &row[2]))
        .collect();
    assert!(corrected.iter().all(|row| given.contains(&format!("{}{}", &row[0], &row[2]))));
}

#[test]
fn bad_input_is_told_with_code_2() {
    let here = folder("bad");
    let table = here.join("flowers.csv");
    write_table(&table, 40, 0.0);
    let pictures = here.join("pictures");
    std::fs::create_dir_all(pictures.join("dark")).unwrap();
    std::fs::write(pictures.join("dark").join("a.png"), "no picture").unwrap();
    std::fs::write(here.join("two.txt"), "dark\ndark\n").unwrap();
    let (nowhere, two) = (here.join("nowhere"), here.join("two.txt"));
    let cases: [(&[&str], &str); 5] = [
        (&["audit", text(&pictures), "--labels", text(&two)], "2 labels for 1 items"),
        (&["audit", text(&nowhere)], "nowhere"),
        (&["audit", text(&table), "--label-column", "colour"], "colour"),
        (&["audit", text(&table), "--data", text(&table)], "data is given twice"),
        (&["audit", text(&table), "--label-column", "label", "--set", "epochz=3"], "epochs"),
    ];
    for (words, told) in cases {
        let output = negscale(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(told), "{said}");
    }
}
