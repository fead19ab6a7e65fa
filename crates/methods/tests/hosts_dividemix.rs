//! DivideMix and RankMatch beyond what every method must keep to.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod house;

use burn::tensor::{Device, Tensor, TensorData};
use house::{finish, is_sound, known_noise, long_run, picture_settings, pictures, settings, task, weights};
use negscale_methods::host::{Facts, ItemKind, Protocol};
use negscale_methods::hosts::parts::SemiSettings;
use negscale_methods::hosts::{card, dividemix, rankmatch};
use negscale_methods::kit::loss::{one_hot, prior_penalty, soft_cross_entropy, squared_error};
use negscale_methods::kit::semi::{Cost, Division, divide};
use negscale_methods::kit::target::{co_guess, refine, sharpen};
use negscale_methods::trainer::{EpochEnd, TrainSettings, Trainer};
use negscale_nets::ParameterEntry;
use negscale_nets::values;
use std::sync::atomic::Ordering::Relaxed;

const BOTH: [&str; 2] = ["dividemix", "rankmatch"];

fn table(text: &str) -> toml::Table {
    text.parse().unwrap()
}

fn facts(classes: usize, noise: &str) -> Facts {
    let noise = known_noise(noise);
    Facts { kind: ItemKind::Images, classes, samples: 1000, epochs: 300, batch: 64, noise, wrong_share: None }
}

fn logits(rows: usize) -> Tensor<2> {
    let numbers: Vec<f32> = (0..rows * 3).map(|i| ((i * 7 + 3) % 11) as f32 / 4.0 - 1.0).collect();
    Tensor::from_data(TensorData::new(numbers, [rows, 3]), &Device::flex())
}

fn number(tensor: Tensor<1>) -> f32 {
    values(tensor).unwrap()[0]
}

#[test]
fn settings_tuned_to_the_noise_as_the_program_prints_it_are_the_published_ones() {
    let tuned = SemiSettings { protocol: Protocol::Tuned, ..SemiSettings::default() };
    let tuned = dividemix::Settings { semi: tuned, ..dividemix::Settings::default() };
    for (classes, noise, lambda_u, tau) in [
        (10, "none", 0.0, 0.5),
        (100, "none", 25.0, 0.5),
        (10, "sym-incl:0.2", 0.0, 0.5),
        (10, "sym-incl:0.5", 25.0, 0.5),
        (10, "sym-incl:0.8", 25.0, 0.5),
        (10, "sym-incl:0.9", 50.0, 0.6),
        (10, "asym:0.4", 0.0, 0.5),
        (10, "ins:0.4:input=raw:matrix=per-class", 25.0, 0.5),
        (10, "cifarn:aggre", 0.0, 0.5),
        (10, "cifarn:worse", 25.0, 0.5),
        (100, "sym-incl:0.2", 25.0, 0.5),
        (100, "sym-incl:0.5", 150.0, 0.5),
        (100, "sym-incl:0.8", 150.0, 0.5),
        (100, "sym-incl:0.9", 150.0, 0.6),
        (100, "asym:0.4", 150.0, 0.5),
        (100, "ins:0.4:input=raw:matrix=per-class", 150.0, 0.5),
        (100, "cifarn:fine", 150.0, 0.5),
    ] {
        let found = tuned.clone().checked(&facts(classes, noise)).unwrap();
        assert_eq!((found.semi.lambda_u, found.tau), (lambda_u, tau), "{classes} {noise}");
        let is_heavy = noise.ends_with("0.9");
        assert_eq!(found.recent_losses, if is_heavy { 5 } else { 1 }, "{noise}");
        let penalty = if noise.starts_with("asym") { 1.0 } else { 0.0 };
        assert_eq!(found.semi.confidence_penalty, penalty, "{noise}");
    }
    let blind = dividemix::Settings { tap: dividemix::Tapped::Mixed, ..dividemix::Settings::default() };
    assert_eq!(blind.clone().checked(&facts(100, "sym-incl:0.9")).unwrap(), blind, "blind looks at nothing");
    let auto = dividemix::Settings::default().checked(&facts(100, "sym-incl:0.9")).unwrap();
    assert_eq!(auto.tap, blind.tap, "mixed for pictures");
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    for host in BOTH {
        for (text, name) in [
            ("temperature = 0.0", "temperature"),
            ("alpha = -1.0", "alpha"),
            ("lambda_u = nan", "lambda_u"),
            ("warm_up = 1.5", "warm_up"),
            ("ramp = -0.5", "ramp"),
            ("warm_up_batch = 1", "warm_up_batch"),
            ("unlabelled_batch = 1", "unlabelled_batch"),
        ] {
            let error = (card(host).unwrap().build)(&table(text), &facts(10, "none")).err().unwrap();
            assert!(error.to_string().contains(name), "{host} {text}: {error}");
        }
    }
    for (host, text) in [
        ("dividemix", "tau = 1.0"),
        ("dividemix", "recent_losses = 0"),
        ("rankmatch", "rho = 0.0"),
        ("rankmatch", "top = 0"),
    ] {
        assert!((card(host).unwrap().build)(&table(text), &facts(10, "none")).is_err(), "{host} {text}");
    }
    let small = Facts { batch: 1, ..facts(10, "none") };
    assert!((card("dividemix").unwrap().build)(&table(""), &small).is_err());
}

