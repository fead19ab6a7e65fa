//! The data verbs as a person runs them.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::Read;
use std::path::Path;
use std::process::{Output, Stdio};
use support::{command, fine, folder, text};

#[track_caller]
fn fails(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = command(arguments).output().unwrap();
    assert_eq!(status.code(), Some(2), "{}", String::from_utf8_lossy(&stdout));
    String::from_utf8(stderr).unwrap()
}

#[test]
fn data_list_shows_the_embedded_set_and_what_is_missing() {
    let here = folder("list");
    let listed = fine(&["data", "list", "--data-dir", text(&here)]);
    assert!(listed.lines().any(|l| l.starts_with("fashion-mnist-subset") && l.contains("built in")));
    assert!(listed.lines().any(|l| l.starts_with("cifar10 ")));
    let json: serde_json::Value = serde_json::from_str(&fine(&["data", "list", "--json"])).unwrap();
    assert!(json.to_string().contains("webvision"));
}

#[test]
fn data_get_of_a_set_that_needs_a_person_says_where_and_which_files() {
    let here = folder("get");
    let message = fails(&["data", "get", "animal10n", "--quiet", "--data-dir", text(&here)]);
    assert!(message.contains("data_batch_1.bin") && message.contains(text(&here)), "{message}");
    let message = fails(&["data", "get", "cifar11", "--quiet", "--data-dir", text(&here)]);
    assert!(message.contains("cifar10"), "{message}");
    assert!(std::fs::read_dir(&here).unwrap().next().is_none(), "nothing may be left behind");
}

#[test]
fn data_inspect_looks_at_the_embedded_set() {
    let report = fine(&["data", "inspect", "fashion-mnist-subset"]);
    for part in ["10000 items", "2000 items", "28 x 28", "Ankle boot", "unreadable    0"] {
        assert!(report.contains(part), "{part} is missing in {report}");
    }
    let noisy =
        fine(&["data", "inspect", "fashion-mnist-subset", "--labels-only", "--noise", "sym:0.5", "--json"]);
    let train: serde_json::Value = serde_json::from_str(noisy.lines().next().unwrap()).unwrap();
    assert_eq!(train["part"], "train");
    assert!(!train["report"]["noise"].is_null(), "{train}");
}

#[test]
fn data_inspect_opens_the_users_own_table() {
    let here = folder("own");
    let table = here.join("points.csv");
    std::fs::write(&table, "x,y,label\n1,2,cat\n3,4,dog\n5,6,cat\n").unwrap();
    let report = fine(&["data", "inspect", text(&table)]);
    assert!(report.contains("3 items, 2 classes") && report.contains("cat"), "{report}");
    std::fs::write(&table, "x,y,label\n1,2,cat\n3,oops,dog\n").unwrap();
    let message = fails(&["data", "inspect", text(&table)]);
    assert!(message.contains("oops") && message.contains("3"), "{message}");
    assert!(fails(&["data", "inspect", "no-such-set"]).contains("fashion-mnist-subset"));
}

#[test]
fn noise_is_drawn_once_saved_and_used_again() {
    let out = folder("noise").join("noise.json");
    let draw = |noise: &str, seed: &str, out: &Path| -> serde_json::Value {
        let arguments = [
            "noise",
            "--data",
            "fashion-mnist-subset",
            "--noise",
            noise,
            "--seed",
            seed,
            "--out",
            text(out),
            "--json",
        ];
        serde_json::from_str(&fine(&arguments)).unwrap()
    };
    let first = draw("sym:0.5", "3", &out);
    assert_eq!(first["nominal"], 0.5);
    assert!((first["achieved"].as_f64().unwrap() - 0.45).abs() < 0.01);
    assert!(first["convention"].as_str().unwrap().contains("true class included"));
    assert_eq!(first["hash"].as_str().unwrap().len(), 64);
    let again = draw("sym:0.5", "3", &out.with_extension("again"));
    assert_eq!(first["hash"], again["hash"]);
    assert_ne!(first["hash"], draw("sym:0.5", "4", &out.with_extension("other"))["hash"]);
    let from_file = draw(&format!("file:{}", text(&out)), "0", &out.with_extension("copy"));
    assert_eq!((&from_file["achieved"], &from_file["hash"]), (&first["achieved"], &first["hash"]));
}

#[test]
fn a_bad_noise_model_is_refused_with_the_nearest_name() {
    let out = folder("bad-noise").join("noise.json");
    let tried = |noise: &str| {
        fails(&["noise", "--data", "fashion-mnist-subset", "--noise", noise, "--out", text(&out)])
    };
    assert!(tried("syn:0.5").contains("sym"));
    assert!(tried("sym:1.5").contains("1.5"));
    assert!(tried("cifarn:worse").contains("cifar10n_labels.npy"));
    assert!(!out.exists());
}

#[test]
fn bench_loader_prints_one_object_per_view() {
    let text = fine(&[
        "bench",
        "loader",
        "--json",
        "--pictures",
        "300",
        "--seconds",
        "0",
        "--views",
        "plain,strong",
    ]);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines.iter().all(|line| line["images_per_second"].as_f64().unwrap() > 0.0 && line["pictures"] == 300)
    );
    assert!(fails(&["bench", "loader", "--views", "stong"]).contains("strong"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = command(&["data", "inspect", "fashion-mnist-subset", "--labels-only"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert!(child.wait().unwrap().success() && message.is_empty(), "{message}");
}
