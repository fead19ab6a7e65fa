//! SNOP, the Structured Negative Orthogonality Penalty (paper, equations 2 to 6).
//!
//! Symbols: $x_i$ unit features, $G = XX^\top$, pairs of $P_{neg}$ as in [`pairs`](crate::pairs), $P$ their number.
//!
//! # Global term
//! With the directions $v_{ij} = (x_i - x_j)/\lVert x_i - x_j\rVert$ as columns of $F$ and $S = FF^\top$ the paper
//! penalises $\lVert FF^\top - I\rVert_F^2$. Nothing of size $d \times P$, $d \times d$ or $P \times P$ is needed: with
//! $r_{ij} = G_{ii} + G_{jj} - 2G_{ij}$, weights $W_{ij} = 1/r_{ij}$ on $P_{neg}$ and the graph Laplacian
//! $L = \mathrm{diag}(W1) - W$ one has $S = X^\top L X$, hence
//!
//! $$\lVert S\rVert_F^2 = \mathrm{tr}(LGLG) = \sum_{P_{neg}} W_{ij} U_{ij}, \qquad K = GLG, \quad U_{ij} = K_{ii} + K_{jj} - 2K_{ij},$$
//! $$\Gamma = \frac{\partial \lVert S\rVert_F^2}{\partial G} = 2\,(LGL - L_q), \qquad L_q \text{ the Laplacian of } W_{ij}^2 U_{ij}.$$
//!
//! Features enter only through differences, so $G$ is centred first: same numbers, fewer digits lost. Where the features
//! are at hand and $d$ is well below $B$, the same products are cheaper as $S = X^\top(LX)$, $K = XSX^\top$, $LGLX = (LX)S$.
//!
//! # Local term
//! $\sum_{P_{neg}} w_{ij} G_{ij}^2$ with $w_{ij} = (1 - c_i)(1 - c_j)$; confidences $c$ are constants. Forms that are not the paper's have
//! $u_{ij}^2$ in place of $G_{ij}^2$: $u = (1 + G)/2$ with `similarity = "half"`, and with `local_shape = "one-sided"` the part of the
//! similarity that is above that of cosine $-1/(C-1)$, $C$ the number of classes.
//!
//! # Where this differs from the paper
//! Two features closer than $10^{-3}$ are divided by $10^{-3}$ instead of their distance; two that are equal up to
//! rounding have no direction and count for nothing.

use crate::pairs::Batch;
use crate::product::{View, product, symmetric_product, symmetric_products};
use crate::real::{total, walk};
use crate::rows::{Row, for_rows, pairs_of};
use crate::threads::Threads;
use crate::{LocalShape, Real, Settings};
use negscale_cpu::for_this_cpu;

/// Smallest squared distance that a direction is divided by.
pub(crate) const FLOOR: f64 = 1e-6;

/// Buffers of the global term: a diagonal, L and K (B x B); then, by the Gram matrix, centred G and LG (B x B), or, by the
/// features, centred X, LX, XS (B x d) and S (d x d).
#[derive(Debug, Default)]
pub(crate) struct Buffers<T> {
    diagonal: Vec<T>,
    means: Vec<T>,
    laplacian: Vec<T>,
    k: Vec<T>,
    centred: Vec<T>,
    l_times: Vec<T>,
    s: Vec<T>,
    xs: Vec<T>,
}

/// Unit features, and where the part of their gradient goes that is cheaper to give directly than through $\Gamma$.
pub(crate) struct Features<'a, T> {
    pub(crate) unit: &'a [T],
    pub(crate) gradient: &'a mut [T],
}

/// Whether the products are cheaper in feature space: counted in multiplications, $3B^2d + 2.5Bd^2$ there against
/// $1.5B^2d + 2B^3$ with the Gram matrix.
pub(crate) fn prefers_features(b: usize, dim: usize) -> bool {
    // Multiplications above, divided by B / 2.
    dim > 0 && 6 * b * dim + 5 * dim * dim < 3 * b * dim + 4 * b * b
}

/// What the global term is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Global {
    /// $\lVert S\rVert_F^2$.
    pub(crate) square: f64,
    /// tr S, the sum of squared lengths of the directions: P, less what near-equal features lack.
    pub(crate) trace: f64,
    /// Unrelated pairs of equal features, which have no direction.
    pub(crate) identical: usize,
}

impl Global {
    /// $\lVert S - I_n\rVert_F^2$ for either reading of the identity: n = d for $FF^\top$, n = P for $F^\top F$.
    pub(crate) fn distance_to_identity(&self, n: usize) -> f64 {
        self.square - 2.0 * self.trace + n as f64
    }
}

/// Weight $W$ of one unrelated pair, and the squared length of its direction.
#[inline(always)]
fn weight<T: Real>(gii: T, gjj: T, gij: T) -> (T, T) {
    let scale = gii + gjj;
    let r = scale - (gij + gij);
    let w = T::ONE / r.larger(T::of(FLOOR));
    if r > T::of(4.0) * T::EPSILON * scale { (w, w * r) } else { (T::ZERO, T::ZERO) }
}

