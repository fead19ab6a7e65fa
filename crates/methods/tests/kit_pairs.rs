//! Losses of Co-learning and of DMLP's purifier: against PyTorch (`golden/pairs.py`), literal sums and central differences; and
//! what purification does to labels.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::tensor::{Device, Tensor, TensorData};
use negscale_data::draw::{Draw, Purpose};
use negscale_methods::Error;
use negscale_methods::kit::contrast::nt_xent;
use negscale_methods::kit::loss::{one_hot, soft_cross_entropy};
use negscale_methods::kit::mix::Mix;
use negscale_methods::kit::purify::labels::{Block, Judged};
use negscale_methods::kit::purify::reader::ReaderLoss;
use negscale_methods::kit::purify::ridge::inverse_moment;
use negscale_methods::kit::purify::{Auto, Exchange, PurificationInput, Purified, Purify, purify};
use negscale_methods::kit::structure::structure;
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    structure: Structure,
    co_learning: CoLearning,
    labels: Labels,
    reader: Reader,
}

#[derive(Deserialize)]
struct Structure {
    rows: usize,
    size: usize,
    classes: usize,
    g: Vec<f32>,
    z: Vec<f32>,
    kernels: Vec<Kernel>,
}

#[derive(Deserialize)]
struct Kernel {
    freedom: f64,
    value: f64,
    gradient: Vec<f64>,
}

#[derive(Deserialize)]
struct CoLearning {
    rows: usize,
    width: usize,
    size: usize,
    classes: usize,
    temperature: f64,
    weight: f32,
    x: Vec<f32>,
    a: Vec<f32>,
    b: Vec<f32>,
    classifier: Vec<f32>,
    projection: Vec<f32>,
    y: Vec<u32>,
    partner: Vec<u32>,
    value: f64,
    classifier_gradient: Vec<f64>,
    projection_gradient: Vec<f64>,
}

