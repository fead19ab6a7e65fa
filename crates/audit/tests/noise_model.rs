//! The model of noise against its formulas in plain `f64` loops.
#![allow(clippy::unwrap_used, clippy::needless_range_loop)]

mod literal;
mod made_up;

use literal::Matrix;
use made_up::{kept, scores, symmetric, world};
use negscale_audit::{Entry, Meaning, NoiseEstimate, NoiseModel, Predictions, confident_rate};
use proptest::prelude::*;

fn matrix(model: &NoiseModel) -> Matrix {
    let classes = model.beliefs().classes();
    model.transition().rows().chunks(classes).map(|t| t.iter().map(|&x| f64::from(x)).collect()).collect()
}

fn belief(model: &NoiseModel, sample: usize) -> Vec<f64> {
    model.beliefs().row(sample).iter().map(|entry| f64::from(entry.probability)).collect()
}

#[track_caller]
fn close(found: &[f64], wanted: &[f64], within: f64) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() <= within, "{found} instead of {wanted}");
    }
}

/// Uneven confusions of four classes.
fn uneven(truth: usize) -> Vec<f64> {
    [[0.7, 0.2, 0.1, 0.0], [0.0, 0.9, 0.05, 0.05], [0.3, 0.0, 0.65, 0.05], [0.05, 0.05, 0.1, 0.8]][truth]
        .to_vec()
}

#[test]
fn the_matrix_and_the_beliefs_are_those_of_the_formulas() {
    for (seed, count) in [(1, 30), (2, 300), (3, 2000)] {
        let world = world(count, 4, 2.5, &uneven, seed);
        for (rows, meaning) in
            [(&world.of_given, Meaning::GivenLabels), (&world.of_true, Meaning::TrueLabels)]
        {
            let model = NoiseModel::with_meaning(&kept(rows, &world.given, 4), meaning);
            let (t, q) = literal::fit(&literal::rows(rows, 4), &world.given, meaning == Meaning::TrueLabels);
            close(&matrix(&model).concat(), &t.concat(), 1e-5);
            for sample in 0..count {
                close(&belief(&model, sample), &q[sample], 2e-4);
            }
            assert_eq!((model.meaning(), model.exponent()), (meaning, 1.0));
        }
    }
}

#[test]
fn what_is_not_kept_of_many_classes_explains_as_one_more_class() {
    let world = world(800, 40, 2.0, &symmetric(40, 0.3), 10);
    let predictions = world.plain();
    let model = NoiseModel::with_meaning(&predictions, Meaning::GivenLabels);
    let t = matrix(&model);
    for sample in 0..800 {
        let row = predictions.row(sample);
        assert_eq!(row.len(), 32);
        let with_rest = |mut kept: Vec<f64>| {
            kept.push((1.0 - kept.iter().sum::<f64>()).max(0.0));
            kept
        };
        let p = with_rest(row.iter().map(|e| e.probability.into()).collect());
        let to_kept = |from: &Entry| row.iter().map(|to| t[from.class as usize][to.class as usize]).collect();
        let t: Matrix = row.iter().map(|from| with_rest(to_kept(from))).collect();
        let mut q = literal::shares(&p[..32]);
        for _ in 0..30 {
            let m: Vec<f64> = (0..33).map(|g| (0..32).map(|y| q[y] * t[y][g]).sum()).collect();
            let next = (0..32).map(|y| q[y] * (0..33).map(|g| p[g] * t[y][g] / m[g]).sum::<f64>());
            q = literal::shares(&next.collect::<Vec<_>>());
        }
        close(&belief(&model, sample), &q, 2e-4);
    }
}

#[test]
fn anchors_are_the_surest_fifth_of_a_class_and_ten_labels_as_usual_are_added() {
    // Of each class 200, of which the surest 40 are anchors: those of class 0 have 8 wrong labels, those of class 1 have 2.
    let sure = |i: usize| 0.99 - 0.002 * (i / 2) as f32;
    let rows: Vec<f32> = (0..400)
        .flat_map(|i| if i % 2 == 0 { [sure(i), 1.0 - sure(i)] } else { [1.0 - sure(i), sure(i)] })
        .collect();
    let is_wrong = |i: usize| match i % 2 {
        0 => i / 2 < 8 || i / 2 >= 180,
        _ => i / 2 < 2 || i / 2 >= 186,
    };
    let given: Vec<u32> = (0..400).map(|i| (i % 2) as u32 ^ u32::from(is_wrong(i))).collect();
    let model = NoiseModel::with_meaning(&kept(&rows, &given, 2), Meaning::TrueLabels);
    // The size of a class is the smaller one of given and believed: 188 and 200, so there are 37 and 40 anchors, 10 of them wrong.
    assert_eq!(given.iter().filter(|g| **g == 0).count(), 188);
    let found = matrix(&model);
    let usual = 11.0 / 79.0;
    close(&found[0], &[1.0 - (8.0 + 10.0 * usual) / 47.0, (8.0 + 10.0 * usual) / 47.0], 1e-6);
    close(&found[1], &[(2.0 + 10.0 * usual) / 50.0, 1.0 - (2.0 + 10.0 * usual) / 50.0], 1e-6);
}

