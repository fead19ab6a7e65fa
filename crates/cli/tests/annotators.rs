//! `negscale audit --label-columns`: labels by several annotators.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use support::parquet::{Column, write_parquet};
use support::{Chance, command, fails, folder, succeed, text};

const NAMES: [&str; 3] = ["rose", "tulip", "=lorry"];
const COUNT: usize = 600;
const COLUMNS: &str = "ann,bob,cy";

/// Three clouds that overlap, and labels by three annotators who are right this often.
fn made_up(right: [f64; 3]) -> (Vec<[f64; 2]>, Vec<[usize; 3]>) {
    let mut chance = Chance(7);
    (0..COUNT)
        .map(|i| {
            let centre = [[1.2, 0.0], [-0.6, 1.0], [-0.6, -1.0]][i % 3];
            let mut noise = || (0..6).map(|_| chance.next()).sum::<f64>();
            let row = [centre[0] + noise(), centre[1] + noise()];
            let labels = right.map(|right| {
                let is_right = chance.next() + 0.5 < right;
                if is_right { i % 3 } else { (i % 3 + 1 + usize::from(chance.next() > 0.0)) % 3 }
            });
            (row, labels)
        })
        .unzip()
}

/// A table of them; gives the shares of labels that are right.
fn write_table(path: &Path) -> [f64; 3] {
    let (rows, labels) = made_up([0.9, 0.8, 0.6]);
    let mut table = String::from("ann,x,bob,y,cy\n");
    for ([x, y], [ann, bob, cy]) in rows.iter().zip(&labels) {
        writeln!(table, "{},{x:.4},{},{y:.4},{}", NAMES[*ann], NAMES[*bob], NAMES[*cy]).unwrap();
    }
    std::fs::write(path, table).unwrap();
    [0, 1, 2].map(|a| {
        labels.iter().enumerate().filter(|(i, labels)| labels[a] == i % 3).count() as f64 / COUNT as f64
    })
}

fn audited(data: &Path, out: &Path, more: &[&str]) -> (String, Value) {
    let run = ["audit", text(data), "--out", text(out), "--label-columns", COLUMNS];
    let output = succeed(command(&run).args(more));
    let figures = serde_json::from_slice(&std::fs::read(out.join("audit.json")).unwrap()).unwrap();
    (String::from_utf8(output.stdout).unwrap(), figures)
}

#[test]
fn annotators_are_told_apart_and_the_consensus_beats_the_majority() {
    let here = folder("table");
    let (data, out) = (here.join("flowers.csv"), here.join("out"));
    let right = write_table(&data);
    let (said, figures) = audited(&data, &out, &[]);
    let annotators = figures["annotators"].as_array().unwrap();
    let accuracies: Vec<f64> = annotators.iter().map(|a| a["accuracy"].as_f64().unwrap()).collect();
    for (at, name) in ["ann", "bob", "cy"].into_iter().enumerate() {
        assert_eq!(annotators[at]["name"], name);
        assert_eq!(annotators[at]["labels"], COUNT);
        assert!((accuracies[at] - right[at]).abs() < 0.07, "{name}: {accuracies:?} for {right:?}");
        assert!(annotators[at]["kappa"].as_f64().unwrap() > 0.2);
        assert!(said.contains(name), "{said}");
    }
    assert!(accuracies.is_sorted_by(|a, b| a > b), "{accuracies:?}");
    let alpha = figures["agreement"]["alpha"].as_f64().unwrap();
    assert!((0.2..0.7).contains(&alpha), "{alpha}");
    assert_eq!(figures["agreement"]["with_predictions"], true);
    assert!(said.contains("consensus.csv") && said.contains("look better than they are"), "{said}");

    let mut table = csv::Reader::from_path(out.join("consensus.csv")).unwrap();
    let head: Vec<String> = table.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(head, ["index", "path", "consensus", "certainty", "majority", "ann", "bob", "cy"]);
    let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), COUNT);
    let right_in = |column: usize| {
        let is_right =
            |(i, row): &(usize, &csv::StringRecord)| row[column].trim_start_matches('\'') == NAMES[i % 3];
        rows.iter().enumerate().filter(is_right).count()
    };
    assert!(right_in(2) > right_in(4), "{} by consensus, {} by majority", right_in(2), right_in(4));
    assert!(right_in(2) as f64 / COUNT as f64 > right[0], "better than the best annotator");
    assert!(rows.iter().any(|row| &row[4] == "'=lorry"), "formulas are guarded");
    for row in &rows {
        let votes = |label: &str| (5..8).filter(|&at| &row[at] == label).count();
        assert!(votes(&row[4]) > 1 || (votes(&row[4]) == 1 && row[4] == row[5]), "{row:?}");
        assert!((0.0..=1.0).contains(&row[3].parse::<f64>().unwrap()));
    }
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Annotators") && page.contains("majority vote"));
    assert!(["audit.csv", "corrected.csv"].iter().all(|name| out.join(name).exists()));

    // The folder is one of these annotators, in this order; settings with the columns go on there.
    let settings = out.join("settings.toml");
    succeed(&mut command(&["audit", text(&settings), "--out", text(&out), "--json"]));
    fails(&["audit", text(&settings), "--out", text(&out), "--json", "--label-columns", "ann,cy,bob"]);
    let copied = here.join("copied");
    succeed(&mut command(&["audit", text(&settings), "--out", text(&copied), "--quiet"]));
    let read = |out: &Path| std::fs::read(out.join("consensus.csv")).unwrap();
    assert!(read(&out) == read(&copied), "settings.toml alone repeats it");
    let corrected = out.join("corrected.csv");
    let trained = ["train", "--data", text(&data), "--labels", text(&corrected)];
    let told = format!("--labels {} --ignore-columns ann,bob,cy", text(&corrected));
    assert!(page.contains(&told), "the page has the command");
    let small = ["--ignore-columns", COLUMNS, "--set", "epochs=1", "--set", "batch=32", "--quiet"];
    let place = ["--set", "baseline=none", "--set", "host=cross-entropy", "--out"];
    succeed(command(&trained).args(small).args(place).arg(here.join("trained")));
}

