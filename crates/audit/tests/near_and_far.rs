//! Near-copies and outliers: what is planted is found, what is not is not.
#![allow(clippy::unwrap_used)]

mod drawn;

use drawn::{clusters, normal};
use negscale_audit::crossfit::Rows;
use negscale_audit::neighbours::{
    Copies, CopySettings, Metric, NeighbourSettings, OutlierSettings, copies, copies_across, nearest,
    nearest_in, outliers,
};

const METRICS: [Metric; 3] =
    [Metric::Cosine { centred: false }, Metric::Cosine { centred: true }, Metric::Euclidean];

fn search(metric: Metric) -> NeighbourSettings {
    NeighbourSettings { metric, ..Default::default() }
}

fn found(values: &[f32], dim: usize, search: &NeighbourSettings) -> Copies {
    let rows = Rows::new(values, dim).unwrap();
    copies(&rows, &nearest(&rows, search).unwrap(), &CopySettings::default()).unwrap()
}

/// Adds a row that differs from another by so much in each number.
fn add_near(values: &mut Vec<f32>, dim: usize, row: usize, by: f32) {
    for p in 0..dim {
        values.push(values[row * dim + p] + by * normal(5, (values.len() + p) as u64));
    }
}

#[test]
fn planted_copies_are_found_and_hardly_any_others() {
    for dim in [3, 8, 32, 100] {
        for metric in METRICS {
            let mut values = clusters(1000, dim, 7, 3.0);
            add_near(&mut values, dim, 20, 0.0);
            add_near(&mut values, dim, 20, 0.0);
            add_near(&mut values, dim, 900, 1e-4);
            let copies = found(&values, dim, &search(metric));
            let exact = &copies.sets()[copies.set_of(20).unwrap() as usize];
            assert_eq!(
                (exact.rows.as_slice(), exact.is_exact),
                (&[20, 1000, 1001][..], true),
                "{dim} {metric:?}"
            );
            let near = &copies.sets()[copies.set_of(900).unwrap() as usize];
            assert_eq!((near.rows.as_slice(), near.is_exact), (&[900, 1002][..], false), "{dim} {metric:?}");
            assert!(copies.sets().len() <= 4, "{dim} {metric:?}: {:?}", copies.sets());
        }
    }
}

#[test]
fn sets_are_numbered_by_their_first_row_and_rows_know_theirs() {
    // 0 and 5 are equal, 1 and 3, 2 and 4: second members come in another order than first ones.
    let kinds = [0, 1, 2, 1, 2, 0, 3u64];
    let values: Vec<f32> =
        kinds.iter().flat_map(|&kind| (0..6).map(move |p| normal(3, kind * 6 + p))).collect();
    let copies = found(&values, 6, &search(Metric::Euclidean));
    let sets: Vec<&[u32]> = copies.sets().iter().map(|set| set.rows.as_slice()).collect();
    assert_eq!(sets, [[0, 5], [1, 3], [2, 4]]);
    let numbers: Vec<Option<u32>> = (0..7).map(|row| copies.set_of(row)).collect();
    assert_eq!(numbers, [Some(0), Some(1), Some(2), Some(1), Some(2), Some(0), None]);
}

#[test]
fn a_set_larger_than_the_lists_of_neighbours_is_one_set() {
    // Forty near-copies of a row in four tight heaps of ten, with three neighbours each: lists stay within a heap.
    for metric in METRICS {
        let dim = 16;
        let mut values = clusters(600, dim, 5, 3.0);
        for heap in 0..4 {
            for member in 0..10 {
                for p in 0..dim {
                    let (far, near) =
                        (normal(6, heap * 100 + p as u64), normal(7, member * 100 + heap * 1000 + p as u64));
                    values.push(values[p] + 1e-3 * far + 1e-6 * near);
                }
            }
        }
        let copies = found(&values, dim, &NeighbourSettings { count: 3, ..search(metric) });
        let set = &copies.sets()[copies.set_of(0).unwrap() as usize];
        let wanted: Vec<u32> = std::iter::once(0).chain(600..640).collect();
        assert_eq!((set.rows.as_slice(), copies.sets().len()), (wanted.as_slice(), 1), "{metric:?}");
    }
}

#[test]
fn near_rows_are_the_rule_in_the_plane_and_no_copies() {
    for metric in METRICS {
        let values: Vec<f32> = (0..8000).map(|at| normal(4, at)).collect();
        let copies = found(&values, 2, &search(metric));
        assert!(copies.sets().len() < 6, "{metric:?}: {} sets", copies.sets().len());
        assert!(copies.sets().iter().all(|set| set.rows.len() == 2));
    }
}

#[test]
fn copies_across_two_datasets_are_told_from_those_within_one() {
    let dim = 12;
    let mut test = clusters(80, dim, 4, 3.0);
    let train: Vec<f32> = (0..300 * dim).map(|at| 3.0 * normal(8, at as u64)).collect();
    test.extend_from_slice(&train[7 * dim..8 * dim]);
    let own: Vec<f32> = test[..dim].to_vec();
    test.extend_from_slice(&own);
    let (train, test) = (Rows::new(&train, dim).unwrap(), Rows::new(&test, dim).unwrap());
    let copies = copies_across(&train, &test, &search(METRICS[1]), &CopySettings::default()).unwrap();
    let sets: Vec<&[u32]> = copies.sets().iter().map(|set| set.rows.as_slice()).collect();
    assert_eq!(sets, [[7, 380], [300, 381]]);
    assert_eq!(copies.across(train.len()), [0]);
}

