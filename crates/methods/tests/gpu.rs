//! What runs on graphics cards gives what the CPU gives. Built with one of their features; `.ci/gpu` runs it on a Vulkan that needs no card.
//! NEGSCALE_TEST_DEVICE names another device.
#![cfg(feature = "gpu")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod house;
#[path = "gpu/rounding.rs"]
mod rounding;

use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use house::{finish, picture_settings, pictures, quick, task};
use negscale::burn::Adapter;
use negscale::{BatchLabels, NegScale, Settings, Taxonomy};
use negscale_methods::hosts::METHODS;
use negscale_methods::trainer::{EpochEnd, TrainSettings, Trainer, check_device, open_device};
use negscale_nets::optim::{Optimiser, Sgd};
use negscale_nets::{CARDS, Input, NetSpec, Network, Pass};
use negscale_records::EpochRecord;

const NOISE: &str = "sym-exact:0.4";

fn name() -> String {
    std::env::var("NEGSCALE_TEST_DEVICE").unwrap_or_else(|_| "wgpu:cpu".into())
}

fn device() -> Device {
    open_device(&name()).unwrap()
}

/// Numbers that look drawn.
fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + i / 31) % 1009) as f32 / 504.0 - 1.0).collect()
}

/// Distance relative to the length of the second.
fn apart<T: Copy + Into<f64>>(a: &[T], b: &[T]) -> f64 {
    assert_eq!(a.len(), b.len());
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>().sqrt();
    let distance = square(&mut a.iter().zip(b).map(|(a, b)| (*a).into() - (*b).into()));
    distance / square(&mut b.iter().map(|x| (*x).into())).max(1e-30)
}

#[test]
fn the_device_passes_its_check_and_a_card_that_is_not_there_is_an_error() {
    let far = check_device(&name()).unwrap();
    assert!(far > 0.0 && far < 1e-5, "{far}: another device rounds otherwise, and only that");
    let absent = format!("{}:63", name().split(':').next().unwrap());
    let said = check_device(&absent).unwrap_err().to_string();
    assert!(said.contains(&absent) && said.contains("use cpu"), "{said}");
}

/// Logits of a small form of a network in training, and what one step of plain descent takes from its weights.
fn pass_and_step(name: &str, draw: usize, device: &Device) -> (Vec<f32>, Vec<f32>) {
    let device = device.clone().autodiff();
    let (input, shape) = match name {
        "mlp" | "mlp-bottleneck" => (Input::Features(20), vec![6, 20]),
        "inception-resnet-v2" => (Input::Image { channels: 3, height: 75, width: 75 }, vec![6, 3, 75, 75]),
        _ => (Input::Image { channels: 3, height: 32, width: 32 }, vec![6, 3, 32, 32]),
    };
    let net = Network::build(&NetSpec::new(name, input, 4).scaled(0.125), &device).unwrap();
    let weights = |net: &Network| -> Vec<f32> {
        net.read().unwrap().into_iter().flat_map(|(_, values)| values).collect()
    };
    let before = weights(&net);
    let values = numbers(shape.iter().product::<usize>() + draw).split_off(draw);
    let data = TensorData::new(values, shape.clone());
    let logits = match shape.len() {
        2 => net.forward(Tensor::<2>::from_data(data, &device), &Pass::train(3, 0)),
        _ => net.forward(Tensor::<4>::from_data(data, &device), &Pass::train(3, 0)),
    };
    let logits = logits.unwrap().logits;
    let labels = TensorData::new((0..6).map(|i| i % 4).collect::<Vec<i64>>(), [6, 1]);
    let loss = -log_softmax(logits.clone(), 1).gather(1, Tensor::<2, Int>::from_data(labels, &device)).mean();
    let rule = Sgd { lr: 1.0, momentum: 0.0, weight_decay: 0.0, ..Sgd::default() };
    let net = Optimiser::new(rule).unwrap().step(net, &mut loss.backward());
    let step = weights(&net).iter().zip(&before).map(|(a, b)| a - b).collect();
    (logits.into_data().try_to_vec().unwrap(), step)
}

