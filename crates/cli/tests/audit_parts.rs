//! `negscale audit fit`, `score` and `merge` as a person runs them: the same for any number of shards, and clear about what is missing.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use support::parquet::{Column, write_parquet};
use support::{Chance, command, fails, fine, folder, text};

/// Less than a block.
const ROWS: usize = 3_000;
/// Six blocks, so that each of five shards has rows.
const MANY_ROWS: usize = 45_000;
const DIM: usize = 8;
/// Names that a table, a page or a spreadsheet could trip over.
const NAMES: [&str; 3] = ["=cmd()", "a,\"b\"", "<script>alert(1)</script>"];

/// Files of a merge that must not depend on how the work was cut.
const TABLES: [&str; 3] = ["audit.csv", "corrected.csv", "top.csv"];

fn npy(path: &Path, values: &[f32], dim: usize) {
    let shape = format!("({}, {dim})", values.len() / dim);
    let mut head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    while !(10 + head.len() + 1).is_multiple_of(64) {
        head.push(' ');
    }
    head.push('\n');
    let numbers = values.iter().flat_map(|x| x.to_le_bytes());
    let bytes = b"\x93NUMPY\x01\x00".iter().copied().chain((head.len() as u16).to_le_bytes());
    let bytes: Vec<u8> = bytes.chain(head.bytes()).chain(numbers).collect();
    std::fs::write(path, bytes).unwrap();
}

struct Made {
    here: PathBuf,
    data: PathBuf,
    labels: PathBuf,
    wrong: Vec<bool>,
}

/// Three clouds with 15 % of the labels wrong.
fn make(test: &str, rows: usize) -> Made {
    let here = folder(test);
    let mut chance = Chance(7);
    let (mut values, mut labels, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        let class = row % 3;
        for column in 0..DIM {
            let noise: f64 = (0..6).map(|_| chance.next()).sum();
            values.push((if column % 3 == class { 2.0 } else { 0.0 } + noise) as f32);
        }
        let is_wrong = chance.next() + 0.5 < 0.15;
        let label = if is_wrong { (class + 1 + row / 3 % 2) % 3 } else { class };
        labels.push(NAMES[label]);
        wrong.push(is_wrong);
    }
    let (data, file) = (here.join("x.npy"), here.join("labels.csv"));
    npy(&data, &values, DIM);
    let mut table = csv::Writer::from_path(&file).unwrap();
    table.write_record(["label"]).unwrap();
    labels.iter().for_each(|label| table.write_record([label]).unwrap());
    table.flush().unwrap();
    Made { here, data, labels: file, wrong }
}

impl Made {
    fn fit<'a>(&'a self, out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
        let mut words = vec!["audit", "fit", text(&self.data), "--labels", text(&self.labels)];
        words.extend(["--out", text(out), "--memory", "64MiB"].iter().chain(more));
        words
    }
}

fn score(out: &Path, shard: &str) -> String {
    fine(&["audit", "score", text(out), "--shard", shard])
}

fn tables(out: &Path) -> Vec<Vec<u8>> {
    TABLES.map(|name| std::fs::read(out.join(name)).unwrap()).to_vec()
}

fn rows(path: &Path) -> Vec<csv::StringRecord> {
    csv::Reader::from_path(path).unwrap().records().map(|row| row.unwrap()).collect()
}

#[test]
fn any_number_of_shards_gives_the_same_tables_and_wrong_labels_come_first() {
    let made = make("shards", MANY_ROWS);
    let mut first = None;
    for (at, order) in [vec!["1/1"], vec!["3/3", "1/3", "2/3"], vec!["2/5", "5/5", "1/5", "4/5", "3/5"]]
        .into_iter()
        .enumerate()
    {
        let out = made.here.join(format!("out-{at}"));
        fine(&made.fit(&out, &["--sample", "2000"]));
        for shard in order.iter() {
            let said = score(&out, shard);
            assert!(!said.contains(" of 0 labels"), "every shard has rows: {said}");
        }
        let said = fine(&["audit", "merge", text(&out)]);
        assert!(said.contains("estimated share of wrong labels") && said.contains("report.html"), "{said}");
        let found = tables(&out);
        assert!(*first.get_or_insert_with(|| found.clone()) == found, "{order:?}");
    }
    let out = made.here.join("out-0");
    let listed = rows(&out.join("audit.csv"));
    assert!(
        listed.len() == MANY_ROWS
            && listed.iter().enumerate().all(|(row, cells)| cells[0] == row.to_string())
    );
    let names = ["'=cmd()", NAMES[1], NAMES[2]];
    assert!(listed.iter().all(|cells| names.contains(&&cells[2]) && names.contains(&&cells[3])));
    // Average precision of all rows, worst first; the list of the worst begins like that.
    let mut order: Vec<(usize, f32)> =
        listed.iter().map(|cells| cells[4].parse().unwrap()).enumerate().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let top = rows(&out.join("top.csv"));
    assert_eq!(top.len(), 10_000);
    assert!(top.iter().zip(&order).all(|(cells, (row, _))| cells[0] == row.to_string()));
    let (mut hits, mut precision) = (0.0, 0.0);
    for (place, &(row, _)) in order.iter().enumerate() {
        if made.wrong[row] {
            hits += 1.0;
            precision += hits / (place + 1) as f64;
        }
    }
    let count = made.wrong.iter().filter(|wrong| **wrong).count() as f64;
    assert!(precision / count > 0.9, "{}", precision / count);
    let figures: Value = serde_json::from_slice(&std::fs::read(out.join("audit.json")).unwrap()).unwrap();
    let rate = figures["noise"]["rate"].as_f64().unwrap();
    assert!((rate - count / MANY_ROWS as f64).abs() < 0.03, "{rate}");
    let corrected = rows(&out.join("corrected.csv"));
    let changed = corrected.iter().filter(|cells| &cells[4] == "true").count() as u64;
    assert_eq!(figures["changed"], changed);
    assert!(changed > 0 && changed <= figures["flagged"].as_u64().unwrap());
    assert_eq!(
        figures["noise"]["classes"][0]["class"].as_str().map(|name| NAMES.contains(&name)),
        Some(true)
    );
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(!page.contains(NAMES[2]) && page.contains("Audit of x"));
    // Trained on or audited again, names are read back as they were.
    let again = made.here.join("again");
    let labels = out.join("corrected.csv");
    fine(&["audit", text(&made.data), "--labels", text(&labels), "--memory", "64MiB", "--out", text(&again)]);
    assert!(rows(&again.join("audit.csv")).iter().all(|cells| names.contains(&&cells[2])));
}

