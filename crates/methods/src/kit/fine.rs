//! Clean labels by the direction that a class has in feature space (FINE, as ANNE uses it).
//!
//! The samples $z_j$ labelled $c$ mostly lie along one direction $u_c$, the leading eigenvector of their second moment
//! $M_c = \sum_{y_j = c} z_j z_j^T$ (not centred); wrong labels point elsewhere. Alignments $a_j = |\langle u_c, z_j \rangle|$ are
//! given, class by class, to a mixture of two Gaussians ([`negscale_audit::gmm`]); a label is clean if the posterior of the component of
//! larger mean is above $\gamma_e$. Classes of fewer than 5 samples are all clean, with posterior 1.
//!
//! **Eigenvector.** $u \leftarrow M u / |M u|$ from a fixed start until $|M u - \lambda u| \le 10^{-10} \lambda$. Where eigenvalues
//! lie close this is slow: after every 50 rounds $M$ gives way to $M^2$, which has the same eigenvectors at twice the distance
//! (on a logarithmic scale). All sums are in f64.

use super::rows::{check_labels, count};
use crate::{Error, Result};
use negscale_audit::gmm::{CleanSide, GmmSettings, fit};
use negscale_product::{add_second_moment, square};
use rayon::prelude::*;

const WHAT: &str = "FINE";
/// Classes of fewer samples are not judged.
const FEWEST: usize = 5;
/// Rows widened at a time.
const BLOCK: usize = 256;
/// Rounds before the matrix is squared.
const ROUNDS: usize = 50;
/// Most squarings. After twenty, eigenvalues that still look equal agree to about nine digits.
const SQUARINGS: usize = 20;

/// What FINE says of every sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Fine {
    /// Posterior of the aligned component.
    pub posterior: Vec<f64>,
    /// Whether it is above $\gamma_e$.
    pub clean: Vec<bool>,
    /// $a_j$.
    pub alignment: Vec<f64>,
}

/// Assesses all labels; rows of `z` have length 1.
pub fn fine(z: &[f32], dim: usize, labels: &[u32], classes: usize, gamma: f64) -> Result<Fine> {
    let samples = count(WHAT, z, dim)?;
    check_labels(WHAT, labels, samples, classes)?;
    if !(0.0..=1.0).contains(&gamma) {
        let value = gamma.to_string();
        return Err(Error::Range { setting: "gamma", value, wanted: "must be from 0 to 1" });
    }
    let mut members = vec![Vec::new(); classes];
    labels.iter().enumerate().for_each(|(sample, &label)| members[label as usize].push(sample));
    let judged: Vec<_> = members.par_iter().map(|members| judge(z, dim, members)).collect::<Result<_>>()?;
    let mut fine =
        Fine { posterior: vec![0.0; samples], clean: vec![false; samples], alignment: vec![0.0; samples] };
    for (members, (alignment, posterior)) in members.iter().zip(judged) {
        for (at, &sample) in members.iter().enumerate() {
            fine.alignment[sample] = alignment[at];
            fine.posterior[sample] = posterior[at];
            fine.clean[sample] = posterior[at] > gamma || members.len() < FEWEST;
        }
    }
    Ok(fine)
}

/// Alignments and posteriors of the members of a class.
fn judge(z: &[f32], dim: usize, members: &[usize]) -> Result<(Vec<f64>, Vec<f64>)> {
    let row = |sample: usize| &z[sample * dim..(sample + 1) * dim];
    let direction = direction(z, dim, members);
    let along = |&sample: &usize| {
        row(sample).iter().zip(&direction).map(|(&x, u)| f64::from(x) * u).sum::<f64>().abs()
    };
    let alignment: Vec<f64> = members.iter().map(along).collect();
    if members.len() < FEWEST {
        return Ok((alignment, vec![1.0; members.len()]));
    }
    let mixture = fit(&alignment, &GmmSettings::fine())?;
    let posterior = alignment.iter().map(|&a| mixture.clean(a, CleanSide::Larger)).collect();
    Ok((alignment, posterior))
}

/// $u_c$, up to its sign, from the rows of some samples; zeros if all rows are zero.
fn direction(z: &[f32], dim: usize, members: &[usize]) -> Vec<f64> {
    let mut moment = vec![0.0; dim * dim];
    let mut rows = Vec::with_capacity(BLOCK * dim);
    for block in members.chunks(BLOCK) {
        rows.clear();
        for &sample in block {
            rows.extend(z[sample * dim..(sample + 1) * dim].iter().map(|&x| f64::from(x)));
        }
        add_second_moment(&rows, dim, &mut moment);
    }
    leading(moment, dim)
}

/// Leading eigenvector of a symmetric matrix without negative eigenvalues.
fn leading(mut matrix: Vec<f64>, dim: usize) -> Vec<f64> {
    // Multiples of the golden ratio modulo 1: no feature space has a reason to be orthogonal to them.
    let mut u: Vec<f64> = (1..=dim).map(|p| (p as f64 * 0.618_033_988_749_894_9).fract() - 0.5).collect();
    scale(&mut u);
    for _ in 0..=SQUARINGS {
        // The trace bounds the eigenvalues: powers neither overflow nor vanish.
        let trace: f64 = (0..dim).map(|p| matrix[p * dim + p]).sum();
        if trace <= 0.0 {
            return vec![0.0; dim];
        }
        matrix.iter_mut().for_each(|m| *m /= trace);
        for _ in 0..ROUNDS {
            let mut image: Vec<f64> = matrix.chunks_exact(dim).map(|row| dot(row, &u)).collect();
            let lambda = dot(&image, &u);
            let rest: f64 = image.iter().zip(&u).map(|(m, u)| (m - lambda * u).powi(2)).sum();
            scale(&mut image);
            u = image;
            if rest.sqrt() <= 1e-10 * lambda {
                return u;
            }
        }
        let mut squared = vec![0.0; dim * dim];
        square(&matrix, dim, &mut squared);
        matrix = squared;
    }
    u
}

/// In four interleaved chains, which the compiler can vectorise.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a, a_rest) = a.as_chunks::<4>();
    let (b, b_rest) = b.as_chunks::<4>();
    let mut chains = [0.0; 4];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..4 {
            chains[lane] += a[lane] * b[lane];
        }
    }
    chains.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

/// Scales to length 1, unless all is zero.
fn scale(values: &mut [f64]) {
    let length = dot(values, values).sqrt();
    if length > 0.0 {
        values.iter_mut().for_each(|v| *v /= length);
    }
}
