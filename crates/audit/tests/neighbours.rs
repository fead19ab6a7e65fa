//! Neighbours against the literal loop over all pairs, and where loops could go wrong: ties, copies, one row, no direction.
#![allow(clippy::unwrap_used)]

mod drawn;

use drawn::{clusters, normal};
use negscale_audit::Error;
use negscale_audit::crossfit::Rows;
use negscale_audit::neighbours::{
    Metric, NeighbourSettings, Neighbours, nearest, nearest_in, nearest_in_while, nearest_while,
};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const METRICS: [Metric; 3] =
    [Metric::Cosine { centred: false }, Metric::Cosine { centred: true }, Metric::Euclidean];

fn settings(count: usize, metric: Metric) -> NeighbourSettings {
    NeighbourSettings { count, metric, ..Default::default() }
}

/// All distances, as the metrics are defined.
fn literal(rows: &[Vec<f64>], others: &[Vec<f64>], metric: Metric) -> Vec<Vec<f64>> {
    let dim = others[0].len();
    let mut centre = vec![0.0; dim];
    if metric == (Metric::Cosine { centred: true }) {
        for p in 0..dim {
            centre[p] = others.iter().map(|row| row[p]).sum::<f64>() / others.len() as f64;
        }
    }
    let distance = |a: &[f64], b: &[f64]| {
        if metric == Metric::Euclidean {
            return a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt();
        }
        let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
        for p in 0..dim {
            let (x, y) = (a[p] - centre[p], b[p] - centre[p]);
            (ab, aa, bb) = (ab + x * y, aa + x * x, bb + y * y);
        }
        match (aa < 1e-12, bb < 1e-12) {
            (true, true) => 0.0,
            (false, false) => 1.0 - ab / (aa * bb).sqrt(),
            _ => 1.0,
        }
    };
    rows.iter().map(|a| others.iter().map(|b| distance(a, b)).collect()).collect()
}

fn wide(values: &[f32], dim: usize) -> Vec<Vec<f64>> {
    values.chunks_exact(dim).map(|row| row.iter().map(|&x| x.into()).collect()).collect()
}

