//! Parts of SELC, DISC and DSOS: whole objectives against PyTorch, mixtures against SciPy (`golden/store.py`), and limiting cases.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::tensor::{Device, Tensor, TensorData};
use negscale_audit::gmm;
use negscale_methods::host::Objective;
use negscale_methods::kit::beta::BetaMixture;
use negscale_methods::kit::collision;
use negscale_methods::kit::mix::Mix;
use negscale_methods::kit::rows::places;
use negscale_methods::kit::threshold::{CorrectionRule, Set, Start, Thresholds};
use negscale_methods::kit::{loss, target};
use serde::Deserialize;
use std::f64::consts::LN_2;

#[derive(Deserialize)]
struct Golden {
    selc: Selc,
    selc_plus: SelcPlus,
    disc: Disc,
    mixtures: Vec<Mixture>,
    dsos: Dsos,
}

#[derive(Deserialize)]
struct Selc {
    rows: usize,
    classes: usize,
    alpha: f32,
    y: Vec<u32>,
    logits: Vec<Vec<f32>>,
    targets: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

#[derive(Deserialize)]
struct SelcPlus {
    rows: usize,
    width: usize,
    classes: usize,
    weight: f32,
    net: Vec<f32>,
    x: Vec<f32>,
    y: Vec<u32>,
    partner: Vec<u32>,
    value: f64,
    gradient: Vec<f64>,
}

#[derive(Deserialize)]
struct Disc {
    rows: usize,
    width: usize,
    classes: usize,
    q: f64,
    lambda_h: f64,
    margin: f32,
    cap: f32,
    keep: f32,
    weak: Vec<f32>,
    strong: Vec<f32>,
    y: Vec<u32>,
    seen_weak: Vec<f32>,
    seen_strong: Vec<f32>,
    threshold_weak: Vec<f32>,
    threshold_strong: Vec<f32>,
    sets: Vec<String>,
    labels: Vec<u32>,
    moved_weak: Vec<f64>,
    moved_strong: Vec<f64>,
    net: Vec<f32>,
    mixes: Vec<Mixed>,
    value: f64,
    gradient: Vec<f64>,
}

#[derive(Deserialize)]
struct Mixed {
    weight: f32,
    partner: Vec<u32>,
}

#[derive(Deserialize)]
struct Mixture {
    x: Vec<f64>,
    weights: [f64; 2],
    alphas: [f64; 2],
    betas: [f64; 2],
    at: Vec<f64>,
    first: Vec<f64>,
}

#[derive(Deserialize)]
struct Dsos {
    rows: usize,
    batch: usize,
    width: usize,
    classes: usize,
    a: f64,
    lambda_h: f64,
    weight: f32,
    p: Vec<f32>,
    y: Vec<u32>,
    entropies: Vec<f64>,
    known: Vec<f64>,
    unknown: Vec<f64>,
    targets: Vec<f64>,
    x: Vec<f32>,
    some: Vec<usize>,
    net: Vec<f32>,
    partner: Vec<u32>,
    value: f64,
    gradient: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/store.json")).unwrap()
}

fn tensor(values: &[f32], rows: usize, columns: usize) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [rows, columns]), &Device::flex().autodiff())
}

/// Numbers to the named part of the largest.
fn near(what: &str, found: impl IntoIterator<Item = f64>, wanted: &[f64], within: f64) {
    let found: Vec<f64> = found.into_iter().collect();
    assert_eq!(found.len(), wanted.len(), "{what}");
    let largest = wanted.iter().fold(0f64, |largest, x| largest.max(x.abs()));
    let away = found.iter().zip(wanted).map(|(ours, theirs)| (ours - theirs).abs() / largest);
    let worst = away.fold(0.0, f64::max);
    println!("{what}: {worst:.1e} of the largest");
    assert!(worst < within, "{what}: {worst}");
}

fn close<const D: usize>(what: &str, found: Tensor<D>, wanted: &[f64], within: f64) {
    let found: Vec<f32> = found.into_data().try_into_vec().unwrap();
    near(what, found.into_iter().map(f64::from), wanted, within);
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| f64::from(x)).collect()
}

#[test]
fn the_objective_of_selc_is_that_of_pytorch() {
    let g = golden().selc;
    let mut targets: Vec<f32> =
        loss::one_hot(&g.y, g.classes, &Device::flex()).into_data().try_into_vec().unwrap();
    for logits in &g.logits {
        let said = target::co_guess(&[tensor(logits, g.rows, g.classes)]);
        target::blend(&mut targets, &said.into_data().try_into_vec::<f32>().unwrap(), g.alpha);
    }
    near("targets", wide(&targets), &g.targets, 1e-6);
    let last = tensor(g.logits.last().unwrap(), g.rows, g.classes).require_grad();
    let value = loss::soft_cross_entropy(last.clone(), tensor(&targets, g.rows, g.classes));
    let gradients = value.backward();
    close("value", value, &[g.value], 1e-6);
    close("gradient", last.grad(&gradients).unwrap(), &g.gradient, 1e-5);
}

