//! The filters, transformed and packed for the product.

use super::super::tile::{COLUMNS, PANEL};
use super::super::wide::{Pair, Wide, dispatch_pairs};
use super::axes::filter_tile;
use super::{PLACES, SHIFT};
use crate::conv::parallel;
use crate::scratch::{Scratch, Shared};

/// Distance between the places of a panel of filters, in pairs.
pub(super) fn filter_place(inputs: usize) -> usize {
    inputs.div_ceil(2) * PANEL + SHIFT
}

/// Vectors of the panel that begins at this column.
pub(super) fn vectors(columns: usize, first: usize) -> usize {
    (columns - first).div_ceil(COLUMNS).min(2)
}

/// $G g G^T$ for all pairs of channels: panel of 32 outputs (16 if no more are left), place, pair of inputs, output in the panel.
/// The filter of a pair of channels begins at `input * steps[0] + output * steps[1]`; `turned` reads it backwards.
pub(super) fn transform(
    weight: &[f32],
    [inputs, outputs]: [usize; 2],
    steps: [usize; 2],
    turned: bool,
) -> Scratch {
    let panels = outputs.div_ceil(PANEL);
    let place = filter_place(inputs);
    let mut filters = Scratch::take(panels * PLACES * place);
    let to = Shared::new(filters.as_mut_ptr());
    let halves = outputs.div_ceil(COLUMNS);
    parallel(halves, inputs * outputs * 60, |half| {
        let first = half * COLUMNS;
        let (panel, vectors) = (half / 2, vectors(outputs, half / 2 * PANEL));
        let job = Job { inputs, outputs: (outputs - first).min(COLUMNS), steps, turned, vectors };
        // SAFETY: every half of a panel has its own part of the buffer.
        unsafe {
            let to = to.get().cast::<Pair>().add(panel * PLACES * place + half % 2 * COLUMNS);
            transform_half(&weight[first * steps[1]..], &job, to);
        }
    });
    filters
}

struct Job {
    inputs: usize,
    outputs: usize,
    steps: [usize; 2],
    turned: bool,
    vectors: usize,
}

dispatch_pairs! {
    /// Filters of up to sixteen outputs and all inputs.
    ///
    /// # Safety
    /// `to` has room for the places.
    unsafe fn transform_half = transform_half_with(weight: &[f32], job: &Job, to: *mut Pair)
}

#[inline(always)]
unsafe fn transform_half_with<W: Wide>(weight: &[f32], job: &Job, to: *mut Pair) {
    let Job { inputs, outputs, steps, turned, vectors } = *job;
    let place = filter_place(inputs);
    for pair in 0..inputs.div_ceil(2) {
        // SAFETY: inside the weights, the taps and the places.
        unsafe {
            let mut both = [[[W::splat(0.0); 4]; 6]; 2];
            for (second, tile) in both.iter_mut().enumerate() {
                let i = pair * 2 + second;
                if i == inputs {
                    break;
                }
                let mut taps = [[0.0f32; COLUMNS]; 9];
                for o in 0..outputs {
                    let from = &weight[i * steps[0] + o * steps[1]..][..9];
                    for tap in 0..9 {
                        taps[if turned { 8 - tap } else { tap }][o] = from[tap];
                    }
                }
                let mut g = [[W::splat(0.0); 3]; 3];
                for r in 0..3 {
                    for s in 0..3 {
                        g[r][s] = W::load(taps[r * 3 + s].as_ptr());
                    }
                }
                *tile = filter_tile(g);
            }
            let to = to.add(pair * vectors * COLUMNS);
            let [first, second] = both;
            for r in 0..6 {
                for s in 0..4 {
                    W::store_pairs(first[r][s].pair(second[r][s]), to.add((r * 4 + s) * place));
                }
            }
        }
    }
}
