//! The command as a person runs it: output, files and exit codes.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::{Command, Output};

fn negscale(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_negscale")).args(arguments).output().unwrap()
}

/// Standard output of a command that must succeed.
#[track_caller]
fn fine(arguments: &[&str]) -> String {
    let output = negscale(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a command that must fail with exit code 2 and print nothing else.
#[track_caller]
fn fails(arguments: &[&str]) -> String {
    let output = negscale(arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

/// A file in a folder of this test's own.
fn scratch(test: &str, name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

#[test]
fn tree_lists_the_built_in_trees() {
    let text = fine(&["tree"]);
    for name in ["cifar10", "cifar100", "animal10n", "webvision50", "fashion-mnist"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn tree_shows_the_summary_for_the_thresholds_given() {
    let text = fine(&["tree", "cifar10"]);
    assert!(text.contains("bird, frog"), "{text}");
    let related = |text: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with("related")).unwrap();
        line.split_whitespace().rev().nth(2).unwrap().parse::<usize>().unwrap()
    };
    assert_eq!(related(&text), 8);
    assert_eq!(related(&fine(&["tree", "cifar10", "--eta-min", "5"])), 21);
    assert!(
        fine(&["tree", "fashion-mnist", "--distances"]).contains("Ankle boot   7  7  7  7  7  3  7  2  9  0")
    );
}

#[test]
fn a_tree_survives_the_way_through_a_file() {
    let (table, picture) = (scratch("way", "tree.tsv"), scratch("way", "tree.svg"));
    let text =
        fine(&["tree", "animal10n", "--tsv", table.to_str().unwrap(), "--svg", picture.to_str().unwrap()]);
    assert!(std::fs::read_to_string(&picture).unwrap().starts_with("<svg"));
    let again = fine(&["tree", table.to_str().unwrap(), "--distances"]);
    assert_eq!(again.lines().nth(1), text.lines().nth(1));
    assert!(again.contains("guinea_pig"));
}

#[test]
fn a_tree_of_indented_text_is_read() {
    let file = scratch("indented", "fruit.txt");
    std::fs::write(&file, "fruit\n  citrus: lemon, orange\n  berry: strawberry\n").unwrap();
    let text = fine(&["tree", file.to_str().unwrap()]);
    assert!(text.contains("fruit: 3 classes"), "{text}");
}

#[test]
fn a_misspelt_tree_is_answered_with_the_nearest_name() {
    let text = fails(&["tree", "cifr10"]);
    assert!(text.contains("did you mean `cifar10`?"), "{text}");
    assert!(fails(&["tree", "missing/tree.tsv"]).contains("no file `missing/tree.tsv`"));
}

#[test]
fn a_broken_tree_names_line_and_node() {
    let file = scratch("broken", "tree.tsv");
    std::fs::write(
        &file,
        "node\tparent\tdepth\tclass_index\nroot\t\t0\t\ncat\troot\t1\t0\ndog\tmammal\t1\t1\n",
    )
    .unwrap();
    let text = fails(&["tree", file.to_str().unwrap()]);
    assert!(text.contains("line 4") && text.contains("`dog`") && text.contains("mammal"), "{text}");
    assert!(fails(&["tree", "cifar10", "--eta-min", "9"]).contains("eta_min"));
}

#[test]
fn bench_plugin_prints_one_object_per_case() {
    let text = fine(&[
        "bench",
        "plugin",
        "--json",
        "--batch",
        "16,32",
        "--dim",
        "8",
        "--classes",
        "10,100",
        "--forms",
        "closed,adapter,literal",
        "--seconds",
        "0",
    ]);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 12);
    // `literal` is the old name of the printed formulas.
    let forms = ["closed", "adapter", "reference"].into_iter().cycle();
    for (line, form) in lines.iter().zip(forms) {
        assert_eq!(line["form"], form);
        assert!(line["ms"].as_f64().unwrap() > 0.0 && line["extra_bytes"].as_u64().unwrap() > 0, "{line}");
        assert!(line["batch"].is_u64() && line["dim"].is_u64() && line["classes"].is_u64());
    }
}

#[test]
fn the_closed_form_needs_less_memory_than_the_printed_one() {
    let bytes = |form: &str| {
        let case = ["--batch", "128", "--dim", "64", "--classes", "10", "--seconds", "0", "--forms", form];
        let text = fine(&[&["bench", "plugin", "--json"], &case[..]].concat());
        serde_json::from_str::<serde_json::Value>(text.trim()).unwrap()["extra_bytes"].as_u64().unwrap()
    };
    let (closed, printed) = (bytes("closed"), bytes("reference"));
    assert!(3 * closed < printed, "{closed} {printed}");
}

#[test]
fn bench_plugin_leaves_out_what_does_not_fit_and_says_so() {
    let text = fine(&[
        "bench",
        "plugin",
        "--json",
        "--batch",
        "64",
        "--dim",
        "64",
        "--classes",
        "10",
        "--forms",
        "reference",
        "--max-gib",
        "0.0001",
    ]);
    let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
    assert!(line["ms"].is_null() && line["skipped"].as_str().unwrap().contains("--max-gib"), "{line}");
    assert!(fails(&["bench", "plugin", "--classes", "7"]).contains("use 10 or 100"));
}

#[test]
fn an_unknown_verb_is_refused_with_code_2() {
    assert!(fails(&["trian"]).contains("unrecognized subcommand"));
}

#[test]
fn bench_step_measures_a_case_and_refuses_what_it_does_not_know() {
    let text =
        fine(&["bench", "step", "--net", "mlp", "--batch", "4", "--mode", "train", "--steps", "2", "--json"]);
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (key, value) in [("net", "mlp"), ("mode", "train")] {
        assert_eq!(line[key], value, "{line}");
    }
    assert_eq!(line["batch"], 4);
    assert!(line["ms"].as_f64().unwrap() > 0.0, "{line}");
    // Without a mode: both, each in a process of its own, as a table.
    let table = fine(&["bench", "step", "--net", "cnn-small", "--batch", "2", "--steps", "1"]);
    assert_eq!(table.matches("cnn-small").count(), 2, "{table}");
    let error = fails(&["bench", "step", "--net", "resnet-21", "--batch", "2", "--mode", "forward"]);
    assert!(error.contains("resnet-20"), "{error}");
    assert!(fails(&["bench", "step", "--steps", "0"]).contains("at least 1"));
}

#[test]
fn bench_knn_prints_its_time_and_refuses_what_is_empty() {
    let small = ["bench", "knn", "--samples", "300", "--dim", "7", "--k", "5", "--queries", "40"];
    let line: serde_json::Value = serde_json::from_str(&fine(&[&small[..], &["--json"]].concat())).unwrap();
    assert_eq!((&line["samples"], &line["queries"]), (&300.into(), &40.into()), "{line}");
    assert!(line["seconds"].as_f64().unwrap() > 0.0, "{line}");
    assert!(fine(&small).contains("40 queries among 300 x 7, K 5"));
    assert!(fails(&["bench", "knn", "--samples", "0"]).contains("at least 1"));
}

#[test]
fn the_portable_code_can_be_asked_for_and_says_so() {
    let run = |value: &str| {
        let arguments =
            ["bench", "step", "--net", "mlp", "--batch", "2", "--mode", "forward", "--steps", "1", "--json"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_negscale"));
        command.args(arguments).env("NEGSCALE_CPU", value).output().unwrap()
    };
    let line: serde_json::Value = serde_json::from_slice(&run("portable").stdout).unwrap();
    assert_eq!(line["cpu"], "portable");
    let misspelt = run("portabel");
    assert!(misspelt.status.success());
    assert!(String::from_utf8(misspelt.stderr).unwrap().contains("NEGSCALE_CPU=portabel is not known"));
}

#[test]
fn bench_host_compares_a_method_with_and_without_the_plug_in() {
    let case =
        ["--net", "mlp", "--host", "rolr", "--batch", "8", "--dim", "4", "--rounds", "1", "--steps", "2"];
    let text = fine(&[&["bench", "host", "--json"], &case[..]].concat());
    let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
    assert!(line["plain_ms"].as_f64().unwrap() > 0.0 && line["added"].is_f64(), "{line}");
    assert!(fails(&["bench", "host", "--host", "rollr"]).contains("rolr"));
    assert!(fails(&["bench", "host", "--batch", "1"]).contains("--batch"));
}

#[test]
fn the_doctor_says_what_this_machine_has() {
    let data = scratch("doctor", "data");
    std::fs::create_dir_all(&data).unwrap();
    let place = ["--data-dir", data.to_str().unwrap()];
    let said = fine(&[&["doctor"], &place[..]].concat());
    assert!(said.contains(&format!("negscale {}", env!("CARGO_PKG_VERSION"))), "{said}");
    assert!(said.contains("cpu: works") && said.contains(place[1]), "{said}");
    let found: serde_json::Value =
        serde_json::from_str(&fine(&[&["doctor", "--json"], &place[..]].concat())).unwrap();
    assert_eq!(
        found["devices"][0],
        serde_json::json!({ "name": "cpu", "works": true, "apart_from_cpu": 0.0 })
    );
    assert_eq!(fine(&["doctor", "--device", "cpu"]), "cpu: works\n");
    assert!(negscale(&["doctor", "--device", "cpu:3"]).stdout.starts_with(b"device `cpu:3`"));
    let embedded = found["data"]["found"].as_array().unwrap();
    assert!(embedded.iter().any(|name| name == "fashion-mnist-subset"), "{found}");
}
