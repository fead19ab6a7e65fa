//! Several runs on one page: every text stays text, and plots appear where groups differ in what they show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use negscale_report::{Comparison, Error};

const HOSTILE: &str = "<script>alert(1)</script>'&amp; ]]> </svg>";

fn write_run(folder: &Path, settings: &str, seed: u64, accuracy: f64) {
    fs::create_dir_all(folder).unwrap();
    let text =
        format!("seed = {seed}\nnoise_seed = 0\nepochs = 1\n{settings}\n[provenance]\nversion = '0.1.0'\n");
    fs::write(folder.join("settings.toml"), text).unwrap();
    let line =
        format!(r#"{{"epoch":1,"seconds":1,"learning_rate":0.1,"losses":{{}},"test_accuracy":{accuracy}}}"#);
    fs::write(folder.join("metrics.jsonl"), line).unwrap();
    fs::write(folder.join("results.json"), format!(r#"{{"test_last10":{accuracy},"seconds":1}}"#)).unwrap();
}

fn titles(comparison: &Comparison) -> Vec<String> {
    let svg = comparison.plots().into_iter().map(|plot| plot.to_svg());
    svg.map(|svg| svg.split("<title>").nth(1).unwrap().split('<').next().unwrap().to_owned()).collect()
}

/// A comparison of weights, one run for each pair.
fn weighted(pairs: &[(f64, f64)]) -> Comparison {
    let place = tempfile::tempdir().unwrap();
    let base = "host = 'rolr'\nplugin = 'negscale'\ndata = 'toy'\nnoise = 'sym:0.5'\nnet = 'mlp'\n";
    for (number, (lambda, mu)) in pairs.iter().enumerate() {
        let settings = format!("{base}[negscale]\nlambda = {lambda:?}\nmu = {mu:?}");
        write_run(&place.path().join(number.to_string()), &settings, 1, 0.8 + number as f64 / 100.0);
    }
    Comparison::read(&[place.path().into()]).unwrap()
}

#[test]
fn two_numeric_settings_make_a_grid() {
    let comparison = weighted(&[(0.1, 0.1), (0.1, 1.0), (1.0, 0.1), (1.0, 1.0)]);
    assert_eq!(titles(&comparison)[0], "Sensitivity");
    let grid = comparison.plots()[0].to_svg();
    assert_eq!(grid.matches("class=\"cell\"").count(), 4);
    assert!(grid.contains(">80.0</text>") && grid.contains(">83.0</text>"));
}

#[test]
fn a_few_pairs_of_two_settings_stand_side_by_side() {
    let comparison = weighted(&[(0.1, 0.1), (1.0, 1.0), (5.0, 5.0), (10.0, 10.0), (2.0, 0.5), (0.5, 2.0)]);
    let plot = &comparison.plots()[0];
    let rows: Vec<&str> = plot.numbers().1.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(rows, ["0.1, 0.1", "0.5, 2.0", "1.0, 1.0", "2.0, 0.5", "5.0, 5.0", "10.0, 10.0"]);
    assert_eq!(plot.numbers().0[0], "lambda, mu");
}

#[test]
fn one_numeric_setting_makes_a_curve() {
    let comparison = weighted(&[(0.1, 1.0), (1.0, 1.0), (10.0, 1.0)]);
    assert_eq!(titles(&comparison)[0], "Sensitivity to lambda");
}

#[test]
fn rankings_of_labels_are_drawn_side_by_side_where_the_truth_was_known() {
    let place = tempfile::tempdir().unwrap();
    for (plugin, precision) in [("none", [0.9, 0.5]), ("negscale", [1.0, 0.7])] {
        for seed in [1, 2] {
            let folder = place.path().join(format!("{plugin}{seed}"));
            let base = "host = 'rolr'\ndata = 'toy'\nnoise = 'sym:0.5'\nnet = 'mlp'\n";
            write_run(&folder, &format!("{base}plugin = '{plugin}'"), seed, 0.8);
            let shift = 0.02 * (seed as f64 - 1.5);
            let [first, last] = precision.map(|p| p - 0.01 + shift);
            let results = format!(r#"{{"test_last10":0.8,"audit_precision":[{first},{last}]}}"#);
            fs::write(folder.join("results.json"), results).unwrap();
        }
    }
    let comparison = Comparison::read(&[place.path().into()]).unwrap();
    let plot = comparison.plots().into_iter().find(|plot| plot.to_svg().contains("Wrong labels found"));
    let plot = plot.expect("a plot");
    let (header, rows) = plot.numbers();
    assert_eq!(header, ["found, %", "rolr", "rolr + negscale"]);
    assert_eq!(rows.len(), 2);
    assert!(
        rows[0][0].starts_with("50") && rows[0][1].starts_with("89") && rows[1][2].starts_with("69"),
        "{rows:?}"
    );
}

#[test]
fn variants_of_the_plug_in_make_an_ablation_with_the_host_alone() {
    let place = tempfile::tempdir().unwrap();
    for (plugin, accuracy) in [("none", 0.80), ("negscale", 0.85), ("no-snop", 0.83), ("no-dcsa", 0.84)] {
        let weights = if plugin == "none" { "" } else { "[negscale]\nlambda = 1.0" };
        let settings = format!(
            "host = 'rolr'\nplugin = '{plugin}'\ndata = 'toy'\nnoise = 'sym:0.5'\nnet = 'mlp'\n{weights}"
        );
        for seed in 1..3 {
            write_run(
                &place.path().join(format!("{plugin}{seed}")),
                &settings,
                seed,
                accuracy + seed as f64 / 1000.0,
            );
        }
    }
    let comparison = Comparison::read(&[place.path().into()]).unwrap();
    let plot = comparison.plots().into_iter().find(|plot| plot.to_svg().contains("<title>Ablation")).unwrap();
    let rows: Vec<&str> = plot.numbers().1.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(rows, ["none", "no-snop", "no-dcsa", "negscale"]);
    assert!(plot.numbers().1.iter().all(|row| row[1].contains('±')), "{:?}", plot.numbers());
    assert_eq!(titles(&comparison)[0], "What the plug-in adds: test accuracy");
}

#[test]
fn text_stays_text_and_a_damaged_analysis_costs_only_its_plots() {
    let place = tempfile::tempdir().unwrap();
    for (number, noise) in [HOSTILE, "none"].into_iter().enumerate() {
        let settings = format!(
            "host = \"{HOSTILE}\"\nplugin = 'none'\ndata = \"{HOSTILE}\"\nnoise = \"{noise}\"\nnet = 'mlp'"
        );
        write_run(&place.path().join(number.to_string()), &settings, 1, 0.5);
    }
    fs::write(place.path().join("0/analysis.json"), "{").unwrap();
    fs::write(place.path().join("1/analysis.json"), r#"{"run": {"similarity": 3}}"#).unwrap();
    let comparison = Comparison::read(&[place.path().into()]).unwrap();
    assert!(comparison.notes()[0].contains("analysis.json is damaged"));
    let html = comparison.to_html().unwrap();
    assert!(!html.contains("<script") && html.contains("&#60;script") | html.contains("&lt;script"));
    for word in ["http:", "https:", "@import", "url(", " onload="] {
        assert!(!html.contains(word), "{word}");
    }
    assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
}

#[test]
fn similarity_is_shown_beside_that_of_the_clean_run() {
    let place = tempfile::tempdir().unwrap();
    let settings = "host = 'rolr'\nplugin = 'none'\ndata = 'toy'\nnoise = 'sym:0.5'\nnet = 'mlp'";
    write_run(&place.path().join("a"), settings, 1, 0.5);
    let kind = |related: f64| {
        format!(r#"{{"related":{{"normalised":{related}}},"unrelated":{{"normalised":0.5}}}}"#)
    };
    let side = |related: f64| {
        format!(r#"{{"similarity":{{"known":{{"truth":{},"cross_noise":{}}}}}}}"#, kind(related), kind(0.9))
    };
    let json = format!(r#"{{"run":{},"clean":{}}}"#, side(0.75), side(0.625));
    fs::write(place.path().join("a/analysis.json"), json).unwrap();
    let comparison = Comparison::read(&[place.path().join("a")]).unwrap();
    let plot = comparison
        .plots()
        .into_iter()
        .find(|plot| plot.to_svg().contains("Similarity of all pairs"))
        .unwrap();
    let rows = plot.numbers().1;
    assert_eq!(rows[0][1..], ["0.75".to_owned(), "0.5".into()]);
    assert_eq!(rows[1][1], "0.625");
}

#[test]
fn what_noise_changed_is_shown_class_by_class() {
    let place = tempfile::tempdir().unwrap();
    let settings = "host = 'rolr'\nplugin = 'none'\ndata = 'toy'\nnoise = 'sym:0.5'\nnet = 'mlp'";
    for (seed, shift) in [(1, 0.1), (2, 0.3)] {
        let folder = place.path().join(seed.to_string());
        write_run(&folder, settings, seed, 0.5);
        let json = serde_json::json!({
            "target": { "classes": ["cat", "dog"] },
            "run": { "class_means": [[0.9, 0.5 + shift], [0.5 + shift, null]] },
            "clean": { "class_means": [[0.9, 0.5], [0.5, 0.8]] },
        });
        fs::write(folder.join("analysis.json"), json.to_string()).unwrap();
    }
    let comparison = Comparison::read(&[place.path().into()]).unwrap();
    let plot = comparison.plots().into_iter().find(|plot| plot.to_svg().contains("class by class")).unwrap();
    let svg = plot.to_svg();
    assert!(svg.contains("cat") && svg.contains("dog"));
    let numbers = format!("{:?}", plot.numbers());
    // The mean over both runs; what was not measured in both stays empty.
    assert!(numbers.contains("0.2") && !numbers.contains("0.8"), "{numbers}");
}

#[test]
fn folders_without_a_run_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let refused = Comparison::read(&[place.path().into()]);
    assert!(matches!(refused, Err(Error::NoRun { .. })));
    assert!(matches!(Comparison::read(&[]), Err(Error::NoFinishedRun { .. })));
}
