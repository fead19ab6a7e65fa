//! Which losses are those of clean labels: a mixture of two Gaussians on a line.
//!
//! Networks learn clean labels before wrong ones, so the losses of a set in training gather around two values. With
//! weights $\pi_k$, means $\mu_k$ and variances $v_k$, $k \in \{0, 1\}$, the posterior of component $k$ at $x$ is
//!
//! $$ r_k(x) = \frac{\pi_k\, \mathcal{N}(x; \mu_k, v_k)}{\sum_j \pi_j\, \mathcal{N}(x; \mu_j, v_j)}, $$
//!
//! and the posterior of the component with the smaller mean is the probability that a label is clean. (Scores that are large
//! for clean labels, as those of FINE, take the larger mean: [`CleanSide`].)
//!
//! # Fit
//! - [`scale`]: $x = (\ell - \min \ell) / (\max \ell - \min \ell)$.
//! - Start: 2-means by Lloyd's rule from the smallest and the largest value, ties to the lower; responsibilities
//!   $R_{ik} \in \{0, 1\}$.
//! - M-step: $n_k = \sum_i R_{ik} + 10\varepsilon$ with $\varepsilon = 2^{-52}$, $\mu_k = \sum_i R_{ik} x_i / n_k$,
//!   $v_k = \sum_i R_{ik} (x_i - \mu_k)^2 / n_k + \rho$, $\pi_k = n_k / \sum_j n_j$.
//! - At most `max_iter` times: E-step $R_{ik} = r_k(x_i)$ with the bound
//!   $b = \frac1N \sum_i \log \sum_k \pi_k \mathcal{N}(x_i; \mu_k, v_k)$, M-step, stop if $b$ changed by less than `tol`.
//! - A last E-step gives the posteriors.
//!
//! The values are sorted before anything is summed, so the order of the samples cannot change a single bit.
//!
//! # Where this differs from the reference code
//! Reference code starts from a random 2-means run; ours is the same on every run. From the same start both agree to rounding.
//! Equal values, for which a mixture means nothing, give 0.5 for everyone.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// Lloyd's rule ends by itself; this bounds it on contrived data.
const MAX_LLOYD: usize = 300;

/// Which component is that of the clean labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CleanSide {
    /// The one with the smaller mean: for losses.
    #[default]
    Smaller,
    /// The one with the larger mean: for scores such as FINE's.
    Larger,
}

/// Settings of a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GmmSettings {
    /// Most rounds of E-step and M-step, at least 1.
    pub max_iter: usize,
    /// The change of the bound below which it stops, at least 0.
    pub tol: f64,
    /// $\rho$, which is added to every variance, above 0.
    pub reg: f64,
    /// Which component is that of the clean labels.
    pub clean: CleanSide,
}

impl Default for GmmSettings {
    /// The settings used for losses.
    fn default() -> Self {
        Self { max_iter: 10, tol: 1e-2, reg: 5e-4, clean: CleanSide::Smaller }
    }
}

impl GmmSettings {
    /// The settings used for FINE's scores.
    pub fn fine() -> Self {
        Self { max_iter: 10, tol: 1e-6, reg: 1e-6, clean: CleanSide::Larger }
    }

    /// The settings themselves, if in range.
    pub fn checked(self) -> Result<Self> {
        let range =
            |setting, value: f64, wanted| Err(Error::Range { setting, value: value.to_string(), wanted });
        if self.max_iter == 0 {
            return range("max_iter", 0.0, "must be at least 1");
        }
        if !(self.tol.is_finite() && self.tol >= 0.0) {
            return range("tol", self.tol, "must be a number, 0 or larger");
        }
        if !(self.reg.is_finite() && self.reg > 0.0) {
            return range("reg", self.reg, "must be a number above 0");
        }
        Ok(self)
    }
}

/// A fitted mixture; component 0 is the one that started lower.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mixture {
    /// $\pi$.
    pub weights: [f64; 2],
    /// $\mu$.
    pub means: [f64; 2],
    /// $v$, regularised.
    pub variances: [f64; 2],
    /// Rounds of E-step and M-step; 0 if all values were equal.
    pub iterations: usize,
    /// Whether the bound came to rest before `max_iter`.
    pub converged: bool,
    /// The bound $b$ of the last round's E-step.
    pub bound: f64,
}

impl Mixture {
    /// Posteriors $r_0(x)$ and $r_1(x)$.
    pub fn posterior(&self, x: f64) -> [f64; 2] {
        self.judge(x).0
    }

    /// The posterior of the clean component.
    pub fn clean(&self, x: f64, side: CleanSide) -> f64 {
        let is_second_larger = self.means[1] >= self.means[0];
        let component = usize::from(is_second_larger == (side == CleanSide::Larger));
        self.posterior(x)[component]
    }

    /// Posteriors and log-likelihood at a value.
    fn judge(&self, x: f64) -> ([f64; 2], f64) {
        let joint = [0, 1].map(|k| {
            let (away, variance) = (x - self.means[k], self.variances[k]);
            self.weights[k].ln() - 0.5 * ((TAU * variance).ln() + away * away / variance)
        });
        // Shares of a sum rather than a difference of logarithms: equal components get 0.5 to the last bit.
        let largest = joint[0].max(joint[1]);
        let parts = joint.map(|j| (j - largest).exp());
        let sum = parts[0] + parts[1];
        (parts.map(|part| part / sum), largest + sum.ln())
    }

