//! The transforms of a tile: along one axis, and along both.

use super::super::tile::COLUMNS;
use super::REACH;
use crate::lane::Lane;

/// $B^T d$.
#[inline(always)]
pub(super) unsafe fn input_axis<L: Lane>(d: [L; 6]) -> [L; 6] {
    // SAFETY (this and the next four functions): called with a lane that the CPU has.
    unsafe {
        let (two, four, five) = (L::splat(2.0), L::splat(-4.0), L::splat(-5.0));
        let even = d[2].mul_add(four, d[4]);
        let odd = d[1].mul_add(four, d[3]);
        let outer = d[4].sub(d[2]);
        let inner = d[3].sub(d[1]);
        [
            d[2].mul_add(five, d[0].mul_add(L::splat(4.0), d[4])),
            even.add(odd),
            even.sub(odd),
            inner.mul_add(two, outer),
            inner.mul_add(L::splat(-2.0), outer),
            d[3].mul_add(five, d[1].mul_add(L::splat(4.0), d[5])),
        ]
    }
}

/// $A^T m$.
#[inline(always)]
pub(super) unsafe fn output_axis<L: Lane>(m: [L; 6]) -> [L; 4] {
    // SAFETY: see `input_axis`.
    unsafe {
        let (s1, d1, s2, d2) = (m[1].add(m[2]), m[1].sub(m[2]), m[3].add(m[4]), m[3].sub(m[4]));
        [
            m[0].add(s1).add(s2),
            d2.mul_add(L::splat(2.0), d1),
            s2.mul_add(L::splat(4.0), s1),
            d2.mul_add(L::splat(8.0), d1).add(m[5]),
        ]
    }
}

/// $A y$, the transpose of [`output_axis`].
#[inline(always)]
pub(super) unsafe fn gradient_axis<L: Lane>(y: [L; 4]) -> [L; 6] {
    // SAFETY: see `input_axis`.
    unsafe {
        let (even, odd) = (y[0].add(y[2]), y[1].add(y[3]));
        let wide = y[2].mul_add(L::splat(4.0), y[0]);
        let tall = y[3].mul_add(L::splat(8.0), y[1].mul(L::splat(2.0)));
        [y[0], even.add(odd), even.sub(odd), wide.add(tall), wide.sub(tall), y[3]]
    }
}

/// $G g$.
#[inline(always)]
pub(super) unsafe fn filter_axis<L: Lane>(g: [L; 3]) -> [L; 6] {
    // SAFETY: see `input_axis`.
    unsafe {
        let (sixth, part) = (L::splat(-1.0 / 6.0), L::splat(1.0 / 24.0));
        let ends = g[0].add(g[2]);
        let wide = g[2].mul_add(L::splat(4.0), g[0]);
        let middle = g[1].mul(L::splat(2.0));
        [
            g[0].mul(L::splat(0.25)),
            ends.add(g[1]).mul(sixth),
            ends.sub(g[1]).mul(sixth),
            wide.add(middle).mul(part),
            wide.sub(middle).mul(part),
            g[2],
        ]
    }
}

/// $G^T u$, the transpose of [`filter_axis`].
#[inline(always)]
pub(super) unsafe fn weight_axis<L: Lane>(u: [L; 6]) -> [L; 3] {
    // SAFETY: see `input_axis`.
    unsafe {
        let (s1, d1, s2, d2) = (u[1].add(u[2]), u[2].sub(u[1]), u[3].add(u[4]), u[3].sub(u[4]));
        let (sixth, twelfth, part) = (L::splat(1.0 / 6.0), L::splat(1.0 / 12.0), L::splat(1.0 / 24.0));
        [
            u[0].mul_add(L::splat(0.25), s2.mul(part)).sub(s1.mul(sixth)),
            d1.mul_add(sixth, d2.mul(twelfth)),
            s2.sub(s1).mul_add(sixth, u[5]),
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
