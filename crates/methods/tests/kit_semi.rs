//! The objectives of UNICON, CrossSplit and CCL put together from the kit, against PyTorch (`golden/semi.py`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};
use negscale_methods::hosts::ccl::decoupling;
use negscale_methods::kit::contrast::{cross_info_nce, normalise_rows, nt_xent, positives_by_class};
use negscale_methods::kit::jsd::{class_ranges, label_jsd, label_jsds, soften};
use negscale_methods::kit::loss::{prior_penalty, soft_cross_entropy};
use negscale_methods::kit::mix::Mix;
use negscale_methods::kit::semi::Cost;
use negscale_methods::kit::target::{co_guess, refine, sharpen};
use negscale_nets::values;
use serde::Deserialize;
use std::f64::consts::LN_2;

#[derive(Deserialize)]
struct Golden {
    sizes: [usize; 6],
    unicon: Case,
    crosssplit: Case,
    ccl: Ccl,
}

#[derive(Deserialize)]
struct Numbers {
    a: Vec<f64>,
    w: Vec<f64>,
    p: Vec<f64>,
}

#[derive(Deserialize)]
struct Case {
    own: Numbers,
    peer: Numbers,
    x: [Vec<f64>; 4],
    u: [Vec<f64>; 4],
    y: Vec<u32>,
    plain: Vec<f64>,
    partner: Vec<u32>,
    weight: f32,
    lambda_u: f64,
    lambda_c: f64,
    contrast_temperature: f64,
    temperature: f64,
    gamma: Option<f64>,
    label_weights: Vec<f64>,
    targets: Vec<f64>,
    value: f64,
    gradients: Numbers,
}

#[derive(Deserialize)]
struct Ccl {
    own: Numbers,
    peer: Numbers,
    concepts: Vec<f64>,
    weak: Vec<f64>,
    strong: Vec<f64>,
    y: Vec<u32>,
    clean: Vec<f32>,
    lambda_p: f64,
    beta: [f64; 2],
    sure: usize,
    views: f64,
    models: f64,
    value: f64,
    gradients: Numbers,
    concept_gradient: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/semi.json")).unwrap()
}

/// Rows of so many columns.
fn tensor(values: &[f64], columns: usize) -> Tensor<2> {
    let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
    let shape = [values.len() / columns, columns];
    Tensor::from_data(TensorData::new(values, shape), &Device::flex().autodiff())
}

/// x -> A x = f -> W f, and the projection P f.
struct Net {
    a: Tensor<2>,
    w: Tensor<2>,
    p: Tensor<2>,
}

impl Net {
    fn new(numbers: &Numbers, [_, _, width, features, _, _]: [usize; 6]) -> Self {
        let [a, w, p] = [(&numbers.a, width), (&numbers.w, features), (&numbers.p, features)]
            .map(|(values, columns)| tensor(values, columns).require_grad());
        Self { a, w, p }
    }

    fn features(&self, x: &Tensor<2>) -> Tensor<2> {
        x.clone().matmul(self.a.clone().transpose())
    }

    fn logits(&self, x: &Tensor<2>) -> Tensor<2> {
        self.features(x).matmul(self.w.clone().transpose())
    }

    fn project(&self, x: &Tensor<2>) -> Tensor<2> {
        self.features(x).matmul(self.p.clone().transpose())
    }

    fn check(&self, gradients: &Gradients, wanted: &Numbers) {
        for (name, parameter, wanted) in
            [("A", &self.a, &wanted.a), ("W", &self.w, &wanted.w), ("P", &self.p, &wanted.p)]
        {
            close(name, parameter.grad(gradients).unwrap(), wanted, 3e-5);
        }
    }
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

fn same(what: &str, found: &[f32], wanted: &[f64]) {
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((f64::from(*found) - wanted).abs() < 2e-6, "{what}: {found} is not {wanted}");
    }
}

/// Targets by the method, then what both methods learn on strong views.
fn learn(
    g: Case,
    sizes: [usize; 6],
    method: impl Fn(&Case, [&Net; 2], &[Tensor<2>], &[Tensor<2>]) -> (Vec<f32>, Tensor<2>, Tensor<2>),
) {
    let width = sizes[2];
    let [own, peer] = [&g.own, &g.peer].map(|numbers| Net::new(numbers, sizes));
    let [x, u] = [&g.x, &g.u].map(|views| views.each_ref().map(|view| tensor(view, width)));
    let (weights, t_x, t_u) = method(&g, [&own, &peer], &x, &u);
    same("weights of labels", &weights, &g.label_weights);
    let mix = Mix { weight: g.weight, partner: g.partner.clone() };
    let inputs = mix.rows(Tensor::cat(vec![x[2].clone(), x[3].clone(), u[2].clone(), u[3].clone()], 0));
    let targets = mix.rows(Tensor::cat(vec![t_x.clone(), t_x, t_u.clone(), t_u], 0));
    close("targets", targets.clone(), &g.targets, 2e-6);
    let cost = Cost::new(own.logits(&inputs), targets, 2 * sizes[0]);
    let contrast = nt_xent(own.project(&u[2]), own.project(&u[3]), g.contrast_temperature);
    let value = cost.total(g.lambda_u, 1.0) + contrast * g.lambda_c;
    let gradients = value.backward();
    close("value", value, &[g.value], 2e-6);
    own.check(&gradients, &g.gradients);
    assert!(peer.a.grad(&gradients).is_none(), "a gradient came to the peer");
}