#[test]
fn two_weighed_cross_entropies_are_one_on_mixed_targets() {
    let g = golden().selc_plus;
    let net = tensor(&g.net, g.classes, g.width).require_grad();
    let mix = Mix { weight: g.weight, partner: g.partner };
    let wanted = mix.rows(loss::one_hot(&g.y, g.classes, &Device::flex()));
    let z = mix.rows(tensor(&g.x, g.rows, g.width)).matmul(net.clone().transpose());
    let value = loss::soft_cross_entropy(z, wanted);
    let gradients = value.backward();
    close("value", value, &[g.value], 1e-6);
    close("gradient", net.grad(&gradients).unwrap(), &g.gradient, 1e-5);
}

#[test]
fn sets_thresholds_and_objective_of_disc_are_those_of_pytorch() {
    let g = golden().disc;
    let samples: Vec<u32> = (0..g.rows as u32).collect();
    let mut thresholds = Thresholds::new(g.rows, 0.0);
    [thresholds.seen[0].threshold, thresholds.seen[1].threshold] = [g.threshold_weak, g.threshold_strong];
    let mean = thresholds.record(&samples, &g.y, [&g.seen_weak, &g.seen_strong]);
    assert_eq!(mean[0], (g.seen_weak[0] + g.seen_strong[0]) / 2.0);
    thresholds.judge(CorrectionRule { margin: g.margin, cap: g.cap });
    let name = |set: &Set| match set {
        Set::Clean => "clean",
        Set::Hard => "hard",
        Set::Corrected => "corrected",
        Set::Left => "left",
    };
    assert_eq!(thresholds.sets.iter().map(name).collect::<Vec<_>>(), g.sets);
    assert_eq!(Thresholds::restore(thresholds.save()).unwrap(), thresholds);
    // A label that both views trust is more likely right than not, one that neither does less.
    for (w, set) in thresholds.clean_probabilities().iter().zip(&thresholds.sets) {
        match set {
            Set::Clean => assert!(*w > 0.5),
            Set::Corrected | Set::Left => assert!(*w <= 0.5),
            Set::Hard => {}
        }
    }
    thresholds.advance(g.keep);
    near("weak thresholds", wide(&thresholds.seen[0].threshold), &g.moved_weak, 1e-6);
    near("strong thresholds", wide(&thresholds.seen[1].threshold), &g.moved_strong, 1e-6);

    let (chosen, labels): (Vec<usize>, Vec<u32>) = thresholds.choose(&samples, &g.y).into_iter().unzip();
    assert_eq!(labels, g.labels);
    let net = tensor(&g.net, g.classes, g.width).require_grad();
    let logits = |x: Tensor<2>| x.matmul(net.clone().transpose());
    let views = [&g.weak, &g.strong].map(|x| tensor(x, g.rows, g.width));
    let both = logits(Tensor::cat(views.to_vec(), 0));
    let [clean, hard] = thresholds.costs(&samples, &g.y, both, g.q);
    let mut value = clean + hard * g.lambda_h;
    let wanted = loss::one_hot(&labels, g.classes, &Device::flex());
    for (x, Mixed { weight, partner }) in views.into_iter().zip(g.mixes) {
        let mix = Mix { weight, partner };
        let among = x.select(0, places(&chosen, &Device::flex().autodiff()));
        value = value + loss::soft_cross_entropy(logits(mix.rows(among)), mix.rows(wanted.clone()));
    }
    let gradients = value.backward();
    close("value", value, &[g.value], 1e-6);
    close("gradient", net.grad(&gradients).unwrap(), &g.gradient, 1e-5);
}