/// The global term. Overwrites `gamma` by `scale` times the derivative of $\lVert S - I\rVert_F^2$ with respect to G; given
/// features, $LGL$ is left out of it and its share $4LXS$ of their gradient is written to them instead.
pub(crate) fn global<T: Real>(
    batch: Batch<T>,
    scale: f64,
    features: Option<Features<T>>,
    gamma: &mut [T],
    buffers: &mut Buffers<T>,
    rows: &mut [Row],
) -> Global {
    let Batch { threads, gram, b, .. } = batch;
    buffers.laplacian.resize(b * b, T::ZERO);
    buffers.k.resize(b * b, T::ZERO);
    read_diagonal(gram, b, &mut buffers.diagonal);
    let (trace, identical) = weigh(batch, &buffers.diagonal, &mut buffers.laplacian, rows);
    match features {
        None => by_gram(batch, gamma, buffers, rows),
        Some(features) => {
            gamma.fill(T::ZERO);
            by_features(threads, features, b, scale, buffers);
        }
    }

    let Buffers { laplacian, k, diagonal, .. } = buffers;
    read_diagonal(k, b, diagonal);
    let square = bend(threads, laplacian, k, diagonal, T::of(2.0 * scale), gamma, rows);
    Global { square, trace, identical }
}

fn read_diagonal<T: Real>(matrix: &[T], b: usize, diagonal: &mut Vec<T>) {
    diagonal.clear();
    diagonal.extend(matrix.iter().step_by(b + 1));
}

for_this_cpu! {
    /// L; returns tr S and the number of pairs without a direction.
    fn weigh<T: Real>(batch: Batch<T>, diagonal: &[T], laplacian: &mut [T], rows: &mut [Row]) -> (f64, usize) {
        let Batch { threads, gram, b, pairs } = batch;
        for_rows(threads, laplacian, rows, b, |i, row, out| {
            let (cosines, unrelated, gjj) = (&gram[i * b..][..b], &pairs.unrelated_to(i, b)[..b], &diagonal[..b]);
            let (gii, row) = (gjj[i], &mut row[..b]);
            let [degree, lengths] = walk(row, [cosines, unrelated, gjj], |_, gij, unrelated, gjj| {
                let (w, squared) = weight(gii, gjj, gij);
                (-(w * unrelated), [w * unrelated, squared * unrelated])
            });
            let count = row.iter().zip(unrelated).map(|(l, u)| (*l == T::ZERO && *u == T::ONE) as u32).sum::<u32>() as usize;
            row[i] = T::of(degree);
            *out = Row { sum: lengths, count };
        });
        pairs_of(rows)
    }
}

for_this_cpu! {
    /// Turns LGL in `gamma` into `twice` (LGL - L_q). Returns the sum of $W_{ij} U_{ij}$ over pairs, which is
    /// $\mathrm{tr}(LK) = \lVert S\rVert_F^2$: all its terms are positive, so it loses no digits.
    fn bend<T: Real>(threads: Threads, laplacian: &[T], k: &[T], diagonal: &[T], twice: T, gamma: &mut [T], rows: &mut [Row]) -> f64 {
        let b = diagonal.len();
        let floored = T::ONE / T::of(FLOOR);
        for_rows(threads, gamma, rows, b, |i, row, out| {
            let (l, k, kjj) = (&laplacian[i * b..][..b], &k[i * b..][..b], &diagonal[..b]);
            let (kii, row) = (kjj[i], &mut row[..b]);
            let own = row[i];
            let [degree, square] = walk(row, [l, k, kjj], |lgl, l, kij, kjj| {
                let w = -l;
                let wu = w * (kii + kjj - (kij + kij));
                // A floored weight does not move with the features, but the length of its direction does.
                let q = if w < floored { w * wu } else { w };
                (twice * (lgl + q), [q, wu])
            });
            *out = Row { sum: square, count: 0 };
            // The diagonal of L is no weight, but K_ii + K_ii - 2 K_ii = 0, so it has added nothing to the degree.
            row[i] = twice * (own - T::of(degree));
        });
        pairs_of(rows).0
    }
}

/// LGL into `gamma` and K into its buffer, from the Gram matrix.
fn by_gram<T: Real>(batch: Batch<T>, gamma: &mut [T], buffers: &mut Buffers<T>, rows: &mut [Row]) {
    let Batch { threads, b, .. } = batch;
    let Buffers { laplacian, k, centred, l_times, means, .. } = buffers;
    centred.resize(b * b, T::ZERO);
    l_times.resize(b * b, T::ZERO);
    centre(batch, centred, means, rows);
    let (laplacian, gram) = (View::new(laplacian, b, b), View::new(centred, b, b));
    product(threads, l_times, T::ONE, laplacian, gram);
    let lg = View::new(l_times, b, b);
    symmetric_products(threads, b, [(gamma, lg, laplacian), (k, gram, lg)]);
}

