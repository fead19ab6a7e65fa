//! The transforms of a tile: four outputs along columns of pixels (six places), two along rows (four places).

use super::super::wide::Wide;
use super::{REACH, TILE};
use crate::conv::winograd::axes::{filter_axis, gradient_axis, input_axis, output_axis, weight_axis};
use crate::lane::Numbers;

// No closures here: a closure would be compiled for any CPU, and every operation in it become a call.

/// $B^T d$ for the points 0, 1, -1 and infinity.
#[inline(always)]
unsafe fn input_short<N: Numbers>(d: [N; 4]) -> [N; 4] {
    // SAFETY: called with lanes that the CPU has.
    unsafe { [d[2].sub(d[0]), d[2].add(d[1]), d[2].sub(d[1]), d[3].sub(d[1])] }
}

/// $A^T m$.
#[inline(always)]
unsafe fn output_short<N: Numbers>(m: [N; 4]) -> [N; 2] {
    // SAFETY: called with lanes that the CPU has.
    unsafe { [m[0].add(m[1].add(m[2])), m[3].add(m[1].sub(m[2]))] }
}

/// $A y$.
#[inline(always)]
unsafe fn gradient_short<N: Numbers>(y: [N; 2]) -> [N; 4] {
    // SAFETY: called with lanes that the CPU has.
    unsafe { [y[0], y[0].add(y[1]), y[0].sub(y[1]), y[1]] }
}

/// $G g$.
#[inline(always)]
unsafe fn filter_short<N: Numbers>(g: [N; 3]) -> [N; 4] {
    // SAFETY: called with lanes that the CPU has.
    unsafe {
        let half = N::splat(0.5);
        let (even, odd) = (g[0].add(g[2]).mul(half), g[1].mul(half));
        [N::splat(0.0).sub(g[0]), even.add(odd), even.sub(odd), g[2]]
    }
}

/// $G^T u$.
#[inline(always)]
unsafe fn weight_short<N: Numbers>(u: [N; 4]) -> [N; 3] {
    // SAFETY: called with lanes that the CPU has.
    unsafe {
        let half = N::splat(0.5);
        let (sum, gap) = (u[1].add(u[2]).mul(half), u[1].sub(u[2]).mul(half));
        [sum.sub(u[0]), gap, sum.add(u[3])]
    }
}

/// $B^T d B$ of sixteen channels from `c` on.
///
/// # Safety
/// Every corner has `c + count` numbers.
#[inline(always)]
pub(super) unsafe fn input_tile<W: Wide>(
    corners: &[[*const f32; REACH[1]]; REACH[0]],
    c: usize,
    count: usize,
) -> [[W; 4]; 6] {
    // SAFETY: by contract.
    unsafe {
        let mut tile = [[W::splat(0.0); 4]; 6];
        for j in 0..4 {
            let mut column = [W::splat(0.0); 6];
            for i in 0..6 {
                let from = corners[i][j].add(c);
                column[i] = if count == 16 { W::load(from) } else { W::load_part(from, count) };
            }
            let column = input_axis(column);
            for i in 0..6 {
                tile[i][j] = column[i];
            }
        }
        for row in &mut tile {
            *row = input_short(*row);
        }
        tile
    }
}

/// $A\, dY A^T$ of sixteen channels from `c` on.
///
/// # Safety
/// Every corner has `c + count` numbers.
#[inline(always)]
pub(super) unsafe fn gradient_tile<W: Wide>(
    corners: &[[*const f32; TILE[1]]; TILE[0]],
    c: usize,
    count: usize,
) -> [[W; 4]; 6] {
    // SAFETY: by contract.
    unsafe {
        let mut half = [[W::splat(0.0); 2]; 6];
        for j in 0..2 {
            let mut column = [W::splat(0.0); 4];
            for i in 0..4 {
                let from = corners[i][j].add(c);
                column[i] = if count == 16 { W::load(from) } else { W::load_part(from, count) };
            }
            let column = gradient_axis(column);
            for i in 0..6 {
                half[i][j] = column[i];
            }
        }
        let mut tile = [[W::splat(0.0); 4]; 6];
        for i in 0..6 {
            tile[i] = gradient_short(half[i]);
        }
        tile
    }
}

/// $A^T m A$ of sixteen channels, places `step` numbers apart.
///
/// # Safety
/// There are 24 places.
#[inline(always)]
pub(super) unsafe fn output_tile<W: Wide>(m: *const f32, step: usize) -> [[W; 2]; 4] {
    // SAFETY: by contract.
    unsafe {
        let mut half = [[W::splat(0.0); 2]; 6];
        for i in 0..6 {
            let mut row = [W::splat(0.0); 4];
            for j in 0..4 {
                row[j] = W::load(m.add((i * 4 + j) * step));
            }
            half[i] = output_short(row);
        }
        let mut tile = [[W::splat(0.0); 2]; 4];
        for j in 0..2 {
            let mut column = [W::splat(0.0); 6];
            for i in 0..6 {
                column[i] = half[i][j];
            }
            let column = output_axis(column);
            for i in 0..4 {
                tile[i][j] = column[i];
            }
        }
        tile
    }
}

/// $G g G^T$.
#[inline(always)]
pub(super) unsafe fn filter_tile<W: Wide>(g: [[W; 3]; 3]) -> [[W; 4]; 6] {
    // SAFETY: called with lanes that the CPU has.
    unsafe {
        let mut half = [[W::splat(0.0); 3]; 6];
        for j in 0..3 {
            let column = filter_axis([g[0][j], g[1][j], g[2][j]]);
            for i in 0..6 {
                half[i][j] = column[i];
            }
        }
        let mut tile = [[W::splat(0.0); 4]; 6];
        for i in 0..6 {
            tile[i] = filter_short(half[i]);
        }
        tile
    }
}

/// $G^T u G$.
#[inline(always)]
pub(super) unsafe fn weight_tile<W: Wide>(u: [[W; 4]; 6]) -> [[W; 3]; 3] {
    // SAFETY: called with lanes that the CPU has.
    unsafe {
        let mut half = [[W::splat(0.0); 3]; 6];
        for i in 0..6 {
            half[i] = weight_short(u[i]);
        }
        let mut g = [[W::splat(0.0); 3]; 3];
        for j in 0..3 {
            let column =
                weight_axis([half[0][j], half[1][j], half[2][j], half[3][j], half[4][j], half[5][j]]);
            for i in 0..3 {
                g[i][j] = column[i];
            }
        }
        g
    }
}
