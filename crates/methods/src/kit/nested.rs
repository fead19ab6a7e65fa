//! Nested dropout: features whose channels are ordered by importance (NCT).
//!
//! In training only the first $k$ of $D$ channels reach the classifier, $k$ drawn again for every batch,
//!
//! $$ P(k) \propto e^{-(k / \sigma)^2}, \qquad k = 1, \dots, D, $$
//!
//! without rescaling. The first channels are nearly always there, so what matters most ends up in them; late ones see few batches and
//! have little to learn noise with. Networks are then judged by the first $K$ channels,
//!
//! $$ K = \arg\max_k\,(\mathrm{acc}(k) - 10^{-5} k), $$
//!
//! acc(k) the accuracy with the first $k$ on samples that were not trained on; of equals the smallest.

use super::rows::{check_labels, count, largest};
use crate::{Error, Result};
use negscale_data::draw::Draw;
use negscale_nets::{Classifier, Network};
use rayon::prelude::*;

/// What a channel costs when a width is chosen.
const PRICE: f64 = 1e-5;

/// A width $k$ from 1 to `channels`.
pub fn draw_width(draw: &mut Draw, sigma: f64, channels: usize) -> usize {
    // Relative to k = 1, so that the sum is at least 1 however small sigma is.
    let weight = |k: usize| ((1.0 - (k * k) as f64) / (sigma * sigma)).exp();
    let mut left = draw.unit() * (1..=channels).map(weight).sum::<f64>();
    for k in 1..channels {
        left -= weight(k);
        if left < 0.0 {
            return k;
        }
    }
    channels.max(1)
}

/// Channels that a batch keeps of the first hidden layer, which only VGG has, and of the features; of VGG both layers, or by the toss of
/// a coin one of them.
pub fn draw_masks(draw: &mut Draw, sigma: f64, net: &Network, both: bool) -> [Option<usize>; 2] {
    let [features, first] = [0; 2].map(|_| draw_width(draw, sigma, net.feature_size()));
    match net.spec().name == "vgg-19-bn" {
        true if both => [Some(first), Some(features)],
        true if draw.chance(0.5) => [Some(first), None],
        _ => [None, Some(features)],
    }
}

/// For $k = 1 \dots D$, how many samples are classified as labelled by the first $k$ channels of their features (N x D).
pub fn right_by_width(features: &[f32], labels: &[u32], classifier: &Classifier) -> Result<Vec<usize>> {
    let classes = classifier.bias.len();
    let dim = classifier.weight.len() / classes.max(1);
    let samples = count("features", features, dim)?;
    check_labels("labels", labels, samples, classes)?;
    if samples == 0 {
        let problem = "there are none to choose a width by".to_owned();
        return Err(Error::Samples { what: "features", problem });
    }
    // By channel, so that what one channel adds lies together.
    let by_channel: Vec<f32> =
        (0..dim).flat_map(|j| (0..classes).map(move |c| classifier.weight[c * dim + j])).collect();
    let of_chunk = |(features, labels): (&[f32], &[u32])| {
        let mut right = vec![0; dim];
        for (row, &label) in features.chunks(dim).zip(labels) {
            let mut logits = classifier.bias.clone();
            for (j, &f) in row.iter().enumerate() {
                let f = if classifier.rectifies { f.max(0.0) } else { f };
                let added = &by_channel[j * classes..(j + 1) * classes];
                logits.iter_mut().zip(added).for_each(|(logit, w)| *logit += f * w);
                right[j] += usize::from(largest(&logits) == label as usize);
            }
        }
        right
    };
    const CHUNK: usize = 64;
    let parts = features.par_chunks(CHUNK * dim).zip(labels.par_chunks(CHUNK)).map(of_chunk);
    Ok(parts.reduce(
        || vec![0; dim],
        |mut sum, part| {
            sum.iter_mut().zip(part).for_each(|(sum, n)| *sum += n);
            sum
        },
    ))
}

/// The width $K$ by the numbers that are right with the first 1, 2, ... channels, of so many samples.
pub fn choose_width(right: &[usize], samples: usize) -> usize {
    let worth: Vec<f64> =
        (1..).zip(right).map(|(k, &n)| n as f64 / samples.max(1) as f64 - PRICE * f64::from(k)).collect();
    largest(&worth) + 1
}