#[test]
fn the_objective_of_unicon_is_that_of_pytorch() {
    let g = golden();
    learn(g.unicon, g.sizes, |g, [own, peer], x, u| {
        let plain = tensor(&g.plain, 6);
        let p = values(co_guess(&[own.logits(&plain), peer.logits(&plain)])).unwrap();
        let d = label_jsds(&p, &g.y, 3).unwrap().into_iter().map(|d| d / LN_2);
        let w: Vec<f32> = d.map(|d| if d < 0.5 { 1.0 } else { (1.0 - d) as f32 }).collect();
        let said = co_guess(&[own.logits(&x[0]), own.logits(&x[1])]);
        let t_x = sharpen(refine(&w, &g.y, said), g.temperature);
        let guesses = [own, peer].map(|net| [&u[0], &u[1]].map(|u| net.logits(u))).concat();
        (w, t_x, sharpen(co_guess(&guesses), g.temperature))
    });
}

#[test]
fn the_objective_of_crosssplit_is_that_of_pytorch() {
    let g = golden();
    learn(g.crosssplit, g.sizes, |g, [own, peer], x, u| {
        let p = values(co_guess(&[peer.logits(&tensor(&g.plain, 6))])).unwrap();
        let ranges = class_ranges(&label_jsds(&p, &g.y, 3).unwrap(), &g.y, 3).unwrap();
        let q = co_guess(&[peer.logits(&x[0]), peer.logits(&x[1])]);
        let w = soften(&values(q.clone()).unwrap(), &g.y, &ranges, g.gamma.unwrap());
        let t_x = sharpen(refine(&w, &g.y, q), g.temperature);
        let t_u = sharpen(co_guess(&[own.logits(&u[0]), own.logits(&u[1])]), g.temperature);
        (w, t_x, t_u)
    });
}

#[test]
fn a_peer_that_fully_agrees_leaves_a_label_and_one_that_fully_disagrees_replaces_it() {
    let q = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    let range = [[0.0, label_jsd(0.0)]; 3];
    assert_eq!(soften(&q, &[0, 0], &range, 1.0), [1.0, 0.0]);
    same("half-way at first", &soften(&q, &[0, 0], &range, 0.6), &[0.8, 0.2]);
    assert_eq!(soften(&q, &[0, 0], &[[0.3; 2]; 3], 1.0), [1.0, 1.0], "no range: nothing against the label");
}

#[test]
fn the_objective_of_ccl_is_that_of_pytorch() {
    let Golden { sizes, ccl: g, .. } = golden();
    let [own, peer] = [&g.own, &g.peer].map(|numbers| Net::new(numbers, sizes));
    let [weak, strong] = [&g.weak, &g.strong].map(|x| tensor(x, sizes[2]));
    let concepts = tensor(&g.concepts, sizes[5]).require_grad();
    let q = co_guess(&[own.logits(&weak), peer.logits(&weak)]);
    let t = refine(&g.clean, &g.y, q.clone());
    let logits = own.logits(&strong);
    let base = soft_cross_entropy(logits.clone(), t.clone()) + prior_penalty(logits) * g.lambda_p;

    let largest = |x: Tensor<2>| values(x.max_dim(1)).unwrap();
    let trusted: Vec<bool> = g.clean.iter().map(|&w| w > 0.5).collect();
    let sure: Vec<i64> = (0..)
        .zip(trusted.iter().zip(largest(q)))
        .filter(|(_, (t, q))| **t && *q > 0.5)
        .map(|(i, _)| i)
        .collect();
    assert_eq!(sure.len(), g.sure);
    let believed: Vec<u32> = t.argmax(1).into_data().iter::<i64>().map(|c| c as u32).collect();
    let [g_w, g_s] = [&weak, &strong].map(|x| normalise_rows(own.project(x)));
    let rows = Tensor::<1, Int>::from_data(TensorData::new(sure.clone(), [sure.len()]), &g_w.device());
    let bank = normalise_rows(concepts.clone());
    let assign = |g: &Tensor<2>| g.clone().select(0, rows.clone()).matmul(bank.clone().transpose()) / 0.1;
    let views = decoupling(assign(&g_w), assign(&g_s));
    close("across views", views.clone(), &[g.views], 2e-6);
    let keys = normalise_rows(peer.project(&weak)).detach();
    let models = cross_info_nce(g_s, keys, &positives_by_class(&believed, &trusted), 0.3);
    close("across models", models.clone(), &[g.models], 2e-6);
    let value = base + views * g.beta[0] + models * g.beta[1];
    let gradients = value.backward();
    close("value", value, &[g.value], 2e-6);
    own.check(&gradients, &g.gradients);
    close("concepts", concepts.grad(&gradients).unwrap(), &g.concept_gradient, 3e-5);
    assert!(peer.a.grad(&gradients).is_none(), "a gradient came to the peer");
}