#[test]
fn posteriors_and_alternatives_are_those_of_the_formulas() {
    let world = world(1500, 4, 2.0, &uneven, 5);
    for (predictions, meaning) in
        [(world.plain(), Meaning::GivenLabels), (world.resistant(), Meaning::TrueLabels)]
    {
        let model = NoiseModel::with_meaning(&predictions, meaning);
        let t = matrix(&model);
        let q: Matrix = (0..1500).map(|sample| belief(&model, sample)).collect();
        let ranking = literal::ranking(&q, &t, &world.given);
        let (found, posteriors) = (model.alternatives(), model.posteriors(1.0));
        for sample in 0..1500 {
            let given = world.given[sample];
            let r = literal::posterior(&q[sample], &t, given);
            let best =
                (0..4).filter(|&c| c != given as usize).max_by(|&a, &b| r[a].total_cmp(&r[b])).unwrap();
            let alternative = found[sample];
            assert!((alternative.given - r[given as usize]).abs() < 1e-5);
            assert!((alternative.probability - r[best]).abs() < 1e-5);
            assert!((r[alternative.class as usize] - r[best]).abs() < 1e-6 && alternative.class != given);
            let score = 1.0 - literal::posterior(&q[sample], &ranking, given)[given as usize];
            assert!((alternative.score - score).abs() < 1e-4, "{} instead of {score}", alternative.score);
            let sum: f32 = posteriors[sample].iter().map(|(_, r)| r).sum();
            assert!((sum - 1.0).abs() < 1e-5);
            for class in 0..4 {
                let kept = posteriors[sample].iter().find(|(c, _)| *c == class as u32);
                assert!((kept.map_or(0.0, |(_, r)| f64::from(*r)) - r[class]).abs() < 4e-3);
            }
        }
    }
}

#[test]
fn confident_counts_are_those_of_their_definition() {
    let world = world(1200, 4, 2.0, &uneven, 6);
    let joint = literal::confident(&literal::rows(&world.of_true, 4), &world.given);
    let wrong = 1.0 - (0..4).map(|c| joint[c][c]).sum::<f64>() / 1200.0;
    let found = confident_rate(&world.of_true, &world.given, 4).unwrap();
    assert!((found - wrong).abs() < 1e-9, "{found} instead of {wrong}");
    let model = NoiseModel::with_meaning(&world.resistant(), Meaning::TrueLabels);
    let estimate = NoiseEstimate::new(&model);
    let careful: f64 = model.alternatives().iter().map(|found| 1.0 - found.given).sum::<f64>() / 1200.0;
    close(&estimate.readings, &[careful, wrong], 1e-9);
    // Wrong labels of the counts are scaled to the rate.
    let factor = estimate.rate / wrong;
    for (given, row) in joint.iter().enumerate() {
        for (class, cell) in row.iter().enumerate().filter(|(class, _)| *class != given) {
            assert!((estimate.joint[given * 4 + class] - cell * factor).abs() < 1e-6);
        }
    }
}

#[test]
fn tempering_is_a_power_that_sums_to_one() {
    let rows = [0.7, 0.2, 0.1, 0.05, 0.9, 0.05f32];
    for exponent in [0.5, 1.0, 2.8] {
        let tempered = kept(&rows, &[0, 2], 3).tempered(exponent);
        for (sample, row) in rows.chunks(3).enumerate() {
            let powers: Vec<f64> = row.iter().map(|&p| f64::from(p).powf(exponent.into())).collect();
            let found: Vec<f64> = tempered.row(sample).iter().map(|e| e.probability.into()).collect();
            close(&found, &literal::shares(&powers), 1e-6);
        }
    }
    // Of forty classes 32 are kept, and the others keep their share.
    let rows: Vec<f32> = (0..40).map(|c| if c < 20 { 0.04 } else { 0.01 }).collect();
    let sum = |p: &Predictions| p.row(0).iter().map(|e| f64::from(e.probability)).sum::<f64>();
    let predictions = kept(&rows, &[39], 40);
    assert!((sum(&predictions) - 0.92).abs() < 1e-6);
    let (high, low) = (20.0 * 0.04f64.powi(2), 20.0 * 0.01f64.powi(2));
    let wanted = (high + 0.6 * low) / (high + low);
    assert!((sum(&predictions.tempered(2.0)) - wanted).abs() < 1e-5);
}