#[derive(Deserialize)]
struct Labels {
    dim: usize,
    classes: usize,
    ridge: f64,
    x: Vec<f32>,
    v: Vec<f32>,
    y: Vec<f32>,
    truth: Vec<u32>,
    w: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

#[derive(Deserialize)]
struct Reader {
    classes: usize,
    scores: Vec<f64>,
    y: Vec<u32>,
    forms: Vec<Form>,
}

#[derive(Deserialize)]
struct Form {
    double: bool,
    confidence: f64,
    prior: f64,
    value: f64,
    gradient: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/pairs.json")).unwrap()
}

fn tensor(values: &[f32], rows: usize) -> Tensor<2> {
    let data = TensorData::new(values.to_vec(), [rows, values.len() / rows]);
    Tensor::from_data(data, &Device::flex().autodiff())
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

/// Ours against theirs, to the named part of the largest.
fn close<T: Copy + Into<f64>>(what: &str, found: &[T], wanted: &[f64], within: f64) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    let largest = wanted.iter().fold(0f64, |largest, x| largest.max(x.abs()));
    let away = found.iter().zip(wanted).map(|(&ours, theirs)| (ours.into() - theirs).abs() / largest);
    let worst = away.fold(0.0, f64::max);
    println!("{what}: {worst:.1e} of the largest");
    assert!(worst < within, "{what}: {worst}");
}

/// Derivatives of a loss by central differences.
fn differences(x: &[f64], loss: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let step = 1e-5;
    let slope = |at: usize| {
        let moved = |by: f64| {
            let mut x = x.to_vec();
            x[at] += by;
            loss(&x)
        };
        (moved(step) - moved(-step)) / (2.0 * step)
    };
    (0..x.len()).map(slope).collect()
}

/// The structure by its formula, in f64.
fn literal_structure(g: &[f64], z: &[f64], rows: usize, freedom: f64) -> f64 {
    let near = |x: &[f64], i: usize, j: usize| {
        let size = x.len() / rows;
        let d: f64 = (0..size).map(|k| (x[i * size + k] - x[j * size + k]).powi(2)).sum();
        if freedom > 0.0 { (1.0 + d * d / freedom).powf(-(freedom + 1.0) / 2.0) } else { (-d).exp() }
    };
    let pairs = (0..rows * rows).map(|at| (at / rows, at % rows));
    let sum: f64 = pairs.map(|(i, j)| near(g, i, j) * (near(z, i, j) + 1e-12).ln()).sum();
    -sum / (rows * rows) as f64
}

#[test]
fn structure_is_its_formula_and_that_of_pytorch_and_moves_the_logits_alone() {
    let golden = golden().structure;
    for kernel in golden.kernels {
        let g = tensor(&golden.g, golden.rows).require_grad();
        let z = tensor(&golden.z, golden.rows).require_grad();
        assert_eq!((g.dims()[1], z.dims()[1]), (golden.size, golden.classes));
        let value = structure(g.clone(), z.clone(), kernel.freedom);
        let gradients = value.backward();
        close("value", &numbers(value), &[kernel.value], 1e-6);
        close("gradient", &numbers(z.grad(&gradients).unwrap()), &kernel.gradient, 1e-5);
        assert!(g.grad(&gradients).is_none(), "projections are held fixed");
        let wide = |x: &[f32]| x.iter().map(|&x| x.into()).collect::<Vec<f64>>();
        let loss = |z: &[f64]| literal_structure(&wide(&golden.g), z, golden.rows, kernel.freedom);
        let z = wide(&golden.z);
        close("literal value", &[loss(&z)], &[kernel.value], 1e-9);
        close("central differences", &differences(&z, loss), &kernel.gradient, 1e-6);
    }
}

#[test]
fn samples_that_say_the_same_have_no_structure_to_learn_and_far_ones_no_infinite_cost() {
    let same = tensor(&[0.3f32, -1.0].repeat(4), 4).require_grad();
    let value = structure(tensor(&[1.0, 2.0, 3.0, 4.0], 4), same.clone(), 0.0);
    let gradients = value.backward();
    assert!(numbers(value)[0].abs() < 1e-6);
    assert!(numbers(same.grad(&gradients).unwrap()).iter().all(|g| g.abs() < 1e-6));
    for freedom in [0.0, 1.0] {
        let far = tensor(&[1e4, 0.0, 0.0, -1e4], 2).require_grad();
        let value = structure(tensor(&[0.0, 0.0], 2), far.clone(), freedom);
        let gradients = value.backward();
        assert!(numbers(value)[0].is_finite());
        assert!(numbers(far.grad(&gradients).unwrap()).iter().all(|g| g.is_finite()));
    }
}

#[test]
fn the_objective_of_co_learning_is_that_of_pytorch() {
    let g = golden().co_learning;
    let classifier = tensor(&g.classifier, g.classes).require_grad();
    let projection = tensor(&g.projection, g.size).require_grad();
    let of = |x: &[f32], net: &Tensor<2>| {
        let x = tensor(x, g.rows);
        assert_eq!(x.dims()[1], g.width);
        x.matmul(net.clone().transpose())
    };
    let mix = Mix { weight: g.weight, partner: g.partner.clone() };
    let z = mix.rows(tensor(&g.x, g.rows)).matmul(classifier.clone().transpose());
    let fit = soft_cross_entropy(z, mix.rows(one_hot(&g.y, g.classes, &Device::flex())));
    let value = fit + nt_xent(of(&g.a, &projection), of(&g.b, &projection), g.temperature);
    let gradients = value.backward();
    close("value", &numbers(value), &[g.value], 1e-6);
    close("classifier", &numbers(classifier.grad(&gradients).unwrap()), &g.classifier_gradient, 1e-5);
    close("projection", &numbers(projection.grad(&gradients).unwrap()), &g.projection_gradient, 1e-5);
}

#[test]
fn labels_of_a_block_have_pytorchs_gradient_through_the_closed_form() {
    let g = golden().labels;
    let block = Block::new(&g.x, g.dim, g.ridge).unwrap();
    close("classifier", &block.fit(&g.y, g.classes), &g.w, 1e-5);
    let judged = Judged { x: &g.v, labels: &g.truth };
    let (value, gradient) = block.cost(&g.y, judged, g.classes);
    close("value", &[value], &[g.value], 1e-5);
    close("gradient", &gradient, &g.gradient, 1e-5);
    // The value changes along the labels as the gradient says; steps are as large as f32 needs them.
    let step = 1e-2;
    let slope = |at: usize| {
        let moved = |by: f32| {
            let mut y = g.y.clone();
            y[at] += by;
            block.cost(&y, judged, g.classes).0
        };
        (moved(step) - moved(-step)) / f64::from(2.0 * step)
    };
    let slopes: Vec<f64> = (0..g.y.len()).map(slope).collect();
    close("central differences", &slopes, &g.gradient, 1e-3);
}

#[test]
fn the_reader_has_pytorchs_loss_and_gradient_in_both_forms() {
    let g = golden().reader;
    for form in g.forms {
        let terms =
            ReaderLoss { confidence: form.confidence, prior: form.prior, double_softmax: form.double };
        let (value, gradient) = terms.cost(&g.scores, &g.y, g.classes);
        close("value", &[value], &[form.value], 1e-10);
        close("gradient", &gradient, &form.gradient, 1e-10);
        let slopes = differences(&g.scores, |scores| terms.cost(scores, &g.y, g.classes).0);
        close("central differences", &slopes, &form.gradient, 1e-6);
    }
}

#[test]
fn the_inverse_of_a_moment_is_one_and_a_ridge_makes_an_empty_direction_harmless() {
    let mut draw = Draw::new(3, Purpose::Noise, 0, 0);
    let (rows, dim) = (40, 7);
    let x: Vec<f32> = (0..rows * dim).map(|_| draw.normal() as f32).collect();
    let inverse = inverse_moment(&x, dim, 0.0).unwrap();
    for i in 0..dim {
        for j in 0..dim {
            let moment =
                |k: usize| -> f64 { (0..rows).map(|r| f64::from(x[r * dim + i] * x[r * dim + k])).sum() };
            let product: f64 = (0..dim).map(|k| moment(k) * f64::from(inverse[k * dim + j])).sum();
            assert!((product - f64::from(u8::from(i == j))).abs() < 1e-5, "{i} {j}: {product}");
        }
    }
    let flat: Vec<f32> = x.chunks(dim).flat_map(|row| [row[0], row[0], 0.0]).collect();
    let message = inverse_moment(&flat, 3, 0.0).unwrap_err().to_string();
    assert!(message.contains("ridge"), "{message}");
    assert!(inverse_moment(&flat, 3, 1e-4).unwrap().iter().all(|a| a.is_finite()));
}

/// Three clouds on a circle, half of the labels drawn anew; of the first samples the truth is told.
struct Clouds {
    x: Vec<f32>,
    truth: Vec<u32>,
    given: Vec<u32>,
    told: Vec<(u32, u32)>,
}

fn clouds(samples: usize, told: usize) -> Clouds {
    let mut draw = Draw::new(8, Purpose::Noise, 1, 0);
    let mut clouds = Clouds { x: Vec::new(), truth: Vec::new(), given: Vec::new(), told: Vec::new() };
    for i in 0..samples {
        let truth = (i % 3) as u32;
        let angle = f64::from(truth) * 2.1;
        clouds.x.extend([angle.cos(), angle.sin()].map(|at| (2.0 * at + 0.4 * draw.normal()) as f32));
        clouds.truth.push(truth);
        clouds.given.push(if draw.chance(0.5) { draw.below(3) as u32 } else { truth });
        if i < told {
            clouds.told.push((i as u32, truth));
        }
    }
    clouds
}

impl Clouds {
    fn purify(&self, settings: &Purify) -> Purified {
        let views = [self.x.as_slice(); 2];
        let from = PurificationInput { views, dim: 2, given: &self.given, classes: 3, truths: &self.told };
        purify(from, settings, &mut Draw::new(1, Purpose::Method, 0, 0), || false).unwrap()
    }

