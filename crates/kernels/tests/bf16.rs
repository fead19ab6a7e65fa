//! Convolutions in bf16: against sums in f64, the hardware against the software, and what must not change a bit.
#![allow(clippy::unwrap_used)]

mod literal;

use literal::exact;
use negscale_kernels::conv::{self, Shape};
use negscale_kernels::{Precision, Window};
use std::process::Command;

/// Numbers with about the distribution of a normal one, the same for every run.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    (0..count).map(|_| 1.7 * (draw() + draw() + draw() + draw())).collect()
}

/// The nearest bf16, ties to even.
fn rounded(values: &[f32]) -> Vec<f32> {
    let round = |v: f32| f32::from_bits((v.to_bits() + 0x7fff + (v.to_bits() >> 16 & 1)) & 0xffff_0000);
    values.iter().map(|&v| round(v)).collect()
}

fn square(batch: usize, side: usize, channels: [usize; 2], kernel: usize, stride: usize) -> Shape {
    let window = Window::square(kernel, stride, kernel / 2);
    Shape { batch, height: side, width: side, inputs: channels[0], outputs: channels[1], window }
}

/// Shapes of every kernel: whole tiles and odd rests, strided, 1x1, dense, other windows.
fn shapes() -> Vec<Shape> {
    let window = Window { kernel: [2, 5], stride: [1, 3], padding: [1, 2] };
    vec![
        square(4, 16, [16, 16], 3, 1),
        square(3, 8, [64, 48], 3, 1),
        square(2, 7, [33, 40], 3, 1),
        square(6, 4, [100, 130], 3, 1),
        square(3, 9, [140, 150], 3, 1),
        square(4, 16, [3, 16], 3, 1),
        square(3, 7, [5, 12], 3, 1),
        square(5, 9, [16, 32], 3, 2),
        square(2, 8, [70, 130], 3, 2),
        square(4, 12, [32, 50], 1, 2),
        square(4, 7, [24, 40], 1, 1),
        square(150, 1, [130, 70], 1, 1),
        square(127, 1, [64, 10], 1, 1),
        Shape { batch: 3, height: 6, width: 11, inputs: 5, outputs: 19, window },
    ]
}

fn material(shape: &Shape) -> [Vec<f32>; 3] {
    let [oh, ow] = shape.out().unwrap();
    let [kh, kw] = shape.window.kernel;
    [
        numbers(shape.batch * shape.height * shape.width * shape.inputs, 1),
        numbers(shape.outputs * shape.inputs * kh * kw, 2),
        numbers(shape.batch * oh * ow * shape.outputs, 3),
    ]
}

/// Forward, data gradient and weight gradient.
fn ours(shape: &Shape, [x, weight, dy]: &[Vec<f32>; 3], precision: Precision) -> [Vec<f32>; 3] {
    [
        conv::forward(x, weight, None, None, shape, precision),
        conv::data_gradient(dy, weight, shape, precision),
        conv::weight_gradient(x, dy, shape, precision),
    ]
}

/// Norm of the difference, its mean, and its component along the exact result, all relative to the exact result.
fn errors(ours: &[f32], exact: &[f64]) -> [f64; 3] {
    let (mut square, mut sum, mut along, mut norm) = (0.0, 0.0, 0.0, 0.0);
    for (a, b) in ours.iter().zip(exact) {
        let gap = f64::from(*a) - b;
        square += gap * gap;
        sum += gap;
        along += gap * b;
        norm += b * b;
    }
    let count = ours.len() as f64;
    [(square / norm).sqrt(), sum / count / (norm / count).sqrt(), along / norm]
}

#[test]
fn the_relative_error_is_below_one_in_a_hundred_and_unbiased() {
    for shape in shapes() {
        let material = material(&shape);
        let results = ours(&shape, &material, Precision::Bf16);
        for (what, (found, expected)) in
            results.iter().zip(&exact(&shape, material.each_ref().map(Vec::as_slice))).enumerate()
        {
            let [error, mean, along] = errors(found, expected);
            assert!(error < 1e-2, "{shape:?}: result {what} has a relative error of {error}");
            // Rounding towards zero would shrink results by 4e-3. What is left is chance: a factor's error is in many sums.
            assert!(mean.abs() < 5e-4, "{shape:?}: result {what} is {mean} off on average");
            assert!(along.abs() < 5e-4, "{shape:?}: result {what} is {along} too large");
        }
    }
}

#[test]
fn without_transforms_the_only_error_is_that_of_the_rounded_factors() {
    for shape in shapes().into_iter().filter(|s| s.window.kernel != [3, 3] || s.window.stride != [1, 1]) {
        let material = material(&shape);
        let results = ours(&shape, &material, Precision::Bf16);
        let factors = material.each_ref().map(|values| rounded(values));
        for (what, (found, expected)) in
            results.iter().zip(&exact(&shape, factors.each_ref().map(Vec::as_slice))).enumerate()
        {
            let [error, ..] = errors(found, expected);
            assert!(error < 1e-6, "{shape:?}: result {what} has a relative error of {error}");
        }
    }
}

#[test]
fn bias_and_skip_are_added_unrounded() {
    for shape in shapes() {
        let [x, weight, skip] = material(&shape);
        let bias = numbers(shape.outputs, 4);
        let plain = conv::forward(&x, &weight, None, None, &shape, Precision::Bf16);
        let full = conv::forward(&x, &weight, Some(&bias), Some(&skip), &shape, Precision::Bf16);
        for (i, (plain, full)) in plain.iter().zip(&full).enumerate() {
            assert_eq!(*full, plain + bias[i % shape.outputs] + skip[i], "{shape:?}, {i}");
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let mut shapes = shapes();
    shapes.extend([square(40, 16, [16, 16], 3, 1), square(9, 12, [144, 128], 3, 1)]);
    shapes.extend([square(500, 1, [130, 70], 1, 1), square(40, 16, [16, 40], 3, 2)]);
    for shape in shapes {
        let material = material(&shape);
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| bits(&ours(&shape, &material, Precision::Bf16)))
        };
        let one = with(1);
        for threads in [2, 3] {
            assert!(one == with(threads), "{threads} threads: {shape:?}");
        }
    }
}

