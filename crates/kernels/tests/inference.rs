//! Layers that are only used, against the naive sums in f64.
#![allow(clippy::unwrap_used)]

use negscale_kernels::inference::{Depthwise, Point};

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

fn clipped(value: f64, clips: bool) -> f64 {
    if clips { value.clamp(0.0, 6.0) } else { value }
}

#[test]
fn products_with_bias_skip_and_clipping_equal_their_sums() {
    for (pixels, inputs, outputs) in [
        (1, 1, 1),
        (3, 16, 24),
        (13, 27, 32),
        (29, 96, 40),
        (12, 40, 17),
        (50, 33, 80),
        (7, 5, 31),
        (0, 4, 4),
    ] {
        let (x, weight) = (numbers(pixels * inputs, 1), numbers(outputs * inputs, 2));
        let (bias, skip) = (numbers(outputs, 3), numbers(pixels * outputs, 4));
        for (clips, scale, skip) in
            [(false, 1.0, None), (true, 30.0, None), (true, 1.0, Some(&skip)), (false, 1.0, Some(&skip))]
        {
            let weight: Vec<f32> = weight.iter().map(|w| w * scale).collect();
            let layer = Point::new(&weight, &bias, clips);
            let mut y = vec![f32::NAN; pixels * outputs];
            layer.apply(&x, skip.map(Vec::as_slice), &mut y);
            for i in 0..pixels {
                for j in 0..outputs {
                    let products =
                        (0..inputs).map(|k| f64::from(x[i * inputs + k]) * f64::from(weight[j * inputs + k]));
                    let skip = skip.map_or(0.0, |skip| f64::from(skip[i * outputs + j]));
                    let wanted = clipped(products.sum::<f64>() + f64::from(bias[j]) + skip, clips);
                    let gap = (f64::from(y[i * outputs + j]) - wanted).abs();
                    assert!(
                        gap < 1e-5 * f64::from(scale),
                        "{pixels} x {inputs} to {outputs}, {clips}: {gap} at {i}, {j}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_pixel_has_the_same_bits_in_whatever_company_it_comes() {
    let (inputs, outputs, pixels) = (45, 70, 31);
    let layer = Point::new(&numbers(inputs * outputs, 1), &numbers(outputs, 2), true);
    let x = numbers(inputs * pixels, 3);
    let mut all = vec![0.0; pixels * outputs];
    layer.apply(&x, None, &mut all);
    for some in 1..=pixels {
        for (x, wanted) in x.chunks(some * inputs).zip(all.chunks(some * outputs)) {
            let mut y = vec![0.0; wanted.len()];
            layer.apply(x, None, &mut y);
            assert_eq!(y, wanted, "{some} pixels at a time");
        }
    }
}

#[test]
fn depthwise_rows_equal_their_sums_also_over_the_edges_and_with_odd_channels() {
    for (kernel, stride) in [(3, 1), (3, 2), (5, 1), (5, 2), (3, 3)] {
        for (channels, width) in [(1, 1), (7, 4), (16, 9), (24, 2), (40, 16), (33, 5), (8, 3)] {
            let out = usize::div_ceil(width, stride);
            let before = ((out - 1) * stride + kernel).saturating_sub(width) / 2;
            let weight: Vec<f32> = numbers(channels * kernel * kernel, 1).iter().map(|w| 8.0 * w).collect();
            let bias = numbers(channels, 2);
            let layer = Depthwise::new(&weight, &bias, kernel, stride);
            let rows: Vec<Vec<f32>> = (0..kernel).map(|r| numbers(width * channels, 3 + r as u64)).collect();
            // All rows there, the first or the last beyond the edge, and none.
            for missing in [0..0, 0..1, kernel - 1..kernel, 0..kernel] {
                let there: Vec<Option<&[f32]>> = rows
                    .iter()
                    .enumerate()
                    .map(|(r, row)| (!missing.contains(&r)).then_some(row.as_slice()))
                    .collect();
                let mut y = vec![f32::NAN; out * channels];
                layer.row(&there, width, before, &mut y);
                for (x, c) in (0..out).flat_map(|x| (0..channels).map(move |c| (x, c))) {
                    let mut sum = f64::from(bias[c]);
                    for (r, s) in (0..kernel).flat_map(|r| (0..kernel).map(move |s| (r, s))) {
                        let column = (x * stride + s).wrapping_sub(before);
                        if let Some(row) = there[r].filter(|_| column < width) {
                            let w = f64::from(weight[(c * kernel + r) * kernel + s]);
                            sum += w * f64::from(row[column * channels + c]);
                        }
                    }
                    let gap = (f64::from(y[x * channels + c]) - clipped(sum, true)).abs();
                    assert!(
                        gap < 1e-5,
                        "{kernel}/{stride}, {channels} channels, {width} wide: {gap} at {x}, {c}"
                    );
                }
            }
        }
    }
}

#[test]
fn clipping_makes_zeros_of_what_is_no_number() {
    let layer = Point::new(&[1.0; 20], &[0.0; 20], true);
    let mut y = [9.0; 20];
    layer.apply(&[f32::NAN], None, &mut y);
    assert_eq!(y, [0.0; 20]);
}

#[test]
#[should_panic(expected = "are no pixels of 3")]
fn lengths_that_do_not_fit_are_refused() {
    Point::new(&[0.0; 6], &[0.0; 2], false).apply(&[0.0; 4], None, &mut [0.0; 2]);
}
