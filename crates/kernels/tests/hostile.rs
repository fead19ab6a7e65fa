//! The convolution kernels where a shape, a leftover or a mistake of the caller could make them read or write the wrong place.
#![allow(clippy::unwrap_used)]

mod literal;

use literal::exact;
use negscale_kernels::conv::{self, Shape};
use negscale_kernels::{Precision, Window};
use std::panic::catch_unwind;

fn shape(batch: usize, [height, width]: [usize; 2], [inputs, outputs]: [usize; 2], window: Window) -> Shape {
    Shape { batch, height, width, inputs, outputs, window }
}

/// Lengths of x, weight and y.
fn lengths(shape: &Shape) -> [usize; 3] {
    let [oh, ow] = shape.out().unwrap();
    let [kh, kw] = shape.window.kernel;
    [
        shape.batch * shape.height * shape.width * shape.inputs,
        shape.outputs * shape.inputs * kh * kw,
        shape.batch * oh * ow * shape.outputs,
    ]
}

/// Small whole numbers: their sums are exact in f32, so a result that differs at all is wrong.
fn whole(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + i / 5 * 3 + seed) % 5) as f32 - 2.0).collect()
}

/// Forward with bias and skip, data gradient and weight gradient by the naive sum.
fn naive(shape: &Shape, x: &[f32], weight: &[f32], dy: &[f32], bias: &[f32]) -> [Vec<f32>; 3] {
    let [mut y, dx, dw] = exact(shape, [x, weight, dy]);
    y.iter_mut().enumerate().for_each(|(i, y)| *y += f64::from(bias[i % shape.outputs]) + f64::from(dy[i]));
    [y, dx, dw].map(|sums| sums.into_iter().map(|sum| sum as f32).collect())
}

/// Compares with the naive sum, in both precisions (the numbers are exact in both): bit for bit, or (3x3 windows of stride 1, whose
/// transforms round) closely.
fn check(shape: &Shape) {
    let [x_len, weight_len, y_len] = lengths(shape);
    let (x, weight, dy) = (whole(x_len, 1), whole(weight_len, 2), whole(y_len, 3));
    let bias = whole(shape.outputs, 4);
    let expected = naive(shape, &x, &weight, &dy, &bias);
    let rounds = shape.window.kernel == [3, 3] && shape.window.stride == [1, 1];
    for precision in [Precision::F32, Precision::Bf16] {
        let found = [
            conv::forward(&x, &weight, Some(&bias), Some(&dy), shape, precision),
            conv::data_gradient(&dy, &weight, shape, precision),
            conv::weight_gradient(&x, &dy, shape, precision),
        ];
        for (what, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found.len(), expected.len(), "{shape:?}: {what}");
            let most = shape.inputs.max(shape.outputs).max(shape.batch * shape.height * shape.width);
            let allowed = match (rounds, precision) {
                (false, _) => 0.0,
                (true, Precision::F32) => 1e-2,
                // The numbers repeat, so their errors add up instead of cancelling.
                (true, Precision::Bf16) => 0.01 * (9 * most) as f32,
            };
            for (at, (a, b)) in found.iter().zip(expected).enumerate() {
                // Written so that not-a-number fails.
                let fits = (a - b).abs() <= allowed;
                assert!(
                    fits,
                    "{shape:?}, {precision:?}: result {what} (forward, data, weight) has {a} for {b} at {at}"
                );
            }
        }
    }
}

/// Shapes of all kernels, with sizes that fill no tile, panel or lane.
fn shapes() -> Vec<Shape> {
    vec![
        shape(3, [5, 7], [17, 19], Window::square(3, 1, 1)),
        shape(2, [13, 9], [16, 33], Window::square(3, 1, 2)),
        shape(1, [8, 8], [40, 16], Window::square(3, 1, 0)),
        shape(2, [9, 8], [100, 190], Window::square(3, 1, 1)),
        shape(2, [9, 11], [3, 18], Window::square(3, 2, 1)),
        shape(3, [6, 5], [7, 5], Window::square(5, 3, 4)),
        shape(2, [6, 5], [23, 37], Window::square(1, 1, 0)),
        shape(1100, [1, 1], [9, 50], Window::square(1, 1, 0)),
        shape(4, [7, 7], [5, 140], Window::square(1, 2, 0)),
        shape(2, [20, 16], [16, 150], Window::square(2, 1, 0)),
        shape(2, [4, 3], [1, 1], Window { kernel: [1, 7], stride: [2, 1], padding: [0, 4] }),
    ]
}

