//! The transforms of a tile: along one axis, and along both.

use super::super::tile::COLUMNS;
use super::REACH;
use crate::lane::{Lane, Numbers};

/// The points $\pm a$, $\pm b$ (beside 0 and infinity) of the interpolation behind the transforms. The usual choice, 1 and 2, rounds twice
/// as badly (root mean square error of the result 2.6e-6 against 1.07e-6 for 128 channels, and 0.6e-6 of the direct sum); these
/// are the best of those tried, and exact in binary.
const A: f32 = 0.625;
const B: f32 = 1.5;
const A2: f32 = A * A;
const B2: f32 = B * B;
/// $1/N$ of Lagrange's formula for the points 0, $\pm a$ and $\pm b$.
const AT_0: f32 = 1.0 / (A2 * B2);
const AT_A: f32 = 1.0 / (2.0 * A2 * (A2 - B2));
const AT_B: f32 = 1.0 / (2.0 * B2 * (B2 - A2));

/// $B^T d$: $d$ times $M(x)/(x - p)$ for each point $p$, with $M(x) = x (x^2 - a^2)(x^2 - b^2)$; for infinity, $M$ itself.
#[inline(always)]
pub(in crate::conv) unsafe fn input_axis<L: Numbers>(d: [L; 6]) -> [L; 6] {
    // SAFETY: called with a lane that the CPU has.
    unsafe {
        let (low, high) = (L::splat(-B2), L::splat(-A2));
        let (both, sum) = (L::splat(A2 * B2), L::splat(-(A2 + B2)));
        let (even, odd) = (d[2].mul_add(low, d[4]), d[1].mul_add(low, d[3]));
        let (outer, inner) = (d[2].mul_add(high, d[4]), d[1].mul_add(high, d[3]));
        [
            d[2].mul_add(sum, d[0].mul_add(both, d[4])),
            odd.mul_add(L::splat(A), even),
            odd.mul_add(L::splat(-A), even),
            inner.mul_add(L::splat(B), outer),
            inner.mul_add(L::splat(-B), outer),
            d[3].mul_add(sum, d[1].mul_add(both, d[5])),
        ]
    }
}

/// $A^T m$: $y_k = \sum_p p^k m_p$, and $m_\infty$ for the last.
#[inline(always)]
pub(in crate::conv) unsafe fn output_axis<L: Numbers>(m: [L; 6]) -> [L; 4] {
    // SAFETY: called with a lane that the CPU has.
    unsafe {
        let (s1, d1, s2, d2) = (m[1].add(m[2]), m[1].sub(m[2]), m[3].add(m[4]), m[3].sub(m[4]));
        [
            m[0].add(s1).add(s2),
            d2.mul_add(L::splat(B), d1.mul(L::splat(A))),
            s2.mul_add(L::splat(B2), s1.mul(L::splat(A2))),
            d2.mul_add(L::splat(B2 * B), d1.mul_add(L::splat(A2 * A), m[5])),
        ]
    }
}

/// $A y$, the transpose of [`output_axis`].
#[inline(always)]
pub(in crate::conv) unsafe fn gradient_axis<L: Numbers>(y: [L; 4]) -> [L; 6] {
    // SAFETY: called with a lane that the CPU has.
    unsafe {
        let (low, high) = (L::splat(A2), L::splat(B2));
        let (even, odd) = (y[2].mul_add(low, y[0]), y[3].mul_add(low, y[1]));
        let (outer, inner) = (y[2].mul_add(high, y[0]), y[3].mul_add(high, y[1]));
        [
            y[0],
            odd.mul_add(L::splat(A), even),
            odd.mul_add(L::splat(-A), even),
            inner.mul_add(L::splat(B), outer),
            inner.mul_add(L::splat(-B), outer),
            y[3],
        ]
    }
}

/// $G g$: the filter's polynomial at each point, divided by $N$.
#[inline(always)]
pub(in crate::conv) unsafe fn filter_axis<L: Numbers>(g: [L; 3]) -> [L; 6] {
    // SAFETY: called with a lane that the CPU has.
    unsafe {
        let (even, odd) = (g[2].mul_add(L::splat(A2), g[0]), g[1].mul(L::splat(A)));
        let (outer, inner) = (g[2].mul_add(L::splat(B2), g[0]), g[1].mul(L::splat(B)));
        let (at_a, at_b) = (L::splat(AT_A), L::splat(AT_B));
        [
            g[0].mul(L::splat(AT_0)),
            even.add(odd).mul(at_a),
            even.sub(odd).mul(at_a),
            outer.add(inner).mul(at_b),
            outer.sub(inner).mul(at_b),
            g[2],
        ]
    }
}