    /// M-step: weights, means and variances from values and responsibilities.
    fn settle(&mut self, values: &[f64], shares: &[[f64; 2]], reg: f64) {
        let mut counts = [0.0; 2];
        for k in 0..2 {
            let total = |of: &dyn Fn(f64) -> f64| -> f64 {
                values.iter().zip(shares).map(|(&x, share)| share[k] * of(x)).sum()
            };
            counts[k] = total(&|_| 1.0) + 10.0 * f64::EPSILON;
            let mean = total(&|x| x) / counts[k];
            self.means[k] = mean;
            self.variances[k] = total(&|x| (x - mean) * (x - mean)) / counts[k] + reg;
        }
        self.weights = counts.map(|count| count / (counts[0] + counts[1]));
    }
}

/// Min-max scaling to [0, 1]; equal values all become 0.
pub fn scale(losses: &[f64]) -> Result<Vec<f64>> {
    check(losses)?;
    let (low, high) = range(losses);
    // The distance of two finite numbers may not be finite; that of their halves is.
    let half = if (high - low).is_finite() { 1.0 } else { 0.5 };
    let width = high * half - low * half;
    if width == 0.0 {
        return Ok(vec![0.0; losses.len()]);
    }
    Ok(losses.iter().map(|&loss| (loss * half - low * half) / width).collect())
}

/// Fits a mixture to values as they are; [`scale`] losses first.
pub fn fit(values: &[f64], settings: &GmmSettings) -> Result<Mixture> {
    let settings = settings.checked()?;
    check(values)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let split = split(&sorted);
    fit_from(&sorted, |at| at < split, &settings)
}

/// Fits a mixture from a start of the caller's own: whether each value begins in component 0.
///
/// [`fit`] is what methods use; this compares with code that starts elsewhere.
pub fn fit_from(values: &[f64], is_first: impl Fn(usize) -> bool, settings: &GmmSettings) -> Result<Mixture> {
    let settings = settings.checked()?;
    check(values)?;
    let (low, high) = range(values);
    if low == high {
        let mixture = Mixture {
            weights: [0.5; 2],
            means: [low; 2],
            variances: [settings.reg; 2],
            iterations: 0,
            converged: true,
            bound: -0.5 * (TAU * settings.reg).ln(),
        };
        return Ok(mixture);
    }
    let mut mixture = Mixture {
        weights: [0.5; 2],
        means: [0.0; 2],
        variances: [1.0; 2],
        iterations: 0,
        converged: false,
        bound: f64::NEG_INFINITY,
    };
    let mut shares: Vec<[f64; 2]> =
        (0..values.len()).map(|at| if is_first(at) { [1.0, 0.0] } else { [0.0, 1.0] }).collect();
    mixture.settle(values, &shares, settings.reg);
    while mixture.iterations < settings.max_iter && !mixture.converged {
        let mut total = 0.0;
        for (share, &x) in shares.iter_mut().zip(values) {
            let (posterior, likelihood) = mixture.judge(x);
            *share = posterior;
            total += likelihood;
        }
        let before = std::mem::replace(&mut mixture.bound, total / values.len() as f64);
        if !mixture.bound.is_finite() {
            let problem =
                format!("values from {low} to {high} are too far apart: scale them to [0, 1] first");
            return Err(Error::Samples { what: "mixture of losses", problem });
        }
        mixture.settle(values, &shares, settings.reg);
        mixture.iterations += 1;
        mixture.converged = (mixture.bound - before).abs() < settings.tol;
    }
    Ok(mixture)
}

/// How far apart the means of two Gaussians over the scaled losses lie, from 0 to 1: furthest when clean labels are learnt and
/// wrong ones not yet.
pub fn gap(losses: &[f32]) -> Result<f32> {
    let losses: Vec<f64> = losses.iter().map(|&loss| f64::from(loss)).collect();
    let means = fit(&scale(&losses)?, &GmmSettings::default())?.means;
    Ok((means[1] - means[0]).abs() as f32)
}

/// Probability that each sample's label is clean: losses scaled, a mixture fitted, its clean posterior.
pub fn clean_probabilities(losses: &[f64], settings: &GmmSettings) -> Result<Vec<f64>> {
    let values = scale(losses)?;
    let mixture = fit(&values, settings)?;
    Ok(values.iter().map(|&x| mixture.clean(x, settings.clean)).collect())
}

/// How many of the sorted values 2-means puts into the lower cluster.
fn split(sorted: &[f64]) -> usize {
    let (mut low, mut high) = range(sorted);
    let mut count = 0;
    for _ in 0..MAX_LLOYD {
        // Neither side can become empty: the smallest value is never above the lower mean, nor the largest below the upper.
        let now = sorted.partition_point(|&x| (x - low).abs() <= (x - high).abs());
        if now == count || now == sorted.len() {
            break;
        }
        count = now;
        let (below, above) = sorted.split_at(count);
        low = below.iter().sum::<f64>() / below.len() as f64;
        high = above.iter().sum::<f64>() / above.len() as f64;
    }
    count
}

fn range(values: &[f64]) -> (f64, f64) {
    let whole = (f64::INFINITY, f64::NEG_INFINITY);
    values.iter().fold(whole, |(low, high), &x| (low.min(x), high.max(x)))
}

fn check(values: &[f64]) -> Result<()> {
    let problem = match values.iter().position(|x| !x.is_finite()) {
        Some(at) => {
            format!("sample {at} has {}, which is not a loss: training may have diverged", values[at])
        }
        None if values.is_empty() => "there are no samples: at least one is needed".to_owned(),
        None => return Ok(()),
    };
    Err(Error::Samples { what: "mixture of losses", problem })
}
