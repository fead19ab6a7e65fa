//! Groups by confidence, small losses, confident representations and ranks of features, each against its formula.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_methods::kit::knn::Votes;
use negscale_methods::kit::otsu::{Group, otsu4};
use negscale_methods::kit::rank::{positives, top_sets};
use negscale_methods::kit::rows::normalise;
use negscale_methods::kit::small_loss::{keep_count, small_loss};
use negscale_methods::kit::vote::{confidence_vote, confident_pool};

/// Pseudo-random numbers in [0, 1).
struct Dice(u64);

impl Dice {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }
}

/// The cut by its formula: sums over bins for every cut anew.
fn literal_otsu(s: &[f64]) -> (f64, f64, f64) {
    let bin = |s: f64| ((s * 1000.0).floor() / 1000.0).min(0.999);
    let m = s.iter().sum::<f64>() / s.len() as f64;
    let mut best = (f64::NEG_INFINITY, 0.5, 0.5, 0.5);
    for k in 2..=997 {
        let theta = f64::from(k) / 1000.0;
        let (low, high): (Vec<f64>, Vec<f64>) = s.iter().map(|&s| bin(s)).partition(|&b| b < theta);
        if low.is_empty() || high.is_empty() {
            continue;
        }
        let figures = |side: &[f64]| {
            let n = side.len() as f64;
            let mean = side.iter().sum::<f64>() / n;
            let variance = side.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            (n, mean, variance.max(1e-5).sqrt())
        };
        let ((n1, m1, sd1), (n2, m2, sd2)) = (figures(&low), figures(&high));
        let q = (n1 * (m1 - m).powi(2) + n2 * (m2 - m).powi(2)) / (n1 * sd1 + n2 * sd2);
        if q > best.0 * (1.0 + 1e-12) || best.0 == f64::NEG_INFINITY {
            best = (q, theta, m1, m2);
        }
    }
    (best.1, best.2, best.3)
}

#[test]
fn the_cut_is_that_of_its_formula() {
    let mut dice = Dice(1);
    for samples in [1, 2, 3, 10, 101, 400] {
        for shape in 0..4 {
            let draw = |_| match shape {
                0 => dice.unit(),
                1 if dice.unit() < 0.4 => 0.1 + 0.3 * dice.unit(),
                1 => 1.0 - 0.1 * dice.unit() * dice.unit(),
                2 => (dice.below(6) as f64) / 5.0,
                _ => 0.4 + 0.01 * dice.unit(),
            };
            let s: Vec<f64> = (0..samples).map(draw).collect();
            let found = otsu4(&s).unwrap();
            let (theta, m1, m2) = literal_otsu(&s);
            for (found, wanted) in [(found.theta, theta), (found.m1, m1), (found.m2, m2)] {
                assert!((found - wanted).abs() < 1e-12, "{found} is not {wanted}: {samples}, {shape}");
            }
            for (&s, &group) in s.iter().zip(&found.groups) {
                let wanted = if s >= found.m2 {
                    Group::G1
                } else if s >= found.theta {
                    Group::G2
                } else if s >= found.m1 {
                    Group::G3
                } else {
                    Group::G4
                };
                assert_eq!(group, wanted);
            }
        }
    }
}

#[test]
fn two_heaps_are_cut_between_them() {
    let s = [0.1f32, 0.12, 0.14, 0.9, 0.92, 0.94];
    let found = otsu4(&s).unwrap();
    assert_eq!(found.theta, 0.141); // the first of all cuts between the heaps, which are equally good
    let fewest: Vec<usize> = found.groups.iter().map(|group| group.fewest_neighbours()).collect();
    assert_eq!(fewest[0], 80);
    assert_eq!(fewest[2], 40);
    assert_eq!(fewest[3], 20);
    assert_eq!(fewest[5], 5);
}

#[test]
fn confidences_without_a_cut_are_all_high_or_all_low() {
    for (s, group) in
        [(1.0, Group::G1), (0.999, Group::G1), (0.7, Group::G1), (0.1, Group::G4), (0.0, Group::G4)]
    {
        let found = otsu4(&[s; 12]).unwrap();
        assert_eq!((found.theta, found.m1, found.m2), (0.5, 0.5, 0.5));
        assert_eq!(found.groups, [group; 12]);
    }
    assert!(otsu4(&[0.5, f64::NAN]).unwrap_err().to_string().contains("sample 1 has NaN"));
    assert!(otsu4(&[0.5, 0.5, 1.01]).unwrap_err().to_string().contains("sample 2 has 1.01"));
    assert!(otsu4::<f64>(&[]).unwrap_err().to_string().contains("no samples"));
}

