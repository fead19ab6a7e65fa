//! Sums over groups against the double loop over all pairs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale::Taxonomy;
use negscale::taxonomy::{Relation, Thresholds};
use negscale_similarity::kendall::{self, distance};
use negscale_similarity::steps::step_change;
use negscale_similarity::{ByRelation, Labels, Pairs, Units, change, similarity};
use proptest::prelude::*;

/// Three pairs of relatives; at (2, 4) there are related, neutral and unrelated classes.
fn tree() -> Taxonomy {
    let text = "all\n  living\n    plant\n      rose\n      tulip\n    beast\n      cat\n      dog\n  made\n    lorry\n    bus\n";
    Taxonomy::from_indented("six", text, &["rose", "tulip", "cat", "dog", "lorry", "bus"]).unwrap()
}

fn thresholds() -> Thresholds {
    Thresholds::new(2, 4).unwrap()
}

fn place(a: u32, b: u32) -> usize {
    match tree().relation(a as usize, b as usize, thresholds()) {
        Relation::Same => 0,
        Relation::Related => 1,
        Relation::Neutral => 2,
        Relation::Unrelated => 3,
    }
}

/// Number, mean of x, mean of x squared.
#[derive(Debug, Clone, Copy, Default)]
struct Loop {
    pairs: u64,
    sums: [f64; 2],
}

fn add(into: &mut [Loop; 4], at: usize, x: f64) {
    into[at].pairs += 1;
    into[at].sums[0] += x;
    into[at].sums[1] += x * x;
}

/// All kinds of pairs by the definitions: given, truth, three categories by truth, three by given, cross-noise.
fn loops(
    given: &[u32],
    truth: &[u32],
    keep: impl Fn(usize) -> bool,
    x: impl Fn(usize, usize) -> f64,
) -> [[Loop; 4]; 9] {
    let mut all = [[Loop::default(); 4]; 9];
    for i in 0..given.len() {
        for j in 0..i {
            if !keep(i) || !keep(j) {
                continue;
            }
            let x = x(i, j);
            let (clean_i, clean_j) = (given[i] == truth[i], given[j] == truth[j]);
            let category = usize::from(!clean_i) + usize::from(!clean_j);
            let (by_given, by_truth) = (place(given[i], given[j]), place(truth[i], truth[j]));
            add(&mut all[0], by_given, x);
            add(&mut all[1], by_truth, x);
            add(&mut all[2 + category], by_truth, x);
            add(&mut all[5 + category], by_given, x);
            if clean_i != clean_j && given[i] == given[j] {
                add(&mut all[8], by_truth, x);
            }
        }
    }
    all
}

