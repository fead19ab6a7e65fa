//! The inner loops: small blocks of a matrix product whose sums stay in registers.

use crate::lane::Lane;

/// Rows of a tile in [`rows`].
pub(crate) const ROWS: usize = 6;
/// Columns of a tile in [`rows`], and width of a panel of packed weights.
pub(crate) const COLUMNS: usize = 16;

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
    /// Columns that exist (the rest of a panel is padding).
    pub columns: usize,
}

/// `target[i][j] = sum over runs r, k of source[i][r * run_stride + k] * panel[(r * length + k) * 16 + j]`, plus bias and skip,
/// for six rows `i` and up to sixteen columns `j`.
///
/// # Safety
/// Each source has `runs` runs of `length` numbers, the panel `runs * length * 16`, each target room for `columns`; bias and skip (if
/// given) `columns` too.
#[inline(always)]
pub(crate) unsafe fn rows<L: Lane>(
    source: &[*const f32; ROWS],
    target: &[*mut f32; ROWS],
    runs: usize,
    run_stride: usize,
    length: usize,
    panel: *const f32,
    finish: &Finish,
) {
    // SAFETY: all offsets stay inside what the caller vouches for.
    unsafe {
        let mut sums = [[L::splat(0.0); 2]; ROWS];
        let mut panel = panel;
        let mut at = *source;
        for _ in 0..runs {
            for k in 0..length {
                let (left, right) = (L::load(panel), L::load(panel.add(8)));
                panel = panel.add(COLUMNS);
                for (sum, a) in sums.iter_mut().zip(&at) {
                    let value = L::splat(*a.add(k));
                    *sum = [value.mul_add(left, sum[0]), value.mul_add(right, sum[1])];
                }
            }
            for a in &mut at {
                *a = a.wrapping_add(run_stride);
            }
        }
        // Row by row and not in a loop: an index that varies would keep all sums in memory, and store them in every step above.
        let [s0, s1, s2, s3, s4, s5] = sums;
        let [t0, t1, t2, t3, t4, t5] = *target;
        put(s0, t0, finish);
        put(s1, t1, finish);
        put(s2, t2, finish);
        put(s3, t3, finish);
        put(s4, t4, finish);
        put(s5, t5, finish);
    }
}

/// Stores the sums of a row, as far as there are columns.
///
/// # Safety
/// As for [`rows`].
#[inline(always)]
unsafe fn put<L: Lane>([mut left, mut right]: [L; 2], to: *mut f32, finish: &Finish) {
    // SAFETY: only existing columns are touched.
    unsafe {
        let skip = finish.skip.place(to);
        if finish.columns == COLUMNS {
            if !finish.bias.is_null() {
                left = left.add(L::load(finish.bias));
                right = right.add(L::load(finish.bias.add(8)));
            }
            if !skip.is_null() {
                left = left.add(L::load(skip));
                right = right.add(L::load(skip.add(8)));
            }
            left.store(to);
            right.store(to.add(8));
        } else {
            let mut whole = [0.0f32; COLUMNS];
            left.store(whole.as_mut_ptr());
            right.store(whole.as_mut_ptr().add(8));
            for (j, value) in whole.iter().enumerate().take(finish.columns) {
                let bias = if finish.bias.is_null() { 0.0 } else { *finish.bias.add(j) };
                let skip = if skip.is_null() { 0.0 } else { *skip.add(j) };
                *to.add(j) = value + bias + skip;
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

/// `sums[i * 16 + j] += sum over n of left[n][offset + i] * right[n][column + j]` for six `i` and sixteen `j`.
///
/// # Safety
/// Every place has six numbers at `offset` and sixteen at `column`; `sums` has 96.
#[inline(always)]
pub(crate) unsafe fn outer<L: Lane>(places: &Places, column: usize, sums: *mut f32) {
    // SAFETY: all offsets stay inside what the caller vouches for.
    unsafe {
        let mut held = [[L::splat(0.0); 2]; ROWS];
        for (left, right) in places.left.iter().zip(places.right) {
            let (a, b) = (left.add(places.offset), right.add(column));
            let (b0, b1) = (L::load(b), L::load(b.add(8)));
            for (i, held) in held.iter_mut().enumerate() {
                let value = L::splat(*a.add(i));
                *held = [value.mul_add(b0, held[0]), value.mul_add(b1, held[1])];
            }
        }
        for (i, held) in held.iter().enumerate() {
            for half in 0..2 {
                let to = sums.add(i * COLUMNS + half * 8);
                L::load(to).add(held[half]).store(to);
            }
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
