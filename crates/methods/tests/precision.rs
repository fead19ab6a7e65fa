//! Runs whose products are taken in bf16 keep to the rules that runs in f32 keep to, and looking less often changes no weight.

#![allow(clippy::unwrap_used, clippy::panic)]

mod house;

use house::{finish, picture_settings, pictures, settings, survives_stops, task, timeless, weights};
use negscale_methods::trainer::{TrainSettings, Trainer};
use negscale_nets::Precision;

const NOISE: &str = "sym-exact:0.4";
/// One network, two networks, and one that asks for scans while it plans.
const HOSTS: [&str; 3] = ["cross-entropy", "co-teaching", "rolr"];

fn rounded(settings: TrainSettings) -> TrainSettings {
    TrainSettings { precision: Precision::Bf16, ..settings }
}

#[test]
fn a_run_in_bf16_is_another_run_and_learns_too() {
    let run = |settings: TrainSettings| {
        let mut trainer = Trainer::new(task(400, "sym-exact:0.2"), settings).unwrap();
        let last = finish(&mut trainer).pop().unwrap();
        (weights(&trainer), last.test_accuracy.unwrap())
    };
    let settings = TrainSettings { epochs: 10, ..settings("cross-entropy") };
    let (exact, expected) = run(settings.clone());
    let (coarse, reached) = run(rounded(settings));
    assert_ne!(exact, coarse, "the setting does not reach the products");
    assert!((reached - expected).abs() < 0.05, "{reached} in bf16, {expected} in f32");
}

#[test]
fn a_run_in_bf16_stopped_after_any_batch_goes_on_bit_for_bit() {
    for host in HOSTS {
        let settings = TrainSettings { plugin: "negscale".into(), ..rounded(settings(host)) };
        survives_stops(host, || Trainer::new(task(200, NOISE), settings.clone()).unwrap());
    }
    let settings = TrainSettings { epochs: 2, ..rounded(picture_settings("rolr")) };
    survives_stops("pictures", || Trainer::new(pictures(), settings.clone()).unwrap());
}

#[test]
fn in_bf16_a_plug_in_without_weight_leaves_the_method_as_it_is_bit_for_bit() {
    let off = toml::Table::from_iter(["lambda", "mu"].map(|key| (key.to_owned(), 0.0.into())));
    for host in HOSTS {
        let run = |plugin: &str| {
            let (plugin, plugin_settings) = (plugin.into(), off.clone());
            let settings = TrainSettings { plugin, plugin_settings, ..rounded(settings(host)) };
            let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
            finish(&mut trainer);
            weights(&trainer)
        };
        assert_eq!(run("none"), run("negscale"), "{host}");
    }
}

#[test]
fn in_bf16_the_number_of_threads_changes_nothing() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let settings = TrainSettings { threads, epochs: 2, ..rounded(picture_settings("cross-entropy")) };
            let mut trainer = Trainer::new(pictures(), settings).unwrap();
            let records = finish(&mut trainer);
            (weights(&trainer), timeless(&records))
        })
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
}

#[test]
fn a_checkpoint_is_resumed_in_its_own_precision_only() {
    let trainer = Trainer::new(task(200, NOISE), rounded(settings("cross-entropy"))).unwrap();
    let bytes = trainer.save("run").unwrap();
    let mut other = Trainer::new(task(200, NOISE), settings("cross-entropy")).unwrap();
    let message = other.restore(&bytes, "run", "file").unwrap_err().to_string();
    assert!(message.contains("computed in bf16, not in f32"), "{message}");
    assert!(message.contains("precision = \"bf16\""), "{message}");
}

#[test]
fn looking_less_often_changes_no_weight_and_the_last_look_is_the_same() {
    for host in ["cross-entropy", "co-teaching", "rolr"] {
        let run = |scan_every: usize| {
            let settings = TrainSettings { scan_every, epochs: 5, ..settings(host) };
            let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
            let records = finish(&mut trainer);
            let ledger = trainer.ledger().unwrap();
            let losses: Vec<_> = (0..ledger.len()).map(|i| ledger.losses(i).next_back().unwrap()).collect();
            (weights(&trainer), losses, records)
        };
        let (weights, losses, records) = run(1);
        let (fewer_weights, fewer_losses, fewer) = run(3);
        assert!(weights == fewer_weights, "{host}: other weights");
        assert_eq!(losses, fewer_losses, "{host}");
        let looked: Vec<bool> = fewer.iter().map(|record| record.train_accuracy.is_some()).collect();
        // One of them plans by what is predicted, and is looked at as often as ever.
        let expected = if host == "co-teaching" { [true; 5] } else { [false, false, true, false, true] };
        assert_eq!(looked, expected, "{host}");
        for (all, few) in records.iter().zip(&fewer) {
            assert_eq!(all.test_accuracy, few.test_accuracy, "{host}: tests are looked at after every epoch");
        }
        assert_eq!(records[4].train_accuracy, fewer[4].train_accuracy, "{host}");
    }
}

#[test]
fn a_run_that_looks_less_often_survives_stops() {
    let settings = TrainSettings { scan_every: 2, epochs: 3, ..settings("cross-entropy") };
    survives_stops("scan_every", || Trainer::new(task(200, NOISE), settings.clone()).unwrap());
}