#[test]
fn rows_all_alike_are_one_set_and_have_no_outliers() {
    for metric in METRICS {
        let values = vec![0.3; 2000 * 3];
        let rows = Rows::new(&values, 3).unwrap();
        let near = nearest(&rows, &search(metric)).unwrap();
        let copies = copies(&rows, &near, &CopySettings::default()).unwrap();
        assert_eq!(
            (copies.sets().len(), copies.sets()[0].rows.len(), copies.sets()[0].is_exact),
            (1, 2000, true)
        );
        assert!(outliers(&near, &OutlierSettings::default()).unwrap().flagged().is_empty());
    }
}

#[test]
fn few_rows_have_neither_copies_nor_outliers() {
    for metric in METRICS {
        for n in 0..4 {
            let values: Vec<f32> = (0..n * 3).map(|at| normal(1, at)).collect();
            let rows = Rows::new(&values, 3).unwrap();
            let near = nearest(&rows, &search(metric)).unwrap();
            assert_eq!(copies(&rows, &near, &CopySettings::default()).unwrap().sets(), []);
            assert!(outliers(&near, &OutlierSettings::default()).unwrap().flagged().is_empty());
        }
    }
}

#[test]
fn clean_clusters_have_next_to_no_outliers() {
    for (dim, most) in [(2, 6), (5, 6), (10, 0), (64, 0)] {
        for groups in [1, 6] {
            for metric in METRICS {
                let values = clusters(2000, dim, groups, 4.0);
                let near = nearest(&Rows::new(&values, dim).unwrap(), &search(metric)).unwrap();
                let flagged = outliers(&near, &OutlierSettings::default()).unwrap().flagged().len();
                assert!(flagged <= most, "{flagged} of {groups} clusters in {dim} dimensions, {metric:?}");
            }
        }
    }
}

#[test]
fn rows_far_away_are_outliers_alone_or_a_few_together() {
    for dim in [2, 10, 64] {
        let mut values = clusters(1000, dim, 5, 4.0);
        values.extend((0..dim).map(|p| if p == 0 { 60.0 } else { 0.0 }));
        for _ in 0..3 {
            values.extend((0..dim).map(|p| if p == 1 { -60.0 } else { 0.0 }));
            let from = values.len() - dim;
            (from..values.len()).for_each(|at| values[at] += normal(6, at as u64));
        }
        let near = nearest(&Rows::new(&values, dim).unwrap(), &search(Metric::Euclidean)).unwrap();
        let outliers = outliers(&near, &OutlierSettings::default()).unwrap();
        let mut first = outliers.flagged();
        first.truncate(4);
        first.sort_unstable();
        assert_eq!(first, [1000, 1001, 1002, 1003], "{dim} dimensions");
        assert!((1000..1004).all(|row| outliers.is_outlier(row) && outliers.scores()[row] > outliers.bar()));
    }
}

#[test]
fn a_direction_of_its_own_is_an_outlier_by_cosine() {
    let dim = 32;
    let mut values = clusters(1000, dim, 5, 4.0);
    values.extend((0..dim).map(|p| 4.0 * normal(9, p as u64)));
    for metric in &METRICS[..2] {
        let near = nearest(&Rows::new(&values, dim).unwrap(), &search(*metric)).unwrap();
        assert_eq!(outliers(&near, &OutlierSettings::default()).unwrap().flagged(), [1000]);
    }
}

#[test]
fn a_loose_cluster_beside_a_dense_one_is_no_heap_of_outliers() {
    let dim = 8;
    let values: Vec<f32> = (0..2000 * dim)
        .map(|at| if at / dim % 4 == 0 { 100.0 + 10.0 * normal(1, at as u64) } else { normal(1, at as u64) })
        .collect();
    let near = nearest(&Rows::new(&values, dim).unwrap(), &search(Metric::Euclidean)).unwrap();
    let flagged = outliers(&near, &OutlierSettings::default()).unwrap().flagged();
    assert!(flagged.len() <= 2, "{flagged:?}");
}

#[test]
fn threads_change_neither_copies_nor_outliers() {
    let mut values = clusters(900, 6, 4, 2.0);
    (0..40).for_each(|row| add_near(&mut values, 6, row * 3, 1e-3));
    let run = |threads: usize| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let rows = Rows::new(&values, 6).unwrap();
            let near = nearest(&rows, &search(METRICS[1])).unwrap();
            let copies = copies(&rows, &near, &CopySettings::default()).unwrap();
            (copies, outliers(&near, &OutlierSettings::default()).unwrap())
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn neighbours_of_other_rows_are_refused_in_words_that_help() {
    let values = clusters(30, 2, 1, 1.0);
    let (few, all) = (Rows::new(&values[..20], 2).unwrap(), Rows::new(&values, 2).unwrap());
    let near = nearest_in(&few, &all, &search(Metric::Euclidean)).unwrap();
    let error = copies(&all, &near, &CopySettings::default()).unwrap_err().to_string();
    assert_eq!(error, "neighbours: those of 10 rows are not of these 30: call `nearest` with them");
    assert!(outliers(&near, &OutlierSettings::default()).unwrap_err().to_string().contains("call `nearest`"));
    let near = nearest(&all, &search(Metric::Euclidean)).unwrap();
    let wrong = CopySettings { similarity: 99.5, ..Default::default() };
    assert!(copies(&all, &near, &wrong).unwrap_err().to_string().contains("setting `similarity` = 99.5"));
    let wrong = CopySettings { chance: 0.0, ..Default::default() };
    assert!(copies(&all, &near, &wrong).unwrap_err().to_string().contains("setting `chance`"));
    let wrong = OutlierSettings { deviations: f64::NAN, ..Default::default() };
    assert!(outliers(&near, &wrong).unwrap_err().to_string().contains("setting `deviations`"));
    let wrong = OutlierSettings { least_ratio: 0.5, ..Default::default() };
    assert!(outliers(&near, &wrong).unwrap_err().to_string().contains("setting `least_ratio`"));
}
