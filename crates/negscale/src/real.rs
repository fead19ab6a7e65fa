//! The two number types, `f32` and `f64`, and the matrix products over them.

use gemm::Parallelism;
use negscale_cpu::for_this_cpu;
use rayon::prelude::*;
use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// `f32` or `f64`.
pub trait Real:
    sealed::Sealed
    + Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + Sum
    + AddAssign
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Smaller than every number.
    const LOWEST: Self;
    /// A length whose square is far from overflow, and so is that of its inverse from vanishing.
    const SAFE: f64;
    /// Distance from 1 to the next number.
    const EPSILON: Self;
    /// Nearest value of this type.
    fn of(x: f64) -> Self;
    /// Widened.
    fn wide(self) -> f64;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Neither NaN nor infinite.
    fn finite(self) -> bool;
    /// The larger of two numbers, neither of which is NaN (one instruction, unlike `f32::max`).
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
}

macro_rules! real {
    ($t:ty, $safe:literal) => {
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = <$t>::NEG_INFINITY;
            const EPSILON: Self = <$t>::EPSILON;
            const SAFE: f64 = $safe;
            #[inline(always)]
            fn of(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn finite(self) -> bool {
                self.is_finite()
            }
        }
    };
}
real!(f32, 1e15);
real!(f64, 1e140);

/// A row-major matrix that is only looked at, as it is or transposed.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, T> {
    data: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, T> View<'a, T> {
    /// `rows` x `columns`, row after row.
    pub(crate) fn new(data: &'a [T], rows: usize, columns: usize) -> Self {
        assert_eq!(data.len(), rows * columns, "matrix of {rows} x {columns}");
        Self { data, rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// The transpose, without moving anything.
    pub(crate) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }

    /// Rows `from..to`.
    fn row_block(self, from: usize, to: usize) -> Self {
        Self { data: &self.data[from * self.row_stride..], rows: to - from, ..self }
    }

    /// Columns `0..to`.
    fn first_columns(self, to: usize) -> Self {
        Self { columns: to, ..self }
    }

    /// Whether every element lies inside `data`.
    fn in_bounds(&self) -> bool {
        self.rows == 0
            || self.columns == 0
            || (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride < self.data.len()
    }
}

/// Multiplications from which a second thread saves more than the 0.1 ms that waking it can cost.
const SHARED_FROM: usize = 1 << 25;
/// The same for a caller that is itself a thread of the pool, as in training: the others are then rarely asleep.
const SHARED_INSIDE: usize = 1 << 22;

/// Whether so many multiplications are worth a second thread.
fn is_shared(multiplications: usize) -> bool {
    let inside = rayon::current_thread_index().is_some();
    multiplications >= if inside { SHARED_INSIDE } else { SHARED_FROM }
}

/// `out = keep * out + scale * a * b`, `out` row-major with rows of `out_stride` elements.
fn product_into<T: Real>(
    out: &mut [T],
    out_stride: usize,
    keep: T,
    scale: T,
    a: View<T>,
    b: View<T>,
    threads: Parallelism,
) {
    let (m, n, k) = (a.rows, b.columns, a.columns);
    if m == 0 || n == 0 {
        return;
    }
    assert_eq!(k, b.rows, "inner sizes of a product");
    assert!(a.in_bounds() && b.in_bounds() && n <= out_stride && (m - 1) * out_stride + n <= out.len());
    // SAFETY: the assertions above show that every element addressed by (rows, columns, strides) of the
    // two sources and of the destination lies inside its slice; `out` is borrowed mutably, so it
    // overlaps neither source.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            out_stride as isize,
            keep != T::ZERO,
            a.data.as_ptr(),
            a.column_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.column_stride as isize,
            b.row_stride as isize,
            keep,
            scale,
            false,
            false,
            false,
            threads,
        );
    }
}

fn threads<T>(a: &View<T>, b: &View<T>) -> Parallelism {
    let shared = is_shared(a.rows * b.columns * a.columns);
    if shared { Parallelism::Rayon(0) } else { Parallelism::None }
}

/// `out = scale * a * b`.
pub(crate) fn product<T: Real>(out: &mut [T], scale: T, a: View<T>, b: View<T>) {
    product_into(out, b.columns, T::ZERO, scale, a, b, threads(&a, &b));
}

/// `out += scale * a * b`.
pub(crate) fn add_product<T: Real>(out: &mut [T], scale: T, a: View<T>, b: View<T>) {
    product_into(out, b.columns, T::ONE, scale, a, b, threads(&a, &b));
}

