//! How many labels are wrong: known mixtures, and cases at the edge.
#![allow(clippy::unwrap_used)]

mod made_up;

use made_up::{World, kept, scores, symmetric, world};
use negscale_audit::{Meaning, NoiseEstimate, NoiseModel, Predictions, Ranking, average_precision};

fn names(classes: usize) -> Vec<String> {
    (0..classes).map(|class| class.to_string()).collect()
}

#[track_caller]
fn check_shape(estimate: &NoiseEstimate) {
    let [low, high] = estimate.interval;
    assert!(0.0 <= low && low <= estimate.rate && estimate.rate <= high && high <= 1.0, "{estimate:?}");
    for matrix in [estimate.given_by_true(), estimate.true_by_given()] {
        assert_eq!(matrix.len(), estimate.given_counts.len());
        for row in matrix {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-9 && row.iter().all(|x| *x >= 0.0));
        }
    }
    let (all, count) =
        (estimate.joint.iter().sum::<f64>(), estimate.given_counts.iter().sum::<usize>() as f64);
    assert!((all - count).abs() < 1e-6 * count.max(1.0), "{all} and {count}");
    assert!((estimate.true_counts.iter().sum::<f64>() - count).abs() < 1e-6 * count.max(1.0));
    let wrong: f64 = estimate.confusions().iter().map(|(_, _, count)| count).sum();
    assert!(
        (wrong - estimate.rate * count).abs() < 1e-6 * count.max(1.0),
        "one estimate, one number: {estimate:?}"
    );
}

/// Confusions that differ by class.
fn uneven(truth: usize) -> Vec<f64> {
    [[0.75, 0.2, 0.05, 0.0], [0.0, 1.0, 0.0, 0.0], [0.3, 0.0, 0.7, 0.0], [0.05, 0.05, 0.1, 0.8]][truth]
        .to_vec()
}

