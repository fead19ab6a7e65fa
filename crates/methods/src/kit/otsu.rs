//! Four groups of samples by the confidence of a network, cut where a histogram falls apart best (ANNE, after Otsu).
//!
//! Confidences $s_i \in [0, 1]$ are counted in 1000 bins, bin $b$ standing for its left edge $b/1000$. A cut $k$ has bins
//! $0 \dots k-1$ on its lower side and the rest on its upper one, of sizes $n_1, n_2$, means $m_1, m_2$ and deviations
//! $\sigma_1, \sigma_2$ (variances not below $10^{-5}$). With $m$ the mean of all $s_i$, the cut of largest
//!
//! $$ Q(k) = \frac{n_1 (m_1 - m)^2 + n_2 (m_2 - m)^2}{n_1 \sigma_1 + n_2 \sigma_2}, \qquad k = 2, \dots, 997, $$
//!
//! is taken, the first of equals, and $\theta = k/1000$. Groups, most confident first: $s \ge m_2$; $\theta \le s < m_2$;
//! $m_1 \le s < \theta$; $s < m_1$.
//!
//! # Where this differs from the reference code
//! Cuts with nobody on one side are left out. If no cut is left, as for equal confidences, $\theta = m_1 = m_2 = 1/2$: everyone
//! is in the first group or in the last.

use super::rows::wide;
use crate::{Error, Result};

const BINS: usize = 1000;
const WHAT: &str = "confidences";

/// How confident the network is of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// $s \ge m_2$.
    G1,
    /// $\theta \le s < m_2$.
    G2,
    /// $m_1 \le s < \theta$.
    G3,
    /// $s < m_1$.
    G4,
}

impl Group {
    /// The fewest neighbours that ANNE asks about a sample of this group.
    pub fn fewest_neighbours(self) -> usize {
        match self {
            Group::G1 => 5,
            Group::G2 => 20,
            Group::G3 => 40,
            Group::G4 => 80,
        }
    }
}

/// A cut and what it makes of the samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Otsu {
    /// $\theta$.
    pub theta: f64,
    /// $m_1$, mean below the cut.
    pub m1: f64,
    /// $m_2$, mean above it.
    pub m2: f64,
    /// Group of every sample.
    pub groups: Vec<Group>,
}

/// Groups samples by their confidence.
pub fn otsu4<T: Copy + Into<f64>>(confidences: &[T]) -> Result<Otsu> {
    let s = wide(WHAT, confidences)?;
    if let Some(at) = s.iter().position(|s| !(0.0..=1.0).contains(s)) {
        let problem = format!("sample {at} has {}: probabilities are from 0 to 1", s[at]);
        return Err(Error::Samples { what: WHAT, problem });
    }
    if s.is_empty() {
        let problem = "there are no samples: at least one is needed".to_owned();
        return Err(Error::Samples { what: WHAT, problem });
    }
    let (theta, m1, m2) = cut(&s);
    let group = |&s: &f64| match s {
        s if s >= m2 => Group::G1,
        s if s >= theta => Group::G2,
        s if s >= m1 => Group::G3,
        _ => Group::G4,
    };
    Ok(Otsu { theta, m1, m2, groups: s.iter().map(group).collect() })
}

/// The best cut: $\theta$, $m_1$, $m_2$.
fn cut(s: &[f64]) -> (f64, f64, f64) {
    let mut counts = [0usize; BINS];
    s.iter().for_each(|s| counts[((s * BINS as f64) as usize).min(BINS - 1)] += 1);
    let mean = s.iter().sum::<f64>() / s.len() as f64;
    let all = Side::of(&counts, 0..BINS);
    let mut low = Side::of(&counts, 0..1);
    let mut best: Option<(f64, (f64, f64, f64))> = None;
    for k in 2..=997 {
        low = low.plus(Side::of(&counts, k - 1..k));
        let high = all.minus(low);
        if low.count == 0 || high.count == 0 {
            continue;
        }
        let between = low.size() * (low.mean() - mean).powi(2) + high.size() * (high.mean() - mean).powi(2);
        let within = low.size() * low.deviation() + high.size() * high.deviation();
        let quality = between / within;
        if best.is_none_or(|(most, _)| quality > most) {
            best = Some((quality, (k as f64 / BINS as f64, low.mean(), high.mean())));
        }
    }
    best.map_or((0.5, 0.5, 0.5), |(_, cut)| cut)
}

/// Sums over the samples of some bins, in whole numbers of bins and therefore exact.
#[derive(Clone, Copy)]
struct Side {
    count: u128,
    sum: u128,
    squares: u128,
}

impl Side {
    fn of(counts: &[usize; BINS], bins: std::ops::Range<usize>) -> Self {
        bins.fold(Self { count: 0, sum: 0, squares: 0 }, |side, bin| {
            let (count, value) = (counts[bin] as u128, bin as u128);
            side.plus(Self { count, sum: count * value, squares: count * value * value })
        })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            count: self.count - other.count,
            sum: self.sum - other.sum,
            squares: self.squares - other.squares,
        }
    }

    fn size(self) -> f64 {
        self.count as f64
    }

    fn mean(self) -> f64 {
        self.sum as f64 / self.size() / BINS as f64
    }

    /// Root of the variance, which is not below 1e-5.
    fn deviation(self) -> f64 {
        let scaled = (self.count * self.squares - self.sum * self.sum) as f64;
        (scaled / (self.size() * BINS as f64).powi(2)).max(1e-5).sqrt()
    }
}