/// `out = a * b` where the result is known to be symmetric: only the blocks on and below the diagonal
/// are computed, the rest is mirrored. Exactly symmetric whatever the rounding.
pub(crate) fn symmetric_product<T: Real>(out: &mut [T], a: View<T>, b: View<T>) {
    let n = a.rows;
    // Rows per block: smaller blocks save more of the upper triangle, larger ones multiply faster.
    let block = if n <= 256 { 48 } else { 96 };
    let fill = |(at, rows): (usize, &mut [T])| {
        let (from, to) = (at * block, (at * block + block).min(n));
        let (a, b) = (a.row_block(from, to), b.first_columns(to));
        product_into(rows, n, T::ZERO, T::ONE, a, b, Parallelism::None);
    };
    if !is_shared(n * n * a.columns) {
        out.chunks_mut((block * n).max(1)).enumerate().for_each(fill);
    } else {
        // The last blocks are the longest: started first, they leave no thread waiting at the end.
        out.par_chunks_mut(block * n).enumerate().rev().for_each(fill);
    }
    mirror(out, n);
}

/// Copies the lower triangle of an n x n matrix onto the upper one, tile by tile.
fn mirror<T: Copy>(out: &mut [T], n: usize) {
    const TILE: usize = 32;
    for row in (0..n).step_by(TILE) {
        for column in (row..n).step_by(TILE) {
            for i in row..(row + TILE).min(n) {
                for j in column.max(i + 1)..(column + TILE).min(n) {
                    out[i * n + j] = out[j * n + i];
                }
            }
        }
    }
}

/// Walks along four rows of equal length: `step` gets the values of one place, returns the new value of `out` there and `K`
/// terms, whose sums are returned. Sums run in sixteen interleaved chains: no addition waits for the one before, the compiler
/// can use vectors, and rounding errors stay small. The order depends on the length alone.
#[inline(always)]
pub(crate) fn walk<T: Real, const K: usize>(
    out: &mut [T],
    [a, b, c]: [&[T]; 3],
    step: impl Fn(T, T, T, T) -> (T, [T; K]),
) -> [f64; K] {
    const LANES: usize = 16;
    let mut chains = [[T::ZERO; LANES]; K];
    let whole = out.len() - out.len() % LANES;
    let (out, out_rest) = out.split_at_mut(whole);
    let rows = a.chunks_exact(LANES).zip(b.chunks_exact(LANES)).zip(c.chunks_exact(LANES));
    for (out, ((a, b), c)) in out.chunks_exact_mut(LANES).zip(rows) {
        for lane in 0..LANES {
            let (value, terms) = step(out[lane], a[lane], b[lane], c[lane]);
            out[lane] = value;
            for k in 0..K {
                chains[k][lane] += terms[k];
            }
        }
    }
    let mut totals = chains.map(|chain| chain.iter().map(|x| x.wide()).sum::<f64>());
    for (at, out) in out_rest.iter_mut().enumerate() {
        let (value, terms) = step(*out, a[whole + at], b[whole + at], c[whole + at]);
        *out = value;
        for k in 0..K {
            totals[k] += terms[k].wide();
        }
    }
    totals
}

for_this_cpu! {
    /// Sum of `a[i] * b[i]`.
    pub(crate) fn dot<T: Real>(a: &[T], b: &[T]) -> f64 {
        let mut chains = [T::ZERO; 16];
        let (whole_a, whole_b) = (a.chunks_exact(16), b.chunks_exact(16));
        let rest = whole_a.remainder().iter().zip(whole_b.remainder());
        let rest: f64 = rest.map(|(&a, &b)| (a * b).wide()).sum();
        for (a, b) in whole_a.zip(whole_b) {
            for c in 0..16 {
                chains[c] += a[c] * b[c];
            }
        }
        chains.iter().map(|x| x.wide()).sum::<f64>() + rest
    }
}

/// Sum of all values.
#[inline(always)]
pub(crate) fn total<T: Real>(a: &[T]) -> f64 {
    let mut chains = [T::ZERO; 16];
    let whole = a.chunks_exact(16);
    let rest: f64 = whole.remainder().iter().map(|x| x.wide()).sum();
    for a in whole {
        for c in 0..16 {
            chains[c] += a[c];
        }
    }
    chains.iter().map(|x| x.wide()).sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symmetric_product_equals_the_plain_product() {
        for n in [1, 31, 33, 255, 256, 257, 600] {
            let k = 7;
            let x: Vec<f64> = (0..n * k).map(|i| ((i * 37 + 11) % 101) as f64 / 50.0 - 1.0).collect();
            let view = View::new(&x, n, k);
            let (mut plain, mut symmetric) = (vec![0.0; n * n], vec![f64::NAN; n * n]);
            product(&mut plain, 1.0, view, view.transposed());
            symmetric_product(&mut symmetric, view, view.transposed());
            for i in 0..n {
                for j in 0..n {
                    let literal: f64 = (0..k).map(|c| x[i * k + c] * x[j * k + c]).sum();
                    assert!((plain[i * n + j] - literal).abs() < 1e-12);
                    assert!((symmetric[i * n + j] - literal).abs() < 1e-12);
                    assert_eq!(symmetric[i * n + j], symmetric[j * n + i]);
                }
            }
        }
    }

    #[test]
    fn a_dot_product_handles_lengths_that_are_no_multiple_of_the_lanes() {
        for n in 0..40 {
            let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let literal: f64 = (0..n).map(|i| (i * i) as f64).sum();
            assert_eq!(dot(&a, &a), literal);
        }
    }
}
