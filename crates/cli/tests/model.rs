//! The verbs that use a trained model, as a person runs them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use burn::tensor::Device;
use negscale_data::views::{FeatureSettings, ImageSettings, Moments, Normalise};
use negscale_data::{Shape, known};
use negscale_nets::model::{Model, Preparation};
use negscale_nets::{NetSpec, Network};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{fails, fine, folder, text};

fn put(folder: &Path, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, contents).unwrap();
    path
}

fn save(folder: &Path, net: Network, classes: &[&str], preparation: Preparation) {
    let classes = classes.iter().map(|name| name.to_string()).collect();
    Model::new(vec![net], classes, preparation, Default::default()).unwrap().save(folder).unwrap();
}

/// A model by hand whose logits are 4 times the two features: the larger one is the class, `low` (first) or `high`.
fn larger(folder: &Path) {
    let moments = Moments { mean: vec![0.0; 2], std: vec![1.0; 2] };
    let preparation = Preparation::Features(FeatureSettings::new(moments));
    let mut spec = NetSpec::new("mlp", preparation.input(), 2);
    spec.hidden = vec![2];
    let net = Network::build(&spec, &Device::flex()).unwrap();
    let net = net.replace(|entry| {
        Some(match entry.shape.as_slice() {
            [2, 2] => vec![2.0, 0.0, 0.0, 2.0],
            _ => vec![0.0; 2],
        })
    });
    save(folder, net.unwrap(), &["low", "high"], preparation);
}

/// A network for pictures with weights as they are drawn.
fn pictures(folder: &Path, classes: &[&str], side: usize) {
    let shape = Shape { width: side, height: side, channels: 1 };
    let preparation = Preparation::Images(ImageSettings::new(shape, Normalise::fashion_mnist()));
    let spec = NetSpec::new("cnn-small", preparation.input(), classes.len());
    save(folder, Network::build(&spec, &Device::flex()).unwrap(), classes, preparation);
}

/// A grey picture of 8 bits.
fn png(width: u32, height: u32, value: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header().unwrap().write_image_data(&vec![value; (width * height) as usize]).unwrap();
    bytes
}

#[test]
fn eval_counts_what_a_model_made_by_hand_gets_right() {
    let run = folder("eval");
    larger(&run);
    // Other order of the classes in the file than in the model; the last row is labelled wrongly.
    let table = put(&run, "points.csv", "x,y,label\n0,1,high\n0,3,high\n1,0,low\n0,2,low\n");
    let told = fine(&["eval", text(&run), "--data", text(&table)]);
    for part in ["4 items, 2 classes", "75.00 %", "mean recall", "low", "50.00 %", "100.00 %", "Confusion"] {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
    assert!(!told.contains("top-5"));
    let matrix = run.join("confusion.csv");
    let json = fine(&[
        "eval",
        text(&run.join("model.safetensors")),
        "--data",
        text(&table),
        "--json",
        "--csv",
        text(&matrix),
    ]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["top_1"], &json["items"]), (&0.75.into(), &4.into()));
    assert_eq!(json["confusion"], serde_json::json!([[1, 1], [0, 2]]));
    assert_eq!(json["classes"][0]["recall"], 0.5);
    assert_eq!(std::fs::read_to_string(&matrix).unwrap(), "label,low,high\nlow,1,1\nhigh,0,2\n");
    let numbers = put(&run, "numbers.csv", "x,y,label\n0,1,1\n1,0,0\n1,0,0\n");
    assert!(fine(&["eval", text(&run), "--data", text(&numbers)]).contains("100.00 %"));
    let truth = put(&run, "truth.csv", "x,y,label,true_label\n0,1,low,high\n1,0,low,low\n");
    assert!(fine(&["eval", text(&run), "--data", text(&truth), "--split", "train"]).contains("100.00 %"));
}

