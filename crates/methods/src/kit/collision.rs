//! Collision entropy (DSOS): which labels are right, which are wrong for a known class, which samples belong to no class at all.
//!
//! With $y$ the one-hot given label and $p$ the prediction, $e = -\log \sum_c ((p_c + y_c) / 2)^2$ lies in $[0, \log 4]$: 0 if the
//! prediction is the label, $\log 2$ if it is surely another class, above if it is nothing in particular. Samples from $\log 2$ on
//! are doubtful. Their $e$, scaled to $u \in [10^{-4}, 1 - 10^{-4}]$, are divided by a [mixture of two beta
//! distributions](super::beta): the lower one is that of wrong labels, the higher one that of unknown samples.
//!
//! $P_{known}$, $P_{unknown}$: the posteriors of the two; a component whose mode lies outside $(-s, 1 + s)$ says nothing, and
//! $[u < 0.5]$ and $u$ stand in. Samples that are not doubtful have 0 for both.
//!
//! # Where this differs from the reference code
//! There the slack $s$ is 0.1. Once predictions are sure, most doubtful samples lie at $u \approx 0$, both components are densest there
//! with a mode just below 0, and neither is clearly the likelier one: from one epoch to the next nobody is held for known any more.
//! With a slack of 0 such a component says nothing, and all samples of small $u$ stay known.

use super::beta::BetaMixture;
use crate::Result;
use std::f64::consts::LN_2;

/// How far scaled values stay from 0 and 1.
const EDGE: f64 = 1e-4;

/// $e$ of a row of probabilities and a label.
///
/// # Panics
/// If the label is not one of the classes.
pub fn entropy(p: &[f32], label: u32) -> f64 {
    let own = f64::from(p[label as usize]);
    let squares: f64 = p.iter().map(|&p| f64::from(p) * f64::from(p)).sum();
    // (p_y + 1)^2 = p_y^2 + 2 p_y + 1. Rounded probabilities may take it past the ends.
    (-((squares + 2.0 * own + 1.0) / 4.0).ln()).clamp(0.0, 2.0 * LN_2)
}

/// The given label's probability of being right: $1 - e / \log 4$, above one half where the sample is not doubtful.
pub fn clean_probability(entropy: f64) -> f64 {
    1.0 - entropy / (2.0 * LN_2)
}

/// What is held of every sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Sorted {
    /// $P_{known}$: its label is wrong, and its class is one of ours.
    pub known: Vec<f64>,
    /// $P_{unknown}$: it belongs to none.
    pub unknown: Vec<f64>,
    /// The mixture, if there was something to divide.
    pub mixture: Option<BetaMixture>,
}

/// Divides samples by their entropies. If the doubtful ones are all alike, there is nothing to divide, and they are held for
/// known ones.
pub fn sort(entropies: &[f64], slack: f64) -> Result<Sorted> {
    let count = entropies.len();
    let mut sorted = Sorted { known: vec![0.0; count], unknown: vec![0.0; count], mixture: None };
    let doubtful: Vec<usize> = (0..count).filter(|&i| entropies[i] >= LN_2).collect();
    let low = doubtful.iter().map(|&i| entropies[i]).fold(f64::INFINITY, f64::min);
    let high = doubtful.iter().map(|&i| entropies[i]).fold(f64::NEG_INFINITY, f64::max);
    // Also if there are none.
    if high <= low {
        doubtful.iter().for_each(|&i| sorted.known[i] = 1.0);
        return Ok(sorted);
    }
    let scale = |e: f64| ((e - low) / (high - low)).clamp(EDGE, 1.0 - EDGE);
    let scaled: Vec<f64> = doubtful.iter().map(|&i| scale(entropies[i])).collect();
    let mixture = BetaMixture::fit(&scaled)?;
    let speaks = [0, 1].map(|k| -slack < mixture.mode(k) && mixture.mode(k) < 1.0 + slack);
    for (i, u) in doubtful.into_iter().zip(scaled) {
        let [known, unknown] = mixture.posterior(u);
        sorted.known[i] = if speaks[0] { known } else { f64::from(u < 0.5) };
        sorted.unknown[i] = if speaks[1] { unknown } else { u };
    }
    sorted.mixture = Some(mixture);
    Ok(sorted)
}

/// $\mathrm{softmax}(e(y)\, v / a)$: almost one-hot for $v = 1$ and small $a$, uniform for $v = 0$.
///
/// # Panics
/// If the label is not one of the classes.
pub fn soften(label: u32, v: f64, a: f64, row: &mut [f32]) {
    // Measured in the label's own exponential, which may be too large for a number.
    let other = (-v / a).exp();
    let sum = 1.0 + other * (row.len() as f64 - 1.0);
    row.fill((other / sum) as f32);
    row[label as usize] = (1.0 / sum) as f32;
}
