//! Co-learning and both forms of DMLP: their steps, their limiting cases, and true labels that only those get who ask.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod house;

use house::{finish, picture_settings, pictures, settings, survives_stops, task, weights};
use negscale_audit::Audit;
use negscale_data::Dataset;
use negscale_methods::hosts::{METHODS, card};
use negscale_methods::trainer::{EpochEnd, TrainSettings, Trainer};
use negscale_nets::{Input, NetSpec, Network, names};
use std::sync::atomic::Ordering::Relaxed;

const NOISE: &str = "sym-exact:0.4";

fn with(host: &str, set: &[(&str, toml::Value)]) -> TrainSettings {
    let mut settings = settings(host);
    settings.host_settings.extend(set.iter().map(|(key, value)| (key.to_string(), value.clone())));
    settings
}

/// Weights of network 0 by path.
fn by_path(trainer: &Trainer) -> Vec<(String, Vec<u32>)> {
    let read = trainer.networks().net(0).read().unwrap();
    read.into_iter().map(|(e, v)| (e.path, v.into_iter().map(f32::to_bits).collect())).collect()
}

/// Runs one batch.
fn one_batch(trainer: &mut Trainer) {
    let flag = trainer.stop_flag();
    assert!(matches!(trainer.epoch(|_| flag.store(true, Relaxed)).unwrap(), EpochEnd::Stopped));
}

#[test]
fn every_network_knows_the_path_of_its_classifier() {
    for name in names() {
        let side = if name == "inception-resnet-v2" { 75 } else { 32 };
        let input = Input::Image { channels: 3, height: side, width: side };
        let spec = NetSpec::new(name, input, 7).scaled(0.25);
        let net = Network::build(&spec, &burn::tensor::Device::flex()).unwrap();
        let path = net.classifier_path();
        let found: Vec<_> =
            net.read().unwrap().into_iter().filter(|(e, _)| e.path.starts_with(path)).collect();
        let shapes: Vec<_> = found.iter().map(|(entry, _)| (entry.path.as_str(), &entry.shape)).collect();
        assert_eq!(found.len(), 2, "{name}: {shapes:?}");
        for (entry, _) in &found {
            let below = entry.path.strip_prefix(path).unwrap();
            assert!(below.starts_with('.') && entry.shape.contains(&7), "{name}: {shapes:?}");
        }
    }
}

#[test]
fn the_first_step_of_co_learning_moves_the_classifier_alone() {
    // Adam's first step has the size of its rate, whatever the gradient: only the weight of the structure differs.
    let run = |lambda_str: f64| {
        let set = with("co-learning", &[("lambda_str", lambda_str.into())]);
        let mut trainer = Trainer::new(task(200, NOISE), set).unwrap();
        let before = by_path(&trainer);
        one_batch(&mut trainer);
        (before, by_path(&trainer))
    };
    let (before, with_structure) = run(1.0);
    let (same, without) = run(0.0);
    assert_eq!(before, same);
    for (((path, start), (_, ours)), (_, theirs)) in before.iter().zip(&with_structure).zip(&without) {
        assert_ne!(start, ours, "{path} has not moved in step 2");
        // After one batch, contrast and projection have the same gradient; the rest has felt a changed classifier.
        match path.as_str() {
            "fc.weight" | "fc.bias" => assert_ne!(ours, theirs, "{path}"),
            path if path.starts_with("projection") => assert_eq!(ours, theirs, "{path}"),
            _ => {}
        }
    }
}

#[test]
fn co_learning_without_contrast_structure_and_mixup_is_cross_entropy() {
    let off = [("lambda_str", 0.0.into()), ("lambda_con", 0.0.into()), ("alpha", 0.0.into())];
    let ours = with("co-learning", &off);
    let theirs = TrainSettings {
        optimiser: ours.optimiser.clone(),
        schedule: ours.schedule.clone(),
        ..settings("cross-entropy")
    };
    let run = |settings: TrainSettings| {
        let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
        finish(&mut trainer);
        by_path(&trainer)
    };
    let body: Vec<_> = run(ours).into_iter().filter(|(path, _)| !path.starts_with("projection")).collect();
    assert_eq!(body, run(theirs));
}

#[test]
fn both_kernels_of_co_learning_report_their_structure_and_differ() {
    let run = |freedom: f64| {
        let set = with("co-learning", &[("freedom", freedom.into())]);
        let mut trainer = Trainer::new(task(200, NOISE), set).unwrap();
        let records = finish(&mut trainer);
        let terms = &records.last().unwrap().losses;
        assert!(["structure", "fit", "contrast"].iter().all(|term| terms[*term].is_finite()), "{terms:?}");
        weights(&trainer)
    };
    assert_ne!(run(0.0), run(2.0));
}