#[test]
fn eval_of_a_known_set_shows_the_five_best_and_all_classes() {
    let run = folder("known");
    let test = known::embedded().unwrap().test.unwrap();
    let classes: Vec<&str> = test.classes().iter().map(String::as_str).collect();
    pictures(&run, &classes, 28);
    let told = fine(&["eval", text(&run), "--data", "fashion-mnist-subset"]);
    for part in ["2000 items, 10 classes", "top-5", "Ankle boot"] {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
    let predicted = fine(&["predict", text(&run), "--data", "fashion-mnist-subset"]);
    assert_eq!(predicted.lines().count(), 2001);
}

#[test]
fn eval_of_many_classes_lists_the_most_frequent_mistakes() {
    let run = folder("many");
    let names: Vec<String> = (0..25).map(|class| format!("kind {class}")).collect();
    let classes: Vec<&str> = names.iter().map(String::as_str).collect();
    pictures(&run, &classes, 8);
    let data = run.join("pictures");
    for (at, class) in classes.iter().enumerate() {
        put(&data, &format!("{class}/1.png"), png(8, 8, 10 * at as u8));
    }
    let told = fine(&["eval", text(&run), "--data", text(&data)]);
    assert!(told.contains("Most frequent mistakes") && told.contains("predicted as"), "{told}");
    assert!(!told.contains("Confusion"));
}

#[test]
fn predict_needs_no_labels() {
    let run = folder("predict");
    larger(&run);
    let table = put(&run, "points.csv", "0,1\n2,0\n");
    let told = fine(&["predict", text(&run), "--data", text(&table)]);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "index,class,probability");
    assert!(lines[1].starts_with("0,high,0.98201") && lines[2].starts_with("1,low,0.99966"), "{told}");
    let out = run.join("predictions.csv");
    let said = fine(&["predict", text(&run), "--data", text(&table), "--out", text(&out), "--top", "2"]);
    assert!(said.contains("predictions.csv") && said.contains("2 items"), "{said}");
    let written = std::fs::read_to_string(&out).unwrap();
    assert!(
        written.starts_with("index,class,probability,class_2,probability_2\n0,high,0.982014,low,0.017986\n"),
        "{written}"
    );
    let labelled = put(&run, "labelled.csv", "x,y,label\n0,1,nobody\n2,0,knows\n");
    assert_eq!(fine(&["predict", text(&run), "--data", text(&labelled)]), told, "labels are left out");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let run = folder("pipe");
    larger(&run);
    let table = put(&run, "points.csv", "0,1\n".repeat(20_000));
    let mut child = Command::new(env!("CARGO_BIN_EXE_negscale"))
        .args(["predict", text(&run), "--data", text(&table)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn predict_takes_a_picture_or_a_folder_of_any_pictures() {
    let run = folder("pictures");
    pictures(&run, &["cat", "dog, \"old\""], 8);
    let data = run.join("holiday");
    put(&data, "b, c.png", png(20, 9, 200));
    put(&data, "deep/a.png", png(5, 5, 7));
    put(&data, "notes.txt", "x");
    let told = fine(&["predict", text(&run), "--data", text(&data), "--top", "2"]);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "index,path,class,probability,class_2,probability_2");
    assert_eq!(lines.len(), 3);
    assert!(lines[1].starts_with("0,\"") && lines[1].contains("b, c.png\","), "{told}");
    assert!(lines[2].contains("a.png,") && lines[2].contains("\"dog, \"\"old\"\"\""), "{told}");
    let one = fine(&["predict", text(&run), "--data", text(&data.join("deep/a.png"))]);
    assert_eq!(one.lines().count(), 2);
    put(&data, "broken.png", b"not a picture");
    let out = run.join("out.csv");
    let message = fails(&["predict", text(&run), "--data", text(&data), "--out", text(&out)]);
    assert!(message.contains("broken.png"), "{message}");
    assert!(!out.exists(), "no half file is left");
}

#[test]
fn mistakes_are_told_with_what_to_do() {
    let run = folder("mistakes");
    larger(&run);
    let strange = put(&run, "strange.csv", "x,y,label\n0,1,high\n1,0,goat\n");
    let message = fails(&["eval", text(&run), "--data", text(&strange)]);
    assert!(message.contains("`goat`") && message.contains("`low`"), "{message}");
    let wide = put(&run, "wide.csv", "0,1,2\n2,0,1\n");
    let message = fails(&["predict", text(&run), "--data", text(&wide)]);
    assert!(
        message.contains("feature vectors of length 3") && message.contains("feature vectors of length 2"),
        "{message}"
    );
    let points = put(&run, "points.csv", "0,1\n");
    let message = fails(&["predict", text(&run), "--data", text(&points), "--top", "3"]);
    assert!(message.contains("from 1 to 2"), "{message}");
    let message = fails(&["eval", text(&run), "--data", text(&strange), "--split", "test"]);
    assert!(message.contains("no test split"), "{message}");
    let nowhere = run.join("nowhere");
    let message = fails(&["predict", text(&nowhere), "--data", text(&points)]);
    assert!(message.contains("nowhere") && message.contains("folder of a finished run"), "{message}");
    let message = fails(&["predict", text(&points), "--data", text(&points)]);
    assert!(message.contains("not a safetensors file"), "{message}");
    assert!(fails(&["predict", text(&run), "--data", "no-such-set"]).contains("known datasets are"));
}
