//! SELC, SELC+, DISC and DSOS beyond what every method must keep to, and the stages of a run.
#![allow(clippy::unwrap_used, clippy::panic)]

mod house;

use house::{finish, known_noise, settings, survives_stops, task, weights};
use negscale_audit::ledger::Ledger;
use negscale_methods::host::{Facts, ItemKind, Protocol};
use negscale_methods::hosts::{card, disc, dsos, selc};
use negscale_methods::trainer::{EpochEnd, TrainSettings, Trainer};
use negscale_nets::optim::Sgd;
use negscale_nets::schedule::{Milestone, Shape};

const NOISE: &str = "sym-exact:0.4";

fn table(text: &str) -> toml::Table {
    text.parse().unwrap()
}

/// A run of a method with settings of its own; all samples are trained on.
fn make(host: &str, epochs: usize, text: &str) -> Trainer {
    let settings = settings(host);
    let settings = TrainSettings { epochs, validation: 0.0, host_settings: table(text), ..settings };
    Trainer::new(task(200, NOISE), settings).unwrap()
}

fn step(trainer: &mut Trainer) {
    assert!(matches!(trainer.epoch(|_| {}).unwrap(), EpochEnd::Finished(_)));
}

fn facts(classes: usize, noise: &str) -> Facts {
    let noise = known_noise(noise);
    Facts { kind: ItemKind::Images, classes, samples: 1000, epochs: 200, batch: 64, noise, wrong_share: None }
}

fn refused(host: &str, cases: &[(&str, &str)]) {
    for (text, name) in cases {
        let built = (card(host).unwrap().build)(&table(text), &facts(10, "none"));
        let error = built.err().unwrap().to_string();
        assert!(error.contains(name), "{error}");
    }
}

fn rows(ledger: &Ledger) -> Vec<&[f32]> {
    (0..ledger.len()).filter_map(|i| ledger.target(i)).collect()
}

#[test]
fn given_labels_lose_their_part_of_selcs_targets_update_by_update() {
    let mut trainer = make("selc", 4, "warm_up = 1\nspan = 0\nalpha = 0.8");
    step(&mut trainer);
    let ledger = trainer.ledger().unwrap();
    for (row, &given) in rows(&ledger).iter().zip(ledger.given()) {
        assert_eq!(row[given as usize], 1.0, "labels are as given until the warm-up is over");
    }
    let mut left = 1.0f32;
    while !trainer.is_finished() {
        step(&mut trainer);
        left *= 0.8;
        let ledger = trainer.ledger().unwrap();
        let own: Vec<f32> =
            rows(&ledger).iter().zip(ledger.given()).map(|(row, &given)| row[given as usize]).collect();
        assert!(own.iter().all(|&t| t > left - 1e-5), "what is left of the label is not predicted away");
        let moved = own.iter().filter(|&&t| t < 1.0).count();
        // Each epoch leaves out what does not fill a batch.
        assert!(moved >= 192, "{moved} samples");
        let smallest = own.iter().copied().fold(1.0, f32::min);
        assert!(
            smallest < left + 0.3 * (1.0 - left),
            "a label that is surely wrong has {smallest}, not {left}"
        );
        for (i, (t, row)) in own.iter().zip(rows(&ledger)).enumerate() {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            if let Some(clean) = ledger.clean(i) {
                let largest = row.iter().copied().fold(0.0, f32::max);
                assert_eq!(clean >= 0.5, *t == largest, "the given label is held clean where it leads");
            }
        }
    }
}

#[test]
fn targets_that_keep_all_make_selc_cross_entropy() {
    let run = |host: &str, text: &str| {
        let schedule = Shape::Constant.into();
        let optimiser = Sgd { lr: 0.02, ..Default::default() }.into();
        let settings = TrainSettings { schedule, optimiser, host_settings: table(text), ..settings(host) };
        let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
        finish(&mut trainer);
        weights(&trainer)
    };
    let (kept, plain) = (run("selc", "alpha = 1.0\nwarm_up = 0"), run("cross-entropy", ""));
    let away = kept.iter().zip(&plain).map(|(&a, &b)| (f32::from_bits(a) - f32::from_bits(b)).abs());
    assert!(away.fold(0.0, f32::max) < 1e-5);
}