#[test]
fn thresholds_of_nothing_trust_every_label_and_thresholds_of_one_none() {
    let p = [0.7f32, 0.2, 0.1, 0.1, 0.1, 0.8];
    for (start, wanted) in [(0.0, [Set::Clean, Set::Clean]), (1.0, [Set::Left, Set::Left])] {
        let mut thresholds = Thresholds::new(2, start);
        thresholds.record(&[0, 1], &[1, 2], [&p, &p]);
        thresholds.judge(CorrectionRule { margin: 0.5, cap: 0.99 });
        assert_eq!(thresholds.sets, wanted);
    }
    // Sure enough for any threshold: the cap.
    let mut thresholds = Thresholds::new(2, 1.0);
    thresholds.record(&[0, 1], &[1, 2], [&p, &p]);
    thresholds.judge(CorrectionRule { margin: 0.5, cap: 0.65 });
    assert_eq!(thresholds.choose(&[1, 0], &[2, 1]), [(0, 2), (1, 0)]);
    assert_eq!(thresholds.share(Set::Corrected), 1.0);
    // What is seen of a sample in the next epoch does not change the label that was found in the last.
    thresholds.record(&[0, 1], &[1, 2], [&[0.1, 0.1, 0.8, 0.7, 0.2, 0.1]; 2]);
    assert_eq!(thresholds.choose(&[1, 0], &[2, 1]), [(0, 2), (1, 0)]);
    thresholds.judge(CorrectionRule { margin: 0.5, cap: 0.65 });
    assert_eq!(thresholds.choose(&[1, 0], &[2, 1]), [(0, 0), (1, 2)]);
    assert_eq!([Start::Samples, Start::Classes].map(|start| start.threshold(50, 4)), [0.02, 0.25]);
}

#[test]
fn a_batch_that_teaches_nothing_has_no_gradient_for_anyone() {
    let parameter = tensor(&[1.0, 2.0], 1, 2).require_grad();
    let nothing = Objective::nothing(&Device::flex()).loss;
    assert_eq!(nothing.clone().into_data().try_into_vec::<f32>().unwrap(), [0.0]);
    assert!(parameter.grad(&nothing.backward()).is_none());
}

#[test]
fn mixtures_of_beta_distributions_are_those_of_scipy() {
    for (case, g) in golden().mixtures.into_iter().enumerate() {
        let found = BetaMixture::fit(&g.x).unwrap();
        near(&format!("weights {case}"), found.weights, &g.weights, 1e-7);
        near(&format!("alphas {case}"), found.alphas, &g.alphas, 1e-7);
        near(&format!("betas {case}"), found.betas, &g.betas, 1e-7);
        near(&format!("first {case}"), g.at.iter().map(|&x| found.posterior(x)[0]), &g.first, 1e-7);
        let mut turned = g.x.clone();
        turned.reverse();
        assert_eq!(BetaMixture::fit(&turned).unwrap(), found, "the order of samples matters");
    }
}

#[test]
fn mixtures_of_beta_distributions_survive_odd_values_and_refuse_wrong_ones() {
    for values in [vec![], vec![0.3], vec![0.3; 7], vec![1e-4, 1.0 - 1e-4], vec![0.5, 0.5, 0.5, 0.9]] {
        let found = BetaMixture::fit(&values).unwrap();
        for x in [1e-4, 0.3, 1.0 - 1e-4] {
            let sum: f64 = found.posterior(x).iter().sum();
            assert!((sum - 1.0).abs() < 1e-12, "{values:?}: {found:?}");
        }
        assert!(found.mean(0) <= found.mean(1));
    }
    for values in [vec![0.0], vec![0.2, 1.0], vec![f64::NAN]] {
        let message = BetaMixture::fit(&values).unwrap_err().to_string();
        assert!(message.contains("between 0 and 1"), "{message}");
    }
}

#[test]
fn groups_targets_and_objective_of_dsos_are_those_of_pytorch_and_scipy() {
    let g = golden().dsos;
    let rows = || g.p.chunks(g.classes).zip(&g.y);
    let entropies: Vec<f64> = rows().map(|(p, &y)| collision::entropy(p, y)).collect();
    near("entropies", entropies.clone(), &g.entropies, 1e-6);
    let sorted = collision::sort(&entropies, 0.1).unwrap();
    near("known", sorted.known.clone(), &g.known, 1e-4);
    near("unknown", sorted.unknown.clone(), &g.unknown, 1e-4);
    let mut targets = g.p.clone();
    for (i, row) in targets.chunks_mut(g.classes).enumerate() {
        let largest = (0..g.classes).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap() as u32;
        let label = if sorted.known[i] > 0.9 { largest } else { g.y[i] };
        collision::soften(label, 1.0 - sorted.unknown[i], g.a, row);
    }
    near("targets", wide(&targets), &g.targets, 1e-4);
    assert_eq!(targets.len(), g.rows * g.classes);

    // From the reference's targets on, which a float32 rounds.
    let targets: Vec<f32> = g.targets.iter().map(|&t| t as f32).collect();
    let some = places(&g.some, &Device::flex().autodiff());
    let wanted = tensor(&targets, g.rows, g.classes).select(0, some);
    let net = tensor(&g.net, g.classes, g.width).require_grad();
    let mix = Mix { weight: g.weight, partner: g.partner };
    let z = mix.rows(tensor(&g.x, g.batch, g.width)).matmul(net.clone().transpose());
    let value =
        loss::soft_cross_entropy(z.clone(), mix.rows(wanted)) - loss::negative_entropy(z) * g.lambda_h;
    let gradients = value.backward();
    close("value", value, &[g.value], 1e-6);
    close("gradient", net.grad(&gradients).unwrap(), &g.gradient, 1e-5);
}

