//! Ranking of given predictions and labels.
#![allow(clippy::unwrap_used)]

mod made_up;

use made_up::{symmetric, world};
use negscale_audit::{Ranking, rank};
use proptest::prelude::*;

/// Predictions that are right with probability `sure`, and labels of which every tenth is wrong.
fn sample(count: usize, classes: usize, sure: f32) -> (Vec<f32>, Vec<u32>, Vec<u32>) {
    let truth: Vec<u32> = (0..count).map(|i| (i * 7 % classes) as u32).collect();
    let labels =
        truth.iter().enumerate().map(|(i, &y)| if i % 10 == 3 { (y + 1) % classes as u32 } else { y });
    let other = (1.0 - sure) / (classes - 1) as f32;
    let predictions = truth
        .iter()
        .flat_map(|&y| (0..classes as u32).map(move |c| if c == y { sure } else { other }))
        .collect();
    (predictions, labels.collect(), truth)
}

#[test]
fn wrong_labels_come_first_with_the_true_class_as_suggestion() {
    let (predictions, labels, truth) = sample(400, 4, 0.91);
    let found = rank(&predictions, &labels).unwrap();
    let (wrong, right) = found.audit.findings().split_at(40);
    for finding in wrong {
        let verdict = finding.verdict;
        assert!(finding.flag && verdict.given != truth[finding.index], "{finding:?}");
        assert_eq!(verdict.suggested, truth[finding.index]);
    }
    assert!(right.iter().all(|finding| !finding.flag && finding.verdict.suggested == finding.verdict.given));
    let estimate = found.estimate;
    assert!((estimate.rate - 0.1).abs() < 0.02, "{estimate:?}");
    assert_eq!(found.audit.corrected(), truth);
}

/// What holds of every ranking.
#[track_caller]
fn check(found: &Ranking, labels: &[u32]) {
    let (audit, estimate, count) = (&found.audit, &found.estimate, labels.len() as f64);
    let mut seen: Vec<usize> = audit.findings().iter().map(|finding| finding.index).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..labels.len()).collect::<Vec<_>>());
    assert_eq!(audit.flagged(), estimate.wrong_labels(), "flags and estimate are one statement");
    let share = audit.flagged() as f64 / count;
    let [low, high] = estimate.interval;
    // Whole labels may be half a label outside.
    assert!(low - 0.5 / count <= share && share <= high + 0.5 / count, "{share}: {estimate:?}");
    let (flagged, others) = audit.findings().split_at(audit.flagged());
    assert!(flagged.iter().all(|finding| finding.flag) && !others.iter().any(|finding| finding.flag));
    assert_eq!(audit.cut_off(), flagged.last().map(|finding| finding.verdict.score));
    assert!(audit.findings().windows(2).all(|pair| pair[0].verdict.score >= pair[1].verdict.score));
    let corrected = audit.corrected();
    for finding in audit.findings() {
        let verdict = finding.verdict;
        assert_eq!(verdict.given, labels[finding.index]);
        assert!((0.0..=1.0).contains(&verdict.score) && (0.0..=1.0).contains(&verdict.suggested_probability));
        assert!(!finding.flag || verdict.suggested != verdict.given, "a flag suggests another class");
        // Who is not flagged is told of another class only where that is the likelier one.
        let is_likelier = verdict.suggested_probability > verdict.given_probability;
        assert!(finding.flag || verdict.suggested == verdict.given || is_likelier, "{finding:?}");
        let is_sure = finding.flag && verdict.suggested_probability > 0.7;
        let wanted = if is_sure { verdict.suggested } else { verdict.given };
        assert_eq!((finding.is_corrected(), corrected[finding.index]), (is_sure, wanted), "{finding:?}");
    }
}

