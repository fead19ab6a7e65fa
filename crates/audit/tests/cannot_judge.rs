//! Where predictions say nothing about labels, that is what is said.
#![allow(clippy::unwrap_used)]

mod made_up;

use made_up::{Chance, kept, symmetric, world};
use negscale_audit::{NoiseModel, Ranking};

#[track_caller]
fn is_unjudged(what: &str, rows: &[f32], given: &[u32], classes: usize) {
    let names: Vec<String> = (0..classes).map(|class| class.to_string()).collect();
    let predictions = kept(rows, given, classes);
    for model in [NoiseModel::fit(&predictions), NoiseModel::resistant(&predictions)] {
        let found = Ranking::by(&model, &names).unwrap();
        let estimate = &found.estimate;
        assert!(estimate.cannot_judge.is_some(), "{what}: {estimate:?}");
        assert_eq!(
            (estimate.rate, estimate.interval, estimate.wrong_labels()),
            (0.0, [0.0, 1.0], 0),
            "{what}"
        );
        assert_eq!((found.audit.flagged(), found.audit.cut_off()), (0, None), "{what}");
        assert_eq!(found.audit.corrected(), given, "{what}");
        assert_eq!(found.audit.correction(estimate.rate, estimate.interval).changed, 0, "{what}");
        assert_eq!(found.audit.findings().len(), given.len(), "{what}: there is still an order");
    }
}

/// Rows of probabilities that know nothing.
fn random_rows(count: usize, classes: usize, power: i32, chance: &mut Chance) -> Vec<f32> {
    (0..count)
        .flat_map(|_| {
            let raw: Vec<f64> = (0..classes).map(|_| chance.next().powi(power) + 1e-4).collect();
            let sum: f64 = raw.iter().sum();
            raw.into_iter().map(move |x| (x / sum) as f32)
        })
        .collect()
}

#[test]
fn random_predictions_judge_nothing() {
    let mut chance = Chance(1);
    for (count, classes) in
        [(12, 2), (50, 3), (300, 2), (300, 10), (3000, 4), (3000, 50), (1000, 100), (2000, 20)]
    {
        for power in [1, 8] {
            let rows = random_rows(count, classes, power, &mut chance);
            let given: Vec<u32> = (0..count).map(|_| chance.below(classes) as u32).collect();
            is_unjudged(&format!("{count} rows of {classes} classes, power {power}"), &rows, &given, classes);
        }
    }
}

#[test]
fn random_labels_are_judged_by_nothing() {
    let mut chance = Chance(2);
    let world = world(2000, 5, 4.0, &symmetric(5, 0.0), 2);
    let given: Vec<u32> = world.given.iter().map(|_| chance.below(5) as u32).collect();
    is_unjudged("even", &world.of_true, &given, 5);
    let skewed: Vec<u32> =
        world.given.iter().map(|_| chance.pick(&[8.0, 1.0, 0.5, 0.3, 0.2]) as u32).collect();
    is_unjudged("skewed", &world.of_true, &skewed, 5);
}

#[test]
fn labels_of_one_class_are_not_judged_and_why_is_said() {
    is_unjudged("one class", &[1.0; 30], &[0; 30], 1);
    let mut chance = Chance(3);
    let rows = random_rows(500, 3, 2, &mut chance);
    is_unjudged("one used class of three", &rows, &[1; 500], 3);
    let model = NoiseModel::fit(&kept(&rows, &[1; 500], 3));
    let told = negscale_audit::NoiseEstimate::new(&model).cannot_judge.unwrap();
    assert!(told.contains("all labels are of one class"), "{told}");
}

#[test]
fn constant_predictions_judge_nothing() {
    for row in [[0.25; 4], [0.97, 0.01, 0.01, 0.01], [0.4, 0.3, 0.2, 0.1]] {
        let shares: Vec<u32> = (0..1000).map(|i| [0, 0, 0, 0, 1, 1, 1, 2, 2, 3][i * 7 % 10]).collect();
        is_unjudged("in turns", &row.repeat(1000), &shares, 4);
        // Sorted by class: anchors are the first rows then, all of one label.
        let mut sorted = shares;
        sorted.sort_unstable();
        is_unjudged("sorted", &row.repeat(1000), &sorted, 4);
    }
}

#[test]
fn fewer_than_ten_labels_are_not_judged() {
    let sure = |class: u32| if class == 0 { [0.99, 0.01] } else { [0.01, 0.99f32] };
    let given: Vec<u32> = (0..9).map(|i| i % 2).collect();
    let rows: Vec<f32> = given.iter().flat_map(|&g| sure(g)).collect();
    is_unjudged("nine", &rows, &given, 2);
}

#[test]
fn half_wrong_labels_of_many_classes_are_judged_all_the_same() {
    let world = world(2000, 10, 4.0, &symmetric(10, 0.7), 4);
    for predictions in [world.plain(), world.resistant()] {
        let estimate = negscale_audit::NoiseEstimate::new(&NoiseModel::fit(&predictions));
        assert!(estimate.cannot_judge.is_none() && estimate.rate > 0.5, "{estimate:?}");
    }
}
