//! `negscale audit --source-column`: wrong labels by where they come from; thresholds by class; settings that repeat an audit.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use support::{Chance, command, fails, fine, folder, succeed, text};

const NAMES: [&str; 3] = ["rose", "tulip", "boat"];
const SITES: [&str; 3] = ["north, old", "=south", ""];
const COUNT: usize = 900;

/// Rows of three clouds with labels; of those from the first site two in five are wrong, of the others none.
fn made_up() -> Vec<([f64; 3], usize, usize)> {
    let mut chance = Chance(5);
    (0..COUNT)
        .map(|i| {
            let (class, site) = (i % 3, i / 3 % 3);
            let mut noise = || (0..6).map(|_| chance.next()).sum::<f64>() * 0.4;
            let row = [0, 1, 2].map(|j| if j == class { 3.0 } else { 0.0 } + noise());
            let is_wrong = site == 0 && i % 5 < 2;
            (row, if is_wrong { (class + 1) % 3 } else { class }, site)
        })
        .collect()
}

fn write_table(path: &Path) -> usize {
    let mut table = csv::Writer::from_path(path).unwrap();
    table.write_record(["length", "width", "depth", "site", "label"]).unwrap();
    let rows = made_up();
    for ([a, b, c], label, site) in &rows {
        let numbers = [a, b, c].map(|x| format!("{x:.4}"));
        table.write_record([&numbers[0], &numbers[1], &numbers[2], SITES[*site], NAMES[*label]]).unwrap();
    }
    table.flush().unwrap();
    rows.iter().enumerate().filter(|(i, (_, label, _))| *label != i % 3).count()
}

fn figures(out: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(out.join("audit.json")).unwrap()).unwrap()
}

#[test]
fn wrong_labels_are_counted_by_source_and_thresholds_told_by_class() {
    let here = folder("sources");
    let (data, out) = (here.join("flowers.csv"), here.join("out"));
    let wrong = write_table(&data);
    let said = fine(&["audit", text(&data), "--source-column", "site", "--out", text(&out)]);
    assert!(said.contains("north, old") && said.contains("(none given)"), "{said}");
    let found = figures(&out);
    let sources = found["sources"].as_array().unwrap();
    assert_eq!(sources.iter().map(|s| s["source"].as_str().unwrap()).collect::<Vec<_>>(), SITES);
    let number = |at: usize, key: &str| sources[at][key].as_u64().unwrap() as usize;
    assert!((0..3).all(|at| number(at, "labels") == COUNT / 3), "{sources:?}");
    assert!(number(0, "flagged").abs_diff(wrong) <= 10, "{sources:?} for {wrong}");
    assert!(number(1, "flagged") + number(2, "flagged") <= 10, "{sources:?}");
    let flagged: usize = (0..3).map(|at| number(at, "flagged")).sum();
    assert_eq!(found["flagged"], flagged);
    for source in sources {
        let [share, low, high] = [&source["share"], &source["interval_95"][0], &source["interval_95"][1]]
            .map(|x| x.as_f64().unwrap());
        assert!(low <= share && share <= high && high < 1.0, "{source}");
    }

    // The column is no feature, and stands beside every label.
    let mut table = csv::Reader::from_path(out.join("audit.csv")).unwrap();
    let head = table.headers().unwrap().clone();
    let at = |name: &str| head.iter().position(|column| column == name).unwrap();
    let guarded = ["north, old", "'=south", ""];
    let classes = found["noise"]["classes"].as_array().unwrap();
    for row in table.records().map(Result::unwrap) {
        let index: usize = row[0].parse().unwrap();
        assert_eq!(&row[at("source")], guarded[index / 3 % 3]);
        if &row[at("flag")] == "true" {
            let class = classes.iter().find(|class| class["class"] == row[at("given")]).unwrap();
            let told = format!("labels {} {} are flagged", &row[at("given")], class["flagged"]);
            let reasons = &row[at("reasons")];
            assert!(reasons.contains("flagged because its score") && reasons.contains(&told), "{reasons}");
        }
    }
    let by_class: u64 = classes.iter().map(|class| class["flagged"].as_u64().unwrap()).sum();
    assert_eq!(by_class, flagged as u64);
    let cut_off = found["cut_off"].as_f64().unwrap();
    let thresholds: Vec<f64> = classes.iter().map(|class| class["flagged_from"].as_f64().unwrap()).collect();
    assert!(
        thresholds.iter().all(|&score| score >= cut_off) && thresholds.contains(&cut_off),
        "{thresholds:?}"
    );
    assert!(classes.iter().all(|class| (0.0..=1.0).contains(&class["right_there"].as_f64().unwrap())));
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    for part in ["By source", "north, old", "at that score", "<dt>width</dt>", "--source-column site"] {
        assert!(page.contains(part), "{part}");
    }

    // The settings that were written repeat it, in any folder; a changed source is another audit.
    let again = here.join("again");
    fine(&["audit", text(&out.join("settings.toml")), "--out", text(&again)]);
    let read = |out: &Path| std::fs::read(out.join("audit.csv")).unwrap();
    assert!(read(&out) == read(&again));
    let changed = std::fs::read_to_string(&data).unwrap().replace("=south", "west");
    std::fs::write(&data, changed).unwrap();
    let told = fails(&["audit", text(&data), "--source-column", "site", "--out", text(&out)]);
    assert!(told.contains("data"), "{told}");
}