#[test]
fn the_largest_probabilities_and_that_of_the_given_label_are_kept() {
    let rows: Vec<f32> = (0..40).map(|c| (c * 7 % 40) as f32 / 780.0).collect();
    let given = (0..40).find(|c| c * 7 % 40 == 0).unwrap() as u32;
    let predictions = kept(&rows, &[given], 40);
    let row = predictions.row(0);
    assert_eq!(row.len(), 32);
    assert!(row.windows(2).all(|pair| pair[0].class < pair[1].class));
    for class in 0..40u32 {
        let is_kept = class == given || class * 7 % 40 >= 9;
        assert_eq!(row.iter().any(|entry| entry.class == class), is_kept, "class {class}");
        let wanted = if is_kept { rows[class as usize].max(1e-12) } else { 0.0 };
        assert_eq!(predictions.probability(0, class), wanted);
    }
    let most = (0..40u32).find(|c| c * 7 % 40 == 39).unwrap();
    assert_eq!(predictions.likeliest(0), Entry { class: most, probability: 39.0 / 780.0 });
    assert_eq!(kept(&[0.4, 0.4, 0.2], &[2], 3).likeliest(0).class, 0, "the first among equals");
}

#[test]
fn classes_by_other_numbers_give_the_same_results_by_those_numbers() {
    let world = world(1000, 5, 2.0, &symmetric(5, 0.3), 8);
    let to = [3usize, 0, 4, 1, 2];
    let mut moved = vec![0.0; world.of_true.len()];
    (0..moved.len()).for_each(|at| moved[at / 5 * 5 + to[at % 5]] = world.of_true[at]);
    let given: Vec<u32> = world.given.iter().map(|&g| to[g as usize] as u32).collect();
    let (here, there) = (NoiseModel::fit(&world.resistant()), NoiseModel::fit(&kept(&moved, &given, 5)));
    assert_eq!((here.exponent(), here.meaning()), (there.exponent(), there.meaning()));
    for (at, t) in here.transition().rows().iter().enumerate() {
        assert!((t - there.transition().rows()[to[at / 5] * 5 + to[at % 5]]).abs() < 1e-5);
    }
    for (a, b) in here.alternatives().iter().zip(there.alternatives()) {
        assert_eq!(to[a.class as usize] as u32, b.class);
        assert!((a.score - b.score).abs() < 1e-4 && (a.given - b.given).abs() < 1e-4);
    }
    let [a, b] = [NoiseEstimate::new(&here), NoiseEstimate::new(&there)];
    close(&[a.rate, a.interval[0], a.interval[1]], &[b.rate, b.interval[0], b.interval[1]], 1e-4);
    (0..5).for_each(|c| assert_eq!(a.given_counts[c], b.given_counts[to[c]]));
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let world = world(20_000, 6, 2.0, &symmetric(6, 0.3), 9);
    let run = |threads| {
        made_up::with_threads(threads, || {
            let model = NoiseModel::fit(&world.plain());
            (scores(&model), NoiseEstimate::new(&model), model.transition().clone(), model.posteriors(1.0))
        })
    };
    assert!(run(1) == run(3));
}

fn distribution(classes: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.001f64..1.0, classes).prop_map(|row| literal::shares(&row))
}

proptest! {
    #[test]
    fn a_round_of_explaining_never_lowers_its_objective_and_sums_to_one(
        p in distribution(4), q in distribution(4), t in prop::collection::vec(distribution(4), 4)
    ) {
        let next = literal::explain_once(&p, &q, &t);
        prop_assert!((next.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        prop_assert!(literal::objective(&p, &next, &t) >= literal::objective(&p, &q, &t) - 1e-12);
    }

    #[test]
    fn beliefs_explain_any_predictions_better_than_these_themselves(
        rows in prop::collection::vec((distribution(3), 0u32..3), 1..50)
    ) {
        let given: Vec<u32> = rows.iter().map(|(_, given)| *given).collect();
        let flat: Vec<f32> = rows.iter().flat_map(|(p, _)| p.iter().map(|&p| p as f32)).collect();
        let model = NoiseModel::with_meaning(&kept(&flat, &given, 3), Meaning::GivenLabels);
        let t = matrix(&model);
        for (row, sum) in t.iter().map(|row| (row, row.iter().sum::<f64>())) {
            prop_assert!((sum - 1.0).abs() < 1e-5 && row.iter().all(|t| *t > 0.0), "{:?}", row);
        }
        for (sample, (p, _)) in rows.iter().enumerate() {
            let q = belief(&model, sample);
            prop_assert!((q.iter().sum::<f64>() - 1.0).abs() < 1e-5);
            prop_assert!(literal::objective(p, &q, &t) >= literal::objective(p, p, &t) - 1e-5);
        }
    }
}
