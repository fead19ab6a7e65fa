//! Losses and targets against their formulas written as plain loops in f64, and gradients against central differences.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::tensor::{Device, Tensor, TensorData};
use negscale_data::draw::{Draw, Purpose};
use negscale_methods::kit::{loss, target};

const ROWS: usize = 7;
const CLASSES: usize = 5;

fn tensor(values: &[f64], shape: [usize; 2]) -> Tensor<2> {
    let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
    Tensor::from_data(TensorData::new(values, shape), &Device::flex().autodiff())
}

fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    let values: Vec<f32> = tensor.into_data().try_into_vec().unwrap();
    values.into_iter().map(f64::from).collect()
}

/// Logits that an f32 holds exactly: ordinary, far apart, and at the ends (-80 or 80).
fn logits(seed: u64) -> Vec<[Vec<f64>; 2]> {
    let mut draw = Draw::new(seed, Purpose::Noise, 0, 0);
    let mut some = |make: &mut dyn FnMut(&mut Draw) -> f64| {
        [(); 2].map(|()| (0..ROWS * CLASSES).map(|_| f64::from(make(&mut draw) as f32)).collect::<Vec<_>>())
    };
    let mut cases = Vec::new();
    for spread in [0.0, 1.0, 5.0, 30.0] {
        cases.push(some(&mut |draw| spread * draw.normal()));
    }
    cases.push(some(&mut |draw| if draw.chance(0.5) { 80.0 } else { -80.0 }));
    // A class that no row believes in: its mean probability, exp(-160), is 0 in f32.
    cases.push(some(&mut |draw| draw.normal()).map(|mut values| {
        (0..ROWS).for_each(|i| (values[i * CLASSES + 2], values[i * CLASSES]) = (-80.0, 80.0));
        values
    }));
    cases
}

fn probabilities(seed: u64, rows: usize, classes: usize) -> Vec<f64> {
    let mut draw = Draw::new(seed, Purpose::Noise, 1, 0);
    let logits: Vec<f64> = (0..rows * classes).map(|_| 2.0 * draw.normal()).collect();
    softmax(&logits, classes).iter().map(|&p| f64::from(p as f32)).collect()
}

fn labels(seed: u64) -> Vec<u32> {
    let mut draw = Draw::new(seed, Purpose::Noise, 2, 0);
    (0..ROWS).map(|_| draw.below(CLASSES as u64) as u32).collect()
}

/// exp(z) / sum exp(z), literally: f64 has room for exp(80).
fn softmax(z: &[f64], classes: usize) -> Vec<f64> {
    let share = |row: &[f64]| {
        let sum: f64 = row.iter().map(|z| z.exp()).sum();
        row.iter().map(|z| z.exp() / sum).collect::<Vec<_>>()
    };
    z.chunks(classes).flat_map(share).collect()
}