/// $G^T u$, the transpose of [`filter_axis`].
#[inline(always)]
pub(in crate::conv) unsafe fn weight_axis<L: Numbers>(u: [L; 6]) -> [L; 3] {
    // SAFETY: called with a lane that the CPU has.
    unsafe {
        let (at_a, at_b) = (L::splat(AT_A), L::splat(AT_B));
        let (s1, d1) = (u[1].add(u[2]).mul(at_a), u[1].sub(u[2]).mul(at_a));
        let (s2, d2) = (u[3].add(u[4]).mul(at_b), u[3].sub(u[4]).mul(at_b));
        [
            u[0].mul_add(L::splat(AT_0), s1.add(s2)),
            d2.mul_add(L::splat(B), d1.mul(L::splat(A))),
            s2.mul_add(L::splat(B2), s1.mul_add(L::splat(A2), u[5])),
        ]
    }
}

/// A transform along both axes: columns first, then rows.
macro_rules! both_axes {
    ($axis:ident, $tile:expr, $from:literal, $to:literal) => {{
        let tile = $tile;
        let mut half = [[L::splat(0.0); $from]; $to];
        for j in 0..$from {
            let mut column = [L::splat(0.0); $from];
            for i in 0..$from {
                column[i] = tile[i][j];
            }
            let column = $axis::<L>(column);
            for i in 0..$to {
                half[i][j] = column[i];
            }
        }
        let mut whole = [[L::splat(0.0); $to]; $to];
        for i in 0..$to {
            whole[i] = $axis::<L>(half[i]);
        }
        whole
    }};
}
pub(super) use both_axes;

// No closures here or below: a closure would be compiled for any CPU, and every operation in it become a call.

/// Eight channels from `c` on of all places of a tile.
///
/// # Safety
/// Every corner has `c + count` numbers.
#[inline(always)]
pub(super) unsafe fn load_tile<L: Lane, const S: usize>(
    corners: &[[*const f32; S]; S],
    c: usize,
    count: usize,
) -> [[L; S]; S] {
    // SAFETY: by contract.
    unsafe {
        let mut tile = [[L::splat(0.0); S]; S];
        for i in 0..S {
            for j in 0..S {
                let from = corners[i][j].add(c);
                tile[i][j] = if count == 8 { L::load(from) } else { L::load_part(from, count) };
            }
        }
        tile
    }
}

/// Eight numbers of each of the 36 places, `step` apart.
///
/// # Safety
/// There are that many.
#[inline(always)]
pub(super) unsafe fn load_places<L: Lane>(from: *const f32, step: usize) -> [[L; 6]; 6] {
    // SAFETY: by contract.
    unsafe {
        let mut tile = [[L::splat(0.0); 6]; 6];
        for i in 0..REACH {
            for j in 0..REACH {
                tile[i][j] = L::load(from.add((i * REACH + j) * step));
            }
        }
        tile
    }
}

/// $G g G^T$ of eight of sixteen filters, those from `half` on.
///
/// # Safety
/// `half` is 0 or 8.
#[inline(always)]
pub(super) unsafe fn filter_both<L: Lane>(taps: &[[f32; COLUMNS]; 9], half: usize) -> [[L; 6]; 6] {
    // SAFETY: `half` is 0 or 8, so eight taps follow.
    unsafe {
        let mut g = [[L::splat(0.0); 3]; 3];
        for (r, row) in g.iter_mut().enumerate() {
            for (s, tap) in row.iter_mut().enumerate() {
                *tap = L::load(taps[r * 3 + s].as_ptr().add(half));
            }
        }
        both_axes!(filter_axis, g, 3, 6)
    }
}

/// $A^T m A$.
#[inline(always)]
pub(super) unsafe fn output_both<L: Lane>(m: [[L; 6]; 6]) -> [[L; 4]; 4] {
    // SAFETY: called with a lane that the CPU has.
    unsafe { both_axes!(output_axis, m, 6, 4) }
}