#[test]
fn the_second_network_of_selc_plus_begins_anew_with_a_schedule_of_its_own() {
    let with = |lr: f64| {
        let shape = Shape::Steps { at: vec![Milestone::Share(0.5)], factor: 0.1 };
        let settings = TrainSettings {
            epochs: 8,
            optimiser: Sgd { lr, ..Default::default() }.into(),
            schedule: shape.into(),
            ..settings("selc-plus")
        };
        Trainer::new(task(200, NOISE), settings).unwrap()
    };
    let mut trainer = with(0.1);
    let records = finish(&mut trainer);
    let rates: Vec<f64> = records.iter().map(|record| record.learning_rate).collect();
    let wanted = [0.1, 0.1, 0.01, 0.01].repeat(2);
    assert!(rates.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-12), "{rates:?}");
    let stages: Vec<f64> = records.iter().map(|record| record.more["stage"]).collect();
    assert_eq!(stages, [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]);

    // At rate 0 nothing moves but by beginning anew.
    let mut still = with(0.0);
    let first = weights(&still);
    (0..4).for_each(|_| step(&mut still));
    assert_eq!(weights(&still), first);
    step(&mut still);
    let second = weights(&still);
    assert_ne!(second, first, "the second network has weights of its own");
    step(&mut still);
    assert_eq!(weights(&still), second, "it begins once");
}

#[test]
fn what_selc_corrected_is_what_the_second_network_learns() {
    let mut trainer = make("selc-plus", 8, "");
    (0..4).for_each(|_| step(&mut trainer));
    let corrected = trainer.ledger().unwrap().targets().to_vec();
    finish(&mut trainer);
    assert_eq!(trainer.ledger().unwrap().targets(), corrected, "the second stage leaves targets alone");
}

#[test]
fn a_pilot_finds_when_to_begin_and_survives_stops() {
    let text = "pilot = 3\nfirst = 0.5";
    let records = survives_stops("selc-plus", || make("selc-plus", 9, text));
    let stages: Vec<f64> = records.iter().map(|record| record.more["stage"]).collect();
    assert_eq!(stages, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0]);
    let found = records[3].more["warm-up"];
    assert!((1.0..=3.0).contains(&found), "{found}");
}

#[test]
fn disc_sorts_labels_and_is_right_about_them_more_often_than_not() {
    let host_settings = table("margin = 0.1");
    let settings = TrainSettings { epochs: 10, host_settings, ..settings("disc") };
    let mut trainer = Trainer::new(task(600, NOISE), settings).unwrap();
    let records = finish(&mut trainer);
    let last = records.last().unwrap();
    let [clean, hard, corrected] = ["clean", "hard", "corrected"].map(|name| last.more[name]);
    assert!((0.3..0.9).contains(&clean) && clean + hard + corrected <= 1.0, "{:?}", last.more);
    assert!(corrected > 0.02, "{:?}", last.more);
    assert!(last.selection_precision.unwrap() > 0.85, "{last:?}");
    assert!(last.losses.contains_key("mixed") && !records[0].losses.contains_key("mixed"));
}

#[test]
fn disc_hands_over_trusted_samples_or_all_of_them() {
    let run = |text: &str| {
        let mut settings = TrainSettings { plugin: "negscale".into(), ..settings("disc") };
        settings.host_settings = table(text);
        let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
        finish(&mut trainer);
        weights(&trainer)
    };
    assert_ne!(run(""), run("tap_all = true"));
}

#[test]
fn dsos_replaces_wrong_labels_of_known_classes() {
    // For long enough to be sure of something.
    let optimiser = Sgd { lr: 0.05, ..Default::default() }.into();
    let host_settings = table("known_above = 0.6");
    let settings = TrainSettings { epochs: 20, optimiser, host_settings, ..settings("dsos") };
    let mut trainer = Trainer::new(task(600, NOISE), settings).unwrap();
    let records = finish(&mut trainer);
    assert!(
        records[..4].iter().all(|record| !record.more.contains_key("replaced")),
        "no correction in warm-up"
    );
    let last = records.last().unwrap();
    assert!(last.more["replaced"] > 0.1, "{:?}", last.more);
    let (ledger, task) = (trainer.ledger().unwrap(), task(600, NOISE));
    let truth = task.train.truth().unwrap();
    let (mut right, mut all) = (0, 0);
    for (i, row) in rows(&ledger).iter().enumerate() {
        let believed = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap() as u32;
        // Samples held out have predictions for targets.
        if believed != ledger.given()[i] && row[believed as usize] > 0.999 {
            all += 1;
            right += usize::from(believed == truth[i]);
        }
    }
    assert!(all > 60 && right * 10 > all * 9, "{right} of {all} replacements are right");
}

