//! Whole objectives put together from the kit, against PyTorch: values and gradients (`golden/losses.py`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::tensor::{Device, Tensor, TensorData};
use negscale_methods::kit::mix::Mix;
use negscale_methods::kit::semi::Cost;
use negscale_methods::kit::{loss, target};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    rolr: Rolr,
    dividemix: DivideMix,
    anne: Anne,
}

#[derive(Deserialize)]
struct Rolr {
    rows: usize,
    classes: usize,
    exponent: f64,
    lambda_p: f64,
    weak_a: Vec<f32>,
    weak_b: Vec<f32>,
    strong: Vec<f32>,
    y: Vec<u32>,
    w: Vec<f32>,
    target: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

#[derive(Deserialize)]
struct DivideMix {
    labelled: usize,
    unlabelled: usize,
    width: usize,
    classes: usize,
    temperature: f64,
    weight: f32,
    lambda_u: f64,
    epoch: f64,
    warm_up: f64,
    own: Vec<f32>,
    peer: Vec<f32>,
    x1: Vec<f32>,
    x2: Vec<f32>,
    u1: Vec<f32>,
    u2: Vec<f32>,
    y: Vec<u32>,
    w: Vec<f32>,
    partner: Vec<u32>,
    targets: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

#[derive(Deserialize)]
struct Anne {
    rows: usize,
    width: usize,
    classes: usize,
    all_rows: usize,
    size: usize,
    weight: f32,
    lambda_fc: f64,
    net: Vec<f32>,
    x: Vec<f32>,
    y: Vec<u32>,
    partner: Vec<u32>,
    projected: Vec<f32>,
    predicted: Vec<f32>,
    value: f64,
    net_gradient: Vec<f64>,
    predicted_gradient: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/losses.json")).unwrap()
}

fn tensor(values: &[f32], rows: usize, columns: usize) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [rows, columns]), &Device::flex().autodiff())
}

/// Ours in f32 against theirs in f64, to the named part of the largest.
fn close<const D: usize>(what: &str, found: Tensor<D>, wanted: &[f64], within: f64) {
    let found: Vec<f32> = found.into_data().try_into_vec().unwrap();
    assert_eq!(found.len(), wanted.len(), "{what}");
    let largest = wanted.iter().fold(0f64, |largest, x| largest.max(x.abs()));
    let away = found.iter().zip(wanted).map(|(&ours, theirs)| (f64::from(ours) - theirs).abs() / largest);
    let worst = away.fold(0.0, f64::max);
    println!("{what}: {worst:.1e} of the largest");
    assert!(worst < within, "{what}: {worst}");
}

#[test]
fn the_objective_of_rolr_is_that_of_pytorch() {
    let g = golden().rolr;
    let of = |values: &[f32]| tensor(values, g.rows, g.classes);
    let q = target::co_guess(&[of(&g.weak_a), of(&g.weak_b)]);
    let target = target::refine(&g.w, &g.y, target::sharpen(q, 1.0 / g.exponent));
    close("target", target.clone(), &g.target, 1e-6);
    let strong = of(&g.strong).require_grad();
    let value =
        loss::soft_cross_entropy(strong.clone(), target) + loss::prior_penalty(strong.clone()) * g.lambda_p;
    let gradients = value.backward();
    close("value", value, &[g.value], 1e-6);
    close("gradient", strong.grad(&gradients).unwrap(), &g.gradient, 1e-5);
}

#[test]
fn the_objective_of_dividemix_is_that_of_pytorch() {
    let g = golden().dividemix;
    let nets = [&g.own, &g.peer].map(|net| tensor(net, g.classes, g.width));
    let own = nets[0].clone().require_grad();
    let logits = |net: &Tensor<2>, x: &Tensor<2>| x.clone().matmul(net.clone().transpose());
    let [x1, x2] = [&g.x1, &g.x2].map(|x| tensor(x, g.labelled, g.width));
    let [u1, u2] = [&g.u1, &g.u2].map(|u| tensor(u, g.unlabelled, g.width));
    let guesses = [&nets[0], &nets[1]].map(|net| [&u1, &u2].map(|u| logits(net, u)));
    let q = target::sharpen(target::co_guess(&guesses.concat()), g.temperature);
    let said = target::co_guess(&[logits(&own, &x1), logits(&own, &x2)]);
    let r = target::sharpen(target::refine(&g.w, &g.y, said), g.temperature);
    let mix = Mix { weight: g.weight, partner: g.partner };
    let inputs = mix.rows(Tensor::cat(vec![x1, x2, u1, u2], 0));
    let targets = mix.rows(Tensor::cat(vec![r.clone(), r, q.clone(), q], 0));
    close("targets", targets.clone(), &g.targets, 1e-6);
    let z = logits(&own, &inputs);
    let cost = Cost::new(z, targets, 2 * g.labelled);
    let lambda_u = loss::ramp(g.epoch, g.warm_up, loss::RAMP_EPOCHS, g.lambda_u);
    let value = cost.total(lambda_u, 1.0);
    let gradients = value.backward();
    close("value", value, &[g.value], 1e-6);
    close("gradient", own.grad(&gradients).unwrap(), &g.gradient, 1e-5);
}

#[test]
fn the_objective_of_anne_is_that_of_pytorch() {
    let g = golden().anne;
    let net = tensor(&g.net, g.classes, g.width).require_grad();
    let x = tensor(&g.x, g.rows, g.width);
    let mix = Mix { weight: g.weight, partner: g.partner };
    let targets = mix.rows(loss::one_hot(&g.y, g.classes, &Device::flex()));
    let z = mix.rows(x).matmul(net.clone().transpose());
    let [projected, predicted] =
        [&g.projected, &g.predicted].map(|x| tensor(x, g.all_rows, g.size).require_grad());
    let consistency = loss::negative_cosine(predicted.clone(), projected.clone());
    let value = loss::soft_cross_entropy(z, targets) + consistency * g.lambda_fc;
    let gradients = value.backward();
    close("value", value, &[g.value], 1e-6);
    close("gradient of the network", net.grad(&gradients).unwrap(), &g.net_gradient, 1e-5);
    close("gradient of the predictions", predicted.grad(&gradients).unwrap(), &g.predicted_gradient, 1e-5);
    assert!(projected.grad(&gradients).is_none(), "a gradient came to the side that is held fixed");
}