fn lists<T: Copy>(pairs: &Pairs<T>) -> [ByRelation<T>; 9] {
    let known = pairs.known.unwrap();
    let (t, g) = (known.by_truth, known.by_given);
    [
        pairs.given,
        known.truth,
        t.clean_clean,
        t.clean_noisy,
        t.noisy_noisy,
        g.clean_clean,
        g.clean_noisy,
        g.noisy_noisy,
        known.cross_noise,
    ]
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Samples with features of both runs, logits of both runs, given and true labels.
#[derive(Debug, Clone)]
struct Case {
    dim: usize,
    run: Vec<f32>,
    clean: Vec<f32>,
    logits: Vec<f32>,
    given: Vec<u32>,
    truth: Vec<u32>,
}

fn cases() -> impl Strategy<Value = Case> {
    (0usize..40, prop::sample::select(vec![1usize, 2, 5, 31, 32, 33, 70])).prop_flat_map(|(n, dim)| {
        let number = || prop_oneof![6 => -2.0f32..2.0, 1 => Just(0.0f32)];
        // Few distinct logits, so that there are ties.
        let logit = (0u8..4).prop_map(f32::from);
        (
            prop::collection::vec(number(), n * dim),
            prop::collection::vec(number(), n * dim),
            prop::collection::vec(logit, n * 6),
            prop::collection::vec(0u32..6, n),
            prop::collection::vec(prop_oneof![2 => Just(9u32), 1 => 0u32..6], n),
        )
            .prop_map(move |(run, clean, logits, given, drawn)| {
                let truth = drawn.iter().zip(&given).map(|(&d, &g)| if d == 9 { g } else { d }).collect();
                Case { dim, run, clean, logits, given, truth }
            })
    })
}

fn close(a: f64, b: f64, within: f64) -> bool {
    (a - b).abs() <= within
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn similarity_and_its_change_are_those_of_the_double_loop(case in cases()) {
        let Case { dim, run, clean, given, truth, .. } = &case;
        let labels = Labels::new(given, Some(truth), &tree(), thresholds()).unwrap();
        let (run_units, clean_units) = (Units::new(run, *dim).unwrap(), Units::new(clean, *dim).unwrap());
        let row = |of: &Vec<f32>, i: usize| of[i * dim..(i + 1) * dim].to_vec();
        let has = |of: &Vec<f32>, i: usize| row(of, i).iter().any(|x| *x != 0.0);

        let found = lists(&similarity(&run_units, &labels).unwrap());
        let wanted = loops(given, truth, |i| has(run, i), |i, j| cosine(&row(run, i), &row(run, j)));
        for (found, wanted) in found.iter().zip(&wanted) {
            for (found, wanted) in found.list().iter().zip(wanted) {
                let n = wanted.pairs as f64;
                prop_assert_eq!(found.map_or(0, |f| f.pairs), wanted.pairs);
                if let Some(found) = found {
                    let mean = wanted.sums[0] / n;
                    let std = (wanted.sums[1] / n - mean * mean).max(0.0).sqrt();
                    prop_assert!(close(found.mean, mean, 1e-12), "{} {}", found.mean, mean);
                    prop_assert!(close(found.std, std, 1e-6), "{} {}", found.std, std);
                    prop_assert!(close(found.normalised, (1.0 + mean) / 2.0, 1e-12));
                }
            }
        }

        let both = |i: usize| has(run, i) && has(clean, i);
        let difference = |i: usize, j: usize| cosine(&row(run, i), &row(run, j)) - cosine(&row(clean, i), &row(clean, j));
        let wanted = loops(given, truth, both, difference);
        let (_, _, changes) = change(&run_units, &clean_units, &labels).unwrap();
        for (found, wanted) in lists(&changes).iter().zip(&wanted) {
            for (found, wanted) in found.list().iter().zip(wanted) {
                prop_assert_eq!(found.map_or(0, |f| f.pairs), wanted.pairs);
                if let Some(found) = found {
                    let n = wanted.pairs as f64;
                    prop_assert!(close(found.difference, wanted.sums[0] / n, 1e-11));
                    prop_assert!(close(found.rms, (wanted.sums[1] / n).sqrt(), 1e-6), "{found:?} {wanted:?}");
                    prop_assert!(found.correlation.is_none_or(|r| (-1.0..=1.0).contains(&r)));
                }
            }
        }
    }

    #[test]
    fn orders_of_logits_are_those_of_the_double_loop_ties_included(case in cases()) {
        let Case { logits, given, truth, .. } = &case;
        let labels = Labels::new(given, Some(truth), &tree(), thresholds()).unwrap();
        let found = kendall::orders(logits, &labels).unwrap();
        let row = |i: usize| &logits[i * 6..][..6];
        let softmax = |row: &[f32]| {
            let sum: f64 = row.iter().map(|&z| f64::from(z).exp()).sum();
            row.iter().map(|&z| f64::from(z).exp() / sum).collect::<Vec<_>>()
        };
        let overlap = |i: usize, j: usize| softmax(row(i)).iter().zip(softmax(row(j))).map(|(a, b)| a * b).sum();
        let wanted = [loops(given, truth, |_| true, |i, j| distance(row(i), row(j))), loops(given, truth, |_| true, overlap)];
        for (found, wanted) in [found.kendall.unwrap(), found.overlap].iter().zip(&wanted) {
            for (found, wanted) in lists(found).iter().zip(wanted) {
                for (found, wanted) in found.list().iter().zip(wanted) {
                    prop_assert_eq!(found.map_or(0, |f| f.pairs), wanted.pairs);
                    if let Some(found) = found {
                        prop_assert!(close(found.mean, wanted.sums[0] / wanted.pairs as f64, 1e-12));
                    }
                }
            }
        }
    }

    #[test]
    fn the_change_of_a_step_is_that_of_the_double_loop(case in cases()) {
        let Case { dim, run, clean, given, truth, .. } = &case;
        let labels = Labels::new(given, None, &tree(), thresholds()).unwrap();
        let found = step_change(&Units::new(clean, *dim).unwrap(), &Units::new(run, *dim).unwrap(), &labels).unwrap();
        let row = |of: &Vec<f32>, i: usize| of[i * dim..(i + 1) * dim].to_vec();
        let has = |i: usize| [run, clean].iter().all(|of| row(of, i).iter().any(|x| *x != 0.0));
        let x = |i: usize, j: usize| (cosine(&row(run, i), &row(run, j)) - cosine(&row(clean, i), &row(clean, j))).abs();
        let wanted = loops(given, truth, has, x)[0];
        for (found, wanted) in found.list().iter().zip(&wanted) {
            prop_assert_eq!(found.map_or(0, |f| f.pairs), wanted.pairs);
            if let Some(found) = found {
                prop_assert!(close(found.mean, wanted.sums[0] / wanted.pairs as f64, 1e-12));
            }
        }
    }
}

#[test]
fn the_distance_of_orders_is_that_counted_by_hand() {
    assert_eq!(distance(&[3.0, 2.0, 1.0], &[3.0, 2.0, 1.0]), 0.0);
    assert_eq!(distance(&[3.0, 2.0, 1.0], &[1.0, 2.0, 3.0]), 1.0);
    assert_eq!(distance(&[3.0, 2.0, 1.0], &[2.0, 3.0, 1.0]), 1.0 / 3.0);
    assert_eq!(
        distance(&[3.0, 3.0, 1.0], &[3.0, 2.0, 1.0]),
        0.5 / 3.0,
        "a tie in one alone is half a difference"
    );
    assert_eq!(distance(&[3.0, 3.0, 1.0], &[2.0, 2.0, 1.0]), 0.0, "a tie in both is none");
    assert_eq!(distance(&[3.0], &[1.0]), 0.0);
}
