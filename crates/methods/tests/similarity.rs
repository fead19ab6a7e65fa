//! Similarity and changes per step, recorded while training.
#![allow(clippy::unwrap_used, clippy::panic)]

mod house;

use house::{finish, settings, survives_stops, task, timeless, weights};
use negscale::taxonomy::{LearntSettings, Thresholds};
use negscale_methods::trainer::{TrainSettings, Trainer, Tree};
use negscale_records::EpochRecord;
use negscale_similarity::drift::Classifier;
use negscale_similarity::{Labels, Units, drift, similarity};

const NOISE: &str = "sym-exact:0.4";

fn recording(host: &str) -> TrainSettings {
    let on = TrainSettings { similarity: true, probe: 40, probe_steps: 4, ..settings(host) };
    // In the tree of the tests siblings are at distance 2, all others at 6.
    TrainSettings { validation: 0.0, ..on }
}

fn without_records(records: &[EpochRecord]) -> Vec<EpochRecord> {
    let mut records = timeless(records);
    for record in &mut records {
        let noted = ["similarity ", "step change ", "drift "];
        record.more.retain(|key, _| !noted.iter().any(|begin| key.starts_with(begin)));
    }
    records
}

#[test]
fn recording_changes_nothing_but_the_record() {
    for host in ["cross-entropy", "rolr", "dividemix"] {
        let run = |settings: TrainSettings| {
            let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
            let records = finish(&mut trainer);
            (weights(&trainer), records)
        };
        let (with, records) = run(recording(host));
        let off = TrainSettings { similarity: false, probe: 0, ..recording(host) };
        let (without, plain) = run(off);
        assert_eq!(with, without, "{host}");
        assert_eq!(without_records(&records), timeless(&plain), "{host}");
        assert_ne!(timeless(&records), timeless(&plain), "{host}");
    }
}

#[test]
fn the_record_is_what_the_judge_says_of_the_features() {
    let task = task(200, NOISE);
    let (given, truth) = (task.train.given().to_vec(), task.train.truth().unwrap().to_vec());
    let data = task.train.clone();
    let mut trainer = Trainer::new(task, recording("cross-entropy")).unwrap();
    let last = finish(&mut trainer).pop().unwrap();
    let model = trainer.model(Default::default()).unwrap();
    let scan = model.scan(&data, 1).unwrap();
    let tree = house::tree();
    let labels = Labels::new(&given, Some(&truth), &tree, Thresholds::default()).unwrap();
    let found = similarity(&Units::new(&scan.features, scan.dim).unwrap(), &labels).unwrap();
    let known = found.known.unwrap();
    for (key, spread) in [
        ("similarity same", found.given.same),
        ("similarity related", found.given.related),
        ("similarity unrelated", found.given.unrelated),
        ("similarity true same", known.truth.same),
        ("similarity clean-clean related", known.by_truth.clean_clean.related),
        ("similarity clean-noisy unrelated", known.by_truth.clean_noisy.unrelated),
        ("similarity cross-noise related", known.cross_noise.related),
    ] {
        assert_eq!(last.more[key], spread.unwrap().mean, "{key}");
    }
    assert!(!last.more.contains_key("similarity neutral"), "no class is at such a distance");
    let classifier = model.classifier().unwrap();
    let classifier = Classifier { weights: &classifier.weight, rectifies: classifier.rectifies };
    let units = Units::new(&scan.features, scan.dim).unwrap();
    let moved = drift(&units, &scan.logits, classifier, &labels).unwrap().unwrap();
    assert_eq!(last.more["drift related"], moved.given.related.unwrap().absolute);
    for key in ["same", "related", "unrelated"] {
        let change = last.more[&format!("step change {key}")];
        assert!(change > 0.0 && change < 0.5, "{key}: {change}");
    }
}

#[test]
fn a_recorded_run_stopped_after_any_batch_goes_on_bit_for_bit() {
    for host in ["cross-entropy", "rolr"] {
        let settings = TrainSettings { plugin: "negscale".into(), ..recording(host) };
        let make = || Trainer::new(task(200, NOISE), settings.clone()).unwrap();
        survives_stops(host, make);
    }
}

#[test]
fn without_a_tree_pairs_are_of_the_same_class_or_of_different_ones() {
    let mut task = task(200, NOISE);
    task.tree = Tree::Learnt(LearntSettings::default());
    let mut trainer = Trainer::new(task, recording("cross-entropy")).unwrap();
    let last = finish(&mut trainer).pop().unwrap();
    let keys: Vec<&String> =
        last.more.keys().filter(|key| !key.contains("true") && !key.contains("noisy")).collect();
    for key in ["similarity same", "similarity different", "step change same", "step change different"] {
        assert!(last.more.contains_key(key), "{key} is not among {keys:?}");
    }
    assert!(!last.more.keys().any(|key| key.contains("related")), "{keys:?}");
}

#[test]
fn a_probe_of_one_sample_or_no_step_is_refused() {
    for (wrong, name) in [
        (TrainSettings { probe: 1, ..settings("cross-entropy") }, "probe"),
        (TrainSettings { probe: 5000, ..settings("cross-entropy") }, "probe"),
        (TrainSettings { probe_steps: 0, ..settings("cross-entropy") }, "probe_steps"),
    ] {
        assert!(wrong.checked().unwrap_err().to_string().contains(name));
    }
}