#[test]
fn small_losses_come_in_order_with_ties_by_index() {
    let mut dice = Dice(2);
    for samples in [0, 1, 5, 64, 333] {
        let losses: Vec<f32> = (0..samples).map(|_| dice.below(9) as f32 - 3.0).collect();
        for n in [0, 1, samples / 2, samples, samples + 3] {
            let found = small_loss(&losses, n).unwrap();
            assert_eq!(found.len(), n.min(samples));
            for i in 0..samples {
                let before = |&j: &usize| losses[j] < losses[i] || losses[j] == losses[i] && j < i;
                let place = (0..samples).filter(before).count();
                assert_eq!(found.get(place).copied() == Some(i), place < n, "{i}");
            }
        }
    }
    assert_eq!(small_loss(&[0.0, -0.0, 0.0], 2).unwrap(), [0, 1]);
    assert!(small_loss(&[0.0, 1.0, f32::NAN], 1).unwrap_err().to_string().contains("sample 2 has NaN"));
}

#[test]
fn a_fraction_is_kept_rounded_down() {
    for (fraction, batch, wanted) in [
        (1.0, 128, 128),
        (0.0, 128, 0),
        (0.5, 5, 2),
        (0.8, 128, 102),
        (1.0 - 0.9, 10, 1),
        (1.0 - 0.4, 5, 3),
        (1.0, 0, 0),
    ] {
        assert_eq!(keep_count(fraction, batch).unwrap(), wanted, "{fraction} of {batch}");
    }
    for fraction in [-0.1, 1.1, f64::NAN] {
        assert!(keep_count(fraction, 8).unwrap_err().to_string().contains("fraction"));
    }
}

#[test]
fn ranks_are_sets_of_the_largest_values() {
    let mut dice = Dice(3);
    for (batch, dim, k) in [(1, 1, 1), (4, 6, 5), (16, 5, 2), (20, 12, 1), (3, 4, 4)] {
        let features: Vec<f32> = (0..2 * batch * dim).map(|_| dice.below(5) as f32 - 2.0).collect();
        let sets = top_sets(&features, dim, k).unwrap();
        let literal = |row: usize| -> Vec<u32> {
            let value = |p: usize| features[row * dim + p];
            let beats = |q: usize, p: usize| value(q) > value(p) || value(q) == value(p) && q < p;
            let is_top = |&p: &usize| (0..dim).filter(|&q| beats(q, p)).count() < k;
            (0..dim).filter(is_top).map(|p| p as u32).collect()
        };
        let alike = positives(&features, dim, k).unwrap();
        assert_eq!(alike.len(), 4 * batch * batch);
        for i in 0..2 * batch {
            assert_eq!(sets[i * k..(i + 1) * k], literal(i));
            for j in 0..2 * batch {
                let is_other_view = i % batch == j % batch;
                let wanted = i != j && (literal(i) == literal(j) || is_other_view);
                assert_eq!(alike[i * 2 * batch + j], wanted, "{i} and {j}");
            }
        }
    }
    // Value, not magnitude; the order inside a set does not count.
    assert_eq!(top_sets(&[-9.0, 1.0, 2.0, 0.5, 3.0, 2.5], 3, 2).unwrap(), [1, 2, 1, 2]);
    assert!(top_sets(&[1.0, 2.0, 3.0, f32::NAN], 2, 1).unwrap_err().to_string().contains("sample 1 has NaN"));
    assert!(top_sets(&[1.0, 2.0], 2, 3).is_err() && top_sets(&[1.0, 2.0], 2, 0).is_err());
    assert!(positives(&[1.0, 2.0, 3.0], 1, 1).unwrap_err().to_string().contains("3 rows"));
}

