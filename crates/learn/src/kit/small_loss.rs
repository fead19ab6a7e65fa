//! Samples that a network finds easy: those of small loss.
//!
//! Networks learn clean labels before wrong ones, so of a batch of $B$ the $n = \lfloor R B \rfloor$ samples of smallest loss are
//! kept, $R$ being the share believed clean (Co-teaching, JoCoR).

use super::rows::wide;
use crate::{Error, Result};

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