#[test]
fn what_an_earlier_convolution_left_in_its_buffers_reaches_no_later_result() {
    for poison in [f32::NAN, f32::INFINITY] {
        for dirty in shapes() {
            let [x, weight, y] = lengths(&dirty).map(|length| vec![poison; length]);
            for precision in [Precision::F32, Precision::Bf16] {
                conv::forward(&x, &weight, None, Some(&y), &dirty, precision);
                conv::data_gradient(&y, &weight, &dirty, precision);
                conv::weight_gradient(&x, &y, &dirty, precision);
            }
            shapes().iter().filter(|clean| **clean != dirty).step_by(3).for_each(check);
        }
    }
    shapes().iter().for_each(check);
}

#[test]
fn empty_axes_give_empty_results_or_sums_of_nothing() {
    for window in [Window::square(3, 1, 2), Window::square(1, 1, 1), Window::square(2, 3, 1)] {
        for channels in [[16, 16], [3, 20]] {
            check(&shape(0, [4, 4], channels, window));
            check(&shape(2, [0, 4], channels, window));
            check(&shape(2, [4, 0], channels, window));
            check(&shape(2, [0, 0], channels, window));
            check(&shape(2, [4, 4], [0, channels[1]], window));
            check(&shape(2, [4, 4], [channels[0], 0], window));
            check(&shape(2, [4, 4], [0, 0], window));
        }
    }
}

#[test]
fn strides_and_paddings_may_be_larger_than_kernel_and_image() {
    for channels in [[4, 4], [3, 17], [16, 16]] {
        for stride in
            [[5, 9], [100, 1], [1, 1 << 40], [1 << 61, 1 << 61], [1 << 62, 3], [usize::MAX, usize::MAX]]
        {
            for (kernel, padding) in [([3, 3], [1, 1]), ([1, 2], [0, 7]), ([4, 1], [5, 0]), ([9, 9], [4, 4])]
            {
                for batch in [1, 9, 17] {
                    check(&shape(batch, [3, 2], channels, Window { kernel, stride, padding }));
                }
            }
        }
    }
}

#[test]
fn sizes_whose_product_wraps_are_refused() {
    let half = 1usize << (usize::BITS - 1);
    let point = Window::square(1, 1, 0);
    let quarter = 1 << (usize::BITS - 2);
    let wrapping = [
        // Products that wrap to the length 2 of the slices below.
        shape(half + 1, [1, 1], [2, 2], point),
        shape(1, [half + 1, 1], [2, 2], point),
        // Wrapping padding would leave no padding at all.
        shape(1, [1, 1], [2, 2], Window { padding: [half, 0], ..point }),
        shape(1, [1, 1], [2, 2], Window { padding: [usize::MAX, 1], ..point }),
        shape(1, [1, 1], [0, 2], Window { padding: [quarter, quarter], ..point }),
        shape(1, [1, 1], [0, 0], Window { kernel: [quarter; 2], padding: [quarter; 2], stride: [1, 1] }),
        shape(0, [half, half], [2, 2], point),
    ];
    for shape in wrapping {
        for length in [0, 2, 4] {
            let (numbers, weight) = (vec![0.0; length], vec![0.0; shape.inputs * shape.outputs]);
            assert!(
                catch_unwind(|| conv::forward(&numbers, &weight, None, None, &shape, Precision::F32))
                    .is_err(),
                "{shape:?}"
            );
            assert!(
                catch_unwind(|| conv::data_gradient(&numbers, &weight, &shape, Precision::F32)).is_err(),
                "{shape:?}"
            );
            assert!(
                catch_unwind(|| conv::weight_gradient(&numbers, &numbers, &shape, Precision::F32)).is_err(),
                "{shape:?}"
            );
        }
    }
}

#[test]
fn a_panic_leaves_the_kernels_usable() {
    let bad = shape(2, [4, 4], [3, 5], Window::square(3, 0, 1));
    assert!(catch_unwind(|| conv::forward(&[], &[], None, None, &bad, Precision::F32)).is_err());
    check(&shapes()[0]);
}

#[test]
#[should_panic(expected = "images of 0 x 3 pixels have no mean")]
fn a_mean_over_nothing_is_refused() {
    use burn::tensor::{Device, Tensor};
    negscale_kernels::mean_pool(Tensor::<4>::zeros([2, 0, 3, 4], &Device::flex()));
}