#[test]
fn dsos_softens_labels_of_samples_that_belong_nowhere() {
    // Without MixUp and for long, so that predictions on known samples are sure.
    let mut settings = TrainSettings { epochs: 12, ..settings("dsos") };
    settings.host_settings = table("alpha = 0.0");
    let mut trainer = Trainer::new(task(600, NOISE), settings).unwrap();
    finish(&mut trainer);
    let ledger = trainer.ledger().unwrap();
    // The prediction of an unknown sample is nothing in particular, so its clean probability is low and its target soft.
    for (i, row) in rows(&ledger).iter().enumerate() {
        let most = row.iter().copied().fold(0.0, f32::max);
        let Some(clean) = ledger.clean(i) else { continue };
        assert!(
            clean <= 0.5 || most > 0.999_99,
            "a label above doubt is taken at its word: {row:?}, {clean}"
        );
    }
}

#[test]
fn tuned_settings_are_the_published_ones() {
    for (classes, noise, warm_up) in [
        (10, "sym-exact:0.2", 0.2),
        (10, "sym-exact:0.4", 0.15),
        (10, "sym-incl:0.6", 0.15),
        (10, "sym-incl:0.8", 0.2),
        (10, "asym-map:0.4", 0.2),
        (10, "ins:0.4:input=raw:matrix=per-class", 0.2),
        (100, "sym-exact:0.2", 0.15),
        (100, "sym-exact:0.4", 0.1),
        (100, "sym-exact:0.6", 0.15),
        (100, "sym-exact:0.8", 0.2),
        (100, "asym-block:0.4", 0.1),
        (10, "cifarn:worse", 0.2),
        (100, "cifarn:fine", 0.1),
        (100, "none", 0.2),
    ] {
        let tuned = selc::Settings { protocol: Protocol::Tuned, ..Default::default() };
        let found = tuned.checked(&facts(classes, noise)).unwrap().warm_up;
        assert_eq!(found, Milestone::Share(warm_up), "{classes} classes, {noise}");
    }
    for (noise, lambda_h, momentum, warm_up) in [
        ("sym-exact:0.5", 1.0, 0.99, 0.1),
        ("sym-exact:0.6", 0.2, 0.95, 0.1),
        ("asym-map:0.4", 1.0, 0.95, 0.1),
        ("ins:0.4:input=raw:matrix=per-class", 1.0, 0.99, 0.075),
        ("ins:0.6:input=raw:matrix=per-class", 0.2, 0.95, 0.075),
    ] {
        let tuned = disc::Settings { protocol: Protocol::Tuned, ..Default::default() };
        let found = tuned.checked(&facts(10, noise)).unwrap();
        let wanted = (lambda_h, momentum, Milestone::Share(warm_up));
        assert_eq!((found.lambda_h, found.momentum, found.warm_up), wanted, "{noise}");
    }
    for (classes, noise, mixes) in
        [(10, "sym-exact:0.8", true), (100, "sym-exact:0.2", true), (100, "sym-exact:0.6", false)]
    {
        let tuned = dsos::Settings { protocol: Protocol::Tuned, ..Default::default() };
        assert_eq!(tuned.checked(&facts(classes, noise)).unwrap().warm_up_mix, mixes, "{classes}, {noise}");
    }
    let heavy = facts(100, "sym-exact:0.8");
    let blind = (selc::Settings::default(), disc::Settings::default(), dsos::Settings::default());
    assert_eq!(blind.0.clone().checked(&heavy).unwrap(), blind.0);
    assert_eq!(blind.1.clone().checked(&heavy).unwrap(), blind.1);
    assert_eq!(blind.2.clone().checked(&heavy).unwrap(), blind.2);
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    refused("selc", &[("alpha = 1.5", "alpha"), ("warm_up = 1.5", "warm_up"), ("pilot = -0.1", "pilot")]);
    refused(
        "selc-plus",
        &[("alpha = -0.1", "alpha"), ("mix_alpha = -1.0", "mix_alpha"), ("first = 2.0", "first")],
    );
    let cases = [
        ("q = 0.0", "q"),
        ("momentum = 2.0", "momentum"),
        ("cap = -0.5", "cap"),
        ("lambda_h = -1.0", "lambda_h"),
    ];
    refused("disc", &cases);
    refused("dsos", &[("a = 0.0", "a"), ("known_above = 1.5", "known_above"), ("slack = -1.0", "slack")]);
}