#[test]
fn what_is_not_a_finite_number_stays_so_where_it_is_seen() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for shape in shapes() {
            let [mut x, weight, dy] = material(&shape);
            // The first image's middle; no other image sees it.
            let place = (shape.height / 2 * shape.width + shape.width / 2) * shape.inputs;
            x[place] = value;
            let material = [x, weight, dy];
            let [y, dx, dw] = ours(&shape, &material, Precision::Bf16);
            let per_image = y.len() / shape.batch;
            let [oh, ow] = shape.out().unwrap();
            let ([_, stride], [_, padding]) = (shape.window.stride, shape.window.padding);
            let sees = (oh * ow == 1) || stride <= 2 && padding <= 1;
            if sees {
                assert!(y[..per_image].iter().any(|v| !v.is_finite()), "{shape:?}: {value} is lost");
                assert!(dw.iter().any(|v| !v.is_finite()), "{shape:?}: {value} is lost in the gradient");
            }
            assert!(y[per_image..].iter().all(|v| v.is_finite()), "{shape:?}: {value} is seen too far");
            assert!(dx.iter().all(|v| v.is_finite()), "{shape:?}: {value} is no part of this");
        }
    }
}

/// Without transforms, which spread a number over its tile: results that are sums without it do not know of it.
#[test]
fn what_is_not_a_finite_number_reaches_only_sums_that_it_is_part_of() {
    let finite = |values: &[f32]| values.iter().map(|v| v.is_finite()).collect::<Vec<_>>();
    for shape in shapes()
        .into_iter()
        .filter(|s| s.window.kernel != [3, 3] || s.window.stride != [1, 1] || s.inputs < 16)
    {
        let [x, weight, dy] = material(&shape);
        // Places in the first image and its gradient, the ends of rows among them.
        let [oh, ow] = shape.out().unwrap();
        for (n, value) in
            [f32::NAN, f32::INFINITY, f32::NEG_INFINITY].into_iter().cycle().enumerate().take(24)
        {
            let place = |height: usize, width: usize, channels: usize| {
                let column = if n % 2 == 0 { width - 1 } else { n % width };
                ((n / 2 % height) * width + column) * channels + n % channels
            };
            let (mut odd_x, mut odd_dy) = (x.clone(), dy.clone());
            odd_x[place(shape.height, shape.width, shape.inputs)] = value;
            odd_dy[place(oh, ow, shape.outputs)] = value;
            let expected = exact(&shape, [&odd_x, &weight, &odd_dy]);
            let expected_weights = exact(&shape, [&odd_x, &weight, &dy]);
            for precision in [Precision::F32, Precision::Bf16] {
                let found = ours(&shape, &[odd_x.clone(), weight.clone(), odd_dy.clone()], precision);
                let found_weights = conv::weight_gradient(&odd_x, &dy, &shape, precision);
                for (what, (found, expected)) in [
                    (&found[0], &expected[0]),
                    (&found[1], &expected[1]),
                    (&found_weights, &expected_weights[2]),
                ]
                .into_iter()
                .enumerate()
                {
                    let expected: Vec<f32> = expected.iter().map(|&v| v as f32).collect();
                    assert!(
                        finite(found) == finite(&expected),
                        "{shape:?}, {precision:?}: result {what}, {value}"
                    );
                }
            }
        }
    }
}

fn bits(results: &[Vec<f32>; 3]) -> Vec<u32> {
    results.iter().flatten().map(|v| v.to_bits()).collect()
}

/// One number for all results of a precision.
fn checksum(precision: Precision) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325u64;
    for shape in shapes() {
        for bits in bits(&ours(&shape, &material(&shape), precision)) {
            sum = (sum ^ u64::from(bits)).wrapping_mul(0x100_0000_01b3);
        }
    }
    sum
}

#[test]
#[ignore = "run by the next test, in processes of its own"]
fn print_checksums() {
    println!("code {}", negscale_cpu::name());
    println!("bf16 {:x}", checksum(Precision::Bf16));
    println!("f32 {:x}", checksum(Precision::F32));
}

#[test]
fn every_code_path_gives_the_same_bits() {
    let run = |value: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "print_checksums", "--ignored", "--nocapture"]);
        let done = command.env("NEGSCALE_CPU", value).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let text = String::from_utf8(done.stdout).unwrap();
        let find = |key: &str| {
            let line = text.lines().find_map(|line| line.split_once(key));
            line.unwrap_or_else(|| panic!("no {key}in {text}")).1.to_owned()
        };
        ["code ", "bf16 ", "f32 "].map(find)
    };
    let [portable, avx2, all] = ["portable", "avx2", "auto"].map(run);
    assert_eq!(portable[0], "portable");
    // In bf16, the software's and the hardware's.
    assert_eq!(portable[1], avx2[1], "{} and {}", portable[0], avx2[0]);
    assert_eq!(portable[1], all[1], "{} and {}", portable[0], all[0]);
    // In f32 the portable code does not fuse multiply-adds.
    if avx2[0] != "portable" {
        assert_eq!(avx2[2], all[2], "{} and {}", avx2[0], all[0]);
    }
}
