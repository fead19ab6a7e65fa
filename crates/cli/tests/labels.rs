//! Labels and tables as people have them: sorted in a spreadsheet, without a header, with ids, with other separators.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use parquet::data_type::{FloatType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::{Chance, command, fails, fine, folder, succeed, text};

const NAMES: [&str; 4] = ["rose", "tulip", "=lorry", "boat"];

/// Two numbers around the centre of the item's class, and its label; some labels are wrong.
fn cloud(count: usize) -> Vec<([f64; 2], &'static str)> {
    let mut chance = Chance(1);
    let mut item = |i: usize| {
        let centre = [[2.0, 1.5], [2.0, -1.5], [-2.0, 1.5], [-2.0, -1.5]][i % 4];
        let mut noise = || (0..6).map(|_| chance.next()).sum::<f64>() * 0.5;
        let features = [centre[0] + noise(), centre[1] + noise()];
        (features, NAMES[if i % 7 == 3 { (i + 1) % 4 } else { i % 4 }])
    };
    (0..count).map(&mut item).collect()
}

fn put(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A table with a separator between its fields.
fn table(folder: &Path, name: &str, count: usize, by: char) -> PathBuf {
    let mut lines = format!("a{by}b{by}label\n");
    for ([a, b], label) in cloud(count) {
        writeln!(lines, "{a:.4}{by}{b:.4}{by}{label}").unwrap();
    }
    put(folder, name, &lines)
}

/// What an inspection finds, part by part, and what it says beside.
fn inspect(words: &[&str]) -> (Vec<Value>, String) {
    let output = succeed(command(&["data", "inspect", "--json"]).args(words));
    let parts = String::from_utf8(output.stdout).unwrap();
    let parts = parts.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (parts, String::from_utf8(output.stderr).unwrap())
}

fn rows(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn corrected_labels_that_were_sorted_or_shuffled_give_the_same_audit() {
    let here = folder("shuffled");
    let data = table(&here, "flowers.csv", 240, ',');
    let audit = |name: &str, labels: Option<&Path>| {
        let out = here.join(name);
        let mut command =
            command(&["audit", text(&data), "--out", text(&out), "--quiet", "--set", "epochs=3"]);
        command.args(["--set", "batch=32", "--set", "hidden=[16]", "--set", "rolr.warm_up_batch=32"]);
        if let Some(labels) = labels {
            command.args(["--labels", text(labels)]);
        }
        succeed(&mut command);
        let summary: Value = serde_json::from_slice(&std::fs::read(out.join("audit.json")).unwrap()).unwrap();
        (summary["noise"].clone(), rows(&out.join("audit.csv")))
    };
    audit("first", None);
    let corrected = here.join("first").join("corrected.csv");
    assert!(rows(&corrected).iter().any(|row| row.contains("'=lorry")), "formulas are guarded");
    let plain = audit("plain", Some(&corrected));
    let mut lines = rows(&corrected);
    lines[1..].sort_by_key(|line| line.split(',').nth(2).map(str::to_owned));
    let by_label = put(&here, "sorted.csv", &(lines.join("\n") + "\n"));
    lines[1..].sort_by_key(|line| line.split(',').next().unwrap().parse::<usize>().unwrap() * 7919 % 241);
    let shuffled = put(&here, "shuffled.csv", &(lines.join("\r\n") + "\r\n").replace(',', ";"));
    assert!(plain == audit("sorted", Some(&by_label)), "sorted by label");
    assert!(plain == audit("shuffled", Some(&shuffled)), "shuffled");
    assert!(plain.1[1..].iter().any(|row| row.contains("'=lorry")));
}

#[test]
fn label_files_that_could_be_misread_are_refused_with_line_and_remedy() {
    let here = folder("refused");
    let data = put(&here, "x.csv", "a,b\n1,5\n2,7\n4,1\n8,0\n");
    for (labels, parts) in [
        ("species\nrose\n\ntulip\nrose\ntulip\n", &["labels.csv, line 3", "blank line"][..]),
        ("species\nrose\ntulip\nrose\ntulip\n", &["line 1", "`species`", "--header yes"]),
        ("index,label\n0,rose\n1,rose\n1,tulip\n3,rose\n", &["line 4", "second label for item 1"]),
        ("index,label\n0,rose\n1,rose\n3,tulip\n", &["item 2"]),
        ("index,label\n0,rose\n1,rose\n2,tulip\n3,rose\n9,rose\n", &["line 6", "`9`"]),
    ] {
        let labels = put(&here, "labels.csv", labels);
        let said = fails(&["data", "inspect", text(&data), "--labels", text(&labels)]);
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
    let labels = put(&here, "labels.csv", "species\nrose\ntulip\nrose\ntulip\n");
    let with = |header: &str| {
        ["data", "inspect", text(&data), "--labels", text(&labels), "--header", header].map(str::to_owned)
    };
    let with = |header: &str| -> Vec<String> { with(header).to_vec() };
    let words = |header: &str| fine(&with(header).iter().map(String::as_str).collect::<Vec<_>>());
    assert!(words("yes").contains("4 items, 2 classes"));
    let no = with("no");
    assert!(fails(&no.iter().map(String::as_str).collect::<Vec<_>>()).contains("5 labels for 4 items"));
    let slip = with("perhaps");
    assert!(fails(&slip.iter().map(String::as_str).collect::<Vec<_>>()).contains("yes, no or auto"));
    // The same by recipe, and by its key.
    let said = fails(&[
        "train",
        "--set",
        &format!("data={}", text(&data)),
        "--set",
        &format!("labels={}", text(&labels)),
    ]);
    assert!(said.contains("--header yes"), "{said}");
    assert!(fails(&["train", "--set", "header=perhaps"]).contains("--set header=perhaps"));
    assert!(fails(&["train", "--set", "featurecolumns=[\"a\"]"]).contains("`feature_columns`"));
    assert!(fine(&["config", "explain", "id_column"]).contains("column with ids"));
}

#[test]
fn sparse_numbers_are_three_classes_and_row_numbers_are_refused() {
    let here = folder("sparse");
    let mut lines = String::from("a,b,label\n");
    for (i, ([a, b], _)) in cloud(60).into_iter().enumerate() {
        writeln!(lines, "{a:.4},{b:.4},{}", [0, 450_000, 900_000][i % 3]).unwrap();
    }
    let data = put(&here, "sparse.csv", &lines);
    let (parts, _) = inspect(&[text(&data)]);
    let classes = parts[0]["report"]["labels"]["classes"].as_array().unwrap().clone();
    let names: Vec<&str> = classes.iter().map(|class| class["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["0", "450000", "900000"]);
    let mut lines = String::from("a,b,label\n");
    for (i, ([a, b], _)) in cloud(60).into_iter().enumerate() {
        writeln!(lines, "{a:.4},{b:.4},{i}").unwrap();
    }
    let said = fails(&["data", "inspect", text(&put(&here, "rows.csv", &lines))]);
    assert!(said.contains("60 classes for 60 items") && said.contains("right column"), "{said}");
}

#[test]
fn other_separators_chosen_columns_and_ids_are_understood() {
    let here = folder("tables");
    let finds = |words: &[&str]| {
        let (parts, notes) = inspect(words);
        (parts[0]["report"]["items"].clone(), parts[0]["report"]["features"]["dim"].clone(), notes)
    };
    for (name, by) in [("semicolons.csv", ';'), ("tabs.csv", '\t'), ("tabs.tsv", '\t')] {
        let (items, dim, notes) = finds(&[text(&table(&here, name, 40, by))]);
        assert_eq!((items, dim, notes.as_str()), (40.into(), 2.into(), ""), "{name}");
    }
    let mut lines = String::from("id,a,b,comment,label\n");
    for (i, ([a, b], label)) in cloud(40).into_iter().enumerate() {
        writeln!(lines, "{},{a:.4},{b:.4},none,{label}", 7 * i).unwrap();
    }
    let data = put(&here, "ids.csv", &lines);
    let said = fails(&["data", "inspect", text(&data)]);
    assert!(said.contains("`comment`") && said.contains("--ignore-columns"), "{said}");
    let (_, dim, notes) = finds(&[text(&data), "--ignore-columns", "comment"]);
    assert!(dim == 2 && notes.contains("note: ") && notes.contains("`id` is used as ids"), "{notes}");
    let (_, dim, notes) = finds(&[text(&data), "--feature-columns", "b", "--id-column", "id"]);
    assert_eq!((dim, notes.as_str()), (1.into(), ""));
    let (_, dim, _) = finds(&[text(&data), "--ignore-columns", "comment", "--id-column", "none"]);
    assert_eq!(dim, 3);
    let said = fails(&["data", "inspect", text(&data), "--feature-columns", "c"]);
    assert!(said.contains("no column `c`") && said.contains("comment"), "{said}");
    // The id names the row in what training leaves.
    let out = here.join("out");
    let mut train =
        command(&["train", "--data", text(&data), "--ignore-columns", "comment", "--out", text(&out)]);
    train.args(["--host", "cross-entropy", "--epochs", "1", "--set", "baseline=none", "--set", "batch=16"]);
    let output = succeed(&mut train);
    assert!(String::from_utf8(output.stderr).unwrap().contains("`id` is used as ids"));
    for row in &rows(&out.join("audit.csv"))[1..] {
        let fields: Vec<&str> = row.split(',').collect();
        assert_eq!(fields[1].parse::<usize>().unwrap(), 7 * fields[0].parse::<usize>().unwrap());
    }
    let settings = std::fs::read_to_string(out.join("settings.toml")).unwrap();
    assert!(settings.contains("ignore_columns = [\"comment\"]"), "{settings}");
}

#[test]
fn embeddings_in_a_list_column_of_parquet_are_learnt_from() {
    let here = folder("lists");
    let text_of = "message m { required group embedding (LIST) { repeated group list { required float element; } } required int32 label; }";
    let schema = Arc::new(parse_message_type(text_of).unwrap());
    let path = here.join("set.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let items = cloud(48);
    let numbers: Vec<f32> = items.iter().flat_map(|(row, _)| row.map(|x| x as f32)).collect();
    let levels = |level: fn(usize) -> i16| (0..numbers.len()).map(level).collect::<Vec<_>>();
    let mut column = group.next_column().unwrap().unwrap();
    let (definitions, repetitions) = (levels(|_| 1), levels(|i| (i % 2) as i16));
    column.typed::<FloatType>().write_batch(&numbers, Some(&definitions), Some(&repetitions)).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let labels: Vec<i32> = (0..48).map(|i| i % 4).collect();
    column.typed::<Int32Type>().write_batch(&labels, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let (parts, _) = inspect(&[text(&path)]);
    assert_eq!(
        (&parts[0]["report"]["features"]["dim"], &parts[0]["report"]["items"]),
        (&2.into(), &48.into())
    );
    assert!(
        fails(&["data", "inspect", text(&path), "--array", "label"])
            .contains("does not hold lists of numbers")
    );
    let mut train =
        command(&["train", "--data", text(&path), "--array", "embedding", "--out", text(&here.join("out"))]);
    train.args([
        "--host",
        "cross-entropy",
        "--epochs",
        "1",
        "--set",
        "baseline=none",
        "--set",
        "batch=16",
        "--quiet",
    ]);
    succeed(&mut train);
}

#[test]
fn items_that_are_in_both_parts_are_said() {
    let here = folder("both");
    let train = table(&here, "train.csv", 60, ',');
    let mut lines = rows(&train);
    lines.truncate(1 + 5);
    lines[1] = lines[1].replace("rose", "boat");
    lines.push("9,9,rose".into());
    let test = put(&here, "test.csv", &(lines.join("\n") + "\n"));
    let (parts, _) = inspect(&[text(&train), "--test", text(&test)]);
    let last = parts.last().unwrap();
    assert_eq!((&last["part"], &last["shared"]["items"]), (&"train and test".into(), &5.into()));
    assert_eq!(
        (&last["shared"]["contradicting"], &last["shared"]["first"][0]),
        (&1.into(), &serde_json::json!([0, 0]))
    );
    let said = fine(&["data", "inspect", text(&train), "--test", text(&test)]);
    assert!(
        said.contains("5 of 6 items of the test split") && said.contains("train 0 (rose), test 0 (boat)"),
        "{said}"
    );
    let mut run =
        command(&["train", "--data", text(&train), "--test", text(&test), "--out", text(&here.join("out"))]);
    run.args(["--host", "cross-entropy", "--epochs", "1", "--set", "baseline=none", "--set", "batch=16"]);
    let output = succeed(&mut run);
    assert!(String::from_utf8(output.stderr).unwrap().contains("warning: 5 of 6 items of the test split"));
}