/// Every list is ascending, equal distances by index, names nobody twice, gives true distances and leaves nobody nearer out.
fn agree(near: &Neighbours, all: &[Vec<f64>], is_own: bool, count: usize) {
    assert_eq!(near.len(), all.len());
    for (row, all) in all.iter().enumerate() {
        let mut truth: Vec<f64> = all.clone();
        if is_own {
            truth.remove(row);
        }
        truth.sort_by(f64::total_cmp);
        assert_eq!(near.width(), count.min(truth.len()));
        let mut named = near.indices(row).to_vec();
        named.sort_unstable();
        named.dedup();
        assert_eq!(named.len(), near.width(), "row {row} names a neighbour twice");
        assert!(!is_own || !named.contains(&(row as u32)), "row {row} is its own neighbour");
        let pairs: Vec<(u32, f32)> = near.of(row).collect();
        for pair in pairs.windows(2) {
            assert!((pair[0].1, pair[0].0) < (pair[1].1, pair[1].0), "row {row}: {pairs:?}");
        }
        for (&(other, distance), &truth) in pairs.iter().zip(&truth) {
            let scale = 1e-6 * (1.0 + truth);
            assert!(
                (f64::from(distance) - all[other as usize]).abs() < scale,
                "row {row}: {other} at {distance}"
            );
            assert!((f64::from(distance) - truth).abs() < scale, "row {row}: {distance} instead of {truth}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn neighbours_are_those_of_the_literal_loop(
        (n, m, dim, count) in (1usize..90, 1usize..700, 1usize..20, 1usize..30), seed in 0u64..1000,
    ) {
        let values: Vec<f32> = (0..(n + m) * dim).map(|at| 3.0 + normal(seed, at as u64)).collect();
        let (a, b) = values.split_at(n * dim);
        let (rows, others) = (Rows::new(a, dim).unwrap(), Rows::new(b, dim).unwrap());
        for metric in METRICS {
            let near = nearest(&rows, &settings(count, metric)).unwrap();
            agree(&near, &literal(&wide(a, dim), &wide(a, dim), metric), true, count);
            let near = nearest_in(&rows, &others, &settings(count, metric)).unwrap();
            agree(&near, &literal(&wide(a, dim), &wide(b, dim), metric), false, count);
        }
    }

    /// On a grid of small integers nearly everything is tied, and squared differences are exact.
    #[test]
    fn ties_go_to_the_lower_index(
        (n, dim, count, steps) in (1usize..400, 1usize..4, 1usize..20, 1u64..5), seed in 0u64..1000,
    ) {
        let values: Vec<f32> =
            (0..n * dim).map(|at| ((normal(seed, at as u64).abs() * 1e4) as u64 % steps) as f32).collect();
        let near = nearest(&Rows::new(&values, dim).unwrap(), &settings(count, Metric::Euclidean)).unwrap();
        let all = literal(&wide(&values, dim), &wide(&values, dim), Metric::Euclidean);
        for row in 0..n {
            let mut order: Vec<u32> = (0..n as u32).filter(|&other| other as usize != row).collect();
            order.sort_by(|&a, &b| all[row][a as usize].total_cmp(&all[row][b as usize]).then(a.cmp(&b)));
            order.truncate(count);
            prop_assert_eq!(near.indices(row), &order[..]);
        }
    }
}

#[test]
fn one_row_has_no_neighbours_and_no_rows_have_none() {
    for metric in METRICS {
        let one = nearest(&Rows::new(&[1.0, 2.0], 2).unwrap(), &settings(5, metric)).unwrap();
        assert_eq!((one.len(), one.width(), one.of(0).len()), (1, 0, 0));
        let none = nearest(&Rows::new(&[], 2).unwrap(), &settings(5, metric)).unwrap();
        assert!(none.is_empty());
        let (some, empty) = (Rows::new(&[1.0, 2.0], 2).unwrap(), Rows::new(&[], 2).unwrap());
        assert_eq!(nearest_in(&some, &empty, &settings(5, metric)).unwrap().width(), 0);
        assert_eq!(nearest_in(&empty, &some, &settings(5, metric)).unwrap().len(), 0);
        assert_eq!(nearest_in(&some, &some, &settings(5, metric)).unwrap().of(0).next(), Some((0, 0.0)));
        assert_eq!(nearest(&some, &settings(0, metric)).unwrap().width(), 0);
    }
}

#[test]
fn rows_that_are_all_the_same_are_each_others_neighbours_in_order() {
    for metric in METRICS {
        for value in [0.0, 0.1, -7.3e5] {
            let values = vec![value; 3000 * 3];
            let near = nearest(&Rows::new(&values, 3).unwrap(), &settings(4, metric)).unwrap();
            assert_eq!(near.indices(0), [1, 2, 3, 4], "{metric:?} of {value}");
            assert_eq!(near.indices(2), [0, 1, 3, 4]);
            assert_eq!(near.indices(2999), [0, 1, 2, 3]);
            assert!((0..3000).all(|row| near.distances(row) == [0.0; 4]));
        }
    }
}

#[test]
fn a_row_of_zeros_is_at_right_angles_to_all_others() {
    let values = [1.0, 0.0, 0.0, 0.0, -1.0, 0.1, 0.0, -0.0];
    let near = nearest(&Rows::new(&values, 2).unwrap(), &settings(3, METRICS[0])).unwrap();
    assert_eq!(near.of(1).collect::<Vec<_>>(), [(3, 0.0), (0, 1.0), (2, 1.0)]);
    assert_eq!(near.indices(0), [1, 3, 2]);
}

#[test]
fn huge_and_tiny_numbers_are_compared_as_others_are() {
    let base = [0.0, 1.0, 3.0, 6.0, 10.0, 15.0f32];
    for scale in [1e-30, 1.0, 1e37] {
        let values: Vec<f32> = base.iter().map(|x| x * scale).collect();
        let near = nearest(&Rows::new(&values, 1).unwrap(), &settings(2, Metric::Euclidean)).unwrap();
        assert_eq!(
            (near.indices(0), near.indices(5), near.indices(2)),
            (&[1, 2][..], &[4, 3][..], &[1, 0][..])
        );
    }
    // One row far away takes the others' places behind the point, not their order.
    let mut values: Vec<f32> = base.to_vec();
    values.push(3e38);
    let near = nearest(&Rows::new(&values, 1).unwrap(), &settings(2, Metric::Euclidean)).unwrap();
    assert_eq!((near.indices(0), near.indices(6)), (&[1, 2][..], &[0, 1][..]));
    // A large mean in common.
    let values: Vec<f32> = base.iter().map(|x| x + 1e6).collect();
    let near = nearest(&Rows::new(&values, 1).unwrap(), &settings(2, Metric::Euclidean)).unwrap();
    assert_eq!(near.of(2).collect::<Vec<_>>(), [(1, 2.0), (0, 3.0)]);
}

fn on_threads<T: Send>(threads: usize, work: impl Fn() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn threads_change_no_bit() {
    let values = clusters(1500, 17, 6, 2.0);
    let rows = Rows::new(&values, 17).unwrap();
    for metric in METRICS {
        for exact_up_to in [0, usize::MAX] {
            let settings = NeighbourSettings { exact_up_to, ..settings(7, metric) };
            let runs = [1, 3].map(|threads| on_threads(threads, || nearest(&rows, &settings).unwrap()));
            assert_eq!(runs[0], runs[1]);
            let bits = |near: &Neighbours| {
                (0..near.len()).flat_map(|row| near.distances(row)).map(|d| d.to_bits()).collect::<Vec<_>>()
            };
            assert_eq!(bits(&runs[0]), bits(&runs[1]));
        }
    }
}

#[test]
fn lists_find_nine_of_ten_true_neighbours() {
    // Rows in clusters, and rows without any structure, which are the hardest.
    for groups in [60, 1] {
        let values = clusters(6000, 32, groups, 2.0);
        let rows = Rows::new(&values, 32).unwrap();
        for metric in METRICS {
            let exact = nearest(&rows, &settings(10, metric)).unwrap();
            let lists =
                nearest(&rows, &NeighbourSettings { exact_up_to: 0, ..settings(10, metric) }).unwrap();
            let mut same = 0;
            for row in 0..rows.len() {
                for (other, distance) in lists.of(row) {
                    if let Some(at) = exact.indices(row).iter().position(|&true_one| true_one == other) {
                        assert_eq!(distance, exact.distances(row)[at]);
                        same += 1;
                    }
                }
            }
            let recall = same as f64 / 60_000.0;
            assert!(recall >= 0.9, "{recall} of {groups} clusters, {metric:?}");
            assert!((recall - lists.recall()).abs() < 0.04, "{recall}, {} on the sample", lists.recall());
            assert_eq!(exact.recall(), 1.0);
        }
    }
}

#[test]
fn lists_of_few_rows_still_fill_every_place() {
    for n in [2, 3, 10, 50] {
        let values = clusters(n, 3, 2, 5.0);
        let rows = Rows::new(&values, 3).unwrap();
        let lists = NeighbourSettings { exact_up_to: 0, recall: 0.1, ..settings(8, Metric::Euclidean) };
        let near = nearest(&rows, &lists).unwrap();
        for row in 0..n {
            let mut named = near.indices(row).to_vec();
            named.sort_unstable();
            named.dedup();
            assert_eq!(named.len(), 8.min(n - 1));
            assert!(!named.contains(&(row as u32)));
        }
        let all = nearest_in(&rows, &rows, &NeighbourSettings { recall: 1.0, ..lists }).unwrap();
        assert!((0..n).all(|row| all.of(row).next() == Some((row as u32, 0.0))));
    }
}

#[test]
fn a_search_ends_wherever_it_is_told_to_stop() {
    let values: Vec<f32> = (0..3000 * 8).map(|at| normal(5, at)).collect();
    let rows = Rows::new(&values, 8).unwrap();
    let asked = AtomicUsize::new(0);
    for exact_up_to in [0, usize::MAX] {
        let settings = NeighbourSettings { exact_up_to, ..settings(5, Metric::Euclidean) };
        asked.store(0, Relaxed);
        let whole = nearest_while(&rows, &settings, &|| asked.fetch_add(1, Relaxed) < usize::MAX).unwrap();
        assert_eq!(whole, nearest(&rows, &settings).unwrap());
        let all = asked.load(Relaxed);
        assert!(all > 20, "asked {all} times");
        for part in [0, 1, all / 10, all / 2, all - 1] {
            asked.store(0, Relaxed);
            let go_on = || asked.fetch_add(1, Relaxed) < part;
            assert!(
                matches!(nearest_while(&rows, &settings, &go_on), Err(Error::Stopped)),
                "after {part} of {all}"
            );
            asked.store(0, Relaxed);
            assert!(matches!(nearest_in_while(&rows, &rows, &settings, &go_on), Err(Error::Stopped)));
        }
    }
}

#[test]
fn what_cannot_be_compared_is_refused_in_words_that_help() {
    let (two, three) = (Rows::new(&[1.0; 6], 2).unwrap(), Rows::new(&[1.0; 6], 3).unwrap());
    let error = nearest_in(&two, &three, &NeighbourSettings::default()).unwrap_err().to_string();
    assert_eq!(
        error,
        "neighbours: rows of 2 numbers cannot be compared with rows of 3: give both the same columns"
    );
    for recall in [0.0, 1.5, f64::NAN] {
        let settings = NeighbourSettings { recall, ..Default::default() };
        assert!(nearest(&two, &settings).unwrap_err().to_string().contains("setting `recall`"));
    }
}
