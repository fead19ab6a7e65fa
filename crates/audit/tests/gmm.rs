//! The mixture of two Gaussians against golden numbers, scikit-learn and its own symmetries.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_audit::gmm::{CleanSide, GmmSettings, clean_probabilities, fit, fit_from, scale};
use proptest::prelude::*;

fn close(found: f64, wanted: f64, within: f64) {
    assert!((found - wanted).abs() <= within, "{found} is not {wanted} within {within}");
}

#[test]
fn twenty_squares_give_the_golden_mixture() {
    let values: Vec<f64> = (0..20).map(|i| f64::from(i * i) / 361.0).collect();
    let settings = GmmSettings::default();
    let mixture = fit(&values, &settings).unwrap();
    assert_eq!(mixture.iterations, 2);
    assert!(mixture.converged);
    for (found, wanted, within) in [
        (mixture.weights, [0.625434, 0.374566], 5e-7),
        (mixture.means, [0.13204017, 0.69286282], 5e-9),
        (mixture.variances, [0.01685316, 0.04036265], 5e-9),
    ] {
        (0..2).for_each(|k| close(found[k], wanted[k], within));
    }
    let clean = clean_probabilities(&values, &settings).unwrap();
    for (at, wanted) in [(0, 0.998306), (10, 0.921877), (11, 0.787501), (12, 0.476825), (13, 0.144730)] {
        close(clean[at], wanted, 5e-7);
    }
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    values: Vec<f64>,
    first: Vec<u8>,
    max_iter: usize,
    tol: f64,
    reg: f64,
    iterations: usize,
    weights: [f64; 2],
    means: [f64; 2],
    variances: [f64; 2],
    bound: f64,
    posteriors: Vec<f64>,
}

#[test]
fn random_mixtures_are_fitted_as_scikit_learn_fits_them_from_the_same_start() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/gmm.json")).unwrap();
    assert_eq!(cases.len(), 24);
    for case in cases {
        println!("{}", case.name);
        let settings =
            GmmSettings { max_iter: case.max_iter, tol: case.tol, reg: case.reg, ..Default::default() };
        // Once with our own start, once with the start as the other side found it.
        let own = fit(&case.values, &settings).unwrap();
        let told = fit_from(&case.values, |at| case.first[at] == 1, &settings).unwrap();
        for mixture in [own, told] {
            assert_eq!(mixture.iterations, case.iterations);
            close(mixture.bound, case.bound, 1e-9);
            for k in 0..2 {
                close(mixture.weights[k], case.weights[k], 1e-9);
                close(mixture.means[k], case.means[k], 1e-9);
                close(mixture.variances[k], case.variances[k], 1e-9);
            }
            for (&x, &wanted) in case.values.iter().zip(&case.posteriors) {
                close(mixture.posterior(x)[0], wanted, 1e-9);
            }
        }
    }
}

#[test]
fn equal_losses_say_nothing() {
    for losses in [vec![2.5; 7], vec![0.0; 2], vec![-1e300; 3], vec![3.0], vec![0.0, -0.0]] {
        let clean = clean_probabilities(&losses, &GmmSettings::default()).unwrap();
        assert_eq!(clean, vec![0.5; losses.len()]);
    }
}

#[test]
fn two_samples_are_told_apart() {
    let clean = clean_probabilities(&[9.0, 1.0], &GmmSettings::default()).unwrap();
    assert!(clean[0] < 1e-9 && clean[1] > 1.0 - 1e-9, "{clean:?}");
}

