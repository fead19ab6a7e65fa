//! InfoNCE and row lengths against their formulas in f64, gradients against central differences, and their edges.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::tensor::{Device, Tensor, TensorData};
use negscale_data::draw::{Draw, Purpose};
use negscale_methods::kit::contrast::{
    column_contrast, cross_info_nce, masked_info_nce, normalise_rows, nt_xent, positives_by_class,
};

const ROWS: usize = 8;
const SIZE: usize = 4;

fn tensor(values: &[f64]) -> Tensor<2> {
    let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
    let shape = [values.len() / SIZE, SIZE];
    Tensor::from_data(TensorData::new(values, shape), &Device::flex().autodiff()).require_grad()
}

fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    let values: Vec<f32> = tensor.into_data().try_into_vec().unwrap();
    values.into_iter().map(f64::from).collect()
}

fn stream(n: u64) -> Draw {
    Draw::new(n, Purpose::Noise, 0, 0)
}

/// Random numbers that an f32 holds exactly.
fn values(n: u64, rows: usize) -> Vec<f64> {
    let mut draw = stream(n);
    (0..rows * SIZE).map(|_| f64::from(draw.normal() as f32)).collect()
}

/// Flags with the diagonal set at random, and the last row without any positive but itself.
fn flags(n: u64) -> Vec<bool> {
    let mut draw = stream(n);
    let mut flags: Vec<bool> = (0..ROWS * ROWS).map(|_| draw.chance(0.3)).collect();
    flags[(ROWS - 1) * ROWS..].fill(false);
    flags[ROWS * ROWS - 1] = true;
    flags
}

fn unit_rows(x: &[f64]) -> Vec<f64> {
    let unit = |row: &[f64]| {
        let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        row.iter().map(|x| x / length).collect::<Vec<_>>()
    };
    x.chunks(SIZE).flat_map(unit).collect()
}

/// The printed formula; `own` says whether row i may meet key i.
fn literal(anchors: &[f64], keys: &[f64], positive: &[bool], temperature: f64, own: bool) -> f64 {
    let count = keys.len() / SIZE;
    let e = |i: usize, j: usize| {
        let dot: f64 = (0..SIZE).map(|d| anchors[i * SIZE + d] * keys[j * SIZE + d]).sum();
        (dot / temperature).exp()
    };
    let (mut total, mut used) = (0.0, 0);
    for i in 0..anchors.len() / SIZE {
        let meets = |j: &usize| own || *j != i;
        let chosen: Vec<usize> = (0..count).filter(meets).filter(|j| positive[i * count + j]).collect();
        if chosen.is_empty() {
            continue;
        }
        let all: f64 = (0..count).filter(meets).map(|j| e(i, j)).sum();
        total -= chosen.iter().map(|&j| (e(i, j) / all).ln()).sum::<f64>() / chosen.len() as f64;
        used += 1;
    }
    total / f64::from(used)
}

/// f32 similarities err by 6e-8, over a temperature of 0.02 by 3e-6; the rest is rounding of short sums. (Seen: 2.2e-7.)
fn check(found: &[f64], wanted: &[f64], name: &str) {
    let largest = wanted.iter().fold(1e-2f64, |largest, x| largest.max(x.abs()));
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() <= 5e-6 * largest, "{name}: {found} is not {wanted}");
    }
}

fn differences(x: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let moved = |at: usize, step: f64| {
        let mut moved = x.to_vec();
        moved[at] += step;
        f(&moved)
    };
    (0..x.len()).map(|at| (moved(at, 1e-6) - moved(at, -1e-6)) / 2e-6).collect()
}

#[test]
fn info_nce_within_one_set_is_its_formula() {
    for (n, temperature) in [(1, 0.1), (2, 0.5), (3, 1.0), (4, 0.02)] {
        let (x, flags) = (values(n, ROWS), flags(n));
        let oracle = |x: &[f64]| {
            let z = unit_rows(x);
            literal(&z, &z, &flags, temperature, false)
        };
        let features = tensor(&x);
        let found = masked_info_nce(normalise_rows(features.clone()), &flags, temperature);
        let gradients = found.backward();
        let name = format!("temperature {temperature}");
        check(&read(found), &[oracle(&x)], &name);
        check(&read(features.grad(&gradients).unwrap()), &differences(&x, oracle), &name);
    }
}

