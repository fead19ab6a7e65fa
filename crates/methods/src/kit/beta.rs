//! A mixture of two beta distributions on (0, 1).
//!
//! With weights $\pi_k$ and shapes $\alpha_k, \beta_k > 0$, $k \in \{0, 1\}$, the posterior of component $k$ at $x$ is
//!
//! $$ r_k(x) = \frac{\pi_k\, b_k(x)}{\sum_j \pi_j\, b_j(x)}, \qquad
//!    b_k(x) = \frac{x^{\alpha_k - 1} (1 - x)^{\beta_k - 1}}{B(\alpha_k, \beta_k)}. $$
//!
//! # Fit
//! Start: $(\alpha, \beta) = (1, 3)$ and $(2, 2)$, equal weights. 100 rounds of: responsibilities $R_{ik} = r_k(x_i)$; weighted
//! mean $m_k$ and variance $s_k^2$; $\alpha_k = m_k (m_k (1 - m_k) / s_k^2 - 1)$, $\beta_k = \alpha_k (1 - m_k) / m_k$;
//! $\pi_k$ the share of $R_{\cdot k}$. Values are sorted before anything is summed, so that the order of samples changes no bit.
//! At last component 0 is the one of the smaller mean.
//!
//! # Where this differs from the reference code
//! Densities are compared by their logarithms, without the floor of 1e-12 below which reference code holds both components for
//! equally likely. Reference code leaves components as they started even if they have changed places.

use crate::{Error, Result};
use negscale_records::statistics::ln_gamma;

/// Rounds of a fit.
const ROUNDS: usize = 100;
/// Below this a component has nobody left, or all of them at one value: it stays as it is.
const LEAST: f64 = 1e-9;

/// A fitted mixture; component 0 has the smaller mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BetaMixture {
    /// $\pi$.
    pub weights: [f64; 2],
    /// $\alpha$.
    pub alphas: [f64; 2],
    /// $\beta$.
    pub betas: [f64; 2],
}

impl BetaMixture {
    /// Fits a mixture to values strictly between 0 and 1.
    pub fn fit(values: &[f64]) -> Result<Self> {
        let is_inside = |x: &f64| 0.0 < *x && *x < 1.0;
        if let Some(at) = values.iter().position(|x| !is_inside(x)) {
            let problem = format!("value {at} is {}: it must lie between 0 and 1", values[at]);
            return Err(Error::Samples { what: "values of a beta mixture", problem });
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let logs: Vec<[f64; 2]> = sorted.iter().map(|&x| [x.ln(), (-x).ln_1p()]).collect();
        let mut mixture = Self { weights: [0.5; 2], alphas: [1.0, 2.0], betas: [3.0, 2.0] };
        for _ in 0..ROUNDS {
            let norms = mixture.norms();
            let shares: Vec<[f64; 2]> = logs.iter().map(|&logs| mixture.share(logs, norms)).collect();
            mixture.settle(&sorted, &shares);
        }
        if mixture.mean(0) > mixture.mean(1) {
            let Self { weights, alphas, betas } = &mut mixture;
            [weights, alphas, betas].into_iter().for_each(|pair| pair.swap(0, 1));
        }
        Ok(mixture)
    }

    /// Posteriors $r_0(x)$ and $r_1(x)$.
    pub fn posterior(&self, x: f64) -> [f64; 2] {
        self.share([x.ln(), (-x).ln_1p()], self.norms())
    }

    /// $\alpha_k / (\alpha_k + \beta_k)$.
    pub fn mean(&self, k: usize) -> f64 {
        self.alphas[k] / (self.alphas[k] + self.betas[k])
    }

    /// $(\alpha_k - 1) / (\alpha_k + \beta_k - 2)$: where a component is densest, if that lies in (0, 1).
    pub fn mode(&self, k: usize) -> f64 {
        (self.alphas[k] - 1.0) / (self.alphas[k] + self.betas[k] - 2.0)
    }

    /// $\log \pi_k - \log B(\alpha_k, \beta_k)$.
    fn norms(&self) -> [f64; 2] {
        [0, 1].map(|k| {
            let (a, b) = (self.alphas[k], self.betas[k]);
            self.weights[k].ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)
        })
    }

    /// Posteriors where $\log x$ and $\log (1 - x)$ are these.
    fn share(&self, [log, log_rest]: [f64; 2], norms: [f64; 2]) -> [f64; 2] {
        let joint =
            [0, 1].map(|k| norms[k] + (self.alphas[k] - 1.0) * log + (self.betas[k] - 1.0) * log_rest);
        let largest = joint[0].max(joint[1]);
        let parts = joint.map(|j| (j - largest).exp());
        parts.map(|part| part / (parts[0] + parts[1]))
    }

    /// Shapes and weights by weighted moments.
    fn settle(&mut self, values: &[f64], shares: &[[f64; 2]]) {
        let mut counts = [0.0; 2];
        for k in 0..2 {
            let total = |of: &dyn Fn(f64) -> f64| -> f64 {
                values.iter().zip(shares).map(|(&x, share)| share[k] * of(x)).sum()
            };
            counts[k] = total(&|_| 1.0);
            if counts[k] < LEAST {
                continue;
            }
            let m = total(&|x| x) / counts[k];
            let variance = total(&|x| (x - m) * (x - m)) / counts[k];
            if variance < LEAST {
                continue;
            }
            self.alphas[k] = (m * (m * (1.0 - m) / variance - 1.0)).max(LEAST);
            self.betas[k] = self.alphas[k] * (1.0 - m) / m;
        }
        let all = counts[0] + counts[1];
        if all > 0.0 {
            self.weights = counts.map(|count| count / all);
        }
    }
}
