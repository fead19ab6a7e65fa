//! Methods that are a loss: against their definition in double precision (`golden/robust.py`) and written out here, limiting cases, and
//! what they do in training.
#![allow(clippy::unwrap_used, clippy::panic)]

mod house;

use burn::tensor::{Device, Tensor, TensorData};
use house::{finish, known_noise, settings, task, weights};
use negscale_data::draw::{Draw, Purpose};
use negscale_methods::host::{Facts, ItemKind, KnownNoise};
use negscale_methods::hosts::{card, elr, gce};
use negscale_methods::kit::target;
use negscale_methods::trainer::{EpochEnd, TrainSettings, Trainer};
use negscale_nets::optim::Sgd;
use negscale_nets::schedule::Shape;
use negscale_records::EpochRecord;
use serde::Deserialize;

const NOISE: &str = "sym-exact:0.4";

#[derive(Deserialize)]
struct Golden {
    gce: Gce,
    elr: Elr,
}

#[derive(Deserialize)]
struct Gce {
    classes: usize,
    q: f64,
    k: f64,
    y: Vec<u32>,
    kept: Vec<f32>,
    logits: Vec<f32>,
    value: f64,
    gradient: Vec<f64>,
}

#[derive(Deserialize)]
struct Elr {
    classes: usize,
    beta: f32,
    logits: Vec<Vec<f32>>,
    targets: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/robust.json")).unwrap()
}

fn tensor(values: &[f32], classes: usize) -> Tensor<2> {
    let shape = [values.len() / classes, classes];
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &Device::flex().autodiff())
}

fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    let values: Vec<f32> = tensor.into_data().try_into_vec().unwrap();
    values.into_iter().map(f64::from).collect()
}

/// Numbers to the named part of the largest.
fn near(what: &str, found: &[f64], wanted: &[f64], within: f64) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    let largest = wanted.iter().fold(1e-3f64, |largest, x| largest.max(x.abs()));
    for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() <= within * largest, "{what} {at}: {found} is not {wanted}");
    }
}

/// Value and gradient of a loss of logits.
fn descend(logits: &[f32], classes: usize, loss: impl Fn(Tensor<2>) -> Tensor<1>) -> (f64, Vec<f64>) {
    let z = tensor(logits, classes).require_grad();
    let value = loss(z.clone());
    let gradients = value.backward();
    (read(value)[0], read(z.grad(&gradients).unwrap()))
}

/// Value and gradient against an oracle in f64 and its central differences.
fn compare(what: &str, logits: &[f32], (value, gradient): (f64, Vec<f64>), oracle: impl Fn(&[f64]) -> f64) {
    let z: Vec<f64> = logits.iter().map(|&z| f64::from(z)).collect();
    near(what, &[value], &[oracle(&z)], 1e-6);
    let slope = |at: usize| {
        let moved = |step: f64| {
            let mut z = z.clone();
            z[at] += step;
            oracle(&z)
        };
        (moved(1e-5) - moved(-1e-5)) / 2e-5
    };
    near(what, &gradient, &(0..z.len()).map(slope).collect::<Vec<_>>(), 1e-5);
}

fn softmax(z: &[f64]) -> Vec<f64> {
    let sum: f64 = z.iter().map(|z| z.exp()).sum();
    z.iter().map(|z| z.exp() / sum).collect()
}

/// Logits, ordinary and far apart, of some rows over five classes, and their labels.
fn cases() -> Vec<(Vec<f32>, Vec<u32>)> {
    let mut draw = Draw::new(5, Purpose::Noise, 0, 0);
    let mut case = |spread: f64| {
        let logits = (0..35).map(|_| (spread * draw.normal()) as f32).collect();
        (logits, (0..7).map(|_| draw.below(5) as u32).collect())
    };
    [0.0, 1.0, 4.0, 20.0].map(&mut case).into()
}

fn table(text: &str) -> toml::Table {
    text.parse().unwrap()
}

/// Weights and records of a run with settings of its own, at the same steps for all methods.
fn run(host: &str, epochs: usize, text: &str) -> (Vec<u32>, Vec<EpochRecord>) {
    let (optimiser, schedule) = (Sgd { lr: 0.05, ..Sgd::default() }.into(), Shape::Constant.into());
    let host_settings = table(text);
    let settings = TrainSettings { epochs, optimiser, schedule, host_settings, ..settings(host) };
    let mut trainer = Trainer::new(task(400, NOISE), settings).unwrap();
    let records = finish(&mut trainer);
    (weights(&trainer), records)
}