#[test]
fn only_methods_that_ask_are_told_true_labels() {
    for card in METHODS {
        let trainer = Trainer::new(task(200, NOISE), settings(card.id)).unwrap();
        let asks = card.id.starts_with("dmlp");
        assert_eq!(card.wants_truth().is_some(), asks, "{}", card.id);
        // 190 samples to train on, a tenth of them.
        assert_eq!(trainer.true_labels(), if asks { 19 } else { 0 }, "{}", card.id);
    }
    let told = |value: toml::Value| {
        Trainer::new(task(200, NOISE), with("dmlp-naive", &[("true_labels", value)])).map(|t| t.true_labels())
    };
    assert_eq!(told(5.into()).unwrap(), 5);
    assert_eq!(told(0.25.into()).unwrap(), 48);
    for (wrong, word) in [(toml::Value::from(0), "at least 1"), (0.9.into(), "0.5"), ("x".into(), "share")] {
        let message = told(wrong).unwrap_err().to_string();
        assert!(message.contains("true_labels") && message.contains(word), "{message}");
    }
    let none = card("cross-entropy").unwrap().true_labels(&toml::Table::new(), 1000).unwrap();
    assert_eq!(none, 0);
}

#[test]
fn a_method_that_must_be_told_true_labels_refuses_data_without() {
    let mut task = task(200, NOISE);
    let data = &task.train;
    let given = data.given().to_vec();
    task.train = Dataset::new("untold", data.classes().to_vec(), data.items().clone(), given, None).unwrap();
    let message = Trainer::new(task.clone(), settings("dmlp-naive")).err().unwrap().to_string();
    assert!(message.contains("19 true labels") && message.contains("choose another `host`"), "{message}");
    assert!(Trainer::new(task, settings("cross-entropy")).is_ok());
}

#[test]
fn purified_labels_are_what_dmlp_learns_and_what_it_says() {
    for host in ["dmlp-naive", "dmlp-dividemix"] {
        let task = task(600, NOISE);
        let truth = task.train.truth().unwrap().to_vec();
        let mut trainer = Trainer::new(task, TrainSettings { epochs: 4, ..settings(host) }).unwrap();
        let records = finish(&mut trainer);
        let last = records.last().unwrap();
        assert!(last.fit_wrong_true.unwrap() > 0.85, "{host}: {last:?}");
        assert!(last.fit_wrong_given.unwrap() < 0.1, "{host}: {last:?}");
        assert_eq!(last.more["true labels"], 57.0);
        assert!((0.3..0.5).contains(&last.more["purified"]), "{host}: {last:?}");
        assert!(last.separation_auc.unwrap() > 0.95, "{host}: {last:?}");
        let (verdicts, estimate) = trainer.verdicts().unwrap();
        let names: Vec<String> = (0..4).map(|class| class.to_string()).collect();
        let audit = Audit::flagging(&verdicts, &names, estimate.unwrap().wrong_labels()).unwrap();
        let right = audit.findings().iter().filter(|f| f.verdict.suggested == truth[f.index]).count();
        assert!(right as f64 > 0.87 * truth.len() as f64, "{host}: {right}");
    }
}

#[test]
fn plug_ins_of_dmlp_can_see_purified_or_given_labels() {
    for host in ["dmlp-naive", "dmlp-dividemix"] {
        let run = |labels: &str| {
            let set = with(host, &[("tap_labels", labels.into())]);
            let mut trainer =
                Trainer::new(task(200, NOISE), TrainSettings { plugin: "negscale".into(), ..set }).unwrap();
            finish(&mut trainer);
            weights(&trainer)
        };
        assert_ne!(run("purified"), run("given"), "{host}");
    }
}

#[test]
fn pictures_are_learnt_without_labels_first_then_anew_and_a_stop_changes_nothing() {
    for host in ["dmlp-naive", "dmlp-dividemix", "co-learning"] {
        let settings = TrainSettings { batch: 24, ..picture_settings(host) };
        let make = || Trainer::new(pictures(), settings.clone()).unwrap();
        let records = survives_stops(host, make);
        if host != "co-learning" {
            let stages: Vec<f64> = records.iter().map(|record| record.more["stage"]).collect();
            assert_eq!(stages, [1.0, 1.0, 2.0, 2.0], "{host}");
            assert!(!records[1].more.contains_key("purified") && records[2].more["purified"] > 0.0, "{host}");
            assert_eq!(
                records[0].learning_rate, records[2].learning_rate,
                "{host}: the schedule begins anew"
            );
        }
    }
}
