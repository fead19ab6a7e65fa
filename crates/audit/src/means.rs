//! A reading of the noise by class means.
//!
//! With fixed features, the mean of the samples given as $g$ is a mixture of the means of true classes: $\tilde m_g = \sum_y R_{gy} m_y$, where
//! $R_{gy}$ is the share of true class $y$ among the labels $g$. So $\tilde M = R M$ gives $R$, and with it the share of wrong labels, without counting
//! any single one. $m_y$ are means weighted by beliefs. Where $M M^\top$ is nearly singular (more classes than dimensions), a ridge keeps $R$ near $I$.
//!
//! Under symmetric noise of rate $r$ with balanced classes, $\tilde m_c - m = (1 - r)(m_c - m)$: all cosines between centred class means stay as they
//! are, however strong the noise.

use crate::NoiseModel;
use crate::crossfit::Rows;

/// Ridge, relative to the mean square of the centred means.
const RIDGE: f64 = 1e-3;

/// The share of wrong labels by class means; `None` if a class has too few samples, or there are fewer rows than labels.
#[must_use]
pub fn rate_by_means(rows: &Rows, model: &NoiseModel) -> Option<f64> {
    let beliefs = model.beliefs();
    let (classes, dim) = (beliefs.classes(), rows.dim());
    if classes < 2 || rows.len() != beliefs.len() || classes * classes * dim > 1 << 30 {
        return None;
    }
    let (mut given, mut truth) = (Means::new(classes, dim), Means::new(classes, dim));
    for sample in 0..rows.len() {
        let row = rows.row(sample);
        given.add(beliefs.given()[sample], 1.0, row);
        beliefs.row(sample).iter().for_each(|e| truth.add(e.class, f64::from(e.probability), row));
    }
    let counts = given.weights.clone();
    if counts.iter().any(|n| *n < 2.0) || truth.weights.iter().any(|n| *n < 2.0) {
        return None;
    }
    let shares = mixture(&given.centred(), &truth.centred(), classes);
    let right: f64 = (0..classes).map(|c| counts[c] * shares[c * classes + c].clamp(0.0, 1.0)).sum();
    Some((1.0 - right / counts.iter().sum::<f64>()).clamp(0.0, 1.0))
}

/// Sums of rows by class.
struct Means {
    dim: usize,
    weights: Vec<f64>,
    sums: Vec<f64>,
}

impl Means {
    fn new(classes: usize, dim: usize) -> Self {
        Self { dim, weights: vec![0.0; classes], sums: vec![0.0; classes * dim] }
    }

    fn add(&mut self, class: u32, weight: f64, row: &[f32]) {
        let class = class as usize;
        self.weights[class] += weight;
        let sums = &mut self.sums[class * self.dim..(class + 1) * self.dim];
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += weight * f64::from(x));
    }

    /// Means, from the mean of all rows, C x d.
    fn centred(&self) -> Vec<f64> {
        let all: f64 = self.weights.iter().sum();
        let centre: Vec<f64> =
            (0..self.dim).map(|j| self.sums.iter().skip(j).step_by(self.dim).sum::<f64>() / all).collect();
        let mean = |(at, sum): (usize, &f64)| sum / self.weights[at / self.dim] - centre[at % self.dim];
        self.sums.iter().enumerate().map(mean).collect()
    }
}

/// $R$ with $\tilde M = R M$, C x C, a row for every given class: $(\tilde M M^\top + \lambda I)(M M^\top + \lambda I)^{-1}$.
#[must_use]
pub fn mixture(given: &[f64], truth: &[f64], classes: usize) -> Vec<f64> {
    let dim = truth.len() / classes.max(1);
    let product = |a: &[f64], i: usize, j: usize| -> f64 {
        let (a, b) = (&a[i * dim..(i + 1) * dim], &truth[j * dim..(j + 1) * dim]);
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    };
    let ridge =
        RIDGE * (0..classes).map(|c| product(truth, c, c)).sum::<f64>() / classes.max(1) as f64 + 1e-12;
    let cell = |a: &[f64], at: usize| {
        let (i, j) = (at / classes, at % classes);
        product(a, i, j) + if i == j { ridge } else { 0.0 }
    };
    // Solves gram R^T = cross^T by elimination; the matrix is symmetric and positive.
    let mut gram: Vec<f64> = (0..classes * classes).map(|at| cell(truth, at)).collect();
    let mut right: Vec<f64> =
        (0..classes * classes).map(|at| cell(given, at % classes * classes + at / classes)).collect();
    for i in 0..classes {
        for k in i + 1..classes {
            let factor = gram[k * classes + i] / gram[i * classes + i];
            (i..classes).for_each(|j| gram[k * classes + j] -= factor * gram[i * classes + j]);
            (0..classes).for_each(|j| right[k * classes + j] -= factor * right[i * classes + j]);
        }
    }
    for i in (0..classes).rev() {
        for j in 0..classes {
            let known: f64 = (i + 1..classes).map(|k| gram[i * classes + k] * right[k * classes + j]).sum();
            right[i * classes + j] = (right[i * classes + j] - known) / gram[i * classes + i];
        }
    }
    (0..classes * classes).map(|at| right[at % classes * classes + at / classes]).collect()
}