/// `sum_c f(i, c)` of every row.
fn rows(f: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    (0..ROWS).map(|i| (0..CLASSES).map(|c| f(i, c)).sum()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Row values made into one number with weights that tell the rows apart.
fn weigh(rows: &[f64]) -> f64 {
    rows.iter().enumerate().map(|(i, x)| x * (1.0 + i as f64 / 3.0)).sum()
}

fn weigh_tensor(rows: Tensor<1>) -> Tensor<1> {
    assert_eq!(rows.dims(), [ROWS]);
    let weights: Vec<f32> = (0..ROWS).map(|i| (1.0 + i as f64 / 3.0) as f32).collect();
    let weights = Tensor::<1>::from_data(TensorData::new(weights, [ROWS]), &rows.device());
    (rows * weights).sum()
}

/// Value and gradients of a loss of two inputs against an oracle in f64 and its central differences.
///
/// Tolerances: an f32 step errs by 6e-8 of what it handles. A value is some ten such steps, so 1e-6 of itself; a gradient entry
/// may be the difference of parts larger than itself, so 1e-5 of the largest entry. (Seen: 1.1e-7 and 1e-6.) Differences with
/// step 1e-5 err by 1e-10 in f64.
fn compare(
    name: &str,
    [a, b]: [&[f64]; 2],
    shape: [usize; 2],
    flows: [bool; 2],
    loss: impl Fn(Tensor<2>, Tensor<2>) -> Tensor<1>,
    oracle: impl Fn(&[f64], &[f64]) -> f64,
) {
    let inputs = [tensor(a, shape).require_grad(), tensor(b, shape).require_grad()];
    let found = loss(inputs[0].clone(), inputs[1].clone());
    let gradients = found.backward();
    let (found, wanted) = (read(found)[0], oracle(a, b));
    assert!((found - wanted).abs() <= 1e-6 * (1.0 + wanted.abs()), "{name}: {found} is not {wanted}");
    for side in 0..2 {
        let found = inputs[side].grad(&gradients).map(read).unwrap_or(vec![0.0; a.len()]);
        let wanted: Vec<f64> = (0..a.len())
            .map(|at| {
                let moved = |step: f64| {
                    let mut moved = [a.to_vec(), b.to_vec()];
                    moved[side][at] += step;
                    oracle(&moved[0], &moved[1])
                };
                if flows[side] { (moved(1e-5) - moved(-1e-5)) / 2e-5 } else { 0.0 }
            })
            .collect();
        let largest = wanted.iter().fold(1e-3f64, |largest, g| largest.max(g.abs()));
        for (at, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            let away = (found - wanted).abs() / largest;
            assert!(away <= 1e-5, "{name}: gradient {at} of input {side} is {found}, not {wanted}");
        }
    }
}

const SHAPE: [usize; 2] = [ROWS, CLASSES];

/// A loss of logits alone.
fn compare_logits(name: &str, loss: impl Fn(Tensor<2>) -> Tensor<1>, oracle: impl Fn(&[f64]) -> f64) {
    for [z, other] in logits(1) {
        compare(name, [&z, &other], SHAPE, [true, false], |z, _| loss(z), |z, _| oracle(z));
    }
}

#[test]
fn cross_entropy_is_its_formula() {
    let y = labels(3);
    let oracle = |z: &[f64]| -> Vec<f64> {
        let p = softmax(z, CLASSES);
        (0..ROWS).map(|i| -p[i * CLASSES + y[i] as usize].ln()).collect()
    };
    compare_logits("cross-entropy", |z| loss::cross_entropy(z, &y), |z| mean(&oracle(z)));
    let by_row = |z| weigh_tensor(loss::cross_entropy_rows(z, &y));
    compare_logits("cross-entropy by row", by_row, |z| weigh(&oracle(z)));
}

#[test]
fn generalised_cross_entropy_is_its_formula_between_cross_entropy_and_absolute_error() {
    let y = labels(4);
    let own = |z: &[f64]| -> Vec<f64> {
        let p = softmax(z, CLASSES);
        (0..ROWS).map(|i| p[i * CLASSES + y[i] as usize]).collect()
    };
    for q in [0.3, 0.7, 1.0] {
        let oracle = |z: &[f64]| -> Vec<f64> { own(z).iter().map(|p| (1.0 - p.powf(q)) / q).collect() };
        let found = |z| loss::generalised_cross_entropy(z, &y, q);
        compare_logits("generalised", found, |z| mean(&oracle(z)));
        let by_row = |z| weigh_tensor(loss::generalised_cross_entropy_rows(z, &y, q));
        compare_logits("generalised by row", by_row, |z| weigh(&oracle(z)));
    }
    let [z, _] = &logits(1)[1];
    let rows = |q| read(loss::generalised_cross_entropy_rows(tensor(z, SHAPE), &y, q));
    for ((almost, p), error) in rows(1e-3).iter().zip(own(z)).zip(rows(1.0)) {
        assert!((almost + p.ln()).abs() < 5e-3 * (1.0 + p.ln().powi(2)), "{almost} is not near {}", -p.ln());
        assert!((error - (1.0 - p)).abs() < 1e-6);
    }
}

#[test]
fn soft_cross_entropy_is_its_formula_and_hard_targets_make_it_the_hard_one() {
    let t = probabilities(5, ROWS, CLASSES);
    let oracle = |z: &[f64]| {
        let p = softmax(z, CLASSES);
        rows(|i, c| -t[i * CLASSES + c] * p[i * CLASSES + c].ln())
    };
    let targets = || tensor(&t, SHAPE);
    compare_logits("soft", |z| loss::soft_cross_entropy(z, targets()), |z| mean(&oracle(z)));
    let by_row = |z| weigh_tensor(loss::soft_cross_entropy_rows(z, targets()));
    compare_logits("soft by row", by_row, |z| weigh(&oracle(z)));
    for [z, _] in logits(2) {
        let (y, z) = (labels(4), tensor(&z, SHAPE));
        let hard = loss::one_hot(&y, CLASSES, &z.device());
        let soft = read(loss::soft_cross_entropy_rows(z.clone(), hard));
        assert_eq!(soft, read(loss::cross_entropy_rows(z, &y)));
    }
}

#[test]
fn squared_error_is_its_formula() {
    let t = probabilities(6, ROWS, CLASSES);
    let oracle = |z: &[f64]| {
        let p = softmax(z, CLASSES);
        mean(&rows(|i, c| (p[i * CLASSES + c] - t[i * CLASSES + c]).powi(2))) / CLASSES as f64
    };
    compare_logits("squared error", |z| loss::squared_error(z, tensor(&t, SHAPE)), oracle);
}

#[test]
fn the_prior_penalty_is_its_formula_even_for_a_class_that_no_row_believes_in() {
    let oracle = |z: &[f64]| {
        let p = softmax(z, CLASSES);
        let u = 1.0 / CLASSES as f64;
        let mean = |c: usize| (0..ROWS).map(|i| p[i * CLASSES + c]).sum::<f64>() / ROWS as f64;
        (0..CLASSES).map(|c| u * (u / mean(c)).ln()).sum()
    };
    compare_logits("prior", loss::prior_penalty, oracle);
    // Beyond what even f64 holds as a probability.
    let mut z = vec![0.0; ROWS * CLASSES];
    (0..ROWS).for_each(|i| z[i * CLASSES] = -1e6);
    let z = tensor(&z, SHAPE).require_grad();
    let value = loss::prior_penalty(z.clone());
    let gradient = read(z.grad(&value.backward()).unwrap());
    assert!((read(value)[0] - 2e5).abs() < 1.0);
    assert!(gradient.iter().all(|g| g.is_finite()) && gradient[0] < -0.01, "{gradient:?}");
}

#[test]
fn the_entropy_of_the_mean_is_its_formula_even_for_a_class_that_no_row_believes_in() {
    let oracle = |z: &[f64]| {
        let p = softmax(z, CLASSES);
        let part = |c: usize| (0..ROWS).map(|i| p[i * CLASSES + c]).sum::<f64>() / ROWS as f64;
        (0..CLASSES).map(|c| part(c) * part(c).ln()).sum()
    };
    compare_logits("entropy of the mean", loss::negative_entropy_of_mean, oracle);
}

#[test]
fn the_prior_penalty_is_nothing_where_classes_are_used_evenly() {
    let mut z = vec![0.0; CLASSES * CLASSES];
    (0..CLASSES).for_each(|i| z[i * CLASSES + i] = 3.0);
    let value = read(loss::prior_penalty(tensor(&z, [CLASSES, CLASSES])))[0];
    assert!(value.abs() < 1e-6, "{value}");
}

#[test]
fn negative_entropy_is_its_formula() {
    let oracle = |z: &[f64]| {
        let p = softmax(z, CLASSES);
        mean(&rows(|i, c| p[i * CLASSES + c] * p[i * CLASSES + c].ln()))
    };
    compare_logits("negative entropy", loss::negative_entropy, oracle);
}

#[test]
fn symmetric_divergence_is_its_formula_with_gradients_to_both_sides() {
    let oracle = |a: &[f64], b: &[f64]| {
        let (a, b) = (softmax(a, CLASSES), softmax(b, CLASSES));
        let kl = |p: &[f64], q: &[f64], at: usize| p[at] * (p[at] / q[at]).ln();
        weigh(&rows(|i, c| kl(&a, &b, i * CLASSES + c) + kl(&b, &a, i * CLASSES + c)))
    };
    for [a, b] in logits(8) {
        let loss = |a, b| weigh_tensor(loss::symmetric_kl_rows(a, b));
        compare("symmetric divergence", [&a, &b], SHAPE, [true, true], loss, oracle);
    }
    let same = tensor(&logits(8)[2][0], SHAPE);
    assert_eq!(read(loss::symmetric_kl_rows(same.clone(), same)), [0.0; ROWS]);
}

#[test]
fn the_joint_loss_is_its_formula_with_gradients_to_both_sides() {
    let y = labels(4);
    for lambda in [0.0, 0.3, 0.9] {
        let oracle = |a: &[f64], b: &[f64]| {
            let (a, b) = (softmax(a, CLASSES), softmax(b, CLASSES));
            let cell = |i: usize, c: usize| {
                let (p, q) = (a[i * CLASSES + c], b[i * CLASSES + c]);
                let fit = if y[i] as usize == c { -p.ln() - q.ln() } else { 0.0 };
                (1.0 - lambda) * fit + lambda * (p * (p / q).ln() + q * (q / p).ln())
            };
            weigh(&rows(cell))
        };
        for [a, b] in logits(10) {
            let loss = |a, b| weigh_tensor(loss::joint_rows(a, b, &y, lambda));
            compare("joint loss", [&a, &b], SHAPE, [true, true], loss, oracle);
        }
    }
    let [a, b] = [0, 1].map(|side| tensor(&logits(10)[2][side], SHAPE));
    let fits = [&a, &b].map(|z| read(loss::cross_entropy_rows(z.clone(), &y)));
    for (i, sum) in read(loss::joint_rows(a, b, &y, 0.0)).into_iter().enumerate() {
        assert!(
            (sum - fits[0][i] - fits[1][i]).abs() < 1e-5,
            "without agreement it is the summed cross-entropy"
        );
    }
}

#[test]
fn negative_cosine_is_its_formula_and_holds_the_second_side_fixed() {
    let oracle = |a: &[f64], b: &[f64]| {
        let dot = |x: &[f64], y: &[f64], i: usize| -> f64 {
            (0..CLASSES).map(|c| x[i * CLASSES + c] * y[i * CLASSES + c]).sum()
        };
        let cosine = |i| dot(a, b, i) / (dot(a, a, i) * dot(b, b, i)).sqrt();
        -mean(&(0..ROWS).map(cosine).collect::<Vec<_>>())
    };
    // The first case is all zeros, where no cosine is defined.
    for [a, b] in logits(9).into_iter().skip(1) {
        compare("cosine", [&a, &b], SHAPE, [true, false], loss::negative_cosine, oracle);
    }
}

#[test]
fn a_ramp_rises_from_nothing_to_its_value() {
    for (t, wanted) in [(0.0, 0.0), (10.0, 0.0), (14.0, 6.25), (18.5, 13.28125), (26.0, 25.0), (300.0, 25.0)]
    {
        assert_eq!(loss::ramp(t, 10.0, loss::RAMP_EPOCHS, 25.0), wanted);
    }
    assert_eq!([9.9, 10.0].map(|t| loss::ramp(t, 10.0, 0.0, 2.0)), [0.0, 2.0]);
}

#[test]
#[should_panic(expected = "label 5 of 5 classes")]
fn a_label_outside_the_classes_is_not_read_from_another_row() {
    loss::cross_entropy(tensor(&[0.0; ROWS * CLASSES], SHAPE), &[0, 1, 2, 5, 0, 0, 0]);
}

fn close(found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() < 1e-6, "{found} is not {wanted}");
    }
}