#[test]
fn labels_may_be_in_a_file_of_their_own_and_predictions_may_be_given() {
    let here = folder("file");
    let (data, labels, out) = (here.join("rows.csv"), here.join("labels.csv"), here.join("out"));
    let (rows, given) = made_up([0.9, 0.8, 0.6]);
    // One annotator never uses the last class: classes are joined by name.
    let (mut table, mut file) = (String::from("x,y\n"), String::from("index,ann,bob,cy\n"));
    for (i, ([x, y], [ann, bob, cy])) in rows.iter().zip(&given).enumerate() {
        writeln!(table, "{x:.4},{y:.4}").unwrap();
        writeln!(file, "{i},{},{},{}", ann + 9, bob + 9, cy % 2 + 9).unwrap();
    }
    std::fs::write(&data, table).unwrap();
    std::fs::write(&labels, file).unwrap();
    let (_, figures) = audited(&data, &out, &["--labels", text(&labels)]);
    let names: Vec<&str> = figures["noise"]["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["class"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["9", "10", "11"]);
    assert_eq!(figures["annotators"].as_array().unwrap().len(), 3);

    let predictions = here.join("p.csv");
    let mut file = String::from("9,10,11\n");
    for i in 0..COUNT {
        let p = [0, 1, 2].map(|class| if class == i % 3 { "0.8" } else { "0.1" });
        writeln!(file, "{}", p.join(",")).unwrap();
    }
    std::fs::write(&predictions, file).unwrap();
    let more = ["--labels", text(&labels), "--pred-probs", text(&predictions)];
    let (_, figures) = audited(&data, &here.join("given"), &more);
    assert_eq!(figures["method"], "given predictions");
    assert!((figures["annotators"][0]["accuracy"].as_f64().unwrap() - 0.9).abs() < 0.07);

    let wrong = fails(&["audit", text(&data), "--labels", text(&labels), "--label-columns", "ann,x"]);
    assert!(wrong.contains("no column `x`"), "{wrong}");
    let start = ["audit", text(&labels), "--labels", text(&labels), "--label-columns", COLUMNS];
    let wrong = fails(&start);
    assert!(wrong.contains("both in the data and in the file of labels"), "{wrong}");
}

#[test]
fn wrong_columns_are_refused_with_what_to_do() {
    let here = folder("wrong");
    let (data, out) = (here.join("flowers.csv"), here.join("out"));
    write_table(&data);
    let wrong = |columns: &str, more: &[&str]| {
        let start = ["audit", text(&data), "--out", text(&out), "--label-columns", columns];
        fails(&[&start[..], more].concat())
    };
    let told = wrong("ann,bob,ann", &[]);
    assert!(told.contains("--label-columns") && told.contains("`ann` is named twice"), "{told}");
    assert!(wrong("ann,dora", &[]).contains("no column `dora`"));
    let told = wrong("ann", &[]);
    assert!(told.contains("at least two columns") && told.contains("--label-column"), "{told}");
    assert!(wrong(COLUMNS, &["--label-column", "ann"]).contains("cannot be used with"));
    assert!(wrong(COLUMNS, &["--memory", "1GiB"]).contains("cannot be used with"));
    assert!(wrong(COLUMNS, &["--host", "rolr"]).contains("--pred-probs"));
    assert!(wrong(COLUMNS, &["--noise", "sym:0.2"]).contains("leave out noise"));
    std::fs::write(&data, "ann,x,bob,y,cy\nrose,1,,2,\n,3,,4,\n").unwrap();
    let told = wrong(COLUMNS, &[]);
    assert!(told.contains("line 3: no label in any of the columns ann, bob, cy"), "{told}");
    assert!(!out.exists(), "nothing is made before the columns are read");
}

/// Leaves out two labels in five, but never all of a row.
fn with_blanks(labels: &[[usize; 3]]) -> Vec<[Option<usize>; 3]> {
    let blank = |(row, labels): (usize, &[usize; 3])| {
        let of = |at: usize| Some(labels[at]).filter(|_| (row + 2 * at) % 5 > 1);
        let some = [of(0), of(1), of(2)];
        assert!(some.iter().any(Option::is_some));
        some
    };
    labels.iter().enumerate().map(blank).collect()
}

fn check_blanks(out: &Path, figures: &Value, labels: &[[Option<usize>; 3]], names: &[&str]) {
    for (at, annotator) in figures["annotators"].as_array().unwrap().iter().enumerate() {
        let count = labels.iter().filter(|labels| labels[at].is_some()).count();
        assert_eq!(annotator["labels"], count);
        assert!(annotator["accuracy"].as_f64().unwrap() > 0.4);
    }
    let mut table = csv::Reader::from_path(out.join("consensus.csv")).unwrap();
    for (row, labels) in table.records().map(Result::unwrap).zip(labels) {
        for (at, label) in labels.iter().enumerate() {
            assert_eq!(
                row[5 + at].trim_start_matches('\''),
                label.map_or("", |label| names[label]),
                "{row:?}"
            );
        }
        let votes = |class: usize| labels.iter().filter(|label| **label == Some(class)).count();
        let majority = names.iter().position(|name| row[4].trim_start_matches('\'') == *name).unwrap();
        assert!((0..names.len()).all(|class| votes(class) <= votes(majority)), "{row:?}");
    }
}

#[test]
fn who_did_not_label_a_row_has_a_blank_cell_there() {
    let here = folder("blank");
    let (data, out) = (here.join("flowers.csv"), here.join("out"));
    let (rows, labels) = made_up([0.9, 0.8, 0.6]);
    let labels = with_blanks(&labels);
    let mut table = String::from("ann,x,bob,y,cy\n");
    for ([x, y], labels) in rows.iter().zip(&labels) {
        let [ann, bob, cy] = labels.map(|label| label.map_or("", |label| NAMES[label]));
        writeln!(table, "{ann},{x:.4},{bob},{y:.4},{cy}").unwrap();
    }
    std::fs::write(&data, table).unwrap();
    // In a recipe as on the command line.
    let recipe = here.join("mine.toml");
    let text_of = format!("data = {:?}\nlabel_columns = [\"ann\", \"bob\", \"cy\"]\n", text(&data));
    std::fs::write(&recipe, text_of).unwrap();
    succeed(&mut command(&["audit", text(&recipe), "--out", text(&out), "--quiet"]));
    let figures: Value = serde_json::from_slice(&std::fs::read(out.join("audit.json")).unwrap()).unwrap();
    check_blanks(&out, &figures, &labels, &NAMES);
    let (_, same) = audited(&data, &here.join("flags"), &[]);
    assert_eq!(same["annotators"], figures["annotators"]);
}

#[test]
fn parquet_has_columns_of_annotators_with_nulls_for_blanks() {
    let here = folder("parquet");
    let (data, out) = (here.join("flowers.parquet"), here.join("out"));
    let (rows, labels) = made_up([0.9, 0.8, 0.6]);
    let labels = with_blanks(&labels);
    let schema = "message m { required double x; optional int32 ann; required double y; optional int32 bob; optional int32 cy; }";
    let column = |at: usize| -> Column {
        let places = labels.iter().map(|labels| i16::from(labels[at].is_some())).collect();
        Column::Numbers(
            labels.iter().filter_map(|labels| labels[at]).map(|label| label as i32).collect(),
            places,
        )
    };
    let measured = |at: usize| Column::Measures(rows.iter().map(|row| row[at]).collect());
    write_parquet(&data, schema, &[measured(0), column(0), measured(1), column(1), column(2)], 1);
    let (_, figures) = audited(&data, &out, &[]);
    check_blanks(&out, &figures, &labels, &["0", "1", "2"]);
    let told = fails(&["audit", text(&data), "--label-columns", "ann,bobb"]);
    assert!(told.contains("no column `bobb`: did you mean `bob`?"), "{told}");
}
