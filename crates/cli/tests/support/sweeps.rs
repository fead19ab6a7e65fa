//! What tests of `negscale sweep` share.

use super::Chance;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Two clouds with a share of wrong labels, the true ones beside them.
pub fn write_table(path: &Path, count: usize, wrong: usize) {
    let mut table = String::from("a,b,c,label,truth\n");
    let mut chance = Chance(count as u64);
    for i in 0..count {
        let truth = i % 3;
        let label = if wrong > 0 && i % wrong == 0 { (truth + 1) % 3 } else { truth };
        let centre = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]][truth];
        let row = centre.map(|x| format!("{:.4}", x + 1.5 * (chance.next() + chance.next())));
        writeln!(table, "{},class {label},class {truth}", row.join(",")).unwrap();
    }
    std::fs::write(path, table).unwrap();
}

/// Data, and a recipe with this matrix over it.
pub fn arrange(here: &Path, common: &str, matrix: &str) {
    write_table(&here.join("train.csv"), 300, 4);
    write_table(&here.join("test.csv"), 90, 0);
    let data =
        "data = \"train.csv\"\ntest = \"test.csv\"\nlabel_column = \"label\"\ntruth_column = \"truth\"\n";
    let rest = "batch = 32\nhidden = [16]\nhost = \"cross-entropy\"\nplugin = \"none\"\n";
    std::fs::write(here.join("sweep.toml"), format!("{data}{rest}{common}\n[matrix]\n{matrix}\n")).unwrap();
}

pub fn sweep(here: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_negscale"));
    command.current_dir(here).arg("sweep").args(words).env_remove("NEGSCALE_DATA");
    command
}

pub fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// Folders of the runs, by name.
pub fn runs(below: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(below) else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    // Not who works on them, nor the plan.
    let is_run = |place: &PathBuf| {
        let name = place.file_name().unwrap().to_string_lossy();
        name != ".leases" && !name.starts_with("sweep-")
    };
    all.retain(is_run);
    all.sort();
    all
}

pub fn results(run: &Path) -> BTreeMap<String, Value> {
    serde_json::from_slice(&std::fs::read(run.join("results.json")).unwrap()).unwrap()
}

/// Everything that must be the same however often a run was stopped, by the name of its folder.
pub fn remains(below: &Path) -> BTreeMap<String, String> {
    let one = |run: PathBuf| {
        let mut results = results(&run);
        results.retain(|key, _| !["seconds", "out"].contains(&key.as_str()));
        let metrics = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
        let records = metrics.lines().map(|line| {
            let mut record: BTreeMap<String, Value> = serde_json::from_str(line).unwrap();
            record.remove("seconds");
            serde_json::to_string(&record).unwrap()
        });
        let records = records.collect::<Vec<_>>().join("\n");
        let name = run.file_name().unwrap().to_string_lossy().into_owned();
        (name, format!("{}\n{records}", serde_json::to_string(&results).unwrap()))
    };
    runs(below).into_iter().map(one).collect()
}