#[test]
fn what_is_no_loss_is_named() {
    for (losses, told) in [
        (vec![1.0, f64::NAN, 2.0], "sample 1 has NaN"),
        (vec![1.0, 2.0, f64::INFINITY], "sample 2 has inf"),
        (vec![f64::NEG_INFINITY], "sample 0 has -inf"),
        (vec![], "no samples"),
    ] {
        for error in [
            clean_probabilities(&losses, &GmmSettings::default()).unwrap_err(),
            fit(&losses, &GmmSettings::default()).unwrap_err(),
            scale(&losses).unwrap_err(),
        ] {
            assert!(error.to_string().contains(told), "{error}");
        }
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let good = GmmSettings::default();
    for (bad, told) in [
        (GmmSettings { max_iter: 0, ..good }, "max_iter"),
        (GmmSettings { tol: -1.0, ..good }, "tol"),
        (GmmSettings { tol: f64::NAN, ..good }, "tol"),
        (GmmSettings { reg: 0.0, ..good }, "reg"),
        (GmmSettings { reg: f64::INFINITY, ..good }, "reg"),
    ] {
        assert!(fit(&[0.0, 1.0], &bad).unwrap_err().to_string().contains(told));
    }
}

#[test]
fn losses_at_the_ends_of_the_numbers_are_scaled() {
    assert_eq!(scale(&[f64::MIN, 0.0, f64::MAX]).unwrap(), [0.0, 0.5, 1.0]);
    assert_eq!(scale(&[0.0, 5e-324]).unwrap(), [0.0, 1.0]);
    let error = fit(&[-1e200, 0.0, 1.0, 1e200], &GmmSettings::default()).unwrap_err();
    assert!(error.to_string().contains("scale"), "{error}");
}

#[test]
fn the_larger_mean_is_clean_where_the_settings_say_so() {
    let scores = [0.1, 0.2, 0.15, 0.8, 0.9, 0.85];
    let small = clean_probabilities(&scores, &GmmSettings::default()).unwrap();
    let large = GmmSettings { clean: CleanSide::Larger, ..Default::default() };
    let large = clean_probabilities(&scores, &large).unwrap();
    for (small, large) in small.iter().zip(&large) {
        close(small + large, 1.0, 1e-12);
    }
    assert!(large[0] < 0.01 && large[3] > 0.99);
}

fn losses() -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![
        prop::collection::vec(0.0..10.0f64, 1..60),
        prop::collection::vec((0..6i32).prop_map(f64::from), 1..60),
        prop::collection::vec(-1e300..1e300f64, 1..20),
    ]
}

proptest! {
    #[test]
    fn the_order_of_samples_changes_no_bit((losses, order) in losses().prop_flat_map(|losses| {
        let order: Vec<usize> = (0..losses.len()).collect();
        (Just(losses), Just(order).prop_shuffle())
    })) {
        let settings = GmmSettings::default();
        let clean = clean_probabilities(&losses, &settings).unwrap();
        let moved: Vec<f64> = order.iter().map(|&at| losses[at]).collect();
        let wanted: Vec<f64> = order.iter().map(|&at| clean[at]).collect();
        prop_assert_eq!(clean_probabilities(&moved, &settings).unwrap(), wanted);
    }

    #[test]
    fn posteriors_are_probabilities(losses in losses()) {
        for settings in [GmmSettings::default(), GmmSettings::fine()] {
            let clean = clean_probabilities(&losses, &settings).unwrap();
            prop_assert!(clean.iter().all(|w| (0.0..=1.0).contains(w)), "{:?}", clean);
            let values = scale(&losses).unwrap();
            let mixture = fit(&values, &settings).unwrap();
            prop_assert!(values.iter().all(|&x| (mixture.posterior(x).iter().sum::<f64>() - 1.0).abs() < 1e-12));
        }
    }

    #[test]
    fn exact_shifts_and_stretches_of_the_losses_change_no_bit(
        steps in prop::collection::vec(0..5000i32, 1..50), shift in -10_000..10_000i32, power in -20..20i32
    ) {
        // On this grid the change itself is free of rounding.
        let losses: Vec<f64> = steps.iter().map(|&step| f64::from(step) / 1024.0).collect();
        let changed: Vec<f64> = losses.iter().map(|x| (x + f64::from(shift)) * 2f64.powi(power)).collect();
        let settings = GmmSettings::default();
        prop_assert_eq!(
            clean_probabilities(&losses, &settings).unwrap(), clean_probabilities(&changed, &settings).unwrap()
        );
    }

    #[test]
    fn shifts_and_stretches_change_nothing_but_rounding(
        losses in prop::collection::vec(0.0..10.0f64, 3..50), shift in -5.0..5.0f64, factor in 0.1..10.0f64
    ) {
        let changed: Vec<f64> = losses.iter().map(|x| x * factor + shift).collect();
        let settings = GmmSettings::default();
        let before = scale(&losses).unwrap();
        let after = scale(&changed).unwrap();
        // A tie in the start or in the stop may fall the other way by rounding: only then may more differ.
        let (a, b) = (fit(&before, &settings).unwrap(), fit(&after, &settings).unwrap());
        prop_assume!(a.iterations == b.iterations);
        for (x, y) in before.iter().zip(&after) {
            prop_assert!((a.clean(*x, settings.clean) - b.clean(*y, settings.clean)).abs() < 1e-6);
        }
    }
}
