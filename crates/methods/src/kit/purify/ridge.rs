//! Linear regression in closed form: the matrix that takes targets to weights.
//!
//! For rows $X \in \mathbb{R}^{n \times d}$ and targets $Y \in \mathbb{R}^{n \times C}$ the best linear map is
//! $W = (X^T X + \rho I)^{-1} X^T Y$, with a ridge $\rho$ in parts of the mean of the diagonal of $X^T X$, so that it means the
//! same for features of any length. The inverse is made once, by Cholesky in 64 bits, and used many times.

use crate::{Error, Result};

/// $A = (X^T X + \rho I)^{-1}$, $d \times d$, for rows of `dim` values; `ridge` is in parts of $\mathrm{tr}(X^T X) / d$.
pub fn inverse_moment(x: &[f32], dim: usize, ridge: f64) -> Result<Vec<f32>> {
    let mut moment = vec![0.0; dim * dim];
    // In pieces, so that the widened rows stay small.
    for piece in x.chunks(256 * dim) {
        let wide: Vec<f64> = piece.iter().map(|&x| x.into()).collect();
        negscale_product::add_second_moment(&wide, dim, &mut moment);
    }
    let trace: f64 = (0..dim).map(|i| moment[i * dim + i]).sum();
    for i in 0..dim {
        moment[i * dim + i] += ridge * trace / dim as f64;
    }
    factor(&mut moment, dim)?;
    invert_factor(&mut moment, dim);
    Ok(from_factor(&moment, dim))
}

/// $L$ with $L L^T = M$, in place of the lower triangle.
fn factor(m: &mut [f64], dim: usize) -> Result<()> {
    for i in 0..dim {
        let (above, row) = m.split_at_mut(i * dim);
        for j in 0..i {
            let other = &above[j * dim..j * dim + j];
            let sum: f64 = row[..j].iter().zip(other).map(|(a, b)| a * b).sum();
            row[j] = (row[j] - sum) / above[j * dim + j];
        }
        let left = row[i] - row[..i].iter().map(|a| a * a).sum::<f64>();
        if !(left > 0.0 && left.is_finite()) {
            let problem = format!(
                "direction {i} of {dim} is empty or not finite: raise `ridge`, or check whether training has diverged"
            );
            return Err(Error::Samples { what: "features", problem });
        }
        row[i] = left.sqrt();
    }
    Ok(())
}

/// $L^{-1}$ in place of the lower triangle, column after column.
fn invert_factor(l: &mut [f64], dim: usize) {
    for i in 0..dim {
        let pivot = 1.0 / l[i * dim + i];
        // Row i of the inverse from the rows above, which are inverted already.
        let (above, row) = l.split_at_mut(i * dim);
        let own: Vec<f64> = row[..i].to_vec();
        row[..i].fill(0.0);
        for (k, &factor) in own.iter().enumerate() {
            for (out, &known) in row[..=k].iter_mut().zip(&above[k * dim..=k * dim + k]) {
                *out -= factor * known;
            }
        }
        row[..i].iter_mut().for_each(|x| *x *= pivot);
        row[i] = pivot;
    }
}

/// $L^{-T} L^{-1}$ from the lower triangle $L^{-1}$.
fn from_factor(l: &[f64], dim: usize) -> Vec<f32> {
    let mut inverse = vec![0.0; dim * dim];
    for k in 0..dim {
        let row = &l[k * dim..=k * dim + k];
        for (i, &a) in row.iter().enumerate() {
            let out = &mut inverse[i * dim..=i * dim + k];
            out.iter_mut().zip(row).for_each(|(sum, &b)| *sum += a * b);
        }
    }
    inverse.into_iter().map(|x| x as f32).collect()
}
