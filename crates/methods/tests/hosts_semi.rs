//! UNICON, CrossSplit and CCL beyond what every method must keep to.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod house;

use house::{CLASSES, finish, known_noise, long_run, settings, task, timeless, weights};
use negscale_methods::host::{Facts, ItemKind, Protocol};
use negscale_methods::hosts::{card, ccl, crosssplit, unicon};
use negscale_methods::trainer::{EpochEnd, TrainSettings, Trainer};
use std::sync::atomic::Ordering::Relaxed;

const ALL: [&str; 3] = ["unicon", "crosssplit", "ccl"];
const NOISE: &str = "sym-exact:0.4";

fn table(text: &str) -> toml::Table {
    text.parse().unwrap()
}

fn facts(noise: &str) -> Facts {
    let noise = known_noise(noise);
    Facts {
        kind: ItemKind::Images,
        classes: 10,
        samples: 1000,
        epochs: 300,
        batch: 64,
        noise,
        wrong_share: None,
    }
}

fn start(host: &str, text: &str, change: impl Fn(&mut TrainSettings)) -> Trainer {
    let mut settings = TrainSettings { host_settings: table(text), validation: 0.0, ..settings(host) };
    change(&mut settings);
    Trainer::new(task(240, NOISE), settings).unwrap()
}

/// The phases of the epoch that a run stands in.
fn phases(trainer: &Trainer) -> Vec<serde_json::Value> {
    let bytes = trainer.save("run").unwrap();
    let length = u64::from_le_bytes(bytes[16..24].try_into().unwrap()) as usize;
    let head: serde_json::Value = serde_json::from_slice(&bytes[24..24 + length]).unwrap();
    head["values"]["position"]["plan"]["phases"].as_array().unwrap().clone()
}

fn list(value: &serde_json::Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|i| i.as_u64().unwrap() as u32).collect()
}

/// Runs one batch.
fn step(trainer: &mut Trainer) -> EpochEnd {
    let flag = trainer.stop_flag();
    flag.store(false, Relaxed);
    trainer.epoch(|_| flag.store(true, Relaxed)).unwrap()
}

fn net_bits(trainer: &Trainer, net: usize) -> Vec<u32> {
    trainer.networks().net(net).read().unwrap().into_iter().flat_map(|(_, v)| v).map(f32::to_bits).collect()
}

#[test]
fn tuned_settings_are_the_published_ones_and_blind_looks_at_nothing() {
    for (noise, of_unicon, of_crosssplit) in [
        ("asym:0.4", 1.0, 0.1),
        ("pairflip:0.4", 1.0, 0.1),
        ("sym-incl:0.8", 0.0, 0.0),
        ("ins:0.4:input=raw:matrix=per-class", 0.0, 0.0),
    ] {
        for protocol in [Protocol::Tuned, Protocol::Blind] {
            let mut a = unicon::Settings::default();
            let mut b = crosssplit::Settings::default();
            (a.contrast.semi.protocol, b.contrast.semi.protocol) = (protocol, protocol);
            let a = a.checked(&facts(noise)).unwrap().contrast;
            let b = b.checked(&facts(noise)).unwrap().contrast;
            let wanted = if protocol == Protocol::Tuned { [of_unicon, of_crosssplit] } else { [0.0; 2] };
            assert_eq!([a.semi.confidence_penalty, b.semi.confidence_penalty], wanted, "{noise}");
            assert_eq!([a.semi.lambda_u, b.semi.lambda_u], [30.0; 2], "one weight for all noise");
        }
    }
    let mut tuned = ccl::Settings::default();
    tuned.rolr.protocol = Protocol::Tuned;
    assert_eq!(tuned.checked(&facts("sym-incl:0.8")).unwrap().rolr.lambda_p, 2.0);
}

#[test]
fn defaults_are_those_of_their_descriptions() {
    let unicon::Settings { contrast, d_mu, tau, .. } = unicon::Settings::default();
    assert_eq!((contrast.lambda_c, contrast.contrast_temperature, d_mu, tau), (0.025, 0.05, 0.7, 5.0));
    assert_eq!((contrast.semi.temperature, contrast.semi.alpha, contrast.semi.lambda_p), (0.5, 4.0, 1.0));
    let split = crosssplit::Settings::default();
    assert_eq!((split.split, split.warm_up_on_all), (crosssplit::LabelSplit::Disjoint, false));
    assert_eq!(split.delta.epochs(300), 10);
    let ccl = ccl::Settings::default();
    assert_eq!(
        (ccl.beta_1, ccl.beta_2, ccl.concept_temperature, ccl.model_temperature),
        (1.0, 1.0, 0.1, 0.3)
    );
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    for (host, text, name) in [
        ("unicon", "jsd_base = \"10\"", "jsd_base"),
        ("unicon", "tau = 0.5", "tau"),
        ("unicon", "d_mu = -1.0", "d_mu"),
        ("unicon", "lambda_c = nan", "lambda_c"),
        ("unicon", "temperature = 0.0", "temperature"),
        ("crosssplit", "contrast_temperature = 0.0", "contrast_temperature"),
        ("crosssplit", "split = \"thirds\"", "split"),
        ("crosssplit", "delta = 1.5", "delta"),
        ("crosssplit", "unlabelled_batch = 1", "unlabelled_batch"),
        ("ccl", "beta_1 = -1.0", "beta_1"),
        ("ccl", "model_temperature = 0.0", "model_temperature"),
        ("ccl", "confident = 1.0", "confident"),
        ("ccl", "ramp = 2.5", "ramp"),
        ("ccl", "passes = 0", "passes"),
    ] {
        let error = (card(host).unwrap().build)(&table(text), &facts("none")).err().unwrap().to_string();
        let known = ["thirds", "10"].iter().any(|word| error.contains(word));
        assert!(error.contains(name) || known, "{host} {text}: {error}");
    }
}

