//! What class means say about noise.
#![allow(clippy::unwrap_used)]

use negscale_audit::crossfit::{CrossFitSettings, Rows, cross_fit};
use negscale_audit::{mixture, rate_by_means};

const CLASSES: usize = 4;
const DIM: usize = 6;

/// A number that looks random, in (-1, 1).
fn chance(at: u64) -> f64 {
    let mut z = at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Rows of four clouds and the labels they are given: a share is drawn evenly from all classes.
fn clouds(count: usize, noise: f64) -> (Vec<f32>, Vec<u32>, f64) {
    let (mut rows, mut labels, mut wrong) = (Vec::new(), Vec::new(), 0);
    for i in 0..count {
        let class = i % CLASSES;
        rows.extend((0..DIM).map(|j| {
            let centre = 2.0 * chance((900 + class * DIM + j) as u64);
            (centre + (0..4).map(|k| chance((i * 64 + j * 4 + k + 5000) as u64)).sum::<f64>() * 0.4) as f32
        }));
        let drawn = ((chance(i as u64 * 7 + 3) + 1.0) * 0.5 * CLASSES as f64) as usize;
        let is_drawn = (chance(i as u64 * 13 + 1) + 1.0) * 0.5 < noise;
        let label = if is_drawn { drawn.min(CLASSES - 1) } else { class };
        wrong += usize::from(label != class);
        labels.push(label as u32);
    }
    (rows, labels, wrong as f64 / count as f64)
}

/// Centred class means by these labels.
fn means(rows: &[f32], labels: &[u32]) -> Vec<f64> {
    let mut sums = [0.0; CLASSES * DIM];
    let mut counts = [0.0; CLASSES];
    for (row, &label) in rows.chunks(DIM).zip(labels) {
        counts[label as usize] += 1.0;
        row.iter().enumerate().for_each(|(j, &x)| sums[label as usize * DIM + j] += f64::from(x));
    }
    let all: f64 = counts.iter().sum();
    let centre: Vec<f64> =
        (0..DIM).map(|j| (0..CLASSES).map(|c| sums[c * DIM + j]).sum::<f64>() / all).collect();
    sums.iter().enumerate().map(|(at, sum)| sum / counts[at / DIM] - centre[at % DIM]).collect()
}

fn cosine(means: &[f64], a: usize, b: usize) -> f64 {
    let dot = |a: usize, b: usize| (0..DIM).map(|j| means[a * DIM + j] * means[b * DIM + j]).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn symmetric_noise_shortens_class_means_and_turns_none() {
    let (rows, noisy, _) = clouds(40_000, 0.6);
    let truth: Vec<u32> = (0..40_000).map(|i| (i % CLASSES) as u32).collect();
    let (clean, given) = (means(&rows, &truth), means(&rows, &noisy));
    for a in 0..CLASSES {
        for b in 0..a {
            let (before, after) = (cosine(&clean, a, b), cosine(&given, a, b));
            assert!((before - after).abs() < 0.03, "{a} {b}: {before} became {after}");
        }
        let length = |means: &[f64]| (0..DIM).map(|j| means[a * DIM + j].powi(2)).sum::<f64>().sqrt();
        assert!((length(&given) / length(&clean) - 0.4).abs() < 0.03);
    }
}

#[test]
fn the_mixture_of_means_is_what_they_were_mixed_by() {
    let truth: Vec<f64> = (0..CLASSES * DIM).map(|at| chance(at as u64 + 40)).collect();
    let shares = [0.7, 0.1, 0.2, 0.0, 0.0, 0.9, 0.05, 0.05, 0.1, 0.1, 0.8, 0.0, 0.3, 0.0, 0.0, 0.7];
    let given: Vec<f64> = (0..CLASSES * DIM)
        .map(|at| (0..CLASSES).map(|y| shares[at / DIM * CLASSES + y] * truth[y * DIM + at % DIM]).sum())
        .collect();
    let found = mixture(&given, &truth, CLASSES);
    found
        .iter()
        .zip(shares)
        .for_each(|(found, wanted)| assert!((found - wanted).abs() < 0.02, "{found} {wanted}"));
}

#[test]
fn means_tell_the_share_of_wrong_labels() {
    for noise in [0.0, 0.3, 0.6] {
        let (values, labels, wrong) = clouds(3_000, noise);
        let rows = Rows::new(&values, DIM).unwrap();
        let settings = CrossFitSettings::new(3_000, CLASSES, 1);
        let fit = cross_fit(&rows, &labels, CLASSES, &settings, &|_| true).unwrap();
        let rate = rate_by_means(&rows, &fit.model).unwrap();
        assert!((rate - wrong).abs() < 0.05, "{rate} for {wrong}");
    }
}