    fn right(&self, labels: &[u32]) -> f64 {
        let right = labels.iter().zip(&self.truth).filter(|(a, b)| a == b).count();
        right as f64 / labels.len() as f64
    }
}

#[test]
fn purification_corrects_what_is_wrong_and_keeps_what_was_told() {
    let clouds = clouds(300, 30);
    assert!(clouds.right(&clouds.given) < 0.72);
    for settings in [
        Purify::default(),
        Purify { exchange: Exchange::Every(0), ..Purify::default() },
        Purify { block: 80, ..Purify::default() },
        Purify { double_softmax: true, prior_weight: 2200.0, ..Purify::default() },
    ] {
        let pure = clouds.purify(&settings);
        assert!(clouds.right(&pure.labels) > 0.97, "{settings:?}: {}", clouds.right(&pure.labels));
        for &(i, label) in &clouds.told {
            let mut certain = [0.0; 3];
            certain[label as usize] = 1.0;
            assert_eq!(pure.beliefs[i as usize * 3..][..3], certain);
        }
        for row in pure.beliefs.chunks(3) {
            assert!(
                (row.iter().sum::<f32>() - 1.0).abs() < 1e-5 && row.iter().all(|p| (0.0..=1.0).contains(p))
            );
        }
    }
}

#[test]
fn branches_exchange_by_default_where_classes_are_few() {
    let auto = Exchange::Auto(Auto::Auto);
    assert_eq!([10, 32, 33].map(|classes| auto.epochs(classes)), [20, 20, 0]);
    assert_eq!(Exchange::Every(7).epochs(100), 7);
    let text = toml::to_string(&Purify::default()).unwrap();
    assert!(text.contains("exchange = \"auto\""), "{text}");
    let read: Purify = toml::from_str("exchange = 5").unwrap();
    assert_eq!(read, Purify { exchange: Exchange::Every(5), ..Purify::default() });
}

#[test]
fn purification_is_the_same_on_any_number_of_threads_and_stops_when_asked() {
    let clouds = clouds(120, 12);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| clouds.purify(&Purify { purify_epochs: 10, ..Purify::default() }))
    };
    assert_eq!(run(1), run(2));
    let views = [clouds.x.as_slice(); 2];
    let from = PurificationInput { views, dim: 2, given: &clouds.given, classes: 3, truths: &clouds.told };
    let mut draw = Draw::new(1, Purpose::Method, 0, 0);
    assert!(matches!(purify(from, &Purify::default(), &mut draw, || true), Err(Error::Interrupted)));
    let without = PurificationInput { truths: &[], ..from };
    let message = purify(without, &Purify::default(), &mut draw, || false).unwrap_err().to_string();
    assert!(message.contains("true labels"), "{message}");
}
