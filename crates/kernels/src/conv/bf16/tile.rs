//! The inner loops: blocks of a matrix product of bf16 pairs whose sums stay in registers.

use super::wide::{Pair, Wide};
use crate::conv::tile::Skip;

/// Rows of a block in [`rows`].
pub(super) const ROWS: usize = 12;
/// Columns of a vector, and of two.
pub(super) const COLUMNS: usize = 16;
pub(super) const PANEL: usize = 2 * COLUMNS;
/// Rows of a block in [`outer`].
pub(super) const OUTER: usize = 8;

/// `sums[i][16 c + j] = sum over runs r, pairs k of source[i][r * run_stride + k] . panel[((r * length + k) * C + c) * 16 + j]`.
///
/// # Safety
/// Each source has `runs` runs of `length` pairs, the panel as many rows of `16 C` pairs.
#[inline(always)]
pub(super) unsafe fn rows<W: Wide, const C: usize>(
    source: &[*const Pair; ROWS],
    runs: usize,
    run_stride: usize,
    length: usize,
    panel: *const Pair,
) -> [[W; C]; ROWS] {
    // SAFETY: all offsets stay inside what the caller vouches for.
    unsafe {
        let mut sums = [[W::splat(0.0); C]; ROWS];
        let mut panel = panel;
        let mut start = 0;
        for _ in 0..runs {
            for k in start..start + length {
                let mut right = [W::load_pairs(panel); C];
                for (c, right) in right.iter_mut().enumerate() {
                    *right = W::load_pairs(panel.add(c * COLUMNS));
                }
                panel = panel.add(C * COLUMNS);
                for (sum, a) in sums.iter_mut().zip(source) {
                    let left = W::splat_pair(a.add(k));
                    for c in 0..C {
                        sum[c] = sum[c].dot(left, right[c]);
                    }
                }
            }
            start += run_stride;
        }
        sums
    }
}

/// Where the sums of [`rows`] go.
#[derive(Clone, Copy)]
pub(super) struct Finish {
    /// Added to every row: one number per column, or null.
    pub bias: *const f32,
    pub skip: Skip,
    /// Columns that exist.
    pub columns: usize,
}

/// Stores the sums of a row with bias and skip, as far as there are columns.
///
/// # Safety
/// Target, bias and skip have `columns` numbers.
#[inline(always)]
pub(super) unsafe fn put<W: Wide, const C: usize>(sums: [W; C], to: *mut f32, finish: &Finish) {
    // SAFETY: only existing columns are touched.
    unsafe {
        let skip = finish.skip.place(to);
        for (c, sum) in sums.into_iter().enumerate() {
            let at = c * COLUMNS;
            let count = finish.columns.saturating_sub(at).min(COLUMNS);
            let mut value = sum;
            if !finish.bias.is_null() {
                value = value.add(W::load_part(finish.bias.add(at), count));
            }
            if !skip.is_null() {
                value = value.add(W::load_part(skip.add(at), count));
            }
            value.store_part(to.add(at), count);
        }
    }
}

/// Adds to `sums[i * stride + 16 c + j]` the sum over runs `r` and pairs `n` of
/// `left[r][n * left_step + i] . right[(r * length + n) * right_step + 16 c + j]`, or sets it, for eight rows `i`.
///
/// # Safety
/// The places above exist.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn outer<W: Wide, const C: usize>(
    left: &[*const Pair],
    offset: usize,
    left_step: usize,
    right: *const Pair,
    right_step: usize,
    length: usize,
    sums: *mut f32,
    stride: usize,
    add: bool,
) {
    // SAFETY: all offsets stay inside what the caller vouches for.
    unsafe {
        let mut held = [[W::splat(0.0); C]; OUTER];
        let mut b = right;
        for from in left {
            let mut a = from.add(offset);
            for _ in 0..length {
                let mut right = [W::load_pairs(b); C];
                for (c, right) in right.iter_mut().enumerate() {
                    *right = W::load_pairs(b.add(c * COLUMNS));
                }
                b = b.add(right_step);
                for (i, held) in held.iter_mut().enumerate() {
                    let value = W::splat_pair(a.add(i));
                    for c in 0..C {
                        held[c] = held[c].dot(value, right[c]);
                    }
                }
                a = a.add(left_step);
            }
        }
        // One by one and not in a loop: an index that varies would keep all sums in memory.
        let [h0, h1, h2, h3, h4, h5, h6, h7] = held;
        put_sums(h0, sums, add);
        put_sums(h1, sums.add(stride), add);
        put_sums(h2, sums.add(2 * stride), add);
        put_sums(h3, sums.add(3 * stride), add);
        put_sums(h4, sums.add(4 * stride), add);
        put_sums(h5, sums.add(5 * stride), add);
        put_sums(h6, sums.add(6 * stride), add);
        put_sums(h7, sums.add(7 * stride), add);
    }
}

/// Adds to or sets `16 C` sums.
///
/// # Safety
/// There is room for them.
#[inline(always)]
unsafe fn put_sums<W: Wide, const C: usize>(held: [W; C], to: *mut f32, add: bool) {
    for (c, held) in held.into_iter().enumerate() {
        // SAFETY: by contract.
        unsafe {
            let to = to.add(c * COLUMNS);
            if add { W::load(to).add(held).store(to) } else { held.store(to) }
        }
    }
}