#[test]
fn one_command_does_all_parts_and_keeps_what_was_done() {
    let made = make("whole", ROWS);
    let out = made.here.join("out");
    let words =
        ["audit", text(&made.data), "--labels", text(&made.labels), "--memory", "64MiB", "--out", text(&out)];
    let figures: Value = serde_json::from_str(&fine(&[&words[..], &["--json"]].concat())).unwrap();
    assert_eq!(figures["samples"], ROWS);
    let before = tables(&out);
    let model = std::fs::metadata(out.join("audit.safetensors")).unwrap().modified().unwrap();
    let scores = out.join("shards/shard-1-of-1.scores");
    assert!(score(&out, "1/1").contains("as before"));
    std::fs::remove_file(&scores).unwrap();
    assert!(!score(&out, "1/1").contains("as before"), "a deleted file of scores is made again");
    assert_eq!(fine(&[&words[..], &["--quiet"]].concat()), "");
    assert!(tables(&out) == before);
    assert_eq!(std::fs::metadata(out.join("audit.safetensors")).unwrap().modified().unwrap(), model);
    let checked = command(&words).args(["--check", "0.01", "--quiet"]).output().unwrap();
    assert_eq!(checked.status.code(), Some(1));
    // Another seed is another audit: scores are not thrown away unasked.
    let other = [&words[..], &["--seed", "2"]].concat();
    assert!(fails(&other).contains("--fresh"));
    fine(&[&other[..], &["--fresh"]].concat());
    assert!(tables(&out) != before);
}

#[test]
fn what_is_missing_changed_or_out_of_place_is_said() {
    let made = make("errors", ROWS);
    let out = made.here.join("out");
    let said = fails(&["audit", "score", text(&out), "--shard", "1/2"]);
    assert!(said.contains("audit fit DATA"), "{said}");
    assert!(!out.exists(), "nothing is made for an error");
    fine(&made.fit(&out, &[]));
    assert!(fails(&["audit", "merge", text(&out)]).contains("no shard was scored yet"));
    score(&out, "1/2");
    let said = fails(&["audit", "merge", text(&out)]);
    assert!(said.contains("shard 2 of 2 is missing"), "{said}");
    for (shard, part) in [("3/2", "K from 1 to N"), ("0/2", "K from 1 to N"), ("half", "such as 2/8")] {
        assert!(fails(&["audit", "score", text(&out), "--shard", shard]).contains(part));
    }
    let said = fails(&made.fit(&made.here, &[]));
    assert!(said.contains("contains the input"), "{said}");
    assert!(fails(&made.fit(&out, &["--sample", "3"])).contains("too small a sample"));
    assert!(fails(&["audit", text(&made.data), "--memory", "1GiB"]).contains("--out"));
    let words = ["audit", text(&made.data), "--memory", "1GiB", "--out", text(&out), "--epochs", "3"];
    assert!(fails(&words).contains("--epochs"));
    assert!(fails(&["audit", text(&made.data), "--memory", "lots"]).contains("512MiB"));
    let on = ["audit", text(&made.data), "--on", "slurm"];
    assert!(fails(&on).contains("--out"));
    let elsewhere = made.here.join("elsewhere");
    assert!(fails(&[&on[..], &["--out", text(&elsewhere), "--check", "0.1"]].concat()).contains("--check"));
    assert!(fails(&[&on[..], &["--out", text(&elsewhere), "--epochs", "3"]].concat()).contains("--epochs"));
    assert!(!elsewhere.exists(), "nothing is made for an error");
    assert!(fails(&["audit", text(&made.data), "--", "--partition=gpu"]).contains("--on slurm"));
    // The rows move, which is fine, and then change, which is not.
    let moved = made.here.join("moved.npy");
    std::fs::rename(&made.data, &moved).unwrap();
    assert!(fails(&["audit", "score", text(&out), "--shard", "2/2"]).contains("x.npy"));
    fine(&["audit", "score", text(&out), "--shard", "2/2", "--data", text(&moved)]);
    fine(&["audit", "merge", text(&out)]);
    let mut bytes = std::fs::read(&moved).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&9.0f32.to_le_bytes());
    std::fs::write(&made.data, &bytes).unwrap();
    let said = fails(&["audit", "score", text(&out), "--shard", "1/2"]);
    assert!(said.contains("have changed since") && said.contains("fit again"), "{said}");
    std::fs::write(out.join("audit.safetensors"), b"{}").unwrap();
    let said = fails(&["audit", "score", text(&out), "--shard", "1/2"]);
    assert!(said.contains("audit.safetensors") && said.contains("damaged"), "{said}");
}