#[test]
fn the_cost_of_a_pool_is_its_parts() {
    let targets = Tensor::cat(
        vec![one_hot(&[0, 2, 1], 3, &Device::flex()), Tensor::ones([2, 3], &Device::flex()) / 3.0],
        0,
    );
    let cost = Cost::new(logits(5), targets.clone(), 3);
    let (x, r) = (logits(5).narrow(0, 0, 3), targets.clone().narrow(0, 0, 3));
    let (u, q) = (logits(5).narrow(0, 3, 2), targets.narrow(0, 3, 2));
    let (fit, prior) = (number(soft_cross_entropy(x, r)), number(prior_penalty(logits(5))));
    let consistency = number(squared_error(u, q));
    assert_eq!(number(cost.fit.clone()), fit);
    assert_eq!(number(cost.consistency.clone().unwrap()), consistency);
    let total = number(cost.total(25.0, 0.5));
    assert!((total - (fit + 25.0 * consistency + 0.5 * prior)).abs() < 1e-5, "{total}");
    assert_eq!(
        number(cost.total(0.0, 0.0)),
        fit,
        "without weights only the cross-entropy of mixed targets is left"
    );
}

#[test]
fn with_all_labels_held_clean_only_labelled_terms_are_left() {
    let targets = one_hot(&[0, 2, 1], 3, &Device::flex());
    let cost = Cost::new(logits(3), targets.clone(), 3);
    assert!(cost.consistency.is_none());
    assert_eq!(number(cost.total(25.0, 0.0)), number(soft_cross_entropy(logits(3), targets)));
}

#[test]
fn a_label_that_is_surely_clean_is_its_own_target() {
    let target = sharpen(refine(&[1.0; 3], &[0, 2, 1], co_guess(&[logits(3), logits(3)])), 0.5);
    assert_eq!(values(target).unwrap(), values(one_hot(&[0, 2, 1], 3, &Device::flex())).unwrap());
}

#[test]
fn samples_are_divided_by_who_is_clean() {
    let is_clean = [true, false, true, false, true];
    let found = divide(&is_clean, &[0.9, 0.1, 0.8, 0.2, 0.7], 2, [4, 4]);
    assert_eq!(found, Division { labelled: vec![0, 2, 4], unlabelled: vec![1, 3], fell_back: false });
}

#[test]
fn too_few_clean_labels_are_made_up_by_the_likeliest() {
    for is_clean in [[false; 6], [true, false, false, false, false, false]] {
        let found = divide(&is_clean, &[0.1, 0.4, 0.3, 0.4, 0.2, 0.0], 2, [4, 8]);
        assert_eq!(found, Division { labelled: vec![1, 2, 3], unlabelled: vec![0, 4, 5], fell_back: true });
    }
}

#[test]
fn no_batch_is_left_with_one_sample() {
    let w = [0.9, 0.6, 0.8, 0.2, 0.3];
    let found = divide(&[true, true, true, false, false], &w, 2, [2, 2]);
    assert_eq!((found.labelled, found.unlabelled), (vec![0, 2], vec![3, 4]));
    let found = divide(&[true, true, false, false, false], &w, 2, [2, 2]);
    assert_eq!((found.labelled, found.unlabelled), (vec![0, 1], vec![3, 4]));
    let found = divide(&[true, true, true, true, false], &w, 2, [4, 4]);
    assert_eq!((found.labelled.len(), found.unlabelled.len()), (4, 0));
}

/// Head and numbers of a checkpoint.
fn open(bytes: &[u8]) -> (serde_json::Value, Vec<f32>) {
    let length = u64::from_le_bytes(bytes[16..24].try_into().unwrap()) as usize;
    let head = serde_json::from_slice(&bytes[24..24 + length]).unwrap();
    let numbers = bytes[24 + length..bytes.len() - 32].chunks_exact(4);
    (head, numbers.map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect())
}

fn array(head: &serde_json::Value, numbers: &[f32], name: &str) -> Vec<f32> {
    let mut from = 0;
    for entry in head["floats"].as_array().unwrap() {
        let length = entry[1].as_u64().unwrap() as usize;
        if entry[0] == name {
            return numbers[from..from + length].to_vec();
        }
        from += length;
    }
    panic!("no array {name}");
}

