//! Losses on logits, and the ramp of their weights.
//!
//! $z \in \mathbb{R}^{B \times C}$ are the logits of $B$ rows over $C$ classes, $p_i = \mathrm{softmax}(z_i)$, $y_i$ a label,
//! $e(y_i)$ its one-hot row and $t_i$ a row of probabilities. A function gives the mean over rows, one number; its twin in
//! `_rows` gives one number per row, for methods that choose or weigh samples by it.
//!
//! All go through $\log p$, never through the logarithm of a rounded $p$, so logits far apart cost neither the value nor the
//! gradient. Rows are summed before the batch is, so that no sum is long enough to be shared among threads, which would make
//! its last bits a matter of chance.
//!
//! Gradients flow to logits and, where one is given with a record of its computation, to targets: those of
//! [`target`](super::target) have none. There must be at least one row.

use super::contrast::normalise_rows;
use burn::tensor::activation::{log_softmax, softmax};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Epochs over which DivideMix and its kin let a weight grow; see [`ramp`].
pub const RAMP_EPOCHS: f64 = 16.0;

/// $e(y_i)$ for every label, `[labels, classes]`.
///
/// # Panics
/// If a label is not below `classes`.
pub fn one_hot(labels: &[u32], classes: usize, device: &Device) -> Tensor<2> {
    check(labels, labels.len(), classes);
    let mut values = vec![0f32; labels.len() * classes];
    for (i, &label) in labels.iter().enumerate() {
        values[i * classes + label as usize] = 1.0;
    }
    Tensor::from_data(TensorData::new(values, [labels.len(), classes]), device)
}

/// $\frac1B \sum_i -\log p_{i y_i}$.
///
/// # Panics
/// If there is not one label per row, or one is not below $C$.
pub fn cross_entropy(logits: Tensor<2>, labels: &[u32]) -> Tensor<1> {
    cross_entropy_rows(logits, labels).mean()
}

/// $-\log p_{i y_i}$ of every row.
///
/// # Panics
/// If there is not one label per row, or one is not below $C$.
pub fn cross_entropy_rows(logits: Tensor<2>, labels: &[u32]) -> Tensor<1> {
    let [rows, classes] = logits.dims();
    check(labels, rows, classes);
    let labels: Vec<i64> = labels.iter().map(|&label| i64::from(label)).collect();
    let labels = Tensor::<2, Int>::from_data(TensorData::new(labels, [rows, 1]), &logits.device());
    -log_softmax(logits, 1).gather(1, labels).squeeze_dim(1)
}

/// $\frac1B \sum_i -\sum_c t_{ic} \log p_{ic}$.
pub fn soft_cross_entropy(logits: Tensor<2>, targets: Tensor<2>) -> Tensor<1> {
    soft_cross_entropy_rows(logits, targets).mean()
}

/// $-\sum_c t_{ic} \log p_{ic}$ of every row.
pub fn soft_cross_entropy_rows(logits: Tensor<2>, targets: Tensor<2>) -> Tensor<1> {
    -sum_rows(targets * log_softmax(logits, 1))
}

/// $\frac1B \sum_i (1 - p_{i y_i}^q) / q$: see [`generalised_cross_entropy_rows`].
///
/// # Panics
/// If there is not one label per row, or one is not below $C$.
pub fn generalised_cross_entropy(logits: Tensor<2>, labels: &[u32], q: f64) -> Tensor<1> {
    generalised_cross_entropy_rows(logits, labels, q).mean()
}

/// $(1 - p_{i y_i}^q) / q$ of every row, $q > 0$ (Zhang and Sabuncu, NeurIPS 2018): from cross-entropy ($q \to 0$) to the
/// absolute error $1 - p_{i y_i}$ ($q = 1$), which wrong labels hardly move.
///
/// # Panics
/// If there is not one label per row, or one is not below $C$.
pub fn generalised_cross_entropy_rows(logits: Tensor<2>, labels: &[u32], q: f64) -> Tensor<1> {
    let raised = (cross_entropy_rows(logits, labels) * -q).exp();
    (1.0 - raised) / q
}

/// $\frac{1}{BC} \sum_i \sum_c (p_{ic} - t_{ic})^2$: the mean over rows and classes.
pub fn squared_error(logits: Tensor<2>, targets: Tensor<2>) -> Tensor<1> {
    let away = softmax(logits, 1) - targets;
    away.powi_scalar(2).mean_dim(1).mean()
}

