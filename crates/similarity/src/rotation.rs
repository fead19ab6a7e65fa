//! The rotation that brings one cloud of points nearest to another (orthogonal Procrustes).
//!
//! With $A = \sum_i u_i \tilde u_i^\top$ and its singular value decomposition $A = W \Sigma V^\top$, the orthogonal $R$ with the least
//! $\sum_i \lVert R \tilde u_i - u_i\rVert^2$ is $W V^\top$. The decomposition is Jacobi's, one-sided: columns of $A$ are rotated in pairs, and
//! those of $V$ with them, until all are orthogonal. Features of trained networks often fill few dimensions; where $A$ has no
//! length, $W$ is completed to an orthonormal basis, whatever it is, since nothing of the clouds lies there.

use crate::moments::dot;
use negscale_cpu::for_this_cpu;

/// Sweeps over all pairs of columns; ten are usual.
const MOST_SWEEPS: usize = 40;
/// Cosine below which two columns are orthogonal.
const ORTHOGONAL: f64 = 1e-13;

fn axpy(into: &mut [f64], factor: f64, from: &[f64]) {
    into.iter_mut().zip(from).for_each(|(x, y)| *x += factor * y);
}

for_this_cpu! {
    /// Rotates two columns: (p, q) becomes (c p - s q, s p + c q).
    fn rotate(p: &mut [f64], q: &mut [f64], c: f64, s: f64) {
        for (p, q) in p.iter_mut().zip(q) {
            (*p, *q) = (c * *p - s * *q, s * *p + c * *q);
        }
    }
}

/// Two different elements, to be changed.
fn two<T>(list: &mut [T], p: usize, q: usize) -> (&mut T, &mut T) {
    let (head, tail) = list.split_at_mut(q);
    (&mut head[p], &mut tail[0])
}

/// The orthogonal factor $W V^\top$ of a d x d matrix, row by row.
pub(crate) fn orthogonal_factor(a: &[f64], d: usize) -> Vec<f64> {
    let mut columns: Vec<Vec<f64>> = (0..d).map(|j| (0..d).map(|i| a[i * d + j]).collect()).collect();
    let unit = |j: usize| (0..d).map(|i| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
    let mut v: Vec<Vec<f64>> = (0..d).map(unit).collect();
    let mut squares: Vec<f64> = columns.iter().map(|column| dot(column, column)).collect();
    let largest = squares.iter().copied().fold(0.0, f64::max);
    for _ in 0..MOST_SWEEPS {
        let mut rotated = false;
        for p in 0..d {
            for q in p + 1..d {
                let product = dot(&columns[p], &columns[q]);
                let size = (squares[p] * squares[q]).sqrt();
                if product.abs() <= ORTHOGONAL * size || product.abs() <= 1e-16 * largest {
                    continue;
                }
                rotated = true;
                let zeta = (squares[q] - squares[p]) / (2.0 * product);
                let t = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let c = 1.0 / (1.0 + t * t).sqrt();
                let (left, right) = two(&mut columns, p, q);
                rotate(left, right, c, c * t);
                let (left, right) = two(&mut v, p, q);
                rotate(left, right, c, c * t);
                squares[p] -= t * product;
                squares[q] += t * product;
            }
        }
        // Updates of the squares pile up rounding errors; once a sweep they are made anew.
        squares = columns.iter().map(|column| dot(column, column)).collect();
        if !rotated {
            break;
        }
    }
    let mut order: Vec<usize> = (0..d).collect();
    order.sort_by(|&p, &q| squares[q].total_cmp(&squares[p]));
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(d);
    let mut next = 0;
    for &j in &order {
        let mut w = std::mem::take(&mut columns[j]);
        let mut is_sound = squares[j] > 1e-14 * largest && fit(&mut w, &basis, squares[j].sqrt());
        // A unit vector that the basis holds once, it holds for good, so each is tried but once.
        while !is_sound && next < d {
            w = unit(next);
            is_sound = fit(&mut w, &basis, 1.0);
            next += 1;
        }
        basis.push(w);
    }
    let mut factor = vec![0.0; d * d];
    for (w, &j) in basis.iter().zip(&order) {
        for (row, &w) in factor.chunks_exact_mut(d.max(1)).zip(w) {
            axpy(row, w, &v[j]);
        }
    }
    factor
}

/// Makes a vector orthogonal to all of a basis and its length 1; false if too little of its length is left.
fn fit(w: &mut [f64], basis: &[Vec<f64>], length: f64) -> bool {
    // Twice, because once is not enough where little is left.
    for _ in 0..2 {
        for b in basis {
            let product = dot(w, b);
            axpy(w, -product, b);
        }
    }
    let left = dot(w, w).sqrt();
    if left <= 1e-3 * length {
        return false;
    }
    w.iter_mut().for_each(|x| *x /= left);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(a: &[f64], b: &[f64], d: usize) -> Vec<f64> {
        let entry = |i: usize, j: usize| (0..d).map(|k| a[i * d + k] * b[k * d + j]).sum();
        (0..d).flat_map(|i| (0..d).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).collect()
    }

    fn transpose(a: &[f64], d: usize) -> Vec<f64> {
        (0..d * d).map(|at| a[at % d * d + at / d]).collect()
    }

    fn assert_orthogonal(r: &[f64], d: usize) {
        let identity = product(r, &transpose(r, d), d);
        for (at, x) in identity.iter().enumerate() {
            let wanted = f64::from(u8::from(at / d == at % d));
            assert!((x - wanted).abs() < 1e-10, "{at}: {x}");
        }
    }

    #[test]
    fn a_rotation_times_a_positive_matrix_gives_the_rotation_back() {
        let d = 7;
        let numbers: Vec<f64> = (0..d * d).map(|i| ((i * 37 + 11) % 23) as f64 / 10.0 - 1.0).collect();
        let rotation = orthogonal_factor(&numbers, d);
        assert_orthogonal(&rotation, d);
        let mut positive = product(&numbers, &transpose(&numbers, d), d);
        (0..d).for_each(|i| positive[i * d + i] += 0.5);
        let again = orthogonal_factor(&product(&positive, &rotation, d), d);
        for (a, b) in again.iter().zip(&rotation) {
            assert!((a - b).abs() < 1e-8, "{a} {b}");
        }
    }

    #[test]
    fn a_matrix_of_low_rank_or_of_zeros_still_has_an_orthogonal_factor() {
        let d = 6;
        let one: Vec<f64> = (0..d * d).map(|at| ((at / d + 1) * (at % d + 2)) as f64).collect();
        assert_orthogonal(&orthogonal_factor(&one, d), d);
        assert_orthogonal(&orthogonal_factor(&vec![0.0; d * d], d), d);
    }
}
