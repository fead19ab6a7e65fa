//! Cross-fitting: what must not change its results, what it refuses, and cases at the edge.
#![allow(clippy::unwrap_used)]

mod clusters;
mod made_up;

use clusters::{Clusters, bits, clusters};
use made_up::symmetric;
use negscale_audit::Error;
use negscale_audit::crossfit::{CrossFitSettings, FrozenAudit, Rows, cross_fit, cross_fit_in};
use std::sync::Mutex;

fn some() -> Clusters {
    clusters(200, 5, &[1.0; 3], 1.5, &symmetric(3, 0.2), 1)
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let made = some();
    let one = made_up::with_threads(1, || bits(&made.fit()));
    assert!(one == made_up::with_threads(3, || bits(&made.fit())));
}

#[test]
fn the_same_seed_gives_the_same_bits_and_another_one_others() {
    let made = some();
    let with = |seed| bits(&made.fit_with(&CrossFitSettings { seed, ..made.settings() }));
    assert!(with(1) == with(1));
    assert!(with(1) != with(2));
}

#[test]
fn labels_have_no_say_in_the_first_prediction_of_their_own_fold() {
    let made = some();
    // Gaussians alone, whose likeliest class does not depend on the weight that all labels give them.
    let settings = CrossFitSettings { rounds: 1, networks: 0, neighbours: 0, ..made.settings() };
    let folds: Vec<usize> = (0..200).map(|row| row % settings.folds).collect();
    let rows = Rows::new(&made.values, 5).unwrap();
    let fit =
        |given: &[u32]| cross_fit_in(&rows, given, 3, &folds, &settings, &|_| true).unwrap().predictions;
    let moved = |i: usize| if folds[i] == 3 { (made.given[i] + 1) % 3 } else { made.given[i] };
    let others: Vec<u32> = (0..200).map(moved).collect();
    let (here, there) = (fit(&made.given), fit(&others));
    assert!(here != there);
    for row in (0..200).filter(|&row| folds[row] == 3) {
        assert_eq!(here.likeliest(row).class, there.likeliest(row).class, "row {row}");
    }
}

#[test]
fn one_row_one_class_and_equal_rows_are_not_judged_but_do_no_harm() {
    let turns = |count: u32, classes: u32| -> Vec<u32> { (0..count).map(|i| i % classes).collect() };
    let cases: [(&str, Vec<f32>, Vec<u32>, usize); 7] = [
        ("no rows", vec![], vec![], 2),
        ("one row", vec![1.0, 2.0], vec![1], 2),
        ("two rows", vec![1.0, 2.0, 3.0, 4.0], vec![0, 1], 2),
        ("one class", (0..100).map(|i| (i * 37 % 11) as f32).collect(), vec![0; 50], 1),
        ("one class of three", (0..100).map(|i| (i * 37 % 11) as f32).collect(), vec![2; 50], 3),
        ("equal rows", [3.0, 4.0].repeat(200), turns(200, 3), 3),
        ("rows of zeros", vec![0.0; 600], turns(300, 4), 4),
    ];
    for (what, values, given, classes) in cases {
        let made = Clusters { classes, dim: 2, values, truth: given.clone(), given };
        let fit = made.fit();
        for found in fit.model.alternatives() {
            let numbers = [found.score, found.given, found.probability];
            assert!(numbers.iter().all(|x| (0.0..=1.0).contains(x)), "{what}: {found:?}");
        }
        assert!(fit.weights.iter().all(|weight| weight.is_finite()), "{what}: {:?}", fit.weights);
        let found = made.rank(&fit);
        assert!(found.estimate.cannot_judge.is_some(), "{what}: {:?}", found.estimate);
        assert_eq!((found.audit.flagged(), found.audit.corrected()), (0, made.given), "{what}");
    }
}

#[test]
fn what_does_not_fit_is_refused_in_words_that_help() {
    let told = |values: &[f32], dim: usize| Rows::new(values, dim).unwrap_err().to_string();
    assert!(told(&[0.0; 5], 2).contains("5 numbers are no rows of 2"));
    assert!(told(&[], 0).contains("no rows of 0"));
    assert!(told(&[0.0, 1.0, 2.0, f32::NAN], 2).contains("row 1, column 1 is NaN"));
    assert!(told(&[f32::INFINITY, 1.0], 2).contains("row 0, column 0 is inf"));
    let values = [0.0, 1.0, 2.0, 3.0];
    let rows = Rows::new(&values, 2).unwrap();
    let settings = CrossFitSettings::new(2, 2, 1);
    let told = |given: &[u32], settings: &CrossFitSettings| {
        cross_fit(&rows, given, 2, settings, &|_| true).unwrap_err().to_string()
    };
    assert!(told(&[0], &settings).contains("1 for 2 rows"));
    assert!(told(&[0, 2], &settings).contains("label 2 of sample 1 is not a class: there are 2"));
    for folds in [0, 1] {
        let words = told(&[0, 1], &CrossFitSettings { folds, ..settings });
        assert!(words.contains("folds"), "{words}");
    }
    let folds = |folds: &[usize]| {
        cross_fit_in(&rows, &[0, 1], 2, folds, &settings, &|_| true).unwrap_err().to_string()
    };
    assert!(folds(&[0]).contains("1 for 2 rows") && folds(&[0, 10]).contains("below 10"));
}