fn away(a: &[u32], b: &[u32]) -> f32 {
    let away = a.iter().zip(b).map(|(&a, &b)| (f32::from_bits(a) - f32::from_bits(b)).abs());
    away.fold(0.0, f32::max)
}

fn refused(host: &str, text: &str, name: &str) {
    let (kind, noise) = (ItemKind::Features, KnownNoise::Nothing);
    let facts = Facts { kind, classes: 4, samples: 100, epochs: 10, batch: 16, noise, wrong_share: None };
    let error = (card(host).unwrap().build)(&table(text), &facts).err().unwrap().to_string();
    assert!(error.contains(name), "{error}");
}

#[test]
fn truncated_generalised_cross_entropy_is_its_definition() {
    let g = golden().gce;
    let found = descend(&g.logits, g.classes, |z| gce::truncated(z, &g.y, &g.kept, g.q, g.k));
    near("value", &[found.0], &[g.value], 1e-6);
    near("gradient", &found.1, &g.gradient, 1e-5);
    for (logits, y) in cases() {
        for (q, k) in [(0.7, 0.5), (0.2, 0.9), (1.0, 0.1)] {
            let kept = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0];
            let oracle = |z: &[f64]| {
                let cost = |p: f64| (1.0 - p.powf(q)) / q;
                let own =
                    |i: usize| if kept[i] == 1.0 { softmax(&z[i * 5..][..5])[y[i] as usize] } else { k };
                (0..7).map(|i| cost(own(i))).sum::<f64>() / 7.0
            };
            let found = descend(&logits, 5, |z| gce::truncated(z, &y, &kept, q, k));
            compare("truncated", &logits, found, oracle);
        }
    }
}

#[test]
fn gce_without_pruning_is_its_loss_alone_and_with_an_exponent_near_nothing_cross_entropy() {
    let (alone, _) = run("gce", 4, "truncate = false");
    assert_eq!(run("gce", 4, "prune_start = 4").0, alone, "pruning begins after the last epoch");
    assert_ne!(run("gce", 4, "prune_start = 2").0, alone);
    let (plain, _) = run("cross-entropy", 4, "");
    let small = run("gce", 4, "truncate = false\nq = 0.001").0;
    assert!(away(&small, &plain) < 5e-3 && away(&alone, &plain) > 0.05);
}

#[test]
fn gce_prunes_when_it_is_told_to_and_mostly_wrong_labels() {
    let (_, records) = run("gce", 12, "prune_start = 4\nprune_every = 3");
    let kept: Vec<Option<f64>> = records.iter().map(|record| record.more.get("kept").copied()).collect();
    assert!(kept[..4].iter().all(Option::is_none) && kept[4..].iter().all(Option::is_some), "{kept:?}");
    for (epoch, pair) in kept.windows(2).enumerate().skip(4) {
        assert!(pair[0] == pair[1] || (epoch + 1 - 4) % 3 == 0, "{epoch}: {kept:?}");
    }
    let last = records.last().unwrap();
    assert!((0.4..0.8).contains(&last.more["kept"]), "{kept:?}");
    assert!(last.selection_precision.unwrap() > 0.9, "{last:?}");
}

#[test]
fn gce_that_believes_no_label_yet_keeps_all() {
    let (_, records) = run("gce", 2, "prune_start = 0\nk = 0.9999");
    assert!(records.iter().all(|record| record.more["kept"] == 1.0));
}

#[test]
fn gce_refuses_what_is_out_of_range() {
    for (text, name) in [("q = 0.0", "`q`"), ("q = 1.5", "`q`"), ("k = 0.0", "`k`"), ("k = 1.0", "`k`")] {
        refused("gce", text, name);
    }
    refused("gce", "prune_start = 1.5", "prune_start");
}

