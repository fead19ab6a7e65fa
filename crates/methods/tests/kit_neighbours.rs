//! Nearest neighbours and their votes against sorting everything.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_methods::kit::knn::{FEWEST, Voters, adaptive_vote, nearest, vote};
use negscale_methods::kit::rows::normalise;

/// Pseudo-random numbers below `n`.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    /// Multiples of 1/16: sums of their products are exact in f32, so that neighbours tie, and in any order of summation.
    fn exact_rows(&mut self, samples: usize, dim: usize) -> Vec<f32> {
        (0..samples * dim).map(|_| (self.below(9) as f32 - 4.0) / 16.0).collect()
    }

    fn labels(&mut self, samples: usize, classes: u64) -> Vec<u32> {
        (0..samples).map(|_| self.below(classes) as u32).collect()
    }
}

/// All cosines of a sample, sorted; f64, literally.
fn sorted(z: &[f32], dim: usize, query: usize) -> Vec<(f64, usize)> {
    let mut all = Vec::new();
    for j in 0..z.len() / dim {
        let mut product = 0.0;
        for p in 0..dim {
            product += f64::from(z[query * dim + p]) * f64::from(z[j * dim + p]);
        }
        all.push((product, j));
    }
    all.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap().then(a.1.cmp(&b.1)));
    all
}

fn balanced(near: &[(f64, usize)], labels: &[u32], classes: usize) -> Vec<f64> {
    let mut v = vec![0.0; classes];
    for &(_, j) in near {
        v[labels[j] as usize] += 1.0 / near.len() as f64;
    }
    for (c, v) in v.iter_mut().enumerate() {
        let share = labels.iter().filter(|&&y| y as usize == c).count() as f64 / labels.len() as f64;
        *v = if share > 0.0 { *v / share } else { 0.0 };
    }
    let sum: f64 = v.iter().sum();
    v.iter().map(|v| v / sum).collect()
}

fn literal_size(all: &[(f64, usize)], fewest: usize, ceiling: usize) -> usize {
    for step in 0..200 {
        let radius = f64::from(99 - step) / 100.0;
        let count = all.iter().filter(|(s, _)| *s > radius).count();
        if count >= fewest {
            return count.clamp(FEWEST, ceiling).min(all.len());
        }
    }
    ceiling.min(all.len())
}

fn close(found: &[f64], wanted: &[f64]) {
    for (a, b) in found.iter().zip(wanted) {
        assert!((a - b).abs() < 1e-12, "{found:?} is not {wanted:?}");
    }
}

const SIZES: [(usize, usize, usize); 7] =
    [(1, 1, 3), (2, 3, 1), (6, 2, 200), (130, 5, 7), (257, 16, 31), (1025, 3, 200), (2100, 8, 50)];

#[test]
fn neighbours_are_those_of_a_full_sort_with_ties_by_index() {
    let mut dice = Dice(1);
    for (samples, dim, k) in SIZES {
        let z = dice.exact_rows(samples, dim);
        let queries: Vec<usize> = (0..samples).rev().step_by(3).collect();
        let found = nearest(&z, dim, &queries, k).unwrap();
        assert_eq!(found.len(), queries.len());
        for (found, &query) in found.iter().zip(&queries) {
            let wanted = sorted(&z, dim, query);
            let found: Vec<_> = found.iter().map(|n| (f64::from(n.similarity), n.index as usize)).collect();
            assert_eq!(found, wanted[..k.min(samples)], "{samples} x {dim}, query {query}");
        }
    }
}

#[test]
fn votes_are_those_of_a_full_sort() {
    let mut dice = Dice(2);
    for (samples, dim, k) in SIZES {
        let z = dice.exact_rows(samples, dim);
        // Class 2 is missing.
        let labels: Vec<u32> = dice.labels(samples, 3).iter().map(|&y| if y == 2 { 3 } else { y }).collect();
        let voters = Voters { labels: &labels, classes: 5 };
        let queries: Vec<usize> = (0..samples).step_by(2).collect();
        let found = vote(&z, dim, voters, &queries, k).unwrap();
        for (at, &query) in queries.iter().enumerate() {
            let all = sorted(&z, dim, query);
            assert_eq!(found.neighbours[at], k.min(samples));
            close(found.row(at), &balanced(&all[..k.min(samples)], &labels, 5));
        }
        let ceiling = k.max(FEWEST);
        let fewest: Vec<usize> = queries.iter().map(|_| 1 + dice.below(ceiling as u64) as usize).collect();
        let found = adaptive_vote(&z, dim, voters, &queries, &fewest, ceiling).unwrap();
        for (at, &query) in queries.iter().enumerate() {
            let all = sorted(&z, dim, query);
            let size = literal_size(&all, fewest[at], ceiling);
            assert_eq!(found.neighbours[at], size, "{samples} x {dim}, query {query}, {}", fewest[at]);
            close(found.row(at), &balanced(&all[..size], &labels, 5));
        }
    }
}