#[test]
fn info_nce_between_two_sets_is_its_formula() {
    let (a, k) = (values(5, ROWS), values(6, 5));
    let positive: Vec<bool> = flags(7)[..ROWS * 5].to_vec();
    let oracle = |a: &[f64], k: &[f64]| literal(&unit_rows(a), &unit_rows(k), &positive, 0.3, true);
    let (anchors, keys) = (tensor(&a), tensor(&k));
    let found = cross_info_nce(normalise_rows(anchors.clone()), normalise_rows(keys.clone()), &positive, 0.3);
    let gradients = found.backward();
    check(&read(found), &[oracle(&a, &k)], "value");
    check(&read(anchors.grad(&gradients).unwrap()), &differences(&a, |a| oracle(a, &k)), "anchors");
    check(&read(keys.grad(&gradients).unwrap()), &differences(&k, |k| oracle(&a, k)), "keys");
}

/// Whether two rows of a pair of views belong together.
fn partners(rows: usize) -> Vec<bool> {
    (0..4 * rows * rows).map(|at| (at / (2 * rows)).abs_diff(at % (2 * rows)) == rows).collect()
}

#[test]
fn nt_xent_is_its_formula() {
    for (n, rows, temperature) in [(21, 5, 0.5), (22, 4, 0.05), (23, 2, 1.0)] {
        let (a, b) = (values(n, rows), values(n + 40, rows));
        let oracle = |a: &[f64], b: &[f64]| {
            let z = unit_rows(&[a, b].concat());
            literal(&z, &z, &partners(rows), temperature, false)
        };
        let (first, second) = (tensor(&a), tensor(&b));
        let found = nt_xent(first.clone(), second.clone(), temperature);
        let gradients = found.backward();
        let name = format!("temperature {temperature}");
        check(&read(found), &[oracle(&a, &b)], &name);
        check(&read(first.grad(&gradients).unwrap()), &differences(&a, |a| oracle(a, &b)), &name);
        check(&read(second.grad(&gradients).unwrap()), &differences(&b, |b| oracle(&a, b)), &name);
    }
}

#[test]
fn nt_xent_of_far_samples_with_equal_views_costs_almost_nothing_and_of_one_sample_nothing() {
    let apart: Vec<f64> = (0..SIZE * SIZE).map(|at| if at % (SIZE + 1) == 0 { 3.0 } else { 0.0 }).collect();
    let found = read(nt_xent(tensor(&apart), tensor(&apart), 0.05))[0];
    assert!(found < 1e-6, "{found}");
    let swapped: Vec<f64> = apart.chunks(SIZE).rev().flatten().copied().collect();
    assert!(read(nt_xent(tensor(&apart), tensor(&swapped), 0.05))[0] > 10.0);
    let one = tensor(&values(24, 1));
    let found = nt_xent(one.clone(), tensor(&values(25, 1)), 0.05);
    let gradients = found.backward();
    assert_eq!(read(found), [0.0]);
    assert!(read(one.grad(&gradients).unwrap()).iter().all(|&g| g == 0.0));
}

#[test]
fn the_contrast_of_columns_is_its_formula() {
    let (a, b) = (values(31, 6), values(32, 6));
    let oracle = |a: &[f64], b: &[f64]| {
        let column = |x: &[f64], k: usize| {
            let column: Vec<f64> = x.iter().skip(k).step_by(SIZE).copied().collect();
            let length = column.iter().map(|x| x * x).sum::<f64>().sqrt();
            column.into_iter().map(|x| x / length).collect::<Vec<_>>()
        };
        let e = |k: usize, l: usize| {
            let dot: f64 = column(a, k).iter().zip(column(b, l)).map(|(a, b)| a * b).sum();
            (dot / 0.7).exp()
        };
        let cost = |k: usize| -(e(k, k) / (0..SIZE).map(|l| e(k, l)).sum::<f64>()).ln();
        (0..SIZE).map(cost).sum::<f64>() / SIZE as f64
    };
    let (first, second) = (tensor(&a), tensor(&b));
    let found = column_contrast(first.clone(), second.clone(), 0.7);
    let gradients = found.backward();
    check(&read(found), &[oracle(&a, &b)], "value");
    check(&read(first.grad(&gradients).unwrap()), &differences(&a, |a| oracle(a, &b)), "first");
    check(&read(second.grad(&gradients).unwrap()), &differences(&b, |b| oracle(&a, b)), "second");
}

#[test]
fn how_often_a_concept_occurs_does_not_matter_to_the_contrast_of_columns() {
    // Each concept has samples of its own, so that columns are orthogonal however long they are.
    let rows = |counts: [usize; SIZE]| -> Vec<f64> {
        let row = |k: usize| (0..SIZE).map(move |l| if k == l { 1.0 } else { 0.0 });
        counts.iter().enumerate().flat_map(|(k, &n)| (0..n).flat_map(move |_| row(k))).collect()
    };
    let cost = |counts| read(column_contrast(tensor(&rows(counts)), tensor(&rows(counts)), 1.0))[0];
    assert!((cost([1, 1, 1, 1]) - cost([9, 1, 2, 4])).abs() < 1e-6);
}

