//! Made-up rows of numbers: Gaussian clusters whose true classes are known, with some labels wrong.
#![allow(dead_code)]

use crate::made_up::{Chance, Flip};
use negscale_audit::crossfit::{CrossFit, CrossFitSettings, Rows, cross_fit};
use negscale_audit::{Ranking, average_precision};

pub struct Clusters {
    pub classes: usize,
    pub dim: usize,
    pub values: Vec<f32>,
    pub truth: Vec<u32>,
    pub given: Vec<u32>,
}

/// Clusters of deviation 1 about centres of deviation `spread`; true classes by their shares, given ones drawn from these.
pub fn clusters(count: usize, dim: usize, shares: &[f64], spread: f64, flip: Flip, seed: u64) -> Clusters {
    let mut chance = Chance(seed);
    let classes = shares.len();
    let centres: Vec<f64> = (0..classes * dim).map(|_| spread * chance.normal()).collect();
    let mut made = Clusters { classes, dim, values: Vec::new(), truth: Vec::new(), given: Vec::new() };
    for row in 0..count {
        // In turns where all are alike, so that every class has its rows.
        let is_even = shares.iter().all(|share| *share == shares[0]);
        let truth = if is_even { row % classes } else { chance.pick(shares) };
        made.values.extend((0..dim).map(|p| (centres[truth * dim + p] + chance.normal()) as f32));
        made.truth.push(truth as u32);
        made.given.push(chance.pick(&flip(truth)) as u32);
    }
    made
}

#[allow(clippy::unwrap_used)]
impl Clusters {
    pub fn settings(&self) -> CrossFitSettings {
        CrossFitSettings::new(self.truth.len(), self.classes, 1)
    }

    pub fn fit(&self) -> CrossFit {
        self.fit_with(&self.settings())
    }

    pub fn fit_with(&self, settings: &CrossFitSettings) -> CrossFit {
        let rows = Rows::new(&self.values, self.dim).unwrap();
        cross_fit(&rows, &self.given, self.classes, settings, &|_| true).unwrap()
    }

    pub fn rank(&self, fit: &CrossFit) -> Ranking {
        let names: Vec<String> = (0..self.classes).map(|class| class.to_string()).collect();
        Ranking::by(&fit.model, &names).unwrap()
    }

    /// How well scores tell wrong labels from right ones.
    pub fn average_precision(&self, fit: &CrossFit) -> f64 {
        let wrong: Vec<bool> = self.given.iter().zip(&self.truth).map(|(g, y)| g != y).collect();
        average_precision(&crate::made_up::scores(&fit.model), &wrong).unwrap()
    }
}

/// Every number that a fit leaves.
pub fn bits(fit: &CrossFit) -> Vec<u64> {
    let found = fit.model.alternatives();
    let numbers = found.iter().flat_map(|a| [a.score, a.given, a.probability, f64::from(a.class)]);
    let kept = (0..fit.predictions.len()).flat_map(|i| fit.predictions.row(i));
    let kept = kept.map(|entry| u64::from(entry.probability.to_bits()));
    numbers.chain(fit.weights.iter().copied()).map(f64::to_bits).chain(kept).collect()
}