#[test]
fn every_network_passes_forward_and_back_as_on_the_cpu() {
    let mut failures = Vec::new();
    for card in CARDS {
        let is_near = |draw: usize| {
            let (ours, our_step) = pass_and_step(card.id, draw, &device());
            let (theirs, their_step) = pass_and_step(card.id, draw, &Device::flex());
            let (pass, step) = (apart(&ours, &theirs), apart(&our_step, &their_step));
            println!("{}, pictures {draw}: logits {pass:.1e}, step {step:.1e}", card.id);
            pass < 1e-3 && step < 1e-3
        };
        // A rectifier whose input is 0 but for rounding lets its gradient through or not: a chance that other pictures do not repeat.
        if !is_near(0) && !(is_near(1) && is_near(2)) {
            failures.push(card.id);
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_network_of_convolutions_learns_as_on_the_cpu() {
    // 97 pictures, 6 steps an epoch without the last.
    let run = |device: &str| {
        let settings =
            TrainSettings { epochs: 9, device: device.into(), ..picture_settings("cross-entropy") };
        finish(&mut Trainer::new(pictures(), settings).unwrap())
    };
    let (ours, theirs) = (run(&name()), run("cpu"));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let (a, b) = (ours.losses["total"], theirs.losses["total"]);
        println!("epoch {}: {a} {b}", ours.epoch);
        assert!((a - b).abs() < 0.02 * b, "epoch {}: {a} instead of {b}", ours.epoch);
    }
    let (first, last) = (ours[0].losses["total"], ours[ours.len() - 1].losses["total"]);
    assert!(last < 0.8 * first, "{first} {last}");
}

#[test]
fn every_method_trains_alone_and_with_the_plug_in() {
    let mut failures = Vec::new();
    for card in METHODS {
        for plugin in ["none", "negscale"] {
            let run = |device: &str| {
                let settings = TrainSettings {
                    plugin: plugin.into(),
                    device: device.into(),
                    batch: 64,
                    ..quick(card.id, 1)
                };
                finish(&mut Trainer::new(task(128, NOISE), settings).unwrap()).remove(0)
            };
            let (ours, theirs) = (run(&name()), run("cpu"));
            let (a, b) = (ours.losses["total"], theirs.losses["total"]);
            println!("{} {plugin}: {a} {b}", card.id);
            if a.is_nan() || (a - b).abs() > 1e-3 * b.abs().max(0.1) {
                failures.push(format!("{} {plugin}: {a} instead of {b}", card.id));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn one_epoch(trainer: &mut Trainer) -> EpochRecord {
    match trainer.epoch(|_| {}).unwrap() {
        EpochEnd::Finished(record) => *record,
        EpochEnd::Stopped => panic!("nobody asked it to stop"),
    }
}

#[test]
fn a_run_goes_on_from_its_checkpoint() {
    let make = || {
        let settings = TrainSettings { device: name(), plugin: "negscale".into(), ..quick("rolr", 4) };
        Trainer::new(task(200, NOISE), settings).unwrap()
    };
    let whole = finish(&mut make());
    let mut first = make();
    let mut records: Vec<EpochRecord> = (0..2).map(|_| one_epoch(&mut first)).collect();
    let bytes = first.save("run").unwrap();
    let mut second = make();
    second.restore(&bytes, "run", "memory").unwrap();
    records.extend(finish(&mut second));
    assert_eq!(records.len(), whole.len());
    for (ours, theirs) in records.iter().zip(&whole) {
        let (a, b) = (ours.losses["total"], theirs.losses["total"]);
        assert!((a - b).abs() < 1e-4 * b.abs(), "epoch {}: {a} instead of {b}", ours.epoch);
    }
}

#[test]
fn the_plug_in_is_the_same_from_features_and_from_cosines() {
    let (batch, dim) = (48, 200);
    let device = device().autodiff();
    let taxonomy = Taxonomy::builtin("cifar10").unwrap();
    let labels: Vec<usize> = (0..batch).map(|i| i * 7 % 10).collect();
    let confidence = vec![0.8; batch];
    let both = [false, true].map(|from_cosines| {
        let data = TensorData::new(numbers(batch * dim), [batch, dim]);
        let features = Tensor::<2>::from_data(data, &device).require_grad();
        let mut adapter = Adapter::new(NegScale::new(&taxonomy, Settings::default()).unwrap());
        let labels = BatchLabels::new(&labels, &confidence);
        let loss = match from_cosines {
            true => adapter.loss_from_cosines(features.clone(), &labels).unwrap(),
            false => adapter.loss(features.clone(), &labels).unwrap(),
        };
        let gradient = features.grad(&loss.loss.backward()).unwrap();
        (loss.value, gradient.into_data().try_to_vec::<f32>().unwrap())
    });
    let [(value, gradient), (other, of_cosines)] = both;
    assert!(value > 0.0 && (value - other).abs() < 1e-5 * value, "{value} {other}");
    assert!(apart(&of_cosines, &gradient) < 1e-4, "{}", apart(&of_cosines, &gradient));
}