#[test]
fn sources_may_be_in_the_file_of_labels_and_unknown_columns_are_named_with_the_nearest() {
    let here = folder("beside");
    let (data, labels, out) = (here.join("rows.csv"), here.join("labels.csv"), here.join("out"));
    let (mut table, mut file) = (String::from("a,b,c\n"), String::from("index,kind,site\n"));
    for (i, ([a, b, c], label, site)) in made_up().iter().enumerate() {
        writeln!(table, "{a:.4},{b:.4},{c:.4}").unwrap();
        writeln!(file, "{i},{},s{site}", NAMES[*label]).unwrap();
    }
    std::fs::write(&data, table).unwrap();
    std::fs::write(&labels, file).unwrap();
    let start =
        ["audit", text(&data), "--labels", text(&labels), "--label-column", "kind", "--out", text(&out)];
    let told = fails(&[&start[..], &["--source-column", "sites"]].concat());
    assert!(
        told.contains("labels.csv") && told.contains("no column `sites`: did you mean `site`?"),
        "{told}"
    );
    fine(&[&start[..], &["--source-column", "site", "--quiet"]].concat());
    assert_eq!(figures(&out)["sources"][0]["source"], "s0");
    assert_eq!(figures(&out)["sources"].as_array().unwrap().len(), 3);
    let table = here.join("flowers.csv");
    write_table(&table);
    let told = fails(&["audit", text(&table), "--source-column", "sit", "--out", text(&here.join("no"))]);
    assert!(told.contains("no column `sit`: did you mean `site`?"), "{told}");
    let told = fails(&["audit", text(&table), "--source-column", "label", "--label-column", "label"]);
    assert!(told.contains("both source_column and label_column"), "{told}");
    // Test data need not know sources, and where it has them they are no features.
    for test in
        ["length,width,depth,label\n0.1,2.9,0,tulip\n", "length,width,depth,site,label\n0.1,2.9,0,x,tulip\n"]
    {
        let path = here.join("test.csv");
        std::fs::write(&path, test).unwrap();
        let words =
            ["audit", text(&table), "--source-column", "site", "--test", text(&path), "--quiet", "--fresh"];
        succeed(command(&words).args(["--out", text(&here.join("tested"))]));
    }
}

#[test]
fn pictures_with_a_table_have_sources_and_losses_over_epochs_are_told() {
    let here = folder("pictures");
    let data = here.join("things");
    std::fs::create_dir_all(&data).unwrap();
    let mut chance = Chance(3);
    let mut table = String::from("file_name,label,camera\n");
    for i in 0..48 {
        let class = i % 2;
        let base = if class == 1 { 170.0 } else { 60.0 };
        let pixels: Vec<u8> = (0..64).map(|_| (base + 40.0 * chance.next()) as u8).collect();
        let file = std::fs::File::create(data.join(format!("{i:02}.png"))).unwrap();
        let mut encoder = png::Encoder::new(file, 8, 8);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
        let label = if i < 4 { 1 - class } else { class };
        writeln!(table, "{i:02}.png,{},cam{}", ["dark", "light"][label], i % 3).unwrap();
    }
    std::fs::write(data.join("metadata.csv"), table).unwrap();
    let audited = |epochs: &str, out: &Path| {
        let words =
            ["audit", text(&data), "--source-column", "camera", "--out", text(out), "--epochs", epochs];
        let small = ["--set", "batch=8", "--set", "host=cross-entropy", "--set", "width=0.25"];
        let more = ["--set", "audit.flag_below=0.9", "--set", "optimiser.lr=0.01"];
        let output = succeed(command(&words).args(small).args(more));
        (String::from_utf8(output.stdout).unwrap(), figures(out))
    };
    let (said, found) = audited("3", &here.join("short"));
    assert_eq!(found["sources"].as_array().unwrap().len(), 3, "{found}");
    assert_eq!(found["losses"]["epochs"], serde_json::json!([1, 2, 3]));
    let medians: Vec<f64> =
        found["losses"]["medians"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    let falls = medians[1] - medians[2];
    let improves = falls > 0.01 && falls > 0.05 * medians[1];
    assert_eq!(found["losses"]["still_improving"], improves, "{medians:?}");
    assert_eq!(said.contains("the fit was still improving"), improves, "{said}");
    let notes = found["notes"].as_array().unwrap();
    assert_eq!(notes.iter().any(|note| note.as_str().unwrap().contains("--epochs 6")), improves, "{notes:?}");
    let page = std::fs::read_to_string(here.join("short/report.html")).unwrap();
    assert_eq!(page.contains("still improving"), improves);
    let mut table = csv::Reader::from_path(here.join("short/audit.csv")).unwrap();
    let head = table.headers().unwrap().clone();
    let at = |name: &str| head.iter().position(|column| column == name).unwrap();
    let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
    assert!(rows.iter().any(|row| &row[at("flag")] == "true"), "labels below 0.9 are flagged");
    for row in &rows {
        let losses: Vec<&str> = row[at("losses")].split(' ').collect();
        assert!(losses.len() == 3 && losses[0].starts_with("1:"), "{row:?}");
        assert_eq!(losses[2], format!("3:{}", &row[at("loss")]));
        if &row[at("flag")] == "true" {
            assert!(row[at("reasons")].contains("its loss went from"), "{row:?}");
            assert!(row[at("reasons")].contains("is below 0.9"), "{row:?}");
        }
    }
}
