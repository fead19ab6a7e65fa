//! MixUp: the law of its weight, the permutation of its partners, and the blend.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::tensor::{Device, Tensor, TensorData};
use negscale_data::draw::{Draw, Purpose};
use negscale_methods::kit::mix::{Mix, beta, gamma};
use negscale_nets::Samples;

const DRAWS: usize = 100_000;

fn stream(n: u64) -> Draw {
    Draw::new(n, Purpose::Order, 0, 0)
}

/// Mean and variance of many draws; whether they are within 5 standard errors of those of the law. The error of the variance
/// takes the fourth central moment from the draws.
fn check_moments(name: &str, mut next: impl FnMut() -> f64, mean: f64, variance: f64) {
    let values: Vec<f64> = (0..DRAWS).map(|_| next()).collect();
    let n = DRAWS as f64;
    let found = values.iter().sum::<f64>() / n;
    let central = |power: i32| values.iter().map(|x| (x - found).powi(power)).sum::<f64>() / n;
    let spread = central(2);
    assert!((found - mean).abs() < 5.0 * (variance / n).sqrt(), "{name}: mean {found}, not {mean}");
    let error = ((central(4) - spread * spread) / n).sqrt();
    assert!((spread - variance).abs() < 5.0 * error, "{name}: variance {spread}, not {variance}");
}

#[test]
fn gamma_and_beta_have_the_moments_of_their_laws() {
    for (n, a) in [0.1, 0.9, 1.0, 4.0, 50.0].into_iter().enumerate() {
        let mut draw = stream(n as u64);
        check_moments(&format!("gamma {a}"), || gamma(&mut draw, a), a, a);
    }
    for (n, (a, b)) in [(4.0, 4.0), (0.9, 0.9), (0.2, 0.2), (5.0, 5.0), (2.0, 7.0)].into_iter().enumerate() {
        let mut draw = stream(10 + n as u64);
        let variance = a * b / ((a + b) * (a + b) * (a + b + 1.0));
        check_moments(&format!("beta {a} {b}"), || beta(&mut draw, a, b), a / (a + b), variance);
    }
}

#[test]
fn beta_of_one_and_one_is_uniform_to_its_quantiles() {
    let mut draw = stream(20);
    let mut values: Vec<f64> = (0..DRAWS).map(|_| beta(&mut draw, 1.0, 1.0)).collect();
    values.sort_unstable_by(f64::total_cmp);
    let away = values.iter().enumerate().map(|(i, x)| (x - i as f64 / DRAWS as f64).abs());
    // Kolmogorov: above 2 / sqrt(n) once in 1,500 such streams; this one is fixed.
    assert!(away.fold(0.0, f64::max) < 2.0 / (DRAWS as f64).sqrt());
}

#[test]
fn tiny_parameters_give_one_side_or_the_other_and_never_no_number() {
    let mut draw = stream(21);
    let values: Vec<f64> = (0..2000).map(|_| beta(&mut draw, 1e-4, 1e-4)).collect();
    assert!(values.iter().all(|x| (0.0..=1.0).contains(x)));
    let high = values.iter().filter(|&&x| x > 0.5).count();
    assert!((850..1150).contains(&high), "{high} of 2000");
}

#[test]
fn a_mix_pairs_the_whole_pool_and_repeats_from_the_same_stream() {
    for (n, alpha) in [4.0, 0.9].into_iter().enumerate() {
        let mix = Mix::draw(&mut stream(n as u64), 256, alpha, false);
        assert_eq!(mix, Mix::draw(&mut stream(n as u64), 256, alpha, false));
        assert_ne!(mix, Mix::draw(&mut stream(99), 256, alpha, false));
        let mut partners = mix.partner.clone();
        assert!(partners.iter().enumerate().any(|(i, &partner)| i as u32 != partner));
        partners.sort_unstable();
        assert_eq!(partners, (0..256).collect::<Vec<u32>>());
    }
}

#[test]
fn the_own_part_is_the_larger_one_on_request_only() {
    let weights = |own_first| -> Vec<f32> {
        (0..200).map(|n| Mix::draw(&mut stream(n), 2, 4.0, own_first).weight).collect()
    };
    assert!(weights(true).iter().all(|&weight| (0.5..=1.0).contains(&weight)));
    assert!(weights(false).iter().any(|&weight| weight < 0.5));
    for (free, own) in weights(false).iter().zip(weights(true)) {
        assert!((free.max(1.0 - free) - own).abs() < 1e-6, "the same draw");
    }
    assert_eq!(Mix::draw(&mut stream(1), 4, 0.0, false).weight, 1.0, "no blending");
}

#[test]
fn rows_and_images_are_blended_with_their_partners() {
    let mix = Mix { weight: 0.75, partner: vec![2, 0, 1] };
    let values: Vec<f32> = (0..12).map(|i| (i * i) as f32).collect();
    let wanted: Vec<f32> = (0..12)
        .map(|at| 0.75 * values[at] + 0.25 * values[mix.partner[at / 4] as usize * 4 + at % 4])
        .collect();
    let rows = Tensor::<2>::from_data(TensorData::new(values.clone(), [3, 4]), &Device::flex());
    let images = Tensor::<4>::from_data(TensorData::new(values, [3, 1, 2, 2]), &Device::flex());
    let read = |data: TensorData| data.try_into_vec::<f32>().unwrap();
    assert_eq!(read(mix.rows(rows.clone()).into_data()), wanted);
    let Samples::Rows(mixed) = mix.samples(rows.into()) else { panic!("rows stay rows") };
    assert_eq!(read(mixed.into_data()), wanted);
    let Samples::Images(mixed) = mix.samples(images.into()) else { panic!("images stay images") };
    assert_eq!(mixed.dims(), [3, 2, 2, 1], "channels last");
    assert_eq!(read(mixed.into_data()), wanted);
}

#[test]
fn a_weight_of_one_changes_no_bit() {
    let mix = Mix { weight: 1.0, partner: vec![1, 0] };
    let values = [1e-45, f32::INFINITY, -0.0, 3.0e38, f32::MIN_POSITIVE, -7.1];
    let rows = Tensor::<2>::from_data(TensorData::new(values.to_vec(), [2, 3]), &Device::flex());
    let mixed = mix.rows(rows).into_data().try_into_vec::<f32>().unwrap();
    assert_eq!(mixed.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), values.map(f32::to_bits));
}
