//! Ranking of given predictions and labels.
#![allow(clippy::unwrap_used)]

use negscale_audit::rank;
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
    fn every_label_is_found_once_and_a_flag_never_suggests_the_given_label(
        rows in prop::collection::vec((prop::array::uniform3(0.01f32..1.0), 0u32..3), 1..60)
    ) {
        let predictions: Vec<f32> = rows.iter().flat_map(|(row, _)| {
            let sum: f32 = row.iter().sum();
            row.map(|p| p / sum)
        }).collect();
        let labels: Vec<u32> = rows.iter().map(|(_, label)| *label).collect();
        let found = rank(&predictions, &labels).unwrap();
        let mut seen: Vec<usize> = found.audit.findings().iter().map(|finding| finding.index).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..labels.len()).collect::<Vec<_>>());
        for finding in found.audit.findings() {
            prop_assert!((0.0..=1.0).contains(&finding.verdict.score));
            prop_assert!(!finding.flag || finding.verdict.suggested != finding.verdict.given);
        }
    }
}
