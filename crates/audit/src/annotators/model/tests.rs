//! One round against the printed formulas, and what is maximised from round to round.

use super::*;

/// Numbers from 0 to 1 by a counter.
fn draws(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Labels of which some are missing, right in two of three cases, and predictions that lean to the truth.
fn made_up(samples: usize, annotators: usize, classes: usize, seed: u64) -> (Labels, Vec<f32>) {
    let mut draw = draws(seed);
    let (mut rows, mut predictions) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        let truth = (draw() * classes as f64) as u32;
        for _ in 0..annotators {
            let label = if draw() < 0.66 { truth } else { (draw() * classes as f64) as u32 };
            rows.push((draw() < 0.8).then_some(label));
        }
        let row: Vec<f64> =
            (0..classes as u32).map(|y| draw() + if y == truth { 1.0 } else { 0.05 }).collect();
        predictions.extend(row.iter().map(|p| (p / row.iter().sum::<f64>()) as f32));
    }
    (Labels::from_rows(&rows, annotators, classes).unwrap(), predictions)
}

/// A round of the second stage by the formulas of the module's docs: posteriors, matrices (A x C x C) and prior after it.
fn printed_round(
    model: &Model,
    labels: &Labels,
    predictions: Option<&[f32]>,
) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let (samples, annotators, classes) = (labels.samples(), labels.annotators(), labels.classes());
    let theta = |a: usize, y: usize, l: u32| {
        let slot = labels.owners().iter().position(|&owner| owner == (a as u32, l)).unwrap();
        model.matrices.by_slot[slot * classes + y].exp()
    };
    let mut r = vec![0.0; samples * classes];
    for i in 0..samples {
        for y in 0..classes {
            let q = match predictions {
                Some(p) => f64::from(p[i * classes + y]).powf(model.exponent),
                None => model.prior[y].exp(),
            };
            r[i * classes + y] = labels.of_sample(i).fold(q, |product, (a, l)| product * theta(a, y, l));
        }
        let sum: f64 = r[i * classes..(i + 1) * classes].iter().sum();
        r[i * classes..(i + 1) * classes].iter_mut().for_each(|x| *x /= sum);
    }
    let mut matrices = vec![0.0; annotators * classes * classes];
    for a in 0..annotators {
        for y in 0..classes {
            let mut n = vec![0.0; classes];
            for i in 0..samples {
                labels
                    .of_sample(i)
                    .filter(|l| l.0 == a)
                    .for_each(|(_, l)| n[l as usize] += r[i * classes + y]);
            }
            let all: f64 = n.iter().sum();
            for l in 0..classes {
                let pooled = model.matrices.pooled[l * classes + y];
                matrices[(a * classes + y) * classes + l] =
                    (n[l] + model.strength * pooled) / (all + model.strength);
            }
        }
    }
    let labelled: Vec<usize> = (0..samples).filter(|&i| labels.of_sample(i).len() > 0).collect();
    let share = |y: usize| labelled.iter().map(|&i| r[i * classes + y]).sum::<f64>() + 1.0;
    let prior = (0..classes).map(|y| share(y) / (labelled.len() + classes) as f64).collect();
    (r, matrices, prior)
}

#[test]
fn a_round_is_that_of_the_printed_formulas() {
    let (labels, predictions) = made_up(60, 4, 3, 5);
    for predictions in [None, Some(&predictions[..])] {
        let settings = Settings { strength: Some(4.0), ..Settings::default() };
        let mut model = Model::start(&labels, predictions, settings);
        model.climb(Stage::Pooled);
        model.divide();
        for round in 0..3 {
            let (posteriors, matrices, prior) = printed_round(&model, &labels, predictions);
            let expected = model.expect(|_| false);
            for (ours, printed) in model.posteriors.iter().zip(&posteriors) {
                assert!((f64::from(*ours) - printed).abs() < 1e-6, "round {round}: {ours} and {printed}");
            }
            model.maximise(Stage::Single, expected.mass());
            for (slot, &(a, l)) in labels.owners().iter().enumerate() {
                for y in 0..3 {
                    let printed: f64 = matrices[(a as usize * 3 + y) * 3 + l as usize];
                    let ours = model.matrices.by_slot[slot * 3 + y].exp();
                    assert!((ours - printed).abs() < 1e-6, "round {round}: {ours} and {printed}");
                }
            }
            for (ours, printed) in model.prior.iter().zip(&prior) {
                assert!((ours.exp() - printed).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn what_is_maximised_never_falls() {
    for seed in 0..8 {
        let (labels, predictions) = made_up(300, 2 + seed as usize % 4, 2 + seed as usize % 3, seed);
        // Sharpened, so that the exponent has a way to go.
        let classes = labels.classes();
        let mut sharp: Vec<f32> = predictions.iter().map(|p| p.powi(6)).collect();
        for row in sharp.chunks_mut(classes) {
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|p| *p /= sum);
        }
        for predictions in [None, Some(&predictions[..]), Some(&sharp[..])] {
            let settings = Settings { tolerance: 0.0, rounds: 60, ..Settings::default() };
            let mut model = Model::start(&labels, predictions, settings);
            let pooled = model.climb(Stage::Pooled);
            model.divide();
            let single = model.climb(Stage::Single);
            for values in [pooled.values, single.values] {
                assert!(values.len() > 2);
                for two in values.windows(2) {
                    assert!(two[1] >= two[0] - 1e-6, "seed {seed}: from {} to {}", two[0], two[1]);
                }
            }
        }
    }
}

#[test]
fn derivatives_by_the_exponent_are_those_of_the_likelihood() {
    let (labels, predictions) = made_up(80, 3, 4, 9);
    let mut model = Model::start(&labels, Some(&predictions), Settings::default());
    let mut at = |exponent: f64| {
        model.exponent = exponent;
        let expected = model.expect(|_| false);
        (expected.likelihood, expected.slope, expected.variances)
    };
    let ((below, low, _), (_, slope, variances), (above, high, _)) = (at(1.299), at(1.3), at(1.301));
    assert!(((above - below) / 0.002 - slope).abs() < 1e-4 * slope.abs().max(1.0));
    let curvature = (low - high) / 0.002;
    assert!((curvature - (variances[0] - variances[1])).abs() < 1e-2 * curvature.abs().max(1.0));
}