#[test]
fn sharpening_follows_its_formula_and_sums_to_one() {
    let q = probabilities(10, ROWS, CLASSES);
    for temperature in [0.01, 0.1, 0.5, 0.9, 1.0, 2.0, 10.0] {
        let found = read(target::sharpen(tensor(&q, SHAPE), temperature));
        let raised: Vec<f64> = q.iter().map(|q| q.powf(1.0 / temperature)).collect();
        let share = |row: &[f64]| row.iter().map(|x| x / row.iter().sum::<f64>()).collect::<Vec<_>>();
        let wanted: Vec<f64> = raised.chunks(CLASSES).flat_map(share).collect();
        // An f32 power errs by its exponent times its logarithm.
        found.iter().zip(&wanted).for_each(|(f, w)| assert!((f - w).abs() < 2e-5, "{temperature}: {f} {w}"));
        found.chunks(CLASSES).for_each(|row| close(&[row.iter().sum()], &[1.0]));
    }
    assert_eq!(read(target::sharpen(tensor(&q, SHAPE), 1.0)), q, "temperature 1 changes no bit");
    let certain = [1.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(read(target::sharpen(tensor(&certain, [1, CLASSES]), 0.5)), certain);
    // 0.2 to the power of 100 is 0 in f32.
    close(&read(target::sharpen(tensor(&[0.2; CLASSES], [1, CLASSES]), 0.01)), &[0.2; CLASSES]);
}

#[test]
fn refining_goes_from_the_guess_to_the_given_label() {
    let (q, y) = (probabilities(11, ROWS, CLASSES), labels(12));
    let refine = |w: f32| read(target::refine(&[w; ROWS], &y, tensor(&q, SHAPE)));
    assert_eq!(refine(1.0), read(loss::one_hot(&y, CLASSES, &Device::flex())));
    assert_eq!(refine(0.0), q);
    let weights: Vec<f32> = (0..ROWS).map(|i| i as f32 / 7.0).collect();
    let wanted: Vec<f64> = (0..ROWS * CLASSES)
        .map(|at| {
            let (i, c, w) = (at / CLASSES, at % CLASSES, f64::from(weights[at / CLASSES]));
            w * f64::from(u8::from(y[i] as usize == c)) + (1.0 - w) * q[at]
        })
        .collect();
    close(&read(target::refine(&weights, &y, tensor(&q, SHAPE))), &wanted);
}

#[test]
fn guesses_are_means_and_carry_no_gradient() {
    let cases = logits(13);
    let all: Vec<&Vec<f64>> = cases.iter().flatten().take(5).collect();
    let tracked: Vec<Tensor<2>> = all.iter().map(|z| tensor(z, SHAPE).require_grad()).collect();
    let wanted: Vec<f64> = (0..ROWS * CLASSES)
        .map(|at| all.iter().map(|z| softmax(z, CLASSES)[at]).sum::<f64>() / all.len() as f64)
        .collect();
    let guess = target::co_guess(&tracked);
    close(&read(guess.clone()), &wanted);
    let alone = target::average(&tracked[..1]);
    assert_eq!(read(alone), read(tracked[0].clone()));
    // A constant may meet logits with a record; only those get a gradient.
    let z = tracked[2].clone();
    let gradients =
        loss::soft_cross_entropy(z.clone(), target::refine(&[0.5; ROWS], &labels(1), guess)).backward();
    assert!(z.grad(&gradients).is_some());
    assert!(tracked[0].grad(&gradients).is_none(), "a gradient came through the target");
}

#[test]
fn only_confident_predictions_change_a_label() {
    let p = [0.1, 0.7, 0.2, 0.4, 0.4, 0.2, 0.9, 0.05, 0.05, f32::NAN, f32::NAN, f32::NAN];
    assert_eq!(target::relabel(&[0, 2, 2, 1], &p, 0.7), [0, 2, 0, 1], "not above the threshold");
    assert_eq!(target::relabel(&[0, 2, 2, 1], &p, 0.3), [1, 0, 0, 1], "the first of equals");
    assert!(target::relabel(&[], &[], 0.5).is_empty());
}

#[test]
fn a_running_mean_leaves_a_power_of_what_is_kept() {
    let mut t = vec![1.0, 0.0];
    for _ in 0..3 {
        target::blend(&mut t, &[0.0, 1.0], 0.5);
    }
    assert_eq!(t, [0.125, 0.875]);
}