#[test]
fn as_many_labels_are_flagged_as_are_estimated_and_only_sure_suggestions_are_taken_over() {
    for (classes, distance, rate) in
        [(2, 1.5, 0.1), (3, 3.0, 0.0), (4, 2.0, 0.3), (6, 4.0, 0.5), (40, 4.0, 0.2), (5, 2.0, 0.8)]
    {
        let world = world(3000, classes, distance, &symmetric(classes, rate), 1);
        for rows in [&world.of_given, &world.of_true] {
            // Sums of `f32`s are not always 1.
            let found = rank(rows, &world.given).unwrap();
            check(&found, &world.given);
        }
    }
}

#[test]
fn a_correction_is_as_right_as_it_expects_to_be() {
    for (classes, distance, rate) in [(2, 2.5, 0.2), (4, 2.5, 0.3), (6, 4.0, 0.5)] {
        let world = world(8000, classes, distance, &symmetric(classes, rate), 2);
        let found = rank(&world.of_true, &world.given).unwrap();
        let expected = found.audit.correction(found.estimate.rate, found.estimate.interval);
        let corrected = found.audit.corrected();
        let changed: Vec<usize> = (0..8000).filter(|&i| corrected[i] != world.given[i]).collect();
        assert_eq!(expected.changed, changed.len());
        let right = changed.iter().filter(|&&i| corrected[i] == world.truth[i]).count() as f64;
        let precision = right / changed.len() as f64;
        let told = expected.expected_precision.unwrap();
        assert!((precision - told).abs() < 0.03, "{classes} classes: {precision}, expected {told}");
        let after = corrected.iter().zip(&world.truth).filter(|(a, b)| a == b).count() as f64 / 8000.0;
        let (was, will) = (expected.right_before, expected.right_after.unwrap());
        assert!((was - (1.0 - world.rate())).abs() < 0.04, "{classes} classes: {was}");
        assert!(
            (will - after).abs() < 0.04 && after > 1.0 - world.rate(),
            "{classes} classes: {after}, {will}"
        );
    }
}

#[test]
fn what_is_no_prediction_is_refused_in_words_that_help() {
    let told = |predictions: &[f32], labels: &[u32]| rank(predictions, labels).unwrap_err().to_string();
    assert!(told(&[0.5, 0.5, 0.5], &[0, 1]).contains("3 numbers for 2 samples"));
    assert!(told(&[0.5, 0.5], &[2]).contains("label 2 of sample 0"));
    assert!(told(&[3.0, -2.0], &[0]).contains("outside [0, 1]"));
    assert!(told(&[0.9, 0.9], &[0]).contains("not logits"));
    assert!(told(&[f32::NAN, 0.5], &[0]).contains("outside [0, 1]"));
    assert!(rank(&[], &[]).unwrap().audit.findings().is_empty());
    assert_eq!(rank(&[1.0, 1.0], &[0, 0]).unwrap().audit.findings().len(), 2, "one class is no trouble");
}

#[test]
fn names_of_classes_are_those_given_and_as_many() {
    let (predictions, labels, _) = sample(30, 3, 0.8);
    let audit = rank(&predictions, &labels).unwrap().audit;
    let names = ["a", "b", "c"].map(str::to_owned);
    assert_eq!(audit.clone().with_class_names(&names).unwrap().class_names(), names);
    assert!(audit.with_class_names(&names[..2]).unwrap_err().to_string().contains("2 names for 3 classes"));
}

proptest! {
    #[test]
    fn every_ranking_is_a_whole_one(
        rows in prop::collection::vec((prop::array::uniform3(0.0f32..1.0), 0u32..3, 1..9i32), 1..60)
    ) {
        let predictions: Vec<f32> = rows.iter().flat_map(|(row, _, power)| {
            let raw = row.map(|p| p.powi(*power) + 1e-6);
            let sum: f32 = raw.iter().sum();
            raw.map(|p| p / sum)
        }).collect();
        let labels: Vec<u32> = rows.iter().map(|(_, label, _)| *label).collect();
        check(&rank(&predictions, &labels).unwrap(), &labels);
    }
}
