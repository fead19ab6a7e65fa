//! The convolution kernels against the naive sum in f64, over all shapes that could trip them.
#![allow(clippy::unwrap_used)]

use negscale_kernels::conv::{self, Shape};
use negscale_kernels::{Precision, Window};
use std::collections::BTreeSet;

/// Numbers between -0.5 and 0.5, the same for every run.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    (0..count).map(|_| draw()).collect()
}

/// Calls `term` with the places in y, x and weight of every product of the convolution.
fn visit(shape: &Shape, mut term: impl FnMut(usize, usize, usize)) {
    let Shape { batch, height, width, inputs, outputs, window } = *shape;
    let [oh, ow] = shape.out().unwrap();
    let ([kh, kw], [sh, sw], [ph, pw]) = (window.kernel, window.stride, window.padding);
    for b in 0..batch {
        for (y, x) in (0..oh).flat_map(|y| (0..ow).map(move |x| (y, x))) {
            for (r, s) in (0..kh).flat_map(|r| (0..kw).map(move |s| (r, s))) {
                let (row, column) = ((y * sh + r).wrapping_sub(ph), (x * sw + s).wrapping_sub(pw));
                if row >= height || column >= width {
                    continue;
                }
                for (o, i) in (0..outputs).flat_map(|o| (0..inputs).map(move |i| (o, i))) {
                    let at_y = ((b * oh + y) * ow + x) * outputs + o;
                    let at_x = ((b * height + row) * width + column) * inputs + i;
                    term(at_y, at_x, ((o * inputs + i) * kh + r) * kw + s);
                }
            }
        }
    }
}

/// Largest difference, in units of the size that sums of this many products have: one value may cancel to almost nothing, but
/// rounding is that of its terms.
fn gap(ours: &[f32], exact: &[f64], terms: &[f64]) -> f64 {
    assert_eq!(ours.len(), exact.len());
    let worst = |values: &[f64]| values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let differences: Vec<f64> = ours.iter().zip(exact).map(|(a, b)| f64::from(*a) - b).collect();
    assert!(ours.iter().all(|v| v.is_finite()));
    worst(&differences) / worst(terms).max(1e-12)
}

/// Worst gap of forward (plain, with bias and skip), data gradient and weight gradient.
fn worst_gap(shape: &Shape) -> f64 {
    let [oh, ow] = shape.out().unwrap();
    let [kh, kw] = shape.window.kernel;
    let x = numbers(shape.batch * shape.height * shape.width * shape.inputs, 1);
    let weight = numbers(shape.outputs * shape.inputs * kh * kw, 2);
    let dy = numbers(shape.batch * oh * ow * shape.outputs, 3);
    let (bias, skip) = (numbers(shape.outputs, 4), numbers(dy.len(), 5));
    // Exact sums, and sums of squares of the terms, whose root is the scale of rounding errors.
    let (mut y, mut y2) = (vec![0.0f64; dy.len()], vec![0.0f64; dy.len()]);
    let (mut dx, mut dx2) = (vec![0.0f64; x.len()], vec![0.0f64; x.len()]);
    let (mut dw, mut dw2) = (vec![0.0f64; weight.len()], vec![0.0f64; weight.len()]);
    visit(shape, |at_y, at_x, at_w| {
        let add = |sum: &mut f64, squares: &mut f64, a: f32, b: f32| {
            let term = f64::from(a) * f64::from(b);
            *sum += term;
            *squares += term * term;
        };
        add(&mut y[at_y], &mut y2[at_y], x[at_x], weight[at_w]);
        add(&mut dx[at_x], &mut dx2[at_x], dy[at_y], weight[at_w]);
        add(&mut dw[at_w], &mut dw2[at_w], dy[at_y], x[at_x]);
    });
    let root = |squares: &[f64]| squares.iter().map(|s| s.sqrt()).collect::<Vec<_>>();
    let plain = gap(&conv::forward(&x, &weight, None, None, shape, Precision::F32), &y, &root(&y2));
    let data = gap(&conv::data_gradient(&dy, &weight, shape, Precision::F32), &dx, &root(&dx2));
    let weights = gap(&conv::weight_gradient(&x, &dy, shape, Precision::F32), &dw, &root(&dw2));
    for (i, y) in y.iter_mut().enumerate() {
        *y += f64::from(bias[i % shape.outputs]) + f64::from(skip[i]);
    }
    let scale: Vec<f64> = root(&y2).iter().map(|s| s + 1.0).collect();
    let full = gap(&conv::forward(&x, &weight, Some(&bias), Some(&skip), shape, Precision::F32), &y, &scale);
    plain.max(data).max(weights).max(full)
}