#[test]
fn the_peers_word_counts_more_as_epochs_go_by() {
    let found = [0, 19, 20, 29, 30, 300].map(|since| crosssplit::gamma(since, 10));
    assert_eq!(found, [0.6, 0.6, 0.8, 0.8, 1.0, 1.0]);
    assert_eq!(crosssplit::gamma(0, 0), 1.0, "a run too short for steps has none");
}

#[test]
fn a_batch_changes_the_network_it_trains_and_nothing_of_its_peer() {
    for (host, order) in ALL.into_iter().zip([[0, 1], [0, 1], [1, 0]]) {
        let mut trainer = start(host, "warm_up = 0", |settings| {
            (settings.plugin, settings.epochs) = ("negscale".into(), 1);
        });
        let (mut trained, mut before) = (Vec::new(), [0, 1].map(|net| net_bits(&trainer, net)));
        loop {
            let outcome = step(&mut trainer);
            let after = [0, 1].map(|net| net_bits(&trainer, net));
            let changed: Vec<usize> = (0..2).filter(|&net| after[net] != before[net]).collect();
            assert!(changed.len() <= 1, "{host}: {changed:?}");
            trained.extend(changed);
            before = after;
            if matches!(outcome, EpochEnd::Finished(_)) {
                break;
            }
        }
        trained.dedup();
        assert_eq!(trained, order, "{host}");
    }
}

#[test]
fn a_stop_at_any_moment_even_in_the_second_look_before_a_turn_changes_nothing() {
    for host in ["unicon", "crosssplit"] {
        let make = || start(host, "warm_up = 1", |settings| settings.epochs = 2);
        let mut straight = make();
        let records = finish(&mut straight);
        let (mut stopped, mut again) = (make(), Vec::new());
        while !stopped.is_finished() {
            let outcome = step(&mut stopped);
            // Asked again while it is still to stop: in the middle of scans as well as of batches.
            let outcomes = [outcome, stopped.epoch(|_| {}).unwrap()];
            for outcome in outcomes {
                if let EpochEnd::Finished(record) = outcome {
                    again.push(*record);
                }
            }
            let bytes = stopped.save("run").unwrap();
            stopped = make();
            stopped.restore(&bytes, "run", "memory").unwrap();
        }
        assert_eq!(timeless(&again), timeless(&records), "{host}");
        assert_eq!(weights(&stopped), weights(&straight), "{host}");
    }
}

#[test]
fn unicon_takes_the_same_number_from_every_class_and_looks_again_before_the_second_network() {
    let mut trainer = start("unicon", "warm_up = 1", |settings| settings.batch = 16);
    trainer.epoch(|_| {}).unwrap();
    step(&mut trainer);
    let given = task(240, NOISE).train.given().to_vec();
    let planned = phases(&trainer);
    let labelled = |phase: &serde_json::Value| list(&phase["order"]["Pair"]["labelled"]);
    let mut counts = [0usize; CLASSES];
    labelled(&planned[0]).iter().for_each(|&i| counts[given[i as usize] as usize] += 1);
    // A set that would end in a batch of one goes without a sample.
    assert!(counts[0] > 5 && counts.iter().all(|&count| counts[0].abs_diff(count) <= 1), "{counts:?}");
    assert_eq!(labelled(&planned[0]), labelled(&planned[1]), "both networks together judge");
    while phases(&trainer)[1] == planned[1] {
        assert!(matches!(step(&mut trainer), EpochEnd::Stopped), "the second phase was never planned anew");
    }
    assert_eq!(phases(&trainer)[0], planned[0]);
}

#[test]
fn unicon_has_more_unlabelled_samples_in_a_batch_the_fewer_are_clean() {
    let mut trainer = start("unicon", "warm_up = 1", |settings| settings.batch = 16);
    trainer.epoch(|_| {}).unwrap();
    step(&mut trainer);
    let pair = phases(&trainer)[0]["order"]["Pair"].clone();
    let size = pair["unlabelled_batch"].as_u64().unwrap();
    let share = list(&pair["labelled"]).len() as f64 / 240.0;
    assert!((size as f64 - 8.0 / share).abs() < 2.0 && size >= 8, "{size} at a share of {share}");
}

