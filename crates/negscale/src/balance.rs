//! Balance: the plug-in's gradient as a fixed share of the host's. Not in the paper.
//!
//! The terms' gradients depend on dimension, batch and the length of the features, so that no weight fits two hosts. With `balance` $= \rho > 0$
//! value and gradient of all terms on features are multiplied by
//!
//! $$s = \frac{\rho H}{\max(N,\, \lVert g\rVert / 2)},$$
//!
//! where $g$ is their gradient at the features of this batch, $N$ the running mean of its lengths, and $H$ that of the lengths of
//! the host's own gradient at the same place, which the caller hands over after each backward pass. So it takes no extra pass; no
//! batch pushes more than $2\rho$ times what the host does on average; and nothing is added before the host has been heard.

use serde::{Deserialize, Serialize};

/// Share of the old value when a running mean meets a new batch.
const MOMENTUM: f64 = 0.95;

/// Largest push of one batch, in units of the mean push.
const LARGEST: f64 = 2.0;

/// A running mean of lengths, corrected for its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct RunningMean {
    sum: f64,
    weight: f64,
}

impl RunningMean {
    fn add(&mut self, value: f64) {
        self.sum = MOMENTUM * self.sum + (1.0 - MOMENTUM) * value;
        self.weight = MOMENTUM * self.weight + (1.0 - MOMENTUM);
    }

    fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

/// Running lengths of both gradients. Part of a training run's state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Balance {
    host: RunningMean,
    own: RunningMean,
}

impl Balance {
    /// Takes in the length of the host's gradient at the features, after its backward pass.
    pub fn hear(&mut self, length: f64) {
        if length.is_finite() {
            self.host.add(length);
        }
    }

    /// The running mean of the host's lengths, once it has been heard.
    pub fn host(&self) -> Option<f64> {
        self.host.mean()
    }

    /// The running mean of the lengths of the terms' gradient before scaling.
    pub fn own(&self) -> Option<f64> {
        self.own.mean()
    }

    /// Takes in the length of the terms' gradient for a batch.
    pub(crate) fn take_own(&mut self, own: f64) {
        self.own.add(own);
    }

    /// The factor for a batch whose gradient has this length, which has been taken in.
    pub(crate) fn factor(&self, rho: f64, own: f64) -> f64 {
        let divisor = self.own.mean().unwrap_or(0.0).max(own / LARGEST);
        match self.host.mean() {
            Some(host) if divisor > 0.0 => rho * host / divisor,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_gradients_are_scaled_to_the_share_and_nothing_is_added_before_the_host_is_heard() {
        let mut balance = Balance::default();
        balance.take_own(0.5);
        assert_eq!(balance.factor(0.3, 0.5), 0.0);
        balance.hear(20.0);
        for _ in 0..5 {
            balance.take_own(0.5);
            assert!((balance.factor(0.3, 0.5) * 0.5 - 0.3 * 20.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_sudden_gradient_pushes_at_most_twice_as_much() {
        let mut balance = Balance::default();
        balance.hear(1.0);
        (0..200).for_each(|_| balance.take_own(1.0));
        balance.take_own(1000.0);
        assert!(balance.factor(0.1, 1000.0) * 1000.0 <= 0.2 + 1e-12);
    }

    #[test]
    fn a_length_that_is_no_number_is_not_taken_in() {
        let mut balance = Balance::default();
        balance.hear(2.0);
        balance.hear(f64::NAN);
        balance.hear(f64::INFINITY);
        assert_eq!(balance.host(), Some(2.0));
    }
}
