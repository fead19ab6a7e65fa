//! Classes as Gaussians of one covariance: good with few rows per class, and with many classes.
//!
//! With targets $t_{ic}$, $n_c = \sum_i t_{ic}$, $\mu_c = \sum_i t_{ic} x_i / n_c$ and
//! $\Sigma = \frac1N (\sum_i x_i x_i^\top - \sum_c n_c \mu_c \mu_c^\top)$, shrunk to
//! $\Sigma_s = (1 - s) \Sigma + s\, \frac{\operatorname{tr} \Sigma}{d} I$, the logits are
//!
//! $$ z_c = x^\top \Sigma_s^{-1} \mu_c - \tfrac12 \mu_c^\top \Sigma_s^{-1} \mu_c + \log n_c. $$
//!
//! $s = \min(1, 0.01 + d / N)$. Beyond [`MAX_DIM`] columns the covariance is taken to be $\frac{\operatorname{tr} \Sigma}{d} I$.
//! Sums are kept per fold, so that leaving one out is a subtraction.

use super::Rows;
use super::targets::Targets;
use negscale_product::{add_second_moment, rows_with_columns};

/// Most columns whose covariance is used in full.
const MAX_DIM: usize = 1024;
/// Rows at a time.
const CHUNK: usize = 1024;

/// Sums over rows.
#[derive(Debug, Clone)]
pub struct Sums {
    /// $\sum_i x_i x_i^\top$, or the sum of its diagonal alone.
    moment: Vec<f64>,
    /// $\sum_i t_{ic} x_i$, C x d.
    sums: Vec<f64>,
    /// $n_c$.
    counts: Vec<f64>,
}

impl Sums {
    /// Over some of the rows.
    pub fn over(rows: &Rows, targets: &Targets, members: &[u32]) -> Self {
        let (dim, classes) = (rows.dim(), targets.classes());
        let full = dim <= MAX_DIM;
        let mut sums = Self {
            moment: vec![0.0; if full { dim * dim } else { 1 }],
            sums: vec![0.0; classes * dim],
            counts: vec![0.0; classes],
        };
        let mut wide: Vec<f64> = Vec::with_capacity(CHUNK * dim);
        for members in members.chunks(CHUNK) {
            wide.clear();
            members.iter().for_each(|&i| wide.extend(rows.row(i as usize).iter().map(|&x| f64::from(x))));
            if full {
                add_second_moment(&wide, dim, &mut sums.moment);
            } else {
                sums.moment[0] += wide.iter().map(|x| x * x).sum::<f64>();
            }
            for (&member, x) in members.iter().zip(wide.chunks_exact(dim)) {
                for &(class, t) in targets.row(member as usize) {
                    let class = class as usize;
                    sums.counts[class] += f64::from(t);
                    let sum = &mut sums.sums[class * dim..(class + 1) * dim];
                    sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += f64::from(t) * x);
                }
            }
        }
        sums
    }

    /// All of these without one.
    pub fn all_but(parts: &[Self], left_out: usize) -> Self {
        let zero = |x: &[f64]| vec![0.0; x.len()];
        let first = &parts[left_out];
        let mut total =
            Self { moment: zero(&first.moment), sums: zero(&first.sums), counts: zero(&first.counts) };
        for (_, part) in parts.iter().enumerate().filter(|(at, _)| *at != left_out) {
            let add = |to: &mut [f64], from: &[f64]| to.iter_mut().zip(from).for_each(|(to, x)| *to += x);
            add(&mut total.moment, &part.moment);
            add(&mut total.sums, &part.sums);
            add(&mut total.counts, &part.counts);
        }
        total
    }
}

/// The fitted Gaussians, as a linear classifier.
#[derive(Debug, Clone, PartialEq)]
pub struct Gaussians {
    pub(super) dim: usize,
    /// $\Sigma_s^{-1} \mu_c$, d x C.
    pub(super) weights: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

impl Gaussians {
    /// From sums over N rows.
    pub fn fit(sums: &Sums) -> Self {
        let classes = sums.counts.len();
        let dim = sums.sums.len() / classes.max(1);
        let count: f64 = sums.counts.iter().sum::<f64>().max(1.0);
        let mut means = sums.sums.clone();
        for (mean, &n) in means.chunks_exact_mut(dim).zip(&sums.counts) {
            mean.iter_mut().for_each(|x| *x /= n.max(1e-9));
        }
        let mut solved = means.clone();
        if sums.moment.len() == dim * dim {
            let mut covariance = sums.moment.clone();
            for (mean, &n) in means.chunks_exact(dim).zip(&sums.counts) {
                for (row, &a) in covariance.chunks_exact_mut(dim).zip(mean) {
                    row.iter_mut().zip(mean).for_each(|(cell, b)| *cell -= n * a * b);
                }
            }
            let trace: f64 = (0..dim).map(|at| covariance[at * dim + at]).sum();
            let typical = (trace / count / dim as f64).max(1e-12);
            let shrink = (0.01 + dim as f64 / count).min(1.0);
            for (at, cell) in covariance.iter_mut().enumerate() {
                *cell *= (1.0 - shrink) / count;
                if at / dim == at % dim {
                    *cell += shrink * typical;
                }
            }
            factorise(&mut covariance, dim);
            solved.chunks_exact_mut(dim).for_each(|mean| solve(&covariance, dim, mean));
        } else {
            let between: f64 = means.chunks_exact(dim).zip(&sums.counts).map(|(m, n)| n * dot(m, m)).sum();
            let typical = ((sums.moment[0] - between) / count / dim as f64).max(1e-12);
            solved.iter_mut().for_each(|x| *x /= typical);
        }
        let mut weights = vec![0.0; dim * classes];
        let mut bias = Vec::with_capacity(classes);
        for (class, (mean, solution)) in means.chunks_exact(dim).zip(solved.chunks_exact(dim)).enumerate() {
            // A class without rows is not to be chosen: as if it had a thousandth of one.
            bias.push((sums.counts[class].max(1e-3).ln() - 0.5 * dot(mean, solution)) as f32);
            solution.iter().enumerate().for_each(|(at, &x)| weights[at * classes + class] = x as f32);
        }
        Self { dim, weights, bias }
    }