/// K into its buffer and `scale` times $4LXS$ into the gradient, from the features.
fn by_features<T: Real>(
    threads: Threads,
    features: Features<T>,
    b: usize,
    scale: f64,
    buffers: &mut Buffers<T>,
) {
    let Features { unit, gradient } = features;
    let dim = unit.len() / b;
    let Buffers { laplacian, k, centred, l_times, s, xs, .. } = buffers;
    for buffer in [&mut *l_times, &mut *xs] {
        buffer.resize(b * dim, T::ZERO);
    }
    s.resize(dim * dim, T::ZERO);
    centre_columns(unit, dim, &mut s[..dim], centred);
    let x = View::new(centred, b, dim);
    product(threads, l_times, T::ONE, View::new(laplacian, b, b), x);
    let lx = View::new(l_times, b, dim);
    symmetric_product(threads, s, x.transposed(), lx);
    let s = View::new(s, dim, dim);
    product(threads, gradient, T::of(4.0 * scale), lx, s);
    product(threads, xs, T::ONE, x, s);
    symmetric_product(threads, k, View::new(xs, b, dim), x.transposed());
}

for_this_cpu! {
    /// The features less their mean, which is left in `mean`.
    fn centre_columns<T: Real>(unit: &[T], dim: usize, mean: &mut [T], centred: &mut Vec<T>) {
        mean.fill(T::ZERO);
        for x in unit.chunks(dim) {
            mean.iter_mut().zip(x).for_each(|(m, &x)| *m += x);
        }
        let share = T::of(dim as f64 / unit.len() as f64);
        mean.iter_mut().for_each(|m| *m = *m * share);
        centred.resize(unit.len(), T::ZERO);
        for (out, x) in centred.chunks_mut(dim).zip(unit.chunks(dim)) {
            out.iter_mut().zip(x).zip(&*mean).for_each(|((out, &x), &m)| *out = x - m);
        }
    }
}

for_this_cpu! {
    /// The Gram matrix of the features less their mean. L, K and U are the same for both, since $L1 = 0$, but in f32 the
    /// products lose far fewer digits when all cosines are near 1 (measured: a factor of 70 at a mean cosine of 0.98).
    fn centre<T: Real>(batch: Batch<T>, centred: &mut [T], means: &mut Vec<T>, rows: &mut [Row]) {
        let Batch { threads, gram, b, .. } = batch;
        means.resize(b, T::ZERO);
        for_rows(threads, means, rows, 1, |i, mean, _| mean[0] = T::of(total(&gram[i * b..][..b]) / b as f64));
        let means = &means[..b];
        let mean = T::of(total(means) / b as f64);
        for_rows(threads, centred, rows, b, |i, row, _| {
            let offset = means[i] - mean;
            for ((out, &g), &column) in row.iter_mut().zip(&gram[i * b..]).zip(means) {
                *out = (g - column) - offset;
            }
        });
    }
}

/// What the local term squares: $u = \max(\text{lowest},\; a g + b)$ of a cosine $g$.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Squared<T> {
    a: T,
    b: T,
    lowest: T,
}

impl<T: Real> Squared<T> {
    pub(crate) fn new(settings: &Settings, classes: usize) -> Self {
        let (a, b) = settings.similarity_of_cosine();
        let simplex = -1.0 / (classes.max(2) - 1) as f64;
        let (b, lowest) = match settings.local_shape {
            LocalShape::Square => (b, T::LOWEST),
            LocalShape::OneSided => (-a * simplex, T::ZERO),
        };
        Self { a: T::of(a), b: T::of(b), lowest }
    }
}

for_this_cpu! {
    /// The local term. Adds `scale` times its derivative to `gamma` and returns the unscaled sum.
    pub(crate) fn local<T: Real>(
        batch: Batch<T>,
        doubt: &[T],
        squared: Squared<T>,
        scale: f64,
        gamma: &mut [T],
        rows: &mut [Row],
    ) -> f64 {
        let Batch { threads, gram, b, pairs } = batch;
        let Squared { a, b: offset, lowest } = squared;
        let scale = T::of(scale) * a;
        for_rows(threads, gamma, rows, b, |i, row, out| {
            let (cosines, unrelated) = (&gram[i * b..][..b], &pairs.unrelated_to(i, b)[..b]);
            let own = doubt[i];
            let [total] = walk(row, [cosines, unrelated, doubt], |gamma, g, unrelated, doubt| {
                let u = (a * g + offset).larger(lowest);
                let slope = unrelated * own * doubt * u;
                (gamma + scale * slope, [slope * u])
            });
            *out = Row { sum: total, count: 0 };
        });
        pairs_of(rows).0
    }
}
