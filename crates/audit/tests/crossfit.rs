//! Wrong labels of rows of numbers: made-up clusters.
#![allow(clippy::unwrap_used)]

mod clusters;
mod made_up;

use clusters::clusters;
use made_up::symmetric;

#[test]
fn a_fifth_of_wrong_labels_is_found_among_few_and_many_rows() {
    for (count, classes) in [(150, 3), (600, 4), (3000, 10)] {
        let made = clusters(count, 12, &vec![1.0; classes], 2.0, &symmetric(classes, 0.2), 1);
        let fit = made.fit();
        let ap = made.average_precision(&fit);
        assert!(ap >= 0.97, "{count} rows: average precision {ap}");
        let found = made.rank(&fit);
        let right = found.audit.corrected().iter().zip(&made.truth).filter(|(a, b)| a == b).count();
        let before = made.given.iter().zip(&made.truth).filter(|(a, b)| a == b).count();
        assert!(right >= before, "{count} rows: {right} right after correction, {before} before");
        let (truth, [low, high]) = (1.0 - before as f64 / count as f64, found.estimate.interval);
        assert!((found.estimate.rate - truth).abs() < 0.05, "{count} rows: {truth}, {:?}", found.estimate);
        assert!(low <= truth && truth <= high, "{count} rows: {truth}, {:?}", found.estimate);
    }
}

#[test]
fn flips_between_two_classes_alone_are_found() {
    let flip = |y: usize| match y {
        0 => vec![0.6, 0.4, 0.0, 0.0],
        1 => vec![0.4, 0.6, 0.0, 0.0],
        2 => vec![0.0, 0.0, 1.0, 0.0],
        _ => vec![0.0, 0.0, 0.0, 1.0],
    };
    for count in [600, 3000] {
        let made = clusters(count, 12, &[1.0; 4], 2.0, &flip, 2);
        let ap = made.average_precision(&made.fit());
        assert!(ap >= 0.9, "{count} rows: average precision {ap}");
    }
}

#[test]
fn clean_clusters_keep_their_labels() {
    for (count, classes, spread) in [(150, 3, 2.0), (1000, 5, 1.0), (1000, 5, 0.8), (3000, 10, 1.0)] {
        let made = clusters(count, 10, &vec![1.0; classes], spread, &symmetric(classes, 0.0), 3);
        let found = made.rank(&made.fit());
        let kept = found.audit.corrected().iter().zip(&made.given).filter(|(a, b)| a == b).count();
        assert!(kept as f64 >= 0.99 * count as f64, "{count} rows, spread {spread}: {kept} kept");
    }
}

#[test]
fn wrong_labels_of_a_rare_class_are_found() {
    let made = clusters(3000, 10, &[0.97, 0.03], 2.0, &symmetric(2, 0.2), 4);
    let ap = made.average_precision(&made.fit());
    assert!(ap >= 0.99, "average precision {ap}");
}

#[test]
fn wrong_labels_of_two_hundred_classes_with_eight_rows_each_are_found() {
    let made = clusters(1600, 24, &[1.0; 200], 2.0, &symmetric(200, 0.2), 5);
    let ap = made.average_precision(&made.fit());
    assert!(ap >= 0.9, "average precision {ap}");
}

#[test]
fn columns_of_other_units_and_constant_columns_change_little() {
    let made = clusters(600, 6, &[1.0; 3], 2.0, &symmetric(3, 0.2), 6);
    let plain = made.average_precision(&made.fit());
    let units = [1e-4f32, 1.0, 1e5, 30.0, 0.1, 1e3];
    let mut other = clusters(600, 6, &[1.0; 3], 2.0, &symmetric(3, 0.2), 6);
    other.values = made
        .values
        .chunks(6)
        .flat_map(|row| row.iter().zip(units).map(|(x, unit)| (x + 3.0) * unit).chain([7.0, 0.0]))
        .collect();
    other.dim = 8;
    let found = other.average_precision(&other.fit());
    assert!(plain >= 0.97 && found >= 0.97, "{plain} and in other units {found}");
}

#[test]
fn random_labels_cannot_be_judged() {
    for (count, classes) in [(100, 3), (600, 3), (1200, 20), (3000, 5)] {
        let share = 1.0 / classes as f64;
        let flip = |_| vec![share; classes];
        let made = clusters(count, 8, &vec![1.0; classes], 2.0, &flip, 7);
        let found = made.rank(&made.fit());
        assert!(found.estimate.cannot_judge.is_some(), "{count} rows: {:?}", found.estimate);
        assert_eq!(found.audit.flagged(), 0);
        assert_eq!(found.audit.corrected(), made.given);
    }
}

#[test]
fn few_rows_and_many_wrong_labels_are_judged_where_features_know_the_class() {
    for (count, classes, spread, rate) in [(60, 2, 2.0, 0.2), (100, 3, 1.0, 0.3), (600, 10, 1.0, 0.7)] {
        for seed in 0..3 {
            let made = clusters(count, 8, &vec![1.0; classes], spread, &symmetric(classes, rate), seed);
            let estimate = made.rank(&made.fit()).estimate;
            assert!(estimate.cannot_judge.is_none(), "{count} rows, {rate} wrong, seed {seed}: {estimate:?}");
        }
    }
}