#[test]
fn each_network_is_given_the_division_of_its_peer() {
    let host_settings = table("warm_up = 1");
    let mut trainer =
        Trainer::new(task(300, "sym-exact:0.4"), TrainSettings { host_settings, ..settings("dividemix") })
            .unwrap();
    trainer.epoch(|_| {}).unwrap();
    let flag = trainer.stop_flag();
    trainer.epoch(|_| flag.store(true, Relaxed)).unwrap();
    let (head, numbers) = open(&trainer.save("run").unwrap());
    let phases = head["values"]["position"]["plan"]["phases"].as_array().unwrap();
    let clean = [0, 1].map(|net| array(&head, &numbers, &format!("host/clean{net}")));
    assert_ne!(clean[0], clean[1]);
    for (net, phase) in phases.iter().enumerate() {
        assert_eq!(phase["trains"], serde_json::json!([net]));
        let set = |name: &str| -> Vec<u64> {
            phase["order"]["Pair"][name].as_array().unwrap().iter().map(|i| i.as_u64().unwrap()).collect()
        };
        let (labelled, unlabelled) = (set("labelled"), set("unlabelled"));
        let word = |i: &u64| clean[1 - net][*i as usize];
        assert!(labelled.iter().all(|i| word(i) > 0.5) && unlabelled.iter().all(|i| word(i) <= 0.5));
        // At most one of each kind is left out.
        assert!(labelled.len() + unlabelled.len() + 2 >= clean[0].len());
        assert!(labelled.len() > 20 && unlabelled.len() > 20, "a test of something");
    }
}

fn state(trainer: &Trainer, net: usize) -> Vec<(ParameterEntry, Vec<f32>)> {
    trainer.networks().net(net).read().unwrap()
}

#[test]
fn a_batch_changes_the_network_it_trains_and_nothing_of_its_peer() {
    for host in BOTH {
        let settings = TrainSettings {
            plugin: "negscale".into(),
            host_settings: table("warm_up = 0"),
            epochs: 1,
            ..settings(host)
        };
        let mut trainer = Trainer::new(task(120, "sym-exact:0.4"), settings).unwrap();
        let (mut trained, mut before) = (Vec::new(), [0, 1].map(|net| state(&trainer, net)));
        loop {
            let flag = trainer.stop_flag();
            flag.store(false, Relaxed);
            let batches = trainer.batches_done();
            let outcome = trainer.epoch(|_| flag.store(true, Relaxed)).unwrap();
            let after = [0, 1].map(|net| state(&trainer, net));
            let changed: Vec<usize> = (0..2).filter(|&net| after[net] != before[net]).collect();
            assert_eq!(changed.len() as u64, trainer.batches_done() - batches, "{host}");
            trained.extend(changed);
            before = after;
            if matches!(outcome, EpochEnd::Finished(_)) {
                break;
            }
        }
        assert!(trained.is_sorted() && trained.contains(&0) && trained.contains(&1), "{host}: {trained:?}");
    }
}

#[test]
fn both_beat_cross_entropy_that_has_memorised_wrong_labels() {
    let plain = long_run("cross-entropy", "view = \"plain\"");
    // The reconstruction gains less on clouds as easy as these.
    for (host, gain) in BOTH.into_iter().zip([0.02, 0.01]) {
        let found = long_run(host, "");
        assert!(found.accuracy > plain.accuracy + gain, "{host}: {found:?}, cross-entropy {plain:?}");
        assert!(found.separation > 0.9, "{host}: {found:?}");
    }
}

#[test]
fn plug_ins_may_see_mixed_samples_instead() {
    let run = |text: &str| {
        let settings =
            TrainSettings { plugin: "negscale".into(), host_settings: table(text), ..settings("dividemix") };
        let mut trainer = Trainer::new(task(200, "sym-exact:0.4"), settings).unwrap();
        let last = finish(&mut trainer).pop().unwrap();
        assert!(last.losses.contains_key("dcsa"));
        weights(&trainer)
    };
    assert_ne!(run("tap = \"mixed\""), run("tap = \"unmixed\""));
}

fn of_pictures(text: &str) -> Trainer {
    let settings = picture_settings("dividemix");
    let (plugin, host_settings) = ("negscale".into(), table(text));
    Trainer::new(pictures(), TrainSettings { plugin, host_settings, epochs: 2, ..settings }).unwrap()
}

#[test]
fn an_epoch_without_unlabelled_samples_has_no_squared_error() {
    let mut trainer = of_pictures("warm_up = 0\ntau = 0.0");
    let first = &finish(&mut trainer)[0];
    assert!(first.more["labelled for net 1"] > 0.95, "{:?}", first.more);
    assert!(!first.losses.contains_key("consistency"), "{:?}", first.losses);
    assert!(is_sound(&trainer));
}

#[test]
fn an_epoch_in_which_no_label_seems_clean_says_so_and_trains_all_the_same() {
    let mut trainer = of_pictures("warm_up = 0\ntau = 0.9999999");
    let first = &finish(&mut trainer)[0];
    assert_eq!(first.more["too few clean for net 1"], 1.0, "{:?}", first.more);
    assert!(first.losses["fit"] > 0.0 && first.losses["consistency"] > 0.0);
    assert!(is_sound(&trainer));
}

#[test]
fn defaults_are_those_of_their_descriptions() {
    let semi = dividemix::Settings::default().semi;
    assert_eq!((semi.temperature, semi.alpha, semi.lambda_u, semi.lambda_p), (0.5, 4.0, 25.0, 1.0));
    let rank = rankmatch::Settings::default();
    assert_eq!(
        (rank.rho, rank.votes, rank.top, rank.rank_temperature, rank.lambda_r),
        (0.2, 50, 5, 0.1, 1.0)
    );
}
