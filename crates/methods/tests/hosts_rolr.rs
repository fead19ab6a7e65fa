//! RoLR beyond what every method must keep to.
#![allow(clippy::unwrap_used, clippy::panic)]

mod house;

use house::{finish, known_noise, settings, task, weights};
use negscale_methods::host::{Facts, ItemKind};
use negscale_methods::hosts::card;
use negscale_methods::kit::loss::{cross_entropy, soft_cross_entropy};
use negscale_methods::kit::target::{co_guess, refine};
use negscale_methods::trainer::{TrainSettings, Trainer};
use negscale_nets::values;
use std::sync::atomic::Ordering::Relaxed;

use burn::tensor::{Device, Tensor, TensorData};

fn table(text: &str) -> toml::Table {
    text.parse().unwrap()
}

fn logits(rows: usize, shift: usize) -> Tensor<2> {
    let numbers: Vec<f32> = (0..rows * 3).map(|i| ((i * 7 + shift) % 11) as f32 / 4.0 - 1.0).collect();
    Tensor::from_data(TensorData::new(numbers, [rows, 3]), &Device::flex())
}

/// COMMON limiting cases: all labels held to be clean is cross-entropy on the given labels, none is pure self-training.
#[test]
fn clean_labels_make_it_cross_entropy_and_doubtful_ones_self_training() {
    let (strong, given) = (logits(4, 1), [2, 0, 1, 1]);
    let guess = co_guess(&[logits(4, 3), logits(4, 5)]);
    let sure = soft_cross_entropy(strong.clone(), refine(&[1.0; 4], &given, guess.clone()));
    let plain = cross_entropy(strong.clone(), &given);
    assert!((values(sure).unwrap()[0] - values(plain).unwrap()[0]).abs() < 1e-6);
    let doubtful = soft_cross_entropy(strong.clone(), refine(&[0.0; 4], &given, guess.clone()));
    let own = soft_cross_entropy(strong, guess);
    assert_eq!(values(doubtful).unwrap(), values(own).unwrap());
}

fn net_bits(trainer: &Trainer, net: usize) -> Vec<u32> {
    trainer.networks().net(net).read().unwrap().into_iter().flat_map(|(_, v)| v).map(f32::to_bits).collect()
}

#[test]
fn every_batch_changes_one_network_b_first_and_the_peer_not_at_all() {
    let mut settings = TrainSettings { plugin: "negscale".into(), epochs: 2, ..settings("rolr") };
    settings.host_settings = table("warm_up = 0\npasses = 1");
    let mut trainer = Trainer::new(task(200, "sym-exact:0.4"), settings).unwrap();
    let mut changed = Vec::new();
    while trainer.epochs_done() == 0 {
        let before = [net_bits(&trainer, 0), net_bits(&trainer, 1)];
        let flag = trainer.stop_flag();
        flag.store(false, Relaxed);
        trainer.epoch(|_| flag.store(true, Relaxed)).unwrap();
        flag.store(false, Relaxed);
        changed.push([0, 1].map(|net| net_bits(&trainer, net) != before[net]));
        if changed.len() > 40 {
            panic!("an epoch has fewer batches than that");
        }
    }
    let steps: Vec<[bool; 2]> = changed.into_iter().filter(|nets| nets.contains(&true)).collect();
    let half = steps.len() / 2;
    assert!(half > 3 && steps[..half].iter().all(|nets| *nets == [false, true]), "b first: {steps:?}");
    assert!(steps[half..].iter().all(|nets| *nets == [true, false]), "then a: {steps:?}");
}

#[test]
fn it_is_better_than_cross_entropy_that_learns_by_heart() {
    let run = |host: &str, text: &str, seed: u64| {
        let mut settings = TrainSettings { epochs: 30, hidden: vec![64], seed, ..settings(host) };
        settings.host_settings = table(text);
        settings.optimiser =
            negscale_nets::optim::Sgd { lr: 0.1, weight_decay: 0.0, ..Default::default() }.into();
        settings.schedule = negscale_nets::schedule::Schedule::default();
        let mut trainer = Trainer::new(task(300, "sym-exact:0.4"), settings).unwrap();
        finish(&mut trainer).last().unwrap().clone()
    };
    let (mut better, mut by_heart) = (0.0, 0.0);
    for seed in 1..=3 {
        let plain = run("cross-entropy", "view = \"plain\"", seed);
        let robust = run("rolr", "", seed);
        better += robust.test_accuracy.unwrap() - plain.test_accuracy.unwrap();
        by_heart += plain.fit_wrong_given.unwrap() - robust.fit_wrong_given.unwrap();
    }
    assert!(better / 3.0 > 0.1, "only {better} better over three seeds");
    assert!(by_heart / 3.0 > 0.1, "only {by_heart} less learnt by heart over three seeds");
}

#[test]
fn one_shared_pass_and_two_equal_ones_lead_to_the_same_place() {
    // With plain views and no batch norm the passes are equal numbers, so sharing one must not change what is learnt.
    let run = |guess: &str| {
        let mut settings = TrainSettings { epochs: 2, ..settings("rolr") };
        let views =
            format!("guess_view = \"{guess}\"\ntrain_view = \"plain\"\nscan_view = \"plain\"\nwarm_up = 0");
        settings.host_settings = table(&views);
        let mut trainer = Trainer::new(task(200, "sym-exact:0.4"), settings).unwrap();
        finish(&mut trainer);
        weights(&trainer)
    };
    assert_eq!(run("plain"), run("identity"));
}

#[test]
fn tuned_settings_are_the_published_ones_and_ranges_are_checked() {
    let facts = |noise: &str| Facts {
        kind: ItemKind::Images,
        classes: 10,
        samples: 1000,
        epochs: 300,
        batch: 64,
        noise: known_noise(noise),
        wrong_share: None,
    };
    use negscale_methods::host::Protocol;
    use negscale_methods::hosts::rolr::Settings;
    let tuned = Settings { protocol: Protocol::Tuned, ..Settings::default() };
    for (noise, lambda_p, penalty, recent) in [
        ("sym-incl:0.5", 1.0, 0.0, 1),
        ("sym-incl:0.8", 2.0, 0.0, 1),
        ("sym-incl:0.9", 2.0, 0.0, 5),
        ("asym-map:0.4", 1.0, 1.0, 1),
        ("pairflip:0.4", 1.0, 1.0, 1),
        ("ins:0.4:input=raw:matrix=per-class", 1.0, 0.0, 1),
    ] {
        let found = tuned.clone().checked(&facts(noise)).unwrap();
        assert_eq!(
            (found.lambda_p, found.confidence_penalty, found.recent_losses),
            (lambda_p, penalty, recent),
            "{noise}"
        );
    }
    let blind = Settings::default();
    assert_eq!(blind.clone().checked(&facts("sym-incl:0.9")).unwrap(), blind);
    for (text, name) in
        [("passes = 0", "passes"), ("exponent = 0.0", "exponent"), ("lambda_p = -1.0", "lambda_p")]
    {
        let error = (card("rolr").unwrap().build)(&table(text), &facts("none")).err().unwrap().to_string();
        assert!(error.contains(name), "{error}");
    }
}