/// $\mathrm{KL}(u \,\|\, \bar p) = \sum_c u_c \log(u_c / \bar p_c)$ with $u_c = 1/C$ and $\bar p = \frac1B \sum_i p_i$: what
/// it costs to leave classes unused.
///
/// $\log \bar p_c$ is summed up from the $\log p_{ic}$ with their largest taken out. A class whose $\bar p_c$ is too small for
/// a 32-bit float therefore still has its true, finite cost, and a gradient that brings it back.
pub fn prior_penalty(logits: Tensor<2>) -> Tensor<1> {
    let [_, classes] = logits.dims();
    -log_mean(logits).mean() - (classes as f64).ln()
}

/// $\sum_c \bar p_c \log \bar p_c$ with $\bar p = \frac1B \sum_i p_i$, from $-\log C$ (all classes used alike) to 0 (one class only).
pub fn negative_entropy_of_mean(logits: Tensor<2>) -> Tensor<1> {
    let logs = log_mean(logits);
    (logs.clone().exp() * logs).sum()
}

/// $\log \bar p$, `[1, C]`.
fn log_mean(logits: Tensor<2>) -> Tensor<2> {
    let logs = log_softmax(logits, 1);
    let largest = logs.clone().detach().max_dim(0);
    (logs - largest.clone()).exp().mean_dim(0).log() + largest
}

/// $\frac1B \sum_i \sum_c p_{ic} \log p_{ic}$, from $-\log C$ (undecided) to 0 (certain).
pub fn negative_entropy(logits: Tensor<2>) -> Tensor<1> {
    let logs = log_softmax(logits, 1);
    sum_rows(logs.clone().exp() * logs).mean()
}

/// $\mathrm{KL}(a_i \| b_i) + \mathrm{KL}(b_i \| a_i) = \sum_c (a_{ic} - b_{ic}) (\log a_{ic} - \log b_{ic})$ of every row,
/// $a$ and $b$ the softmax of the two logits; gradients flow to both.
pub fn symmetric_kl_rows(logits_a: Tensor<2>, logits_b: Tensor<2>) -> Tensor<1> {
    let (a, b) = (log_softmax(logits_a, 1), log_softmax(logits_b, 1));
    sum_rows((a.clone().exp() - b.clone().exp()) * (a - b))
}

/// $(1 - \lambda)\,(-\log a_{i y_i} - \log b_{i y_i}) + \lambda\,(\mathrm{KL}(a_i \| b_i) + \mathrm{KL}(b_i \| a_i))$ of every row: what a sample
/// costs two networks together (JoCoR), $a$ and $b$ the softmax of their logits; gradients flow to both.
///
/// # Panics
/// If there is not one label per row, or one is not below $C$.
pub fn joint_rows(logits_a: Tensor<2>, logits_b: Tensor<2>, labels: &[u32], lambda: f64) -> Tensor<1> {
    let fit = cross_entropy_rows(logits_a.clone(), labels) + cross_entropy_rows(logits_b.clone(), labels);
    fit * (1.0 - lambda) + symmetric_kl_rows(logits_a, logits_b) * lambda
}

/// $-\frac1B \sum_i \cos(a_i, b_i)$; $b$ is a constant. A row of zeros counts as $\cos = 0$.
pub fn negative_cosine(a: Tensor<2>, b: Tensor<2>) -> Tensor<1> {
    -sum_rows(normalise_rows(a) * normalise_rows(b.detach())).mean()
}

/// A weight that grows linearly: $v \cdot \mathrm{clip}((t - t_0) / n, 0, 1)$, with $t$ the epoch and the part of it that is
/// done, $t_0$ `start`, $n$ `length` (often [`RAMP_EPOCHS`]) and $v$ `value`. A length of 0 is a step at $t_0$.
pub fn ramp(t: f64, start: f64, length: f64, value: f64) -> f64 {
    if length > 0.0 {
        value * ((t - start) / length).clamp(0.0, 1.0)
    } else if t >= start {
        value
    } else {
        0.0
    }
}

fn sum_rows(x: Tensor<2>) -> Tensor<1> {
    x.sum_dim(1).squeeze_dim(1)
}

/// A label out of range would otherwise be read from another row.
fn check(labels: &[u32], rows: usize, classes: usize) {
    assert_eq!(labels.len(), rows, "one label per row");
    for &label in labels {
        assert!((label as usize) < classes, "label {label} of {classes} classes: labels count from 0");
    }
}
