//! Settings as a person gives them, and the verbs that show them.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::PathBuf;
use std::process::Output;
use support::{command, fine, folder, text};

/// Exit code 2, and a message with all these parts.
#[track_caller]
fn fails(arguments: &[&str], parts: &[&str]) {
    let Output { status, stdout, stderr } = command(arguments).output().unwrap();
    assert_eq!(status.code(), Some(2), "{}", String::from_utf8_lossy(&stdout));
    let message = String::from_utf8(stderr).unwrap();
    for part in parts {
        assert!(message.contains(part), "`{part}` is missing in {message}");
    }
}

/// A recipe in a folder of this test's own.
fn recipe(test: &str, text: &str) -> PathBuf {
    let path = folder(test).join("mine.toml");
    std::fs::write(&path, text).unwrap();
    path
}

fn show(arguments: &[&str]) -> toml::Table {
    fine(&[&["config", "show"], arguments].concat()).parse().unwrap()
}

#[test]
fn config_show_resolves_the_defaults_for_the_embedded_data() {
    let shown = show(&[]);
    assert_eq!(shown["data"].as_str(), Some("fashion-mnist-subset"));
    assert_eq!((shown["net"].as_str(), shown["noise"].as_str()), (Some("cnn-small"), Some("sym-incl:0.5")));
    assert_eq!(shown["optimiser"]["kind"].as_str(), Some("sgd"));
    assert_eq!((shown["plugin"].as_str(), shown.get("negscale")), (Some("none"), None));
    assert_eq!(show(&["--plugin", "negscale"])["negscale"]["eta_max"].as_integer(), Some(5));
    assert!(shown["epochs"].as_integer().unwrap() > 0);
}

#[test]
fn flags_beat_set_beats_the_recipe_beats_the_default() {
    let path = recipe("order", "epochs = 2\nseed = 2\nbatch = 2\n[audit]\nflag_below = 0.25\n");
    let shown =
        show(&[text(&path), "--set", "epochs=3", "--epochs", "4", "--set", "seed=3", "--set", "noise=none"]);
    assert_eq!((shown["epochs"].as_integer(), shown["seed"].as_integer()), (Some(4), Some(3)));
    assert_eq!((shown["batch"].as_integer(), shown["validation"].as_float()), (Some(2), Some(0.05)));
    assert_eq!(shown["audit"]["flag_below"].as_float(), Some(0.25));
    assert_eq!(shown["noise"].as_str(), Some("none"));
}

#[test]
fn what_config_show_prints_is_a_recipe_for_the_same_settings() {
    let first =
        fine(&["config", "show", "--set", "optimiser.kind=adam", "--seed", "8", "--plugin", "no-dcsa"]);
    let path = recipe("again", &first);
    assert_eq!(fine(&["config", "show", text(&path)]), first);
}

#[test]
fn data_of_ones_own_is_opened_to_know_its_kind() {
    let path = recipe("own", "plugin = \"none\"\nlabel_column = \"kind\"\n");
    let table = path.with_file_name("points.csv");
    std::fs::write(&table, "x,y,kind\n1,2,cat\n3,4,dog\n5,6,cat\n").unwrap();
    let shown = show(&[text(&path), "--data", text(&table)]);
    assert_eq!((shown["net"].as_str(), shown["noise"].as_str()), (Some("mlp"), Some("none")));
    assert_eq!(shown["label_column"].as_str(), Some("kind"));
    assert!(shown.get("negscale").is_none());
    let shown = show(&["--data", text(&table), "--label-column", "kind"]);
    assert_eq!(shown["label_column"].as_str(), Some("kind"));
}

