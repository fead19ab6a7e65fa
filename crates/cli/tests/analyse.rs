//! `negscale analyse` as a person runs it: on runs, on files, and on what is neither.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use support::{fails, fine, folder, text};

fn put(folder: &Path, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, contents).unwrap();
    path
}

/// A `.npy` file.
fn npy(descr: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    file
}

fn floats(rows: &[[f32; 2]]) -> Vec<u8> {
    let bytes: Vec<u8> = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    npy("<f4", &format!("({}, 2)", rows.len()), &bytes)
}

const TREE: &str =
    "all\n  living\n    plant\n      rose\n      tulip\n  made\n    vehicle\n      lorry\n      bus\n";

/// Five samples: two roses, one of them called a tulip; a tulip; a lorry; a bus.
struct Files {
    features: PathBuf,
    clean: PathBuf,
    given: PathBuf,
    truth: PathBuf,
    tree: PathBuf,
}

fn files(here: &Path) -> Files {
    let run = [[1.0, 0.0], [0.0, 2.0], [0.0, 1.0], [-1.0, 0.0], [-3.0, 0.0]];
    let clean = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [-3.0, 0.0]];
    Files {
        features: put(here, "features.npy", floats(&run)),
        clean: put(here, "clean.npy", floats(&clean)),
        given: put(here, "given.npy", npy("|u1", "(5,)", &[0, 1, 1, 2, 3])),
        truth: put(here, "truth.txt", "rose\nrose\ntulip\nlorry\nbus\n"),
        tree: put(here, "tree.txt", TREE),
    }
}

impl Files {
    fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let words = [
            "analyse",
            "--features",
            text(&self.features),
            "--given",
            text(&self.given),
            "--tree",
            text(&self.tree),
        ];
        [&words[..], more].concat()
    }
}

fn json(told: &str) -> Value {
    serde_json::from_str(told).unwrap()
}

