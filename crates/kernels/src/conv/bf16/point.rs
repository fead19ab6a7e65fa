//! Gradient of the weights of dense layers and 1x1 convolutions of stride 1: one matrix product, $dW = dY^T X$ over all pixels, two
//! by two.
//!
//! As in [`crate::conv::point`], rows of the product are output channels, columns input channels: just how the weights lie in memory.
//! Both sides are packed once, rounded, each pixel beside the next one.

use super::tile::{COLUMNS, Finish, PANEL, ROWS, put, sums_of};
use super::wide::{Pair, Wide, dispatch_pairs};
use crate::conv::tile::{Skip, each_row};
use crate::conv::{Shape, parallel};
use crate::scratch::{Scratch, Shared, filled};

/// Pixels that are packed at a time: the copies stay in the second-level cache.
const PIXELS: usize = 512;
/// Pairs of pixels that are packed in one piece of work.
const TOGETHER: usize = 32;
/// Pairs of pixels whose products are added up before they go to memory: their copies stay in the first-level cache.
const PAIRS: usize = 128;
/// Panels of each side in a piece of work.
const SIDE: usize = 4;

/// Pixels of one side, in panels of `width` channels, each with all pairs of pixels.
#[derive(Clone, Copy)]
struct Side {
    panels: Shared,
    channels: usize,
    width: usize,
}

impl Side {
    fn count(&self) -> usize {
        self.channels.div_ceil(self.width)
    }

    /// Pairs of numbers that a pair of pixels takes in a panel: whole vectors.
    fn room(&self) -> usize {
        self.width.next_multiple_of(COLUMNS)
    }

    /// Where a panel of so many pairs of pixels begins. Panels a power of two apart would fall into the same few sets of the cache.
    ///
    /// # Safety
    /// The buffer is as long as [`Self::take`] makes it.
    unsafe fn panel(&self, panel: usize, pairs: usize) -> *mut Pair {
        // SAFETY: by contract.
        unsafe { self.panels.get().cast::<Pair>().add(panel * (pairs * self.room() + COLUMNS)) }
    }

    fn take(&self, pairs: usize) -> Scratch {
        Scratch::take(self.count() * (pairs * self.room() + COLUMNS))
    }
}

/// Some pixels, packed.
struct Packed {
    /// Gradients in panels of [`ROWS`] channels, inputs in panels of [`PANEL`].
    rows: Side,
    columns: Side,
    dw: Shared,
    pairs: usize,
    /// Whether the products are added to what is there.
    adds: bool,
}

/// See [`crate::conv::weight_gradient`].
pub(super) fn gradient(x: &[f32], dy: &[f32], shape: &Shape) -> Vec<f32> {
    let Shape { inputs, outputs, .. } = *shape;
    let total = shape.batch * shape.height * shape.width;
    let nowhere = Shared::new(std::ptr::null_mut());
    let [mut rows, mut columns] =
        [(outputs, ROWS), (inputs, PANEL)].map(|(channels, width)| Side { panels: nowhere, channels, width });
    let most = PIXELS.min(total).div_ceil(2);
    let (mut left, mut right) = (rows.take(most), columns.take(most));
    (rows.panels, columns.panels) = (Shared::new(left.as_mut_ptr()), Shared::new(right.as_mut_ptr()));
    let write = |dw: *mut f32| {
        let dw = Shared::new(dw);
        for start in (0..total).step_by(PIXELS) {
            let pixels = PIXELS.min(total - start);
            let packed = Packed { rows, columns, dw, pairs: pixels.div_ceil(2), adds: start > 0 };
            let (x, dy) =
                (&x[start * inputs..][..pixels * inputs], &dy[start * outputs..][..pixels * outputs]);
            parallel(packed.pairs.div_ceil(TOGETHER), pixels * (inputs + outputs) * 8, |n| {
                // SAFETY: every pair of pixels has its own places in the buffers.
                unsafe {
                    pack(columns, x, packed.pairs, n * TOGETHER);
                    pack(rows, dy, packed.pairs, n * TOGETHER);
                }
            });
            let across = columns.count().div_ceil(SIDE);
            parallel(rows.count().div_ceil(SIDE) * across, pixels * inputs * outputs, |n| {
                // SAFETY: everything is packed; every piece has its own weights.
                unsafe { piece(&packed, n / across * SIDE, n % across * SIDE) };
            });
        }
    };
    // SAFETY: all channels of both sides are visited with the first pixels, and there are some.
    unsafe { filled(inputs * outputs, write) }
}

dispatch_pairs! {
    /// Packs some pixels, from a pair on; the last pixel of all may be paired with zeros.
    ///
    /// # Safety
    /// The side's buffer is large enough, and nobody else writes these pairs.
    unsafe fn pack = pack_with(side: Side, from: &[f32], pairs: usize, first: usize)
}

#[inline(always)]
unsafe fn pack_with<W: Wide>(side: Side, from: &[f32], pairs: usize, first: usize) {
    let Side { channels, width, .. } = side;
    for pair in first..pairs.min(first + TOGETHER) {
        let pixel = from[2 * pair * channels..].as_ptr();
        let alone = (2 * pair + 1) * channels == from.len();
        for panel in 0..side.count() {
            let there = (channels - panel * width).min(width);
            // SAFETY: inside the pixels and the buffer.
            unsafe {
                let to = side.panel(panel, pairs).add(pair * side.room());
                for c in (0..side.room()).step_by(COLUMNS) {
                    let from = pixel.wrapping_add(panel * width + c);
                    let count = there.saturating_sub(c);
                    let second =
                        if alone { W::splat(0.0) } else { W::load_part(from.wrapping_add(channels), count) };
                    W::store_pairs(W::load_part(from, count).pair(second), to.add(c));
                }
            }
        }
    }
}

dispatch_pairs! {
    /// The weights of [`SIDE`] panels of both sides, from the given ones on.
    ///
    /// # Safety
    /// All is packed, and nobody else writes these weights.
    unsafe fn piece = piece_with(packed: &Packed, row: usize, column: usize)
}

#[inline(always)]
unsafe fn piece_with<W: Wide>(packed: &Packed, row: usize, column: usize) {
    let Packed { rows, columns, pairs, .. } = *packed;
    let last = [(rows, row), (columns, column)].map(|(side, first)| side.count().min(first + SIDE));
    for start in (0..pairs).step_by(PAIRS) {
        let length = PAIRS.min(pairs - start);
        let skip = if packed.adds || start > 0 { Skip::Target } else { Skip::Nothing };
        for column in column..last[1] {
            let there = (columns.channels - column * PANEL).min(PANEL);
            let finish = Finish { bias: std::ptr::null(), skip, columns: there };
            for row in row..last[0] {
                let there = (rows.channels - row * ROWS).min(ROWS);
                // SAFETY: inside the copies and the weights.
                unsafe {
                    let left = rows.panel(row, pairs).add(start * rows.room());
                    let right = columns.panel(column, pairs).add(start * PANEL);
                    let to = packed.dw.get().add(row * ROWS * columns.channels + column * PANEL);
                    let sums = sums_of::<W, ROWS, 2>(left, COLUMNS, right, length);
                    each_row!(ROWS, i => if i < there {
                        put(sums[i], to.add(i * columns.channels), &finish)
                    });
                }
            }
        }
    }
}