#[test]
fn positives_by_class_are_the_row_itself_and_trusted_rows_of_its_class() {
    let found = positives_by_class(&[0, 1, 0, 0], &[true, true, true, false]);
    let wanted: [[u8; 4]; 4] = [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]];
    assert_eq!(found, wanted.as_flattened().iter().map(|&flag| flag == 1).collect::<Vec<_>>());
}

#[test]
fn the_order_of_rows_does_not_matter_to_info_nce() {
    let (z, flags, order) = (unit_rows(&values(8, ROWS)), flags(8), stream(9).permutation(ROWS));
    let at = |i: usize| order[i] as usize;
    let moved: Vec<f64> = (0..ROWS * SIZE).map(|n| z[at(n / SIZE) * SIZE + n % SIZE]).collect();
    let moved_flags: Vec<bool> =
        (0..ROWS * ROWS).map(|n| flags[at(n / ROWS) * ROWS + at(n % ROWS)]).collect();
    let before = read(masked_info_nce(tensor(&z), &flags, 0.1))[0];
    let after = read(masked_info_nce(tensor(&moved), &moved_flags, 0.1))[0];
    assert!((before - after).abs() < 1e-5 * before, "{before} {after}");
}

#[test]
fn the_diagonal_of_the_flags_says_nothing() {
    let z = unit_rows(&values(10, ROWS));
    let mut flags = flags(10);
    let before = read(masked_info_nce(tensor(&z), &flags, 0.1));
    (0..ROWS).for_each(|i| flags[i * ROWS + i] = !flags[i * ROWS + i]);
    assert_eq!(read(masked_info_nce(tensor(&z), &flags, 0.1)), before);
}

#[test]
fn without_any_positive_loss_and_gradient_are_nothing() {
    for rows in [1, 2, ROWS] {
        let mut flags = vec![false; rows * rows];
        (0..rows).for_each(|i| flags[i * rows + i] = true);
        let z = tensor(&unit_rows(&values(11, rows)));
        let found = masked_info_nce(z.clone(), &flags, 0.1);
        let gradients = found.backward();
        assert_eq!(read(found), [0.0]);
        assert_eq!(read(z.grad(&gradients).unwrap()), vec![0.0; rows * SIZE]);
    }
}

#[test]
fn a_very_low_temperature_does_not_overflow() {
    let z = tensor(&unit_rows(&values(12, ROWS)));
    let found = masked_info_nce(z.clone(), &flags(12), 1e-4);
    let gradients = found.backward();
    assert!(read(found)[0].is_finite());
    assert!(read(z.grad(&gradients).unwrap()).iter().all(|g| g.is_finite()));
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    // More pairs than the tensor library sums on one thread.
    let rows = 2100;
    let (z, mut draw) = (unit_rows(&values(15, rows)), stream(16));
    let flags: Vec<bool> = (0..rows * rows).map(|_| draw.chance(0.01)).collect();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let z = tensor(&z);
            let found = masked_info_nce(z.clone(), &flags, 0.1);
            let gradients = found.backward();
            (read(found), read(z.grad(&gradients).unwrap()))
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(3));
}

#[test]
fn rows_get_length_one_whatever_their_length_and_a_row_of_zeros_stays() {
    let base = values(13, 1);
    let weights = tensor(&values(14, 5)).detach();
    let mut x = vec![0.0; SIZE];
    for scale in [1.0, 1e-30, 1e30, 1e-3] {
        x.extend(base.iter().map(|x| x * scale));
    }
    let rows = tensor(&x);
    let unit = normalise_rows(rows.clone());
    let gradients = (unit.clone() * weights.clone()).sum().backward();
    let (unit, found, weights) = (read(unit), read(rows.grad(&gradients).unwrap()), read(weights));
    assert_eq!(unit[..SIZE], [0.0; SIZE]);
    assert_eq!(found[..SIZE], [0.0; SIZE]);
    for (row, scale) in [1.0, 1e-30, 1e30, 1e-3].into_iter().enumerate() {
        let part = (row + 1) * SIZE..(row + 2) * SIZE;
        check(&unit[part.clone()], &unit_rows(&base), "row");
        let weights = &weights[part.clone()];
        let oracle = |x: &[f64]| unit_rows(x).iter().zip(weights).map(|(x, w)| x * w).sum();
        let scaled: Vec<f64> = found[part].iter().map(|g| g * scale).collect();
        check(&scaled, &differences(&base, oracle), "gradient");
    }
}
