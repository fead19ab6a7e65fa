//! How far a prediction is from a label, by the divergence of Jensen and Shannon, and who is chosen by it.
//!
//! $\mathrm{JSD}(p, q) = \frac12 \mathrm{KL}(p \| m) + \frac12 \mathrm{KL}(q \| m)$ with $m = \frac12 (p + q)$. Against a one-hot row
//! $e(\tilde y)$ every class but the label's adds $\frac12 p_c \log 2$, so that only $p = p_{\tilde y}$ matters:
//!
//! $$ d(p) = \log 2 + \tfrac12 \big( p \log p - (1 + p) \log(1 + p) \big), $$
//!
//! which falls from $\log 2$ at $p = 0$ to 0 at $p = 1$. Logarithms are natural here; divided by $\log 2$ it is the divergence to base 2.
//!
//! UNICON chooses clean labels by it, the same number from every class; CrossSplit weighs labels by it.
//!
//! # Where this differs from published code
//! UNICON and CrossSplit add $10^{-10}$ inside the ratios of the sums; the closed form needs nothing of the kind.

use super::rows::{check_labels, count};
use super::small_loss::small_loss;
use crate::Result;
use std::f64::consts::LN_2;

/// $d(p)$ of the probability that a prediction gives to the label.
pub fn label_jsd(p: f64) -> f64 {
    let p = p.clamp(0.0, 1.0);
    let own = if p > 0.0 { p * p.ln() } else { 0.0 };
    (LN_2 + 0.5 * (own - (1.0 + p) * p.ln_1p())).max(0.0)
}

/// $d_i$ of every sample: probabilities (N x C) against labels.
pub fn label_jsds(probabilities: &[f32], labels: &[u32], classes: usize) -> Result<Vec<f64>> {
    let samples = count("probabilities", probabilities, classes)?;
    check_labels("divergence", labels, samples, classes)?;
    let rows = probabilities.chunks_exact(classes).zip(labels);
    Ok(rows.map(|(row, &label)| label_jsd(f64::from(row[label as usize]))).collect())
}

/// The divergence below which UNICON counts labels as clean: the mean $\bar d$; where that is above $d_\mu$, a part $1 / \tau$ of the
/// way down to the smallest, $\bar d - (\bar d - \min d) / \tau$. 0 if there are no samples.
pub fn cut_off(d: &[f64], d_mu: f64, tau: f64) -> f64 {
    let mean = d.iter().sum::<f64>() / d.len().max(1) as f64;
    let smallest = d.iter().copied().fold(mean, f64::min);
    if mean > d_mu { mean - (mean - smallest) / tau } else { mean }
}

/// Uniform selection: of every class (by label) the `each` samples of smallest $d$, of equals the first; all of a class that
/// has fewer.
pub fn smallest_of_each(d: &[f64], labels: &[u32], classes: usize, each: usize) -> Result<Vec<bool>> {
    check_labels("uniform selection", labels, d.len(), classes)?;
    let mut chosen = vec![false; d.len()];
    for class in 0..classes as u32 {
        let members: Vec<usize> = (0..d.len()).filter(|&i| labels[i] == class).collect();
        let of_class: Vec<f64> = members.iter().map(|&i| d[i]).collect();
        for at in small_loss(&of_class, each)? {
            chosen[members[at]] = true;
        }
    }
    Ok(chosen)
}

/// UNICON's choice, and the share $R$ of samples below the [`cut_off`]: $\lfloor R N / C \rfloor$ of every class.
pub fn select_uniformly(
    d: &[f64],
    labels: &[u32],
    classes: usize,
    d_mu: f64,
    tau: f64,
) -> Result<(Vec<bool>, f64)> {
    let limit = cut_off(d, d_mu, tau);
    let below = d.iter().filter(|&&d| d < limit).count();
    let chosen = smallest_of_each(d, labels, classes, below / classes.max(1))?;
    Ok((chosen, below as f64 / d.len().max(1) as f64))
}

/// $[\min d, \max d]$ over the samples of every class, by label; of a class without samples $[0, 0]$.
pub fn class_ranges(d: &[f64], labels: &[u32], classes: usize) -> Result<Vec<[f64; 2]>> {
    check_labels("divergence", labels, d.len(), classes)?;
    let mut ranges = vec![[f64::INFINITY, f64::NEG_INFINITY]; classes];
    for (&d, &label) in d.iter().zip(labels) {
        let [least, most] = &mut ranges[label as usize];
        (*least, *most) = (least.min(d), most.max(d));
    }
    Ok(ranges.into_iter().map(|range| if range[0] <= range[1] { range } else { [0.0; 2] }).collect())
}

/// Where $d$ lies in a range: 0 at the least, 1 at the most and beyond; 0 in a range without width.
pub fn place(d: f64, [least, most]: [f64; 2]) -> f64 {
    if most > least { ((d - least) / (most - least)).clamp(0.0, 1.0) } else { 0.0 }
}

/// CrossSplit's weight $1 - \beta$ of every label: with $w$ the [`place`] of $d(q_{\tilde y})$ in the range of the label's class,
/// $\beta = \gamma (w - \frac12) + \frac12$. `q` are predictions (rows of classes), `ranges` [`class_ranges`]'s.
pub fn soften(q: &[f32], labels: &[u32], ranges: &[[f64; 2]], gamma: f64) -> Vec<f32> {
    let weight = |(row, &label): (&[f32], &u32)| {
        let label = label as usize;
        let w = place(label_jsd(f64::from(row[label])), ranges[label]);
        (0.5 - gamma * (w - 0.5)) as f32
    };
    q.chunks(ranges.len().max(1)).zip(labels).map(weight).collect()
}