#[test]
fn who_watches_is_told_how_far_it_is_and_can_stop_it() {
    let made = some();
    let rows = Rows::new(&made.values, 5).unwrap();
    for networks in [0, 2] {
        let settings = CrossFitSettings { networks, ..made.settings() };
        let stopped = cross_fit(&rows, &made.given, 3, &settings, &|_| false);
        assert!(matches!(stopped, Err(Error::Stopped)), "{networks} networks");
        let late = cross_fit(&rows, &made.given, 3, &settings, &|done| done < 0.6);
        assert!(matches!(late, Err(Error::Stopped)), "{networks} networks");
        let told = Mutex::new(Vec::new());
        let watch = |done: f64| {
            told.lock().unwrap().push(done);
            true
        };
        cross_fit(&rows, &made.given, 3, &settings, &watch).unwrap();
        let told = told.into_inner().unwrap();
        assert_eq!(
            told[0], 0.0,
            "{networks} networks: the search for neighbours comes before all that is counted"
        );
        assert!(told.iter().all(|done| (0.0..=1.0).contains(done)), "{networks} networks");
        assert!(told.contains(&1.0), "{networks} networks");
    }
}

#[test]
fn frozen_models_say_of_the_rows_of_their_fold_what_the_fit_said() {
    let made = clusters(400, 5, &[1.0; 3], 1.0, &symmetric(3, 0.2), 2);
    let settings = CrossFitSettings { neighbours: 0, ..made.settings() };
    let rows = Rows::new(&made.values, 5).unwrap();
    let folds: Vec<usize> = (0..400).map(|row| row * 7 % settings.folds).collect();
    let fit = cross_fit_in(&rows, &made.given, 3, &folds, &settings, &|_| true).unwrap();
    let said = fit.model.alternatives();
    let frozen = FrozenAudit::new(fit).unwrap();
    assert_eq!((frozen.classes(), frozen.dim(), frozen.folds()), (3, 5, settings.folds));
    for fold in 0..settings.folds {
        let members: Vec<usize> = (0..400).filter(|&row| folds[row] == fold).collect();
        let values: Vec<f32> = members.iter().flat_map(|&i| made.values[i * 5..i * 5 + 5].to_vec()).collect();
        let given: Vec<u32> = members.iter().map(|&i| made.given[i]).collect();
        for (found, &row) in frozen.judge(fold, &values, &given).unwrap().iter().zip(&members) {
            assert!((found.score - said[row].score).abs() < 1e-5, "row {row}: {found:?} and {:?}", said[row]);
            assert!((found.given - said[row].given).abs() < 1e-5, "row {row}");
            assert_eq!(found.class, said[row].class, "row {row}");
        }
    }
    let told = |values: &[f32], given: &[u32]| frozen.judge(0, values, given).unwrap_err().to_string();
    assert!(told(&[0.0; 4], &[0]).contains("no rows of 5"));
    assert!(told(&[f32::NAN; 5], &[0]).contains("is NaN"));
    assert!(told(&[0.0; 5], &[0, 1]).contains("2 for 1 rows"));
    assert!(told(&[0.0; 5], &[3]).contains("label 3 of sample 0 is not a class: there are 3"));
    assert!(frozen.judge(0, &[], &[]).unwrap().is_empty());
}

#[test]
fn a_single_round_can_be_frozen_too() {
    let made = clusters(400, 5, &[1.0; 3], 1.0, &symmetric(3, 0.2), 2);
    let settings = CrossFitSettings { neighbours: 0, rounds: 1, ..made.settings() };
    let rows = Rows::new(&made.values, 5).unwrap();
    let fit = cross_fit_in(&rows, &made.given, 3, &[0; 400], &settings, &|_| true).unwrap();
    let said = fit.model.alternatives();
    let frozen = FrozenAudit::new(fit).unwrap();
    for (found, said) in frozen.judge(0, &made.values, &made.given).unwrap().iter().zip(said) {
        assert!((found.score - said.score).abs() < 1e-5, "{found:?} and {said:?}");
    }
}

#[test]
fn models_that_asked_neighbours_cannot_be_frozen() {
    let error = FrozenAudit::new(some().fit()).unwrap_err().to_string();
    assert!(error.contains("`neighbours` = 0"), "{error}");
}
