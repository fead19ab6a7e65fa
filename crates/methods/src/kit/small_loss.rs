//! Samples that a network finds easy: those of small loss.
//!
//! Networks learn clean labels before wrong ones, so of a batch of $B$ the $n = \lfloor (1 - R) B \rfloor$ samples of smallest loss are
//! kept, $R$ being the share to forget (Co-teaching, JoCoR, NCT). $R$ grows from 0, because an untrained network finds nothing easy:
//!
//! $$ R(e) = \tau \min\left(\frac{e^c}{T_k - 1},\, 1\right), $$
//!
//! $e$ the epoch from 0, $\tau$ the noise rate, $T_k$ the points of the ramp, $c$ its exponent.

use super::rows::wide;
use crate::{Error, Result};
use burn::tensor::{Device, Int, Tensor, TensorData};
use negscale_nets::Samples;

/// The share to forget in an epoch: see the head of this page. A ramp of 0 or 1 points is none.
pub fn forget_rate(epoch: usize, rate: f64, points: usize, exponent: f64) -> f64 {
    match points {
        0 | 1 => rate,
        _ => rate * ((epoch as f64).powf(exponent) / (points - 1) as f64).min(1.0),
    }
}

/// Numbers of the rows that a network finds easy when a share is to be forgotten: always at least one, smallest loss first.
pub fn easiest<T: Copy + Into<f64>>(losses: &[T], forget: f64) -> Result<Vec<usize>> {
    small_loss(losses, keep_count(1.0 - forget, losses.len())?.max(1))
}

/// The mean loss of some rows, which must not be none; gradients flow to these rows alone.
pub fn mean_of(losses: Tensor<1>, rows: &[usize]) -> Tensor<1> {
    losses.clone().select(0, indices(rows, &losses.device())).mean()
}

/// Some samples of a batch, by their rows.
pub fn pick(samples: &Samples, rows: &[usize]) -> Samples {
    match samples {
        Samples::Images(images) => samples.select(indices(rows, &images.device())),
        Samples::Rows(values) => samples.select(indices(rows, &values.device())),
    }
}

/// Row numbers as a tensor.
fn indices(rows: &[usize], device: &Device) -> Tensor<1, Int> {
    let rows: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
    let count = rows.len();
    Tensor::from_data(TensorData::new(rows, [count]), device)
}

/// How many of a batch to keep: the fraction, rounded down.
///
/// 0.1 of 10 is 1 even where the fraction was computed as 1 - 0.9, which is a little less than 0.1.
pub fn keep_count(fraction: f64, batch: usize) -> Result<usize> {
    if !(0.0..=1.0).contains(&fraction) {
        let value = fraction.to_string();
        return Err(Error::Range { setting: "fraction", value, wanted: "must be from 0 to 1" });
    }
    Ok(((fraction * batch as f64 + 1e-9).floor() as usize).min(batch))
}

/// Indices of the `n` smallest losses, smallest first, of equals the smaller index; all of them if there are fewer.
pub fn small_loss<T: Copy + Into<f64>>(losses: &[T], n: usize) -> Result<Vec<usize>> {
    let losses = wide("losses", losses)?;
    let mut order: Vec<usize> = (0..losses.len()).collect();
    // A stable sort of finite numbers, for which 0 and -0 are equal.
    order.sort_by(|&a, &b| (losses[a] + 0.0).total_cmp(&(losses[b] + 0.0)));
    order.truncate(n);
    Ok(order)
}
