//! The inner loops: small blocks of a matrix product whose sums stay in registers.

use crate::lane::{Lane, Numbers};

/// Rows of a tile in [`outer`].
pub(crate) const ROWS: usize = 6;
/// Columns of a panel of packed weights.
pub(crate) const COLUMNS: usize = 16;

/// A statement for each of up to sixteen rows, with the row's number as a constant.
macro_rules! each_row {
    ($rows:ident, $row:ident => $body:expr) => {
        each_row!($rows, $row => $body; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($rows:ident, $row:ident => $body:expr; $($number:literal)*) => {
        $(if $number < $rows {
            let $row = $number;
            $body;
        })*
    };
}
pub(super) use each_row;

/// What is added to a target.
#[derive(Clone, Copy)]
pub(crate) enum Skip {
    Nothing,
    /// What the target holds.
    Target,
    /// What lies in `skip` where the target lies in `target`.
    Like {
        target: *const f32,
        skip: *const f32,
    },
}

impl Skip {
    /// Where the numbers for this target begin; null if there are none. A buffer is read only through its own pointer, so
    /// a distance between two buffers is never taken.
    ///
    /// # Safety
    /// `to` lies in `target`, and `skip` is as long.
    #[inline(always)]
    pub(super) unsafe fn place(self, to: *mut f32) -> *const f32 {
        match self {
            Self::Nothing => std::ptr::null(),
            Self::Target => to,
            // SAFETY: by contract.
            Self::Like { target, skip } => unsafe { skip.offset(to.cast_const().offset_from(target)) },
        }
    }
}

/// Where the sums of [`rows`] go.
#[derive(Clone, Copy)]
pub(crate) struct Finish {
    /// Added to every row: one number per column, or null.
    pub bias: *const f32,
    pub skip: Skip,
    /// Whether results are kept between 0 and 6 (ReLU6).
    pub clips: bool,
    /// Columns that exist (the rest of a panel is padding).
    pub columns: usize,
}

/// `target[i][j] = sum over runs r, k of source[i][r * run_stride + k] * panel[(r * length + k) * 16 + j]`, plus bias and skip,
/// for `R` rows `i` and up to sixteen columns `j` of each of `C` panels, `step` numbers apart.
///
/// # Safety
/// Each source has `runs` runs of `length` numbers, each panel `runs * length * 16`, each target room for `columns`; bias and skip (if
/// given) `columns` too.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn rows<L: Lane, const R: usize, const C: usize>(
    source: &[*const f32; R],
    target: &[*mut f32; R],
    runs: usize,
    run_stride: usize,
    length: usize,
    panel: *const f32,
    step: usize,
    finish: &Finish,
) {
    // SAFETY: all offsets stay inside what the caller vouches for.
    unsafe {
        let mut sums = [[L::Broad::splat(0.0); C]; R];
        let mut panel = panel;
        let mut start = 0;
        for _ in 0..runs {
            for k in start..start + length {
                let mut right = [L::Broad::splat(0.0); C];
                for (c, right) in right.iter_mut().enumerate() {
                    *right = L::load_broad(panel.wrapping_add(c * step));
                }
                panel = panel.add(COLUMNS);
                for (sum, a) in sums.iter_mut().zip(source) {
                    let value = L::Broad::splat(*a.add(k));
                    for c in 0..C {
                        sum[c] = value.mul_add(right[c], sum[c]);
                    }
                }
            }
            start += run_stride;
        }
        // Row by row and not in a loop: an index that varies would keep all sums in memory.
        each_row!(R, i => put_row::<L, C>(sums[i], target[i], finish));
    }
}

/// Stores the sums of a row.
///
/// # Safety
/// As for [`rows`].
#[inline(always)]
unsafe fn put_row<L: Lane, const C: usize>(sums: [L::Broad; C], to: *mut f32, finish: &Finish) {
    for (c, sum) in sums.into_iter().enumerate() {
        // SAFETY: by contract.
        unsafe { put::<L>(L::split(sum), to.wrapping_add(c * COLUMNS), c * COLUMNS, finish) };
    }
}

/// Stores sixteen sums of a row from column `first` on, as far as there are columns.
///
/// # Safety
/// As for [`rows`].
#[inline(always)]
unsafe fn put<L: Lane>([mut left, mut right]: [L; 2], to: *mut f32, first: usize, finish: &Finish) {
    let columns = finish.columns.saturating_sub(first);
    // SAFETY: only existing columns are touched.
    unsafe {
        let skip = finish.skip.place(to);
        let bias = finish.bias.wrapping_add(if finish.bias.is_null() { 0 } else { first });
        if columns >= COLUMNS {
            if !bias.is_null() {
                left = left.add(L::load(bias));
                right = right.add(L::load(bias.add(8)));
            }
            if !skip.is_null() {
                left = left.add(L::load(skip));
                right = right.add(L::load(skip.add(8)));
            }
            if finish.clips {
                left = left.clamp(L::splat(0.0), L::splat(6.0));
                right = right.clamp(L::splat(0.0), L::splat(6.0));
            }
            left.store(to);
            right.store(to.add(8));
        } else {
            let mut whole = [0.0f32; COLUMNS];
            left.store(whole.as_mut_ptr());
            right.store(whole.as_mut_ptr().add(8));
            for (j, value) in whole.iter().enumerate().take(columns) {
                let bias = if bias.is_null() { 0.0 } else { *bias.add(j) };
                let skip = if skip.is_null() { 0.0 } else { *skip.add(j) };
                let sum = value + bias + skip;
                #[expect(clippy::manual_clamp, reason = "what is not a number becomes 0, as in the lanes")]
                let kept = if finish.clips { sum.max(0.0).min(6.0) } else { sum };
                *to.add(j) = kept;
            }
        }
    }
}

/// Depth of [`outer`]'s places: where the n-th pair of vectors begins.
pub(crate) struct Places<'a> {
    /// Sources of broadcast numbers, one per step of the sum, from `offset` on.
    pub left: &'a [*const f32],
    pub offset: usize,
    /// Sources of 16 (or fewer) columns, one per step of the sum.
    pub right: &'a [*const f32],
}