#[test]
fn the_number_of_neighbours_adapts_to_how_close_they_are() {
    // Six samples at one place, then one every tenth of a radian.
    let angles: Vec<f64> = (0..40).map(|i| if i < 6 { 0.0 } else { 0.1 * f64::from(i - 5) }).collect();
    let z: Vec<f32> = angles.iter().flat_map(|a| [a.cos() as f32, a.sin() as f32]).collect();
    let labels = vec![0; 40];
    let voters = Voters { labels: &labels, classes: 1 };
    let sizes = |fewest| adaptive_vote(&z, 2, voters, &[0], &[fewest], 20).unwrap().neighbours[0];
    assert_eq!(sizes(1), 7); // cos 0.1 = 0.995 is beyond the first radius
    assert_eq!(sizes(7), 7);
    assert_eq!(sizes(8), 8); // cos 0.2 = 0.980
    assert_eq!(sizes(20), 20);
}

#[test]
fn equal_rows_have_equal_similarities_wherever_they_stand() {
    let mut dice = Dice(3);
    let (dim, samples) = (129, 1500);
    let features: Vec<f32> = (0..samples * dim).map(|_| dice.below(1 << 20) as f32 / 1e6 - 0.5).collect();
    let mut z = normalise(&features, dim).unwrap();
    for copy in [3, 130, 700, 1023, 1024, 1498, 1499] {
        z.copy_within(0..dim, copy * dim);
    }
    let found = nearest(&z, dim, &[0, 700, 1499], 9).unwrap();
    for found in &found {
        let order: Vec<u32> = found.iter().map(|n| n.index).collect();
        assert_eq!(order[..8], [0, 3, 130, 700, 1023, 1024, 1498, 1499]);
        assert!(found[..8].iter().all(|n| n.similarity == found[0].similarity));
    }
    assert_eq!(found[0], found[1]);
}

#[test]
fn neither_threads_nor_other_queries_change_a_bit() {
    let mut dice = Dice(4);
    let (dim, samples) = (33, 1100);
    let features: Vec<f32> = (0..samples * dim).map(|_| dice.below(1 << 20) as f32 / 1e6 - 0.3).collect();
    let z = normalise(&features, dim).unwrap();
    let labels = dice.labels(samples, 7);
    let voters = Voters { labels: &labels, classes: 7 };
    let everyone: Vec<usize> = (0..samples).collect();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let near = nearest(&z, dim, &everyone, 20).unwrap();
            (near, adaptive_vote(&z, dim, voters, &everyone, &vec![9; samples], 40).unwrap())
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(3));
    for query in [0, 255, 256, 1099] {
        assert_eq!(nearest(&z, dim, &[query], 20).unwrap()[0], one.0[query]);
    }
}

#[test]
fn a_label_agrees_if_it_has_enough_of_the_winners_vote() {
    let z = [1.0, 1.0, 1.0, 1.0, 1.0];
    let voters = Voters { labels: &[0, 0, 1, 1, 1], classes: 3 };
    // Of the first three, class 0 has 2 of 2 and class 1 has 1 of 3.
    let votes = vote(&z, 1, voters, &[4, 4, 4], 3).unwrap();
    close(votes.row(0), &[0.75, 0.25, 0.0]);
    assert_eq!(votes.agree(&[0, 1, 2], 1.0).unwrap(), [true, false, false]);
    assert_eq!(votes.agree(&[0, 1, 2], 0.3).unwrap(), [true, true, false]);
    assert!(votes.agree(&[0, 1], 1.0).is_err());
}

#[test]
fn bad_input_is_refused_by_name() {
    let labels = [0, 1, 0];
    let voters = Voters { labels: &labels, classes: 2 };
    let z = [0.0, 1.0, 0.0, f32::NAN, 1.0, 0.0];
    let error = nearest(&z, 2, &[0], 1).unwrap_err().to_string();
    assert!(error.contains("sample 1 has NaN"), "{error}");
    let z = [0.0, 1.0, 0.0, 1.0, 1.0, 0.0];
    for (error, word) in [
        (nearest(&z, 4, &[0], 1).map(drop), "6 values"),
        (nearest(&z, 0, &[0], 1).map(drop), "rows of 0"),
        (nearest(&[], 2, &[], 1).map(drop), "no samples"),
        (nearest(&z, 2, &[3], 1).map(drop), "sample 3"),
        (nearest(&z, 2, &[0], 0).map(drop), "at least 1"),
        (vote(&z, 2, Voters { labels: &[0, 1], classes: 2 }, &[0], 1).map(drop), "2 labels for 3"),
        (vote(&z, 2, Voters { labels: &[0, 1, 2], classes: 2 }, &[0], 1).map(drop), "label 2 of sample 2"),
        (adaptive_vote(&z, 2, voters, &[0], &[5], 4).map(drop), "ceiling"),
        (adaptive_vote(&z, 2, voters, &[0], &[9], 8).map(drop), "fewest"),
        (adaptive_vote(&z, 2, voters, &[0], &[0], 8).map(drop), "fewest"),
        (adaptive_vote(&z, 2, voters, &[0, 1], &[5], 8).map(drop), "2 queries"),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains(word), "{error} does not say {word}");
    }
    assert!(nearest(&z, 2, &[], 1).unwrap().is_empty());
}