#[test]
fn every_window_on_every_small_shape_equals_the_naive_sum() {
    let mut seen = BTreeSet::new();
    for batch in [1, 2, 5] {
        for (inputs, outputs) in [(1, 1), (3, 16), (5, 7), (8, 33), (17, 1), (16, 20), (24, 5), (6, 48)] {
            for (height, width) in [(1, 1), (2, 3), (4, 4), (5, 1), (7, 5), (9, 8), (13, 12)] {
                for kernel in [[1, 1], [3, 3], [1, 7], [7, 1], [5, 5], [2, 2], [3, 1]] {
                    for stride in [[1, 1], [2, 2], [3, 2], [1, 4]] {
                        for padding in [[0, 0], [1, 1], [2, 0], [0, 3], [2, 2]] {
                            let window = Window { kernel, stride, padding };
                            let shape = Shape { batch, height, width, inputs, outputs, window };
                            if shape.out().is_some() && batch * inputs * outputs * height * width < 20_000 {
                                let gap = worst_gap(&shape);
                                assert!(gap < 5e-6, "{shape:?}: {gap}");
                                seen.insert((batch, inputs, height, kernel, stride, padding));
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(seen.len() > 3000, "only {} shapes fitted", seen.len());
}

/// The shapes that take the way with fewer multiplications, whose transforms round a little more.
#[test]
fn three_by_three_windows_of_many_channels_equal_the_naive_sum() {
    for batch in [1, 3] {
        for (inputs, outputs) in [(16, 16), (17, 16), (16, 20), (24, 33), (48, 40), (64, 80), (33, 130)] {
            for (height, width) in [(4, 4), (6, 6), (7, 5), (8, 8), (9, 12), (16, 15)] {
                for padding in [[1, 1], [0, 0], [2, 2], [0, 1]] {
                    let window = Window { kernel: [3, 3], stride: [1, 1], padding };
                    let shape = Shape { batch, height, width, inputs, outputs, window };
                    let gap = worst_gap(&shape);
                    assert!(gap < 2e-5, "{shape:?}: {gap}");
                }
            }
        }
    }
}

/// Large enough to be shared among threads, in every kernel: pieces, lanes and chunks of tiles.
fn large_shapes() -> Vec<Shape> {
    let square = |batch, side, inputs, outputs, kernel, stride| Shape {
        batch,
        height: side,
        width: side,
        inputs,
        outputs,
        window: Window::square(kernel, stride, kernel / 2),
    };
    vec![
        square(40, 16, 16, 16, 3, 1),
        square(9, 12, 144, 128, 3, 1),
        square(40, 16, 16, 40, 3, 2),
        square(500, 1, 130, 70, 1, 1),
        square(20, 8, 96, 48, 1, 2),
    ]
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let with_threads = |threads: usize, shape: &Shape| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let [oh, ow] = shape.out().unwrap();
        let [kh, kw] = shape.window.kernel;
        let x = numbers(shape.batch * shape.height * shape.width * shape.inputs, 1);
        let weight = numbers(shape.outputs * shape.inputs * kh * kw, 2);
        let dy = numbers(shape.batch * oh * ow * shape.outputs, 3);
        pool.install(|| {
            let results = [
                conv::forward(&x, &weight, None, None, shape, Precision::F32),
                conv::data_gradient(&dy, &weight, shape, Precision::F32),
                conv::weight_gradient(&x, &dy, shape, Precision::F32),
            ];
            results.concat().iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        })
    };
    for shape in large_shapes() {
        let one = with_threads(1, &shape);
        for threads in [2, 3] {
            assert!(one == with_threads(threads, &shape), "{threads} threads: {shape:?}");
        }
    }
}

#[test]
fn large_shapes_equal_the_naive_sum() {
    for shape in large_shapes() {
        let gap = worst_gap(&shape);
        assert!(gap < 2e-5, "{shape:?}: {gap}");
    }
}

#[test]
fn empty_batches_give_empty_results_and_no_weight_gradient() {
    let window = Window::square(3, 1, 1);
    let shape = Shape { batch: 0, height: 4, width: 4, inputs: 2, outputs: 3, window };
    assert!(conv::forward(&[], &[0.0; 54], None, None, &shape, Precision::F32).is_empty());
    assert!(conv::data_gradient(&[], &[0.0; 54], &shape, Precision::F32).is_empty());
    assert_eq!(conv::weight_gradient(&[], &[], &shape, Precision::F32), vec![0.0; 54]);
}

#[test]
#[should_panic(expected = "weight has 53 numbers, its shape says 54")]
fn a_slice_of_the_wrong_length_is_refused() {
    let window = Window::square(3, 1, 1);
    let shape = Shape { batch: 1, height: 4, width: 4, inputs: 2, outputs: 3, window };
    conv::forward(&[0.0; 32], &[0.0; 53], None, None, &shape, Precision::F32);
}