    /// Logarithms of the probabilities of some rows: a row of C for each.
    pub fn log_probabilities(&self, rows: &Rows, members: &[u32], out: &mut [f32]) {
        let classes = self.bias.len();
        let mut x = Vec::new();
        for (members, out) in members.chunks(CHUNK).zip(out.chunks_mut(CHUNK * classes)) {
            rows.gather(members, &mut x);
            rows_with_columns(&x, &self.weights, self.dim, out);
            for row in out.chunks_exact_mut(classes) {
                row.iter_mut().zip(&self.bias).for_each(|(z, b)| *z += b);
                super::log_softmax(row);
            }
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Cholesky: the lower triangle becomes $L$ with $L L^\top$ the matrix.
fn factorise(matrix: &mut [f64], dim: usize) {
    for i in 0..dim {
        let (above, rest) = matrix.split_at_mut(i * dim);
        let row = &mut rest[..dim];
        for j in 0..i {
            let other = &above[j * dim..j * dim + j + 1];
            row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
        }
        row[i] = (row[i] - dot(&row[..i], &row[..i])).max(1e-12).sqrt();
    }
}

/// Solves $L L^\top y = x$ in place.
fn solve(factor: &[f64], dim: usize, x: &mut [f64]) {
    for i in 0..dim {
        let row = &factor[i * dim..i * dim + i + 1];
        x[i] = (x[i] - dot(&x[..i], &row[..i])) / row[i];
    }
    for i in (0..dim).rev() {
        x[i] /= factor[i * dim + i];
        let (value, row) = (x[i], &factor[i * dim..i * dim + i]);
        x[..i].iter_mut().zip(row).for_each(|(x, l)| *x -= value * l);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crossfit::draw;

    #[test]
    fn a_system_of_equations_is_solved() {
        let dim = 6;
        let a: Vec<f64> = (0..dim * dim).map(|at| f64::from(draw::normal(draw::mix(1, at as u64)))).collect();
        let cell = |i: usize, j: usize| {
            dot(&a[i * dim..][..dim], &a[j * dim..][..dim]) + if i == j { 0.5 } else { 0.0 }
        };
        let matrix: Vec<f64> = (0..dim * dim).map(|at| cell(at / dim, at % dim)).collect();
        let wanted: Vec<f64> = (0..dim).map(|at| at as f64 - 2.0).collect();
        let mut x: Vec<f64> = matrix.chunks(dim).map(|row| dot(row, &wanted)).collect();
        let mut factor = matrix;
        factorise(&mut factor, dim);
        solve(&factor, dim, &mut x);
        x.iter().zip(&wanted).for_each(|(x, wanted)| assert!((x - wanted).abs() < 1e-9, "{x} {wanted}"));
    }

    #[test]
    fn logits_are_those_of_the_formula() {
        let (dim, count) = (3, 40);
        let x: Vec<f32> = (0..count * dim).map(|at| draw::normal(draw::mix(2, at as u64))).collect();
        let labels: Vec<u32> = (0..count as u32).map(|i| i % 2).collect();
        let rows = Rows::new(&x, dim).unwrap();
        let targets = Targets::of_labels(&labels, 2);
        let members: Vec<u32> = (0..count as u32).collect();
        let fitted = Gaussians::fit(&Sums::over(&rows, &targets, &members));
        let mut out = vec![0.0; count * 2];
        fitted.log_probabilities(&rows, &members, &mut out);
        // The same by the definition: differences to the means, a covariance by a loop, its inverse by solving.
        let mean = |class: usize, at: usize| {
            (0..count).filter(|i| i % 2 == class).map(|i| f64::from(x[i * dim + at])).sum::<f64>() / 20.0
        };
        let mut covariance = vec![0.0; dim * dim];
        for i in 0..count {
            for (at, cell) in covariance.iter_mut().enumerate() {
                let from = |p: usize| f64::from(x[i * dim + p]) - mean(i % 2, p);
                *cell += from(at / dim) * from(at % dim) / count as f64;
            }
        }
        let typical = (0..dim).map(|at| covariance[at * dim + at]).sum::<f64>() / dim as f64;
        let shrink = 0.01 + dim as f64 / count as f64;
        for (at, cell) in covariance.iter_mut().enumerate() {
            *cell = (1.0 - shrink) * *cell + if at / dim == at % dim { shrink * typical } else { 0.0 };
        }
        factorise(&mut covariance, dim);
        for i in 0..count {
            let logit = |class: usize| {
                let away: Vec<f64> = (0..dim).map(|p| f64::from(x[i * dim + p]) - mean(class, p)).collect();
                let mut solved = away.clone();
                solve(&covariance, dim, &mut solved);
                -0.5 * dot(&away, &solved)
            };
            let wanted = logit(0) - logit(1);
            let found = f64::from(out[i * 2] - out[i * 2 + 1]);
            assert!((wanted - found).abs() < 1e-4, "row {i}: {found}, not {wanted}");
        }
    }
}
