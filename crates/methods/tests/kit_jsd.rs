//! The divergence of predictions from labels against its sums over all classes, and who is chosen by it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_data::draw::{Draw, Purpose};
use negscale_methods::kit::jsd::{
    class_ranges, cut_off, label_jsd, label_jsds, place, select_uniformly, smallest_of_each,
};
use std::f64::consts::LN_2;

/// The definition: half the divergences of both from their mean, class by class.
fn literal(p: &[f64], label: usize) -> f64 {
    let mut sum = 0.0;
    for (c, &p) in p.iter().enumerate() {
        let e = if c == label { 1.0 } else { 0.0 };
        let m = (p + e) / 2.0;
        for part in [p, e] {
            if part > 0.0 {
                sum += part * (part / m).ln() / 2.0;
            }
        }
    }
    sum
}

#[test]
fn the_divergence_from_a_label_is_its_definition_and_depends_on_one_probability_alone() {
    let mut draw = Draw::new(1, Purpose::Noise, 0, 0);
    let (classes, rows) = (5, 40);
    let mut probabilities = Vec::new();
    for _ in 0..rows {
        let parts: Vec<f64> = (0..classes).map(|_| (3.0 * draw.normal()).exp()).collect();
        let sum: f64 = parts.iter().sum();
        probabilities.extend(parts.iter().map(|x| (x / sum) as f32));
    }
    let labels: Vec<u32> = (0..rows).map(|i| (i % classes) as u32).collect();
    let found = label_jsds(&probabilities, &labels, classes).unwrap();
    for (i, found) in found.iter().enumerate() {
        let row: Vec<f64> = probabilities[i * classes..][..classes].iter().map(|&p| f64::from(p)).collect();
        // The rows sum to 1 in f32 only.
        let wanted = literal(&row, labels[i] as usize);
        assert!((found - wanted).abs() < 1e-6, "{row:?}: {found} is not {wanted}");
    }
}

#[test]
fn it_falls_from_the_logarithm_of_two_to_nothing() {
    assert!((label_jsd(0.0) - LN_2).abs() < 1e-15);
    assert_eq!(label_jsd(1.0), 0.0);
    let values: Vec<f64> = (0..=1000).map(|i| label_jsd(f64::from(i) / 1000.0)).collect();
    assert!(values.is_sorted_by(|a, b| a > b));
    assert!(values.iter().all(|&d| (0.0..=LN_2).contains(&d)));
    // Rounded probabilities a little outside their range are no trouble.
    assert_eq!((label_jsd(1.0 + 1e-7), label_jsd(-1e-7)), (0.0, LN_2));
}

#[test]
fn the_cut_off_is_the_mean_and_is_lowered_only_above_its_threshold() {
    let d = [0.6, 0.8, 1.0];
    assert!((cut_off(&d, 0.9, 5.0) - 0.8).abs() < 1e-12);
    assert!((cut_off(&d, 0.7, 5.0) - (0.8 - 0.2 / 5.0)).abs() < 1e-12);
    assert_eq!(cut_off(&[], 0.7, 5.0), 0.0);
}

#[test]
fn natural_logarithms_never_reach_the_published_threshold_and_those_to_base_two_do() {
    // Every label is as wrong as can be but one.
    let d: Vec<f64> = [0.5].into_iter().chain([1e-9; 30]).map(label_jsd).collect();
    let mean = d.iter().sum::<f64>() / d.len() as f64;
    assert_eq!(cut_off(&d, 0.7, 5.0), mean);
    let d: Vec<f64> = d.into_iter().map(|d| d / LN_2).collect();
    assert!(cut_off(&d, 0.7, 5.0) < mean / LN_2 - 0.1);
}

#[test]
fn every_class_gives_its_smallest_and_a_small_class_all_it_has() {
    let labels = [0, 1, 0, 1, 0, 0, 2];
    let d = [0.3, 0.9, 0.1, 0.2, 0.1, 0.5, 0.7];
    let chosen = smallest_of_each(&d, &labels, 4, 2).unwrap();
    assert_eq!(chosen, [false, true, true, true, true, false, true]);
    assert_eq!(
        smallest_of_each(&[0.5; 3], &[0; 3], 1, 1).unwrap(),
        [true, false, false],
        "the first of equals"
    );
    assert!(smallest_of_each(&d, &labels[..6], 4, 2).is_err());
    assert!(smallest_of_each(&d, &labels, 2, 2).is_err());
}

#[test]
fn a_hard_class_is_not_crowded_out_by_an_easy_one() {
    // All of class 1 lie above the mean: a single limit would take none of them.
    let labels: Vec<u32> = (0..20).map(|i| i / 10).collect();
    let d: Vec<f64> = (0..20).map(|i| if i < 10 { 0.1 } else { 0.5 } + f64::from(i) / 1000.0).collect();
    let (chosen, share) = select_uniformly(&d, &labels, 2, 0.7, 5.0).unwrap();
    assert_eq!(share, 0.5);
    assert_eq!(chosen[..10].iter().filter(|&&c| c).count(), 5);
    assert_eq!(chosen[10..], [true, true, true, true, true, false, false, false, false, false]);
}

#[test]
fn ranges_are_those_of_classes_and_places_in_them_are_clipped() {
    let ranges = class_ranges(&[0.2, 0.5, 0.3, 0.4], &[0, 0, 0, 2], 3).unwrap();
    assert_eq!(ranges, [[0.2, 0.5], [0.0, 0.0], [0.4, 0.4]]);
    assert!((place(0.35, ranges[0]) - 0.5).abs() < 1e-12);
    assert_eq!([place(0.1, ranges[0]), place(0.9, ranges[0])], [0.0, 1.0]);
    assert_eq!(place(0.9, ranges[2]), 0.0, "a range without width says nothing against a label");
}