#[test]
fn the_base_of_the_logarithms_makes_a_difference_to_unicon() {
    let run = |text: &str| {
        let mut trainer = start("unicon", text, |_| {});
        finish(&mut trainer);
        weights(&trainer)
    };
    assert_ne!(run("jsd_base = \"e\"\nd_mu = 0.3"), run("jsd_base = \"2\"\nd_mu = 0.3"));
}

#[test]
fn crosssplit_gives_each_network_the_labels_of_one_half_from_the_first_epoch_on() {
    let mut trainer = start("crosssplit", "warm_up = 1", |settings| settings.batch = 16);
    step(&mut trainer);
    let warm_up: Vec<Vec<u32>> =
        phases(&trainer).iter().map(|phase| list(&phase["order"]["Among"])).collect();
    let mut all = warm_up.concat();
    all.sort_unstable();
    assert_eq!(all, (0..240).collect::<Vec<u32>>());
    assert_eq!(warm_up[0].len(), 120);
    while trainer.epochs_done() == 0 {
        step(&mut trainer);
    }
    step(&mut trainer);
    for (net, phase) in phases(&trainer).iter().enumerate() {
        let pair = &phase["order"]["Pair"];
        assert_eq!(list(&pair["labelled"]), warm_up[net]);
        assert_eq!(list(&pair["unlabelled"]), warm_up[1 - net]);
        assert_eq!(pair["unlabelled_batch"], 8);
    }
}

#[test]
fn crosssplit_without_the_split_shows_all_to_both() {
    let mut trainer = start("crosssplit", "warm_up = 0\nsplit = \"none\"", |settings| settings.batch = 16);
    step(&mut trainer);
    for phase in phases(&trainer) {
        for set in ["labelled", "unlabelled"] {
            assert_eq!(list(&phase["order"]["Pair"][set]), (0..240).collect::<Vec<u32>>());
        }
    }
}

#[test]
fn a_network_of_crosssplit_never_warms_up_on_labels_of_the_other_half() {
    let make = |host_settings: &str, given: Option<Vec<u32>>| {
        let mut task = task(240, NOISE);
        if let Some(given) = given {
            task.train = task.train.with_noise(given).unwrap();
        }
        let host_settings = table(host_settings);
        Trainer::new(task, TrainSettings { host_settings, validation: 0.0, ..settings("crosssplit") })
            .unwrap()
    };
    for (text, is_apart) in [("warm_up = 3", true), ("warm_up = 3\nwarm_up_on_all = true", false)] {
        let mut first = make("warm_up = 3", None);
        step(&mut first);
        let second_half = list(&phases(&first)[1]["order"]["Among"]);
        let mut given = task(240, NOISE).train.given().to_vec();
        second_half.iter().for_each(|&i| given[i as usize] = (given[i as usize] + 1) % CLASSES as u32);
        let (mut before, mut after) = (make(text, None), make(text, Some(given)));
        finish(&mut before);
        finish(&mut after);
        assert_eq!(net_bits(&before, 0) == net_bits(&after, 0), is_apart, "{text}");
        assert_ne!(net_bits(&before, 1), net_bits(&after, 1), "{text}");
    }
}

#[test]
fn ccl_without_weights_is_rolr() {
    let run = |host: &str, text: &str| {
        let mut trainer = start(host, text, |_| {});
        finish(&mut trainer);
        let is_head = |path: &str| path.starts_with("projection") || path.starts_with("concepts");
        let nets = (0..2).flat_map(|net| trainer.networks().net(net).read().unwrap());
        nets.filter(|(entry, _)| !is_head(&entry.path)).collect::<Vec<_>>()
    };
    let rolr = run("rolr", "warm_up = 1");
    assert!(run("ccl", "warm_up = 1\nbeta_1 = 0.0\nbeta_2 = 0.0\nconfident = 0.0") == rolr);
    assert!(run("ccl", "warm_up = 1\nbeta_1 = 0.0\nramp = 0") != rolr);
    // In so short a run nobody is confident by the usual measure.
    assert!(run("ccl", "warm_up = 1\nbeta_2 = 0.0\nramp = 0\nconfident = 0.0") != rolr);
}

#[test]
fn all_beat_cross_entropy_that_has_memorised_wrong_labels() {
    let plain = long_run("cross-entropy", "view = \"plain\"");
    for host in ALL {
        let found = long_run(host, "");
        assert!(found.accuracy > plain.accuracy + 0.02, "{host}: {found:?}, cross-entropy {plain:?}");
        assert!(found.separation > 0.9, "{host}: {found:?}");
    }
}

#[test]
fn plug_ins_see_unlabelled_samples_on_demand() {
    let run = |host: &str, text: &str| {
        let mut trainer = start(host, text, |settings| settings.plugin = "negscale".into());
        finish(&mut trainer);
        weights(&trainer)
    };
    for host in ["unicon", "crosssplit"] {
        assert_ne!(run(host, "warm_up = 1"), run(host, "warm_up = 1\ntap_unlabelled = true"), "{host}");
    }
}