#[test]
fn bad_settings_are_refused_with_key_place_and_nearest_name() {
    for (name, content, parts) in [
        ("key", "epohcs = 3", &["`epohcs`", "`epochs`", "batch"][..]),
        ("inner", "[negscale]\nlamda = 3", &["[negscale]", "`lamda`", "`lambda`", "eta_min"]),
        ("table", "[optimizer]\nlr = 3", &["`optimizer`", "`optimiser`"]),
        ("host", "[cross-entropy]\nveiw = \"plain\"", &["[cross-entropy]", "`veiw`", "`view`"]),
        ("name", "host = \"cross-entrpy\"", &["`host`", "cross-entropy"]),
        ("type", "epochs = \"ten\"", &["`epochs`", "whole number", "ten"]),
        ("range", "[optimiser]\nlr = -1", &["`optimiser.lr`", "-1"]),
        ("syntax", "seed = 1\nepochs = [", &["line 2"]),
        ("matrix", "[matrix]\nseed = [1, 2]", &["[matrix]", "negscale sweep"]),
    ] {
        let path = recipe(name, content);
        fails(&["config", "show", text(&path)], &[&["mine.toml"], parts].concat());
    }
    fails(&["config", "show", "--set", "negscale.lamda=1"], &["--set negscale.lamda=1", "`lambda`", "mu"]);
    fails(&["config", "show", "--set", "epochs=many"], &["--set epochs=many", "whole number"]);
    fails(&["config", "show", "--set", "epochs"], &["--set epochs", "KEY=VALUE"]);
    fails(&["config", "show", "--host", "nobody"], &["--host", "nobody", "cross-entropy"]);
    fails(&["config", "show", "--net", "cnn-smal"], &["--net", "cnn-small"]);
    fails(&["config", "show", "--noise", "syn:0.5"], &["--noise", "sym"]);
    fails(&["config", "show", "--device", "gpu"], &["--device", "gpu", "cpu"]);
    fails(&["config", "show", "--epochs", "ten"], &["--epochs", "ten"]);
    fails(&["config", "show", "no-such-file.toml"], &["no-such-file.toml"]);
    fails(&["config", "show", "--data", "no-such-data"], &["no-such-data", "fashion-mnist-subset"]);
}

#[test]
fn config_explain_explains_all_one_or_a_table() {
    let all = fine(&["config", "explain"]);
    for part in
        ["[optimiser]", "[schedule]", "[negscale]", "[audit.mixture]", "[cross-entropy]", "epochs", "lambda"]
    {
        assert!(all.contains(part), "{part}");
    }
    assert!(all.lines().all(|line| line.chars().count() <= 110));
    let one = fine(&["config", "explain", "negscale.lambda"]);
    assert!(one.contains("weight of SNOP") && one.contains("1.0") && !one.contains("eta_max"), "{one}");
    let table = fine(&["config", "explain", "optimiser"]);
    assert!(table.contains("weight_decay") && !table.contains("[schedule]"), "{table}");
    fails(&["config", "explain", "optimizer"], &["optimizer", "`optimiser`"]);
}

#[test]
fn methods_are_listed_for_people_and_for_programs() {
    let listed = fine(&["methods"]);
    for part in ["cross-entropy", "no-dcsa", "resnet-18", "2 networks; cost 22", "uses 1000 true labels"] {
        assert!(listed.contains(part), "{part} is missing in {listed}");
    }
    assert!(listed.lines().all(|line| line.chars().count() <= 110), "{listed}");
    let one = fine(&["methods", "rolr", "dmlp-naive"]);
    for part in ["Chen et al., AAAI 2023", "lambda_p = 1.0", "[dmlp-naive]", "true_labels = 1000"] {
        assert!(one.contains(part) && !one.contains("resnet-18"), "{part} is missing in {one}");
    }
    assert!(one.lines().all(|line| line.chars().count() <= 110), "{one}");
    fails(&["methods", "rolrr"], &["rolrr", "nearest: rolr"]);
    let json: serde_json::Value = serde_json::from_str(&fine(&["methods", "--json"])).unwrap();
    let hosts = json["hosts"].as_array().unwrap();
    assert!(hosts.iter().any(|host| host["id"] == "cross-entropy"));
    for host in hosts {
        for field in ["id", "about", "paper", "provenance", "cost"] {
            assert!(host[field].is_string(), "{field} of {host}");
        }
        assert!(host["networks"].as_u64().unwrap() > 0);
        for setting in host["settings"].as_array().unwrap() {
            assert!(
                ["name", "default", "meaning"].iter().all(|field| setting[field].is_string()),
                "{setting}"
            );
        }
    }
    assert!(json["plugins"].as_array().unwrap().iter().any(|plugin| plugin["id"] == "negscale"));
    assert!(json["networks"].as_array().unwrap().iter().any(|net| net["id"] == "resnet-18"));
}
