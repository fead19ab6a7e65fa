//! The network against the same network in plain f64 loops, with made-up weights.

use super::network::{EfficientNetLite0, Read, STAGES};
use super::resize::{SIDE, prepare};
use crate::{Encoder, Error, Picture};
use std::collections::HashMap;

/// Numbers between -0.5 and 0.5 that a name decides.
fn numbers(name: &str, count: usize) -> Vec<f32> {
    let seed = name.bytes().fold(7u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    (0..count).map(|_| draw()).collect()
}

/// Weights for which activations neither vanish nor all reach 6.
fn tensor(name: &str, shape: &[usize]) -> Vec<f32> {
    let count: usize = shape.iter().product();
    let drawn = numbers(name, count);
    let scale = match shape {
        [_, inputs, rows, columns] => (18.0 / (inputs * rows * columns) as f32).sqrt(),
        _ => 1.0,
    };
    let shift = if name.ends_with("running_var") || name.contains("bn") && name.ends_with(".weight") {
        1.0
    } else {
        0.0
    };
    drawn.into_iter().map(|value| value * scale + shift).collect()
}

fn network() -> EfficientNetLite0 {
    EfficientNetLite0::new("made up", &mut |name, shape| Ok(tensor(name, shape))).unwrap()
}

fn pictures(count: usize, width: usize, height: usize) -> Vec<u8> {
    (0..count * width * height * 3).map(|at| (at * 89 + at / 7 * 31 + at / 96 * 5) as u8).collect()
}

fn items(bytes: &[u8], width: usize, height: usize) -> Vec<Picture<'_>> {
    bytes.chunks(width * height * 3).map(|pixels| Picture { pixels, width, height }).collect()
}

/// A map in channels, rows, columns.
struct Map {
    channels: usize,
    side: usize,
    values: Vec<f64>,
}

/// Convolution, norm and ReLU6 as they are written; `groups` is 1 or the number of channels.
fn unit(x: &Map, conv: &str, norm: &str, shape: [usize; 4], stride: usize, clips: bool) -> Map {
    let [outputs, inputs, window, _] = shape;
    let weight = tensor(&format!("{conv}.weight"), &shape);
    let of = |part: &str| tensor(&format!("{norm}.{part}"), &[outputs]);
    let (gamma, beta, mean, variance) = (of("weight"), of("bias"), of("running_mean"), of("running_var"));
    let side = x.side.div_ceil(stride);
    let before = ((side - 1) * stride + window).saturating_sub(x.side) / 2;
    let mut values = vec![0.0; outputs * side * side];
    for o in 0..outputs {
        let first = if inputs == x.channels { 0 } else { o };
        for (row, column) in (0..side).flat_map(|row| (0..side).map(move |column| (row, column))) {
            let mut sum = 0.0;
            for (i, r) in (0..inputs).flat_map(|i| (0..window).map(move |r| (i, r))) {
                for s in 0..window {
                    let at =
                        [(row * stride + r).wrapping_sub(before), (column * stride + s).wrapping_sub(before)];
                    if at[0] < x.side && at[1] < x.side {
                        let w = weight[((o * inputs + i) * window + r) * window + s];
                        sum += f64::from(w) * x.values[((first + i) * x.side + at[0]) * x.side + at[1]];
                    }
                }
            }
            let [gamma, beta, mean, variance] = [gamma[o], beta[o], mean[o], variance[o]].map(f64::from);
            let sum = (sum - mean) / (variance + 1e-3).sqrt() * gamma + beta;
            values[(o * side + row) * side + column] = if clips { sum.clamp(0.0, 6.0) } else { sum };
        }
    }
    Map { channels: outputs, side, values }
}