#[test]
fn collision_entropy_has_its_known_values() {
    assert_eq!(collision::entropy(&[0.0, 1.0, 0.0], 1), 0.0);
    assert!((collision::entropy(&[1.0, 0.0, 0.0], 1) - LN_2).abs() < 1e-15);
    for classes in [2usize, 4, 10, 100] {
        let c = classes as f64;
        let found = collision::entropy(&vec![1.0 / classes as f32; classes], 0);
        let wanted = -((0.5 + 0.5 / c).powi(2) + (c - 1.0) / (4.0 * c * c)).ln();
        assert!((found - wanted).abs() < 1e-6, "{classes}: {found} is not {wanted}");
        assert!(found < 2.0 * LN_2);
    }
    assert_eq!([0.0, LN_2, 2.0 * LN_2].map(collision::clean_probability), [1.0, 0.5, 0.0]);
}

#[test]
fn collision_entropy_tells_wrong_labels_from_unknown_samples() {
    // Clean near 0, wrong labels just above log 2, unknown samples around 1.1.
    let spread = |i: usize| (i * 7 % 20) as f64 / 20.0;
    let of = |middle: f64, width: f64| (0..40).map(move |i| middle + width * spread(i));
    let entropies: Vec<f64> = of(0.01, 0.1).chain(of(LN_2, 0.06)).chain(of(1.05, 0.15)).collect();
    let sorted = collision::sort(&entropies, 0.0).unwrap();
    assert!((0..40).all(|i| sorted.known[i] == 0.0 && sorted.unknown[i] == 0.0), "clean ones are left alone");
    assert!((40..80).all(|i| sorted.known[i] > 0.9 && sorted.unknown[i] < 0.1), "{sorted:?}");
    assert!((80..120).all(|i| sorted.known[i] < 0.1 && sorted.unknown[i] > 0.9), "{sorted:?}");
    for entropies in [vec![], vec![0.1, 0.2], vec![LN_2; 3]] {
        assert!(collision::sort(&entropies, 0.0).unwrap().unknown.iter().all(|&p| p == 0.0));
    }
    assert_eq!(collision::sort(&[0.1, LN_2, LN_2], 0.0).unwrap().known, [0.0, 1.0, 1.0]);
}

#[test]
fn a_worthless_label_is_uniform_and_a_worthy_one_almost_certain() {
    let mut row = [0.0f32; 4];
    collision::soften(2, 0.0, 0.05, &mut row);
    assert_eq!(row, [0.25; 4]);
    collision::soften(2, 1.0, 0.05, &mut row);
    assert!(row[2] > 0.999_999 && (row.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{row:?}");
    collision::soften(2, 1.0, 1e-9, &mut row);
    assert_eq!(row, [0.0, 0.0, 1.0, 0.0], "an exponential too large for a number is no trouble");
}

#[test]
fn a_running_mean_of_a_short_run_forgets_as_much_as_that_of_a_long_one() {
    assert_eq!(target::paced(0.9, 0, 20), 0.9);
    assert!((target::paced(0.9, 200, 200) - 0.9).abs() < 1e-15);
    assert!((target::paced(0.9, 200, 20).powi(20) - 0.9f64.powi(200)).abs() < 1e-15);
    assert_eq!([target::paced(0.0, 200, 20), target::paced(1.0, 200, 20)], [0.0, 1.0]);
}

#[test]
fn losses_in_two_clumps_lie_further_apart_than_losses_in_one() {
    let clumps: Vec<f32> = (0..60).map(|i| (i % 2) as f32 * 3.0 + (i * 7 % 10) as f32 / 20.0).collect();
    let one: Vec<f32> = (0..60).map(|i| (i * 7 % 60) as f32).collect();
    let [apart, together, equal] = [clumps, one, vec![2.0; 9]].map(|losses| gmm::gap(&losses).unwrap());
    assert!(apart > 0.8 && together < 0.6 && equal == 0.0, "{apart}, {together}, {equal}");
}