/// `sums[i * 16 + j] += sum over n of left[n][offset + i] * right[n][column + j]` for `R` rows `i` and sixteen `j`.
///
/// # Safety
/// Every place has `R` numbers at `offset` and sixteen at `column`; `sums` has `16 R`.
#[inline(always)]
pub(crate) unsafe fn outer<L: Lane, const R: usize>(places: &Places, column: usize, sums: *mut f32) {
    // SAFETY: all offsets stay inside what the caller vouches for.
    unsafe {
        let mut held = [L::Broad::splat(0.0); R];
        for (left, right) in places.left.iter().zip(places.right) {
            let a = left.add(places.offset);
            let b = L::load_broad(right.add(column));
            for (i, held) in held.iter_mut().enumerate() {
                *held = L::Broad::splat(*a.add(i)).mul_add(b, *held);
            }
        }
        for (i, held) in held.into_iter().enumerate() {
            put_panels::<L, 2>(L::split(held), sums.add(i * COLUMNS), true);
        }
    }
}

/// `sums[i * stride + j] (+)= sum over t of left[t * 8 + i] * right[j / 8][t * 8 + j % 8]` for four `i` and `8 P` columns `j`: both
/// factors lie in panels of eight.
///
/// # Safety
/// `left` and each of the `P` panels, `panel` numbers apart, have `8 depth` numbers; `sums` four rows of `8 P`.
#[inline(always)]
pub(crate) unsafe fn panels<L: Lane, const P: usize>(
    left: *const f32,
    right: *const f32,
    panel: usize,
    depth: usize,
    sums: *mut f32,
    stride: usize,
    add: bool,
) {
    // SAFETY: all offsets stay inside what the caller vouches for.
    unsafe {
        let mut held = [[L::splat(0.0); P]; 4];
        for t in 0..depth {
            let mut b = [L::splat(0.0); P];
            for (q, b) in b.iter_mut().enumerate() {
                *b = L::load(right.add(q * panel + t * 8));
            }
            for (i, held) in held.iter_mut().enumerate() {
                let value = L::splat(*left.add(t * 8 + i));
                for q in 0..P {
                    held[q] = value.mul_add(b[q], held[q]);
                }
            }
        }
        let [h0, h1, h2, h3] = held;
        put_panels(h0, sums, add);
        put_panels(h1, sums.add(stride), add);
        put_panels(h2, sums.add(2 * stride), add);
        put_panels(h3, sums.add(3 * stride), add);
    }
}

/// As [`panels`] for eight `i` and `16 P` columns: two panels fill a register where registers have room for them.
///
/// # Safety
/// As for [`panels`], with `2 P` panels and eight rows of `16 P` sums.
#[inline(always)]
pub(crate) unsafe fn broad_panels<L: Lane, const P: usize>(
    left: *const f32,
    right: *const f32,
    panel: usize,
    depth: usize,
    sums: *mut f32,
    stride: usize,
    add: bool,
) {
    // SAFETY: all offsets stay inside what the caller vouches for.
    unsafe {
        let mut held = [[L::Broad::splat(0.0); P]; 8];
        for t in 0..depth {
            let mut b = [L::Broad::splat(0.0); P];
            for (q, b) in b.iter_mut().enumerate() {
                let from = right.add(2 * q * panel + t * 8);
                *b = L::join(L::load(from), L::load(from.add(panel)));
            }
            for (i, held) in held.iter_mut().enumerate() {
                let value = L::Broad::splat(*left.add(t * 8 + i));
                for q in 0..P {
                    held[q] = value.mul_add(b[q], held[q]);
                }
            }
        }
        let [h0, h1, h2, h3, h4, h5, h6, h7] = held;
        put_broad::<L, P>(h0, sums, add);
        put_broad::<L, P>(h1, sums.add(stride), add);
        put_broad::<L, P>(h2, sums.add(2 * stride), add);
        put_broad::<L, P>(h3, sums.add(3 * stride), add);
        put_broad::<L, P>(h4, sums.add(4 * stride), add);
        put_broad::<L, P>(h5, sums.add(5 * stride), add);
        put_broad::<L, P>(h6, sums.add(6 * stride), add);
        put_broad::<L, P>(h7, sums.add(7 * stride), add);
    }
}

/// Adds to or sets `16 P` sums.
///
/// # Safety
/// There is room for them.
#[inline(always)]
unsafe fn put_broad<L: Lane, const P: usize>(held: [L::Broad; P], to: *mut f32, add: bool) {
    for (q, held) in held.into_iter().enumerate() {
        // SAFETY: by contract.
        unsafe { put_panels::<L, 2>(L::split(held), to.add(q * 16), add) };
    }
}

/// Adds to or sets `8 P` sums.
///
/// # Safety
/// There is room for them.
#[inline(always)]
unsafe fn put_panels<L: Lane, const P: usize>(held: [L; P], to: *mut f32, add: bool) {
    for (q, held) in held.into_iter().enumerate() {
        // SAFETY: by contract.
        unsafe {
            let to = to.add(q * 8);
            if add { L::load(to).add(held).store(to) } else { held.store(to) }
        }
    }
}