#[test]
fn running_targets_and_regularisation_of_elr_are_their_definition() {
    let g = golden().elr;
    let mut targets = vec![0.0; g.logits[0].len()];
    for logits in &g.logits {
        let said: Vec<f32> = elr::observe(tensor(logits, g.classes)).into_data().try_into_vec().unwrap();
        target::blend(&mut targets, &said, g.beta);
    }
    near("targets", &read(tensor(&targets, g.classes)), &g.targets, 1e-6);
    let last = g.logits.last().unwrap();
    let found = descend(last, g.classes, |z| elr::regularisation(z, tensor(&targets, g.classes)));
    near("value", &[found.0], &[g.value], 1e-6);
    near("gradient", &found.1, &g.gradient, 1e-5);
    for (logits, _) in cases() {
        let t: Vec<f32> = softmax(&[0.3, -1.0, 2.0, 0.1, 0.0]).iter().map(|&t| 0.7 * t as f32).collect();
        let t = t.repeat(7);
        let oracle = |z: &[f64]| {
            let agreement = |i: usize| -> f64 {
                let p = softmax(&z[i * 5..][..5]);
                (0..5).map(|c| p[c].clamp(1e-4, 1.0 - 1e-4) * f64::from(t[i * 5 + c])).sum()
            };
            (0..7).map(|i| (1.0 - agreement(i)).ln()).sum::<f64>() / 7.0
        };
        let found = descend(&logits, 5, |z| elr::regularisation(z, tensor(&t, 5)));
        compare("regularisation", &logits, found, oracle);
    }
}

#[test]
fn running_targets_of_elr_have_no_gradient() {
    let z = tensor(&cases()[1].0, 5).require_grad();
    let said = elr::observe(z.clone());
    for row in read(said.clone()).chunks(5) {
        near("sum", &[row.iter().sum()], &[1.0], 1e-6);
    }
    let other = tensor(&cases()[2].0, 5).require_grad();
    let gradients = elr::regularisation(other.clone(), said).backward();
    assert!(z.grad(&gradients).is_none() && other.grad(&gradients).is_some());
}

#[test]
fn elr_without_regularisation_is_cross_entropy_bit_for_bit() {
    let (plain, _) = run("cross-entropy", 4, "");
    assert_eq!(run("elr", 4, "lambda = 0").0, plain);
    assert_ne!(run("elr", 4, "").0, plain);
}

#[test]
fn elr_believes_its_running_targets() {
    let host_settings = table("beta = 0.0");
    let settings = TrainSettings { epochs: 4, validation: 0.0, host_settings, ..settings("elr") };
    let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
    let untouched = |trainer: &Trainer| {
        let ledger = trainer.ledger().unwrap();
        (0..ledger.len()).filter(|&i| ledger.clean(i).is_none()).count()
    };
    assert_eq!(untouched(&trainer), 200, "nothing was seen yet");
    let first = trainer.epoch(|_| {}).unwrap();
    assert!(matches!(first, EpochEnd::Finished(_)));
    // What does not fill a batch of 32 is left out.
    assert_eq!(untouched(&trainer), 8);
    finish(&mut trainer);
    let ledger = trainer.ledger().unwrap();
    for i in 0..ledger.len() {
        let (row, given) = (ledger.target(i).unwrap(), ledger.given()[i] as usize);
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        if let Some(clean) = ledger.clean(i) {
            // Nothing stays of older targets, and no prediction is 0.
            assert!(row.iter().all(|&t| t > 0.9e-4));
            let most = row.iter().copied().fold(0.0, f32::max);
            assert_eq!(clean >= 0.5, row[given] == most, "held clean where the given label leads");
        }
    }
}

#[test]
fn elr_is_set_by_the_number_of_classes_and_refuses_what_is_out_of_range() {
    let with = |text: &str, classes: usize, noise: &str| {
        let (kind, noise) = (ItemKind::Features, known_noise(noise));
        let facts = Facts { kind, classes, samples: 100, epochs: 10, batch: 16, noise, wrong_share: None };
        elr::Settings::deserialize(table(text)).unwrap().settle(&facts).unwrap()
    };
    assert_eq!(with("", 10, "none"), (3.0, 0.7));
    assert_eq!(with("", 100, "none"), (7.0, 0.9));
    assert_eq!(with("lambda = 2", 100, "none"), (2.0, 0.9));
    assert_eq!(with("", 10, "asym:0.4"), (3.0, 0.7));
    assert_eq!(with("protocol = 'tuned'", 10, "asym:0.4"), (1.0, 0.9));
    assert_eq!(with("protocol = 'tuned'\nbeta = 0.5", 10, "asym:0.4"), (1.0, 0.5));
    for (text, name) in [("lambda = -1.0", "lambda"), ("beta = 1.0", "beta"), ("beta = 'soon'", "elr")] {
        refused("elr", text, name);
    }
}