fn both(world: &World) -> [(&'static str, Predictions); 2] {
    [("of given labels", world.plain()), ("of true labels", world.resistant())]
}

#[test]
fn planted_noise_that_depends_on_classes_is_recovered() {
    let world = world(20_000, 4, 4.0, &uneven, 1);
    for (what, predictions) in both(&world) {
        let model = NoiseModel::fit(&predictions);
        for (at, &t) in model.transition().rows().iter().enumerate() {
            let planted = uneven(at / 4)[at % 4];
            assert!((f64::from(t) - planted).abs() < 0.03, "{what}: {at} is {t}, not {planted}");
        }
        let estimate = NoiseEstimate::new(&model);
        check_shape(&estimate);
        assert!(
            (estimate.rate - world.rate()).abs() < 0.02,
            "{what}: {} and {}",
            estimate.rate,
            world.rate()
        );
        let (truth, given, count) = estimate.confusions()[0];
        assert_eq!((truth, given), (2, 0), "{what}");
        assert!((count / 20_000.0 - 0.075).abs() < 0.015, "{what}: {count}");
    }
}

#[test]
fn clean_labels_of_overlapping_classes_are_not_called_noise() {
    for (classes, distance) in [(2, 1.466), (4, 2.12), (10, 2.7)] {
        let world = world(10_000, classes, distance, &symmetric(classes, 0.0), classes as u64);
        let overlap = world.overlap();
        assert!((0.13..0.17).contains(&overlap), "made up wrongly: {overlap}");
        for (what, predictions) in both(&world) {
            let found = Ranking::by(&NoiseModel::fit(&predictions), &names(classes)).unwrap();
            check_shape(&found.estimate);
            assert!(found.estimate.rate <= 0.02, "{classes} classes, {what}: {:?}", found.estimate);
            let changed = found.audit.correction(found.estimate.rate, found.estimate.interval).changed;
            assert!(changed <= 20, "{classes} classes, {what}: {changed} labels changed");
        }
    }
}

#[test]
fn known_rates_are_found_and_lie_inside_the_interval() {
    for (classes, rate) in [(4, 0.0), (10, 0.05), (4, 0.2), (10, 0.2), (4, 0.5), (10, 0.5)] {
        let world = world(10_000, classes, 4.0, &symmetric(classes, rate), 3);
        let truth = world.rate();
        for (what, predictions) in both(&world) {
            let estimate = NoiseEstimate::new(&NoiseModel::fit(&predictions));
            check_shape(&estimate);
            let words = || format!("{classes} classes, {what}: {truth} and {estimate:?}");
            assert!((estimate.rate - truth).abs() < 0.03, "{}", words());
            assert!(estimate.interval[0] <= truth && truth <= estimate.interval[1], "{}", words());
        }
    }
}

#[test]
fn predictions_of_true_and_of_given_labels_are_told_apart() {
    for (classes, rate) in [(3, 0.2), (5, 0.4), (10, 0.3)] {
        let world = world(4000, classes, 3.0, &symmetric(classes, rate), 4);
        let [plain, resistant] = both(&world).map(|(_, predictions)| NoiseModel::fit(&predictions));
        assert_eq!(resistant.meaning(), Meaning::TrueLabels, "{classes} classes");
        assert_eq!(plain.meaning(), Meaning::GivenLabels, "{classes} classes");
        for exponent in [resistant.exponent(), plain.exponent()] {
            assert!((0.8..1.3).contains(&exponent), "they are calibrated: {exponent}");
        }
        let wrong = world.is_wrong();
        let found = [plain, resistant].map(|model| average_precision(&scores(&model), &wrong).unwrap());
        assert!(found.iter().all(|ap| *ap > 0.9) && (found[0] - found[1]).abs() < 0.03, "{found:?}");
    }
}

#[test]
fn boasting_and_timid_predictions_are_calibrated() {
    let world = world(20_000, 5, 3.0, &symmetric(5, 0.25), 5);
    for (power, exponent) in [(2.0, 0.5), (0.5, 2.0)] {
        let model = NoiseModel::resistant(&world.resistant().tempered(power));
        assert_eq!(model.exponent(), exponent);
        let exact = NoiseModel::resistant(&world.resistant());
        assert_eq!(exact.exponent(), 1.0);
        for (a, b) in scores(&model).iter().zip(scores(&exact)) {
            assert!((a - b).abs() < 1e-3, "{a} and {b}");
        }
    }
}

#[test]
fn the_score_orders_better_than_the_predicted_probability_of_the_label() {
    let flip = |truth: usize| match truth {
        2 => vec![0.4, 0.0, 0.6, 0.0],
        3 => vec![0.0, 0.2, 0.0, 0.8],
        other => (0..4).map(|c| f64::from(u8::from(c == other))).collect(),
    };
    let world = world(8000, 4, 2.2, &flip, 9);
    let wrong = world.is_wrong();
    for (what, predictions) in both(&world) {
        let own = |(i, &g): (usize, &u32)| -f64::from(predictions.probability(i, g));
        let own: Vec<f64> = world.given.iter().enumerate().map(own).collect();
        let plain = average_precision(&own, &wrong).unwrap();
        let better = average_precision(&scores(&NoiseModel::fit(&predictions)), &wrong).unwrap();
        assert!(better > plain + 0.03, "{what}: {better} against {plain}");
    }
}

#[test]
fn many_classes_behave_like_few() {
    for (classes, count) in [(8, 8000), (50, 10_000), (200, 20_000)] {
        let world = world(count, classes, 5.0, &symmetric(classes, 0.2), 6);
        let wrong = world.is_wrong();
        for (what, predictions) in both(&world) {
            let model = NoiseModel::fit(&predictions);
            let ap = average_precision(&scores(&model), &wrong).unwrap();
            assert!(ap > 0.97, "{classes} classes, {what}: average precision {ap}");
            let estimate = NoiseEstimate::new(&model);
            check_shape(&estimate);
            assert!((estimate.rate - 0.2).abs() < 0.03, "{classes} classes, {what}: {}", estimate.rate);
            let found = Ranking::by(&model, &names(classes)).unwrap().audit;
            let right = found.corrected().iter().zip(&world.truth).filter(|(a, b)| a == b).count();
            // Anchors see few of very many confusions, and what they do not see is corrected only by predictions of true labels.
            let least = if classes <= 32 || what == "of true labels" { 0.95 } else { 0.84 };
            assert!(right as f64 > least * count as f64, "{classes} classes, {what}: {right} right");
        }
    }
}

#[test]
fn labels_that_are_all_right_are_known_as_such() {
    let truth: Vec<u32> = (0..600).map(|i| i % 3).collect();
    let rows: Vec<f32> =
        truth.iter().flat_map(|&y| (0..3).map(move |c| if c == y { 0.98 } else { 0.01 })).collect();
    let model = NoiseModel::fit(&kept(&rows, &truth, 3));
    let estimate = NoiseEstimate::new(&model);
    check_shape(&estimate);
    assert!(
        estimate.rate == 0.0 && estimate.interval[1] < 0.02 && estimate.wrong_labels() == 0,
        "{estimate:?}"
    );
    assert!(scores(&model).iter().all(|&score| score < 0.05));
}

#[test]
fn no_sample_one_sample_one_class_and_a_class_without_labels_are_no_trouble() {
    let cases: [(&str, Vec<f32>, Vec<u32>, usize); 7] = [
        ("nothing at all", vec![], vec![], 0),
        ("no samples", vec![], vec![], 3),
        ("no samples of many classes", vec![], vec![], 300),
        ("one sample", vec![0.2, 0.5, 0.3], vec![0], 3),
        ("one class", vec![1.0; 5], vec![0; 5], 1),
        ("one label", [0.7, 0.2, 0.1].repeat(50), vec![0; 50], 3),
        ("zeros", [0.0, 0.0].repeat(20), [0, 1].repeat(10), 2),
    ];
    for (what, rows, given, classes) in cases {
        let predictions = kept(&rows, &given, classes);
        for model in [
            NoiseModel::fit(&predictions),
            NoiseModel::resistant(&predictions),
            NoiseModel::with_meaning(&predictions, Meaning::GivenLabels),
            NoiseModel::with_meaning(&predictions, Meaning::TrueLabels),
        ] {
            let found = Ranking::by(&model, &names(classes)).unwrap();
            check_shape(&found.estimate);
            assert!(found.estimate.cannot_judge.is_some(), "{what}");
            assert_eq!((found.audit.findings().len(), found.audit.flagged()), (given.len(), 0), "{what}");
            assert!(
                model.alternatives().iter().all(|a| a.given.is_finite() && a.probability.is_finite()),
                "{what}"
            );
        }
    }
    // A class that no label names, among others that can be judged.
    let flip = |y: usize| [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]][y].to_vec();
    let world = world(3000, 3, 4.0, &flip, 7);
    for (_, predictions) in both(&world) {
        let estimate = NoiseEstimate::new(&NoiseModel::fit(&predictions));
        check_shape(&estimate);
        assert_eq!(estimate.given_counts[2], 0);
    }
}

#[test]
fn what_is_no_prediction_is_refused() {
    for (rows, given, told) in [
        (vec![0.5, 0.5], vec![0, 1], "2 numbers for 2 samples of 2 classes"),
        (vec![0.5, 0.5], vec![2], "label 2 of sample 0 is not a class: there are 2"),
        (vec![0.5, 0.5, f32::NAN, 0.5], vec![1, 0], "sample 1 has NaN, which is outside [0, 1]"),
        (vec![1.5, -0.5], vec![1], "sample 0 has 1.5, which is outside [0, 1]"),
        (vec![0.5, f32::INFINITY], vec![1], "sample 0 has inf"),
    ] {
        let error = Predictions::new(&rows, &given, 2).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    let model = NoiseModel::fit(&kept(&[0.5, 0.5], &[1], 2));
    assert!(Ranking::by(&model, &names(1)).is_err(), "fewer names than classes");
}