fn literal(picture: &Picture) -> Vec<f64> {
    let mut prepared = vec![0.0; SIDE * SIDE * 3];
    prepare(picture, &mut Vec::new(), &mut prepared);
    let places = SIDE * SIDE;
    let values = (0..3 * places).map(|at| f64::from(prepared[at % places * 3 + at / places])).collect();
    let mut x = Map { channels: 3, side: SIDE, values };
    x = unit(&x, "_conv_stem", "_bn0", [32, 3, 3, 3], 2, true);
    let mut n = 0;
    for (window, stride, widening, outputs, count) in STAGES {
        for first in (0..count).map(|at| at == 0) {
            let (name, inputs) = (|part: &str| format!("_blocks.{n}.{part}"), x.channels);
            let wide = inputs * widening;
            let stride = if first { stride } else { 1 };
            let y = match widening {
                1 => None,
                _ => Some(unit(&x, &name("_expand_conv"), &name("_bn0"), [wide, inputs, 1, 1], 1, true)),
            };
            let shape = [wide, 1, window, window];
            let y =
                unit(y.as_ref().unwrap_or(&x), &name("_depthwise_conv"), &name("_bn1"), shape, stride, true);
            let mut y = unit(&y, &name("_project_conv"), &name("_bn2"), [outputs, wide, 1, 1], 1, false);
            if stride == 1 && inputs == outputs {
                y.values.iter_mut().zip(&x.values).for_each(|(y, x)| *y += x);
            }
            x = y;
            n += 1;
        }
    }
    x = unit(&x, "_conv_head", "_bn1", [1280, x.channels, 1, 1], 1, true);
    let places = x.side * x.side;
    x.values.chunks(places).map(|map| map.iter().sum::<f64>() / places as f64).collect()
}

#[test]
fn with_made_up_weights_it_is_the_network_as_it_is_written() {
    let bytes = pictures(1, 40, 32);
    let picture = items(&bytes, 40, 32)[0];
    let mut row = vec![f32::NAN; 1280];
    network().encode(&[picture], &mut row).unwrap();
    let wanted = literal(&picture);
    let gap: f64 = row.iter().zip(&wanted).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum();
    let size: f64 = wanted.iter().map(|value| value * value).sum();
    assert!(wanted.iter().filter(|value| **value > 0.1 && **value < 5.9).count() > 300, "{wanted:?}");
    assert!((gap / size).sqrt() < 1e-4, "relative difference {}", (gap / size).sqrt());
}

#[test]
fn a_row_has_the_same_bits_in_any_company_and_with_any_number_of_threads() {
    let network = network();
    let bytes = pictures(19, 16, 16);
    let items = items(&bytes, 16, 16);
    let mut all = vec![0.0; 19 * 1280];
    network.encode(&items, &mut all).unwrap();
    assert!(all.chunks(1280).skip(1).all(|row| row != &all[..1280]), "rows differ");
    for (threads, together) in [(1, 19), (1, 1), (2, 5), (3, 8), (3, 19)] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut rows = vec![0.0; all.len()];
        for (some, rows) in items.chunks(together).zip(rows.chunks_mut(together * 1280)) {
            pool.install(|| network.encode(some, rows)).unwrap();
        }
        assert!(rows == all, "{threads} threads, {together} at a time");
    }
}

#[test]
fn a_picture_whose_bytes_do_not_fit_its_size_is_named() {
    let network = network();
    let good = pictures(1, 4, 4);
    for (pixels, width, height) in [(&good[..47], 4, 4), (&[][..], 0, 3), (&good[..], usize::MAX, 2)] {
        let items = [Picture { pixels: &good, width: 4, height: 4 }, Picture { pixels, width, height }];
        let error = network.encode(&items, &mut [0.0; 2560]).unwrap_err();
        assert!(matches!(error, Error::Item { item: 1, .. }), "{error}");
    }
}

#[test]
fn weights_that_lack_a_tensor_or_hold_a_negative_variance_are_refused() {
    let mut asked = HashMap::new();
    network_of(&mut |name, shape| {
        asked.insert(name.to_owned(), shape.to_vec());
        Ok(tensor(name, shape))
    })
    .unwrap();
    assert_eq!(asked.len(), 49 * 5, "49 convolutions, each with four vectors of its norm");
    let told = network_of(&mut |name, shape| match name {
        "_blocks.3._bn1.running_var" => Ok(vec![-0.1; shape[0]]),
        _ => Ok(tensor(name, shape)),
    });
    let told = told.err().unwrap().to_string();
    assert!(told.contains("_blocks.3._bn1.running_var") && told.contains("negative"), "{told}");
}

fn network_of(read: Read) -> crate::Result<EfficientNetLite0> {
    EfficientNetLite0::new("made up", read)
}