#[test]
fn confident_representations_vote_as_the_formulas_say() {
    let mut dice = Dice(4);
    for (samples, dim, classes, rho, k) in [
        (1, 2, 1, 0.2, 50),
        (9, 3, 3, 0.5, 2),
        (60, 4, 4, 0.2, 50),
        (400, 8, 5, 0.3, 10),
        (300, 6, 30, 1.0, 3),
    ] {
        // Few values: probabilities and products tie. The last class is nobody's label.
        let p: Vec<f32> = (0..samples * classes).map(|_| dice.below(8) as f32 / 8.0).collect();
        let labels: Vec<u32> = (0..samples).map(|_| dice.below((classes - 1).max(1)) as u32).collect();
        let z: Vec<f32> = (0..samples * dim).map(|_| dice.below(9) as f32 / 16.0 - 0.25).collect();
        let pool = confident_pool(&p, &labels, classes, rho).unwrap();
        let most = (rho * samples as f64 / classes as f64).ceil() as usize;
        let is_candidate = |i: usize, c: usize| {
            let row = &p[i * classes..(i + 1) * classes];
            labels[i] as usize == c
                && (0..classes).all(|d| if d < c { row[d] < row[c] } else { row[d] <= row[c] })
        };
        for c in 0..classes {
            let beats = |j: usize, i: usize| {
                let (a, b) = (p[j * classes + c], p[i * classes + c]);
                is_candidate(j, c) && (a > b || a == b && j < i)
            };
            let is_member =
                |&i: &usize| is_candidate(i, c) && (0..samples).filter(|&j| beats(j, i)).count() < most;
            assert_eq!(pool[c], (0..samples).filter(is_member).collect::<Vec<_>>(), "class {c}");
        }
        let found = confidence_vote(&z, dim, &labels, &pool, k).unwrap();
        let all: Vec<(usize, usize)> =
            (0..classes).flat_map(|c| pool[c].iter().map(move |&i| (i, c))).collect();
        for i in 0..samples {
            let cosine = |j: usize| -> f64 {
                (0..dim).map(|q| f64::from(z[i * dim + q]) * f64::from(z[j * dim + q])).sum()
            };
            let mut near = all.clone();
            near.sort_by(|a, b| cosine(b.0).partial_cmp(&cosine(a.0)).unwrap().then(a.0.cmp(&b.0)));
            near.truncate(k);
            let votes = |c: usize| {
                let count = near.iter().filter(|n| n.1 == c).count();
                if count == 0 { 0.0 } else { count as f64 / (pool[c].len() as f64 / all.len() as f64) }
            };
            let sum: f64 = (0..classes).map(votes).sum();
            let row = found.votes.row(i);
            for c in 0..classes {
                let wanted = if all.is_empty() { 0.0 } else { votes(c) / sum };
                assert!((row[c] - wanted).abs() < 1e-12, "{row:?}");
            }
            let label = labels[i] as usize;
            assert_eq!(found.weights[i], row[label]);
            let wins =
                (0..classes).all(|c| if c < label { row[c] < row[label] } else { row[c] <= row[label] });
            assert_eq!(found.clean[i], wins && !all.is_empty());
        }
    }
}

#[test]
fn without_representations_nobody_is_clean() {
    let found = confidence_vote(&[1.0, 0.5], 1, &[0, 1], &[vec![], vec![]], 50).unwrap();
    assert_eq!(found.votes, Votes { classes: 2, values: vec![0.0; 4], neighbours: vec![0; 2] });
    assert_eq!((found.clean, found.weights), (vec![false; 2], vec![0.0; 2]));
}

#[test]
fn a_vote_refuses_bad_input_by_name() {
    let p = [0.5, 0.5, f32::NAN, 0.5];
    assert!(confident_pool(&p, &[0, 1], 2, 0.2).unwrap_err().to_string().contains("sample 1 has NaN"));
    assert!(confident_pool(&p[..2], &[2], 2, 0.2).unwrap_err().to_string().contains("label 2 of sample 0"));
    assert!(confident_pool(&p[..2], &[0], 2, 0.0).unwrap_err().to_string().contains("rho"));
    let pool = [vec![0], vec![5]];
    let refuse =
        |z: &[f32], pool: &[Vec<usize>], k| confidence_vote(z, 1, &[0, 1], pool, k).unwrap_err().to_string();
    assert!(refuse(&[1.0, f32::NAN], &pool, 3).contains("sample 1 has NaN"));
    assert!(refuse(&[1.0, 1.0], &pool, 3).contains("sample 5"));
    assert!(refuse(&[1.0, 1.0], &pool[..1], 3).contains("label 1 of sample 1"));
    assert!(refuse(&[1.0, 1.0], &[vec![0], vec![1]], 0).contains("at least 1"));
}

#[test]
fn rows_are_scaled_to_length_one_and_zeros_stay() {
    assert_eq!(normalise(&[3.0, 4.0, 0.0, 0.0, -2e30, 0.0], 2).unwrap(), [0.6, 0.8, 0.0, 0.0, -1.0, 0.0]);
    assert!(normalise(&[1.0, f32::NAN], 1).unwrap_err().to_string().contains("sample 1 has NaN"));
    assert!(normalise(&[1.0, 2.0, 3.0], 2).unwrap_err().to_string().contains("3 values"));
}