#[test]
fn figures_of_files_are_those_counted_by_hand() {
    let here = folder("files");
    let files = files(&here);
    let out = here.join("analysis.json");
    let more = [
        "--truth",
        text(&files.truth),
        "--clean-features",
        text(&files.clean),
        "--json",
        "--out",
        text(&out),
    ];
    let found = json(&fine(&files.arguments(&more)));
    assert_eq!(found, json(&std::fs::read_to_string(&out).unwrap()));
    let close = |place: &str, wanted: f64| {
        let value = found.pointer(place).and_then(Value::as_f64).unwrap_or(f64::NAN);
        assert!((value - wanted).abs() < 1e-9, "{place} is {value}, not {wanted}");
    };
    // By given labels: tulips (1, 2) are the same, rose and tulips related, lorry and bus too, all others unrelated.
    close("/run/similarity/given/same/mean", 1.0);
    close("/run/similarity/given/related/pairs", 3.0);
    close("/run/similarity/given/related/mean", 1.0 / 3.0);
    close("/run/similarity/given/unrelated/pairs", 6.0);
    close("/run/similarity/given/unrelated/mean", -1.0 / 3.0);
    close("/run/similarity/given/unrelated/normalised", 1.0 / 3.0);
    // Sample 1 is a rose called a tulip: with tulip 2 it is the only cross-noise pair.
    close("/run/similarity/known/cross_noise/related/pairs", 1.0);
    close("/run/similarity/known/cross_noise/related/mean", 1.0);
    close("/clean/similarity/known/cross_noise/related/mean", 0.0);
    close("/change/known/cross_noise/related/difference", 1.0);
    close("/change/known/cross_noise/related/rms", 1.0);
    close("/run/similarity/known/by_truth/clean_noisy/same/mean", 0.0);
    close("/change/known/by_truth/clean_noisy/same/normalised", -0.5);
    close("/change/known/by_truth/clean_clean/unrelated/rms", 0.0);
    close("/target/wrong", 0.2);
    // Its label is a related class; of the given labels of other classes than rose two of four would be. Rose and lying tulip are no related pair.
    close("/label_noise/wrong", 1.0);
    close("/label_noise/errors/related/ratio", 2.0);
    close("/label_noise/pairs/related/precision", 2.0 / 3.0);
    close("/label_noise/pairs/unrelated/precision", 1.0);
    assert!(
        found["believed_noise"].is_null() && found["run"]["drift"].is_null(),
        "files have neither beliefs nor classifier"
    );
    close("/run/class_means/2/3", 1.0);
    assert!(found["perturbation"]["largest"].as_f64().unwrap() > 0.1 && found["bound"].is_null());
    let told =
        fine(&files.arguments(&["--truth", text(&files.truth), "--clean-features", text(&files.clean)]));
    for part in [
        "5 samples, 4 classes, 20.0 % of the labels wrong",
        "cross-noise",
        "unrelated",
        "clean run",
        "changed",
    ] {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
    let kept = here.join("kept.npy");
    fine(&files.arguments(&["--save-features", text(&kept)]));
    let again = [
        "analyse",
        "--features",
        text(&kept),
        "--given",
        text(&files.given),
        "--tree",
        text(&files.tree),
        "--json",
    ];
    assert_eq!(json(&fine(&again))["run"]["similarity"]["given"], found["run"]["similarity"]["given"]);
    // Other thresholds: every pair of different classes is related.
    let wide = json(&fine(&files.arguments(&["--eta-min", "6", "--eta-max", "6", "--json"])));
    assert_eq!(wide["run"]["similarity"]["given"]["related"]["pairs"], 9);
    assert!(wide["run"]["similarity"]["known"].is_null());
}

#[test]
fn what_does_not_fit_is_refused_with_its_name() {
    let here = folder("wrong");
    let files = files(&here);
    let refused = |more: &[&str], parts: &[&str]| {
        let told = fails(&files.arguments(more));
        for part in parts {
            assert!(told.contains(part), "{part} is missing in {told}");
        }
    };
    let short = put(&here, "short.txt", "rose\nrose\n");
    refused(&["--truth", text(&short)], &["short.txt", "2 labels for 5 items"]);
    let strange = put(&here, "strange.txt", "rose\nrose\noak\nlorry\nbus\n");
    refused(&["--truth", text(&strange)], &["strange.txt", "oak", "item 2"]);
    let few = put(&here, "few.npy", floats(&[[1.0, 0.0]]));
    refused(&["--clean-features", text(&few)], &["clean run", "1", "5"]);
    refused(&["--eta-min", "7"], &["eta_min"]);
    refused(&["--save-features", text(&here.join("x.csv"))], &[".npy"]);
    let wrong = |features: &Path, given: &Path, tree: &str| {
        fails(&["analyse", "--features", text(features), "--given", text(given), "--tree", tree])
    };
    assert!(wrong(&few, &files.given, text(&files.tree)).contains("5 labels for 1 items"));
    let high = put(&here, "high.npy", npy("|u1", "(5,)", &[0, 1, 1, 2, 4]));
    assert!(wrong(&files.features, &high, text(&files.tree)).contains("label `4` of item 4"));
    assert!(wrong(&files.features, &files.given, "no-such-tree").contains("no-such-tree"));
    let broken = put(&here, "nan.npy", floats(&[[1.0, f32::NAN]; 5]));
    assert!(wrong(&broken, &files.given, text(&files.tree)).contains("row 0, column 1"));
    assert!(fails(&["analyse"]).contains("RUN"));
    assert!(fails(&["analyse", text(&here)]).contains("not a run's folder"));
    assert!(fails(&["analyse", "--features", text(&few)]).contains("--given"));
}

/// A table of four clouds, the first two close to each other, as are the others.
fn table(path: &Path, count: usize, wrong: bool) {
    let mut table = String::from("a,b,c,label\n");
    for i in 0..count {
        let class = i % 4;
        let noise = |k: usize| ((i * 7919 + k * 104_729) % 1009) as f64 / 1009.0 - 0.5;
        let centre = [[2.0, 1.0], [2.0, -1.0], [-2.0, 1.0], [-2.0, -1.0]][class];
        let label = if wrong && i % 5 == 0 { (class + 1) % 4 } else { class };
        let name = ["rose", "tulip", "lorry", "bus"][label];
        writeln!(table, "{:.4},{:.4},{:.4},{name}", centre[0] + noise(1), centre[1] + noise(2), noise(3))
            .unwrap();
    }
    std::fs::write(path, table).unwrap();
}

#[test]
fn a_run_is_analysed_beside_a_clean_one() {
    let here = folder("runs");
    let (data, test, tree) = (here.join("train.csv"), here.join("test.csv"), put(&here, "tree.txt", TREE));
    table(&data, 400, false);
    table(&test, 100, false);
    let train = |out: &Path, noise: &str, more: &[&str]| {
        let tree = format!("tree={}", text(&tree));
        let words = [
            "train",
            "--data",
            text(&data),
            "--test",
            text(&test),
            "--noise",
            noise,
            "--host",
            "cross-entropy",
        ];
        let rest = ["--epochs", "2", "--out", text(out), "--quiet"];
        let sets = ["--set", &tree, "--set", "hidden=[16]", "--set", "baseline=none", "--set", "batch=32"];
        fine(&[&words[..], &rest, &sets, more].concat());
    };
    let (noisy, clean) = (here.join("noisy"), here.join("clean"));
    train(
        &noisy,
        "sym-exact:0.3",
        &["--plugin", "negscale", "--set", "similarity=true", "--set", "probe=32"],
    );
    train(&clean, "none", &["--plugin", "none"]);
    let found = json(&fine(&["analyse", text(&noisy), "--clean", text(&clean), "--json"]));
    assert_eq!(found, json(&std::fs::read_to_string(noisy.join("analysis.json")).unwrap()));
    let read: negscale_similarity::Analysis = serde_json::from_value(found.clone()).unwrap();
    assert_eq!(read.target.samples, 400);
    assert!((read.target.wrong.unwrap() - 0.3).abs() < 0.01);
    assert_eq!(read.run.steps.len(), 2, "one for every epoch");
    let results = json(&std::fs::read_to_string(noisy.join("results.json")).unwrap());
    let related =
        |found: Option<negscale_similarity::LabelNoise>| found.unwrap().errors.related.unwrap().ratio;
    assert_eq!(results["errors_related"], related(read.label_noise), "results and analysis agree");
    assert_eq!(
        results["precision_of_related_pairs"],
        read.label_noise.unwrap().pairs.related.unwrap().precision
    );
    assert!(results["errors_verdict"].is_string());
    let page = std::fs::read_to_string(noisy.join("report.html")).unwrap();
    assert!(
        page.contains("Are the errors semantic?") && page.contains("Change of similarity to first order")
    );
    assert!(read.run.drift.unwrap().given.related.unwrap().absolute > 0.0);
    let (bound, moved) = (read.bound.unwrap(), read.perturbation.unwrap());
    assert!(bound.snop > 0.0 && bound.gradient_largest >= bound.gradient_mean && moved.mean > 0.0);
    assert!(read.agreement.unwrap().same_first > 0.3);
    let orders = read.run.orders.unwrap().kendall.unwrap().known.unwrap().truth;
    assert!(orders.same.unwrap().mean < orders.unrelated.unwrap().mean, "{orders:?}");
    let spread = read.clean.unwrap().similarity.known.unwrap().truth;
    assert!(spread.same.unwrap().mean > spread.unrelated.unwrap().mean, "{spread:?}");
    // What training recorded is what is found, but for the samples held out.
    let recorded = std::fs::read_to_string(noisy.join("metrics.jsonl")).unwrap();
    let recorded = json(recorded.lines().last().unwrap());
    let same = recorded["more"]["similarity true same"].as_f64().unwrap();
    assert!((same - read.run.similarity.known.unwrap().truth.same.unwrap().mean).abs() < 0.05);
    let told = fine(&["analyse", text(&noisy), "--clean", text(&clean)]);
    for part in [
        "cross-entropy + negscale",
        "sym-exact:0.3",
        "Kendall tau",
        "Lemma",
        "Theorem",
        "per step",
        "written",
    ] {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
    let tested = json(&fine(&["analyse", text(&clean), "--split", "test", "--json"]));
    assert_eq!(tested["target"]["samples"], 100);
    assert!(clean.join("analysis-test.json").exists());
    // A file of the user's own is not replaced, and damaged results are not passed over.
    std::fs::write(clean.join("analysis.json"), "mine").unwrap();
    assert!(fails(&["analyse", text(&clean)]).contains("analysis.json"));
    assert_eq!(std::fs::read(clean.join("analysis.json")).unwrap(), b"mine");
    let results = std::fs::read(clean.join("results.json")).unwrap();
    std::fs::write(clean.join("results.json"), &results[..40]).unwrap();
    assert!(fails(&["analyse", text(&clean)]).contains("results.json is damaged"));
    std::fs::write(clean.join("results.json"), results).unwrap();
    // Data that has changed since is not what the model was trained on.
    table(&data, 400, true);
    assert!(fails(&["analyse", text(&noisy)]).contains("other data"));
    let _ = std::fs::remove_file(clean.join("model.safetensors"));
    table(&data, 400, false);
    assert!(fails(&["analyse", text(&clean)]).contains("model.safetensors"));
}