#[test]
fn parquet_with_ids_true_labels_and_sources_is_compared_and_counted_in_the_merge() {
    let here = folder("parquet");
    let data = here.join("rows.parquet");
    let (mut chance, count) = (Chance(11), 4_000);
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); 3];
    let [mut ids, mut given, mut truth, mut sites] = [const { Vec::<String>::new() }; 4];
    for row in 0..count {
        let (class, site) = (row % 3, row / 3 % 2);
        for (at, column) in columns.iter_mut().enumerate() {
            let noise: f64 = (0..6).map(|_| chance.next()).sum();
            column.push(if at == class { 3.0 } else { 0.0 } + 0.6 * noise);
        }
        // All wrong labels are of one site.
        let is_wrong = site == 1 && chance.next() + 0.5 < 0.3;
        ids.push(format!("item {row:04}"));
        truth.push(NAMES[class].to_owned());
        given.push(NAMES[if is_wrong { (class + 1) % 3 } else { class }].to_owned());
        sites.push(["north", "south"][site].to_owned());
    }
    let schema = "message m { required binary id (UTF8); required double a; required double b; required double c; required binary label (UTF8); \
                  required binary checked (UTF8); required binary site (UTF8); }";
    let wrong = given.iter().zip(&truth).filter(|(given, truth)| given != truth).count();
    let [a, b, c] = [0, 1, 2].map(|at| Column::Measures(columns[at].clone()));
    let texts = [ids.clone(), given, truth, sites].map(Column::Texts);
    let [id, label, checked, site] = texts;
    write_parquet(&data, schema, &[id, a, b, c, label, checked, site], 5);
    let named = ["--truth-column", "checked", "--source-column", "site", "--id-column", "id"];
    let out = here.join("out");
    fine(&[&["audit", "fit", text(&data), "--out", text(&out), "--sample", "1000"][..], &named].concat());
    score(&out, "2/2");
    score(&out, "1/2");
    let said = fine(&["audit", "merge", text(&out)]);
    assert!(said.contains("compared with the known truth") && said.contains("south"), "{said}");
    let figures: Value = serde_json::from_slice(&std::fs::read(out.join("audit.json")).unwrap()).unwrap();
    assert_eq!(figures["truth"]["wrong"], wrong);
    assert!(figures["truth"]["average_precision"].as_f64().unwrap() > 0.9, "{}", figures["truth"]);
    assert!(figures["truth"]["right_kept"].as_f64().unwrap() > 0.97, "{}", figures["truth"]);
    let before = figures["truth"]["right_before"].as_u64().unwrap();
    assert!(figures["truth"]["right_after"].as_u64().unwrap() > before);
    let flagged = |at: usize| figures["sources"][at]["flagged"].as_u64().unwrap();
    assert_eq!(figures["sources"][0]["source"], "north");
    assert_eq!(flagged(0) + flagged(1), figures["flagged"].as_u64().unwrap());
    assert!(flagged(0) * 5 < flagged(1), "{}", figures["sources"]);
    let listed = rows(&out.join("audit.csv"));
    assert!(
        listed.iter().enumerate().all(|(row, cells)| cells[1] == ids[row]),
        "ids stand beside their rows"
    );
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("By source") && page.contains("Compared with the known truth"));
    // By one command.
    let whole = here.join("whole");
    let words = ["audit", text(&data), "--out", text(&whole), "--memory", "64MiB", "--quiet"];
    fine(&[&words[..], &named].concat());
    let corrected = rows(&whole.join("corrected.csv"));
    assert!(
        corrected.len() == count && corrected.iter().enumerate().all(|(row, cells)| cells[1] == ids[row])
    );
    let told =
        fails(&["audit", "fit", text(&data), "--out", text(&here.join("no")), "--source-column", "sight"]);
    assert!(told.contains("no column `sight`"), "{told}");
}
