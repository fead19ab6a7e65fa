//! The inner loops: blocks of a matrix product of bf16 pairs whose sums stay in registers.

use super::wide::{Pair, Wide};
use crate::conv::tile::{Skip, each_row};

/// Rows of a block in [`rows`].
pub(super) const ROWS: usize = 12;
/// Columns of a vector, and of two.
pub(super) const COLUMNS: usize = 16;
pub(super) const PANEL: usize = 2 * COLUMNS;
/// Rows of [`outer`] are multiples of this.
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
        // The dot product takes long, and twelve sums are too few to be under way: with one vector of columns, every second pair has sums
        // of its own.
        let mut others = [W::splat(0.0); ROWS];
        let mut panel = panel;
        let mut start = 0;
        for _ in 0..runs {
            let end = start + length;
            let mut k = start;
            while C == 1 && k + 1 < end {
                let (even, odd) = (W::load_pairs(panel), W::load_pairs(panel.add(COLUMNS)));
                panel = panel.add(2 * COLUMNS);
                for ((sum, other), a) in sums.iter_mut().zip(&mut others).zip(source) {
                    sum[0] = sum[0].dot(W::splat_pair(a.add(k)), even);
                    *other = other.dot(W::splat_pair(a.add(k + 1)), odd);
                }
                k += 2;
            }
            while k < end {
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
                k += 1;
            }
            start += run_stride;
        }
        if C == 1 {
            for (sum, other) in sums.iter_mut().zip(others) {
                sum[0] = sum[0].add(other);
            }
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
            if count == COLUMNS { value.store(to.add(at)) } else { value.store_part(to.add(at), count) }
        }
    }
}

/// Adds to `sums[i * stride + 16 c + j]` the sum over `n` of `left[n * step + i] . right[n * 16 C + 16 c + j]`, or sets it, for `rows` rows `i`
/// (a multiple of [`OUTER`]). The dot product takes long: some twenty sums must be under way at a time.
///
/// # Safety
/// The places above exist.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn outer<W: Wide, const C: usize>(
    left: *const Pair,
    rows: usize,
    step: usize,
    right: *const Pair,
    length: usize,
    sums: *mut f32,
    stride: usize,
    add: bool,
) {
    let mut row = 0;
    while row < rows {
        // SAFETY: by contract.
        unsafe {
            let (left, sums) = (left.add(row), sums.add(row * stride));
            row += match (rows - row, C) {
                (rest, 1) if rest >= 16 => {
                    outer_block::<W, 16, C>(left, step, right, length, sums, stride, add);
                    16
                }
                // A rest of 16 is better cut into 8 and 8 than into 12 and 4.
                (8 | 16, _) => {
                    outer_block::<W, 8, C>(left, step, right, length, sums, stride, add);
                    8
                }
                _ => {
                    outer_block::<W, 12, C>(left, step, right, length, sums, stride, add);
                    12
                }
            };
        }
    }
}

/// [`outer`] for `R` rows.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn outer_block<W: Wide, const R: usize, const C: usize>(
    left: *const Pair,
    step: usize,
    right: *const Pair,
    length: usize,
    sums: *mut f32,
    stride: usize,
    add: bool,
) {
    // SAFETY: by contract.
    unsafe {
        let held = sums_of::<W, R, C>(left, step, right, length);
        // One by one and not in a loop: an index that varies would keep all sums in memory.
        each_row!(R, i => put_sums(held[i], sums.add(i * stride), add));
    }
}

/// The sums over `n` of `left[n * step + i] . right[n * 16 C + 16 c + j]`, for `R` rows `i`.
///
/// # Safety
/// The places above exist.
#[inline(always)]
pub(super) unsafe fn sums_of<W: Wide, const R: usize, const C: usize>(
    left: *const Pair,
    step: usize,
    right: *const Pair,
    length: usize,
) -> [[W; C]; R] {
    // SAFETY: all offsets stay inside what the caller vouches for.
    unsafe {
        let mut held = [[W::splat(0.0); C]; R];
        let (mut a, mut b) = (left, right);
        for _ in 0..length {
            let mut right = [W::load_pairs(b); C];
            for (c, right) in right.iter_mut().enumerate() {
                *right = W::load_pairs(b.add(c * COLUMNS));
            }
            b = b.add(C * COLUMNS);
            for (i, held) in held.iter_mut().enumerate() {
                let value = W::splat_pair(a.add(i));
                for c in 0..C {
                    held[c] = held[c].dot(value, right[c]);
                }
            }
            a = a.wrapping_add(step);
        }
        held
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
