//! The two number types, `f32` and `f64`, and sums along rows of them.

use negscale_cpu::for_this_cpu;
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
    fn a_dot_product_handles_lengths_that_are_no_multiple_of_the_lanes() {
        for n in 0..40 {
            let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let literal: f64 = (0..n).map(|i| (i * i) as f64).sum();
            assert_eq!(dot(&a, &a), literal);
        }
    }
}
