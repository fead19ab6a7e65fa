//! Weight gradient: products of transformed tiles, summed over the batch and transformed back.

use super::axes::{both_axes, weight_axis};
use super::tiles::{transform_gradient, transform_input};
use super::{Grid, PLACES, REACH, SHIFT, Steps, TILE};
use crate::conv::{Shape, parallel, tile};
use crate::lane::{Lane, dispatch};
use crate::scratch::{Scratch, Shared, filled};

/// Numbers of transformed input and gradient held at a time: by one lane, and when all threads share one chunk.
const LANE_CHUNK: usize = 256 * 1024;
const SHARED_CHUNK: usize = 8 << 20;
/// Numbers of sums up to which every lane has its own.
const LANE_SUMS: usize = 640 * 1024;
/// Lanes of small layers.
const LANES: usize = 8;

/// A part of the weight gradient's tiles, transformed and multiplied.
struct Parts {
    source: *const f32,
    from: Grid,
    gradient: *const f32,
    to: Grid,
    zeros: *const f32,
    /// Panels of eight input and output channels.
    left: usize,
    right: usize,
    /// Tiles held at a time.
    chunk: usize,
}

// SAFETY: the pointers are only read.
unsafe impl Sync for Parts {}

impl Parts {
    fn left_place(&self) -> usize {
        self.left * self.chunk * 8 + SHIFT
    }

    fn right_place(&self) -> usize {
        self.right * self.chunk * 8 + SHIFT
    }

    /// Numbers between the sums of two places.
    fn sums_place(&self) -> usize {
        self.left * 8 * self.right * 8 + SHIFT
    }

    /// Transforms tiles `first..last` of the chunk that begins at tile `start`.
    ///
    /// # Safety
    /// `v` and `z` have room for a chunk, and nobody else writes these tiles.
    unsafe fn transform(&self, start: usize, first: usize, last: usize, v: *mut f32, z: *mut f32) {
        // SAFETY: the grids cover the tiles, `v` and `z` their places.
        unsafe {
            let steps = Steps { place: self.left_place(), tile: 8, channel: self.chunk * 8 };
            transform_input(
                self.source,
                &self.from,
                first,
                last,
                self.zeros,
                v.add((first - start) * 8),
                steps,
            );
            let steps = Steps { place: self.right_place(), ..steps };
            transform_gradient(
                self.gradient,
                &self.to,
                first,
                last,
                self.zeros,
                z.add((first - start) * 8),
                steps,
            );
        }
    }

    /// Adds the products of `count` tiles at one place to `sums` (or sets them).
    ///
    /// # Safety
    /// `v` and `z` hold the tiles, `sums` all places.
    unsafe fn multiply(
        &self,
        place: usize,
        count: usize,
        v: *const f32,
        z: *const f32,
        sums: *mut f32,
        add: bool,
    ) {
        // SAFETY: each buffer holds 36 places.
        unsafe {
            let (v, z) = (v.add(place * self.left_place()), z.add(place * self.right_place()));
            multiply(
                v,
                self.left,
                z,
                self.right,
                self.chunk * 8,
                count,
                sums.add(place * self.sums_place()),
                add,
            );
        }
    }
}

/// See [`crate::conv::weight_gradient`].
pub(in crate::conv) fn weight_gradient(
    x: &[f32],
    dy: &[f32],
    shape: &Shape,
    [oh, ow]: [usize; 2],
) -> Vec<f32> {
    let Shape { batch, height, width, inputs, outputs, window } = *shape;
    let tiles = [oh.div_ceil(TILE), ow.div_ceil(TILE)];
    let from = Grid { height, width, channels: inputs, padding: window.padding, tiles };
    let to = Grid { height: oh, width: ow, channels: outputs, padding: [0, 0], tiles };
    let total = batch * tiles[0] * tiles[1];
    let (left, right) = (inputs.div_ceil(8), outputs.div_ceil(8));
    let zeros = vec![0.0f32; inputs.max(outputs) + 8];
    let per_tile = PLACES * (left + right) * 8;
    let own_sums = PLACES * left * 8 * right * 8 <= LANE_SUMS;
    let chunk = if own_sums {
        (LANE_CHUNK / per_tile).clamp(32, 128)
    } else {
        (SHARED_CHUNK / per_tile).clamp(32, 1024)
    }
    .min(total);
    let parts = Parts {
        source: x.as_ptr(),
        from,
        gradient: dy.as_ptr(),
        to,
        zeros: zeros.as_ptr(),
        left,
        right,
        chunk,
    };
    let lanes = if own_sums { LANES.min(total.div_ceil(chunk)) } else { 1 };
    let per_lane = PLACES * parts.sums_place();
    let mut sums = Scratch::take(lanes * per_lane);
    let sums = Shared::new(sums.as_mut_ptr());
    let work = total * PLACES * inputs * outputs;
    if own_sums {
        parallel(lanes, work, |lane| {
            let mut v = Scratch::take(PLACES * parts.left_place());
            let mut z = Scratch::take(PLACES * parts.right_place());
            let (first, last) = (lane * total / lanes, (lane + 1) * total / lanes);
            for start in (first..last).step_by(chunk) {
                let end = last.min(start + chunk);
                // SAFETY: the lane has its own sums and buffers.
                unsafe {
                    parts.transform(start, start, end, v.as_mut_ptr(), z.as_mut_ptr());
                    for place in 0..PLACES {
                        parts.multiply(
                            place,
                            end - start,
                            v.as_mut_ptr(),
                            z.as_mut_ptr(),
                            sums.get().add(lane * per_lane),
                            start > first,
                        );
                    }
                }
            }
        });
    } else {
        let mut v = Scratch::take(PLACES * parts.left_place());
        let mut z = Scratch::take(PLACES * parts.right_place());
        let (v, z) = (Shared::new(v.as_mut_ptr()), Shared::new(z.as_mut_ptr()));
        for start in (0..total).step_by(chunk) {
            let count = chunk.min(total - start);
            const STEP: usize = 8;
            parallel(count.div_ceil(STEP), work, |n| {
                let (first, last) = (start + n * STEP, start + ((n + 1) * STEP).min(count));
                // SAFETY: each tile has its own places in `v` and `z`.
                unsafe { parts.transform(start, first, last, v.get(), z.get()) };
            });
            // SAFETY: each place has its own sums; `v` and `z` are complete.
            parallel(PLACES, work, |place| unsafe {
                parts.multiply(place, count, v.get(), z.get(), sums.get(), start > 0)
            });
        }
    }
    let write = |dw: *mut f32| {
        let to = Shared::new(dw);
        // Sixteen outputs at a time: what lies in one line of the cache is read once.
        parallel(outputs.div_ceil(16), inputs * outputs * 100 * lanes, |panel| {
            let mut taps = [[0.0f32; 8]; 9];
            for i in 0..inputs {
                for first in [panel * 16, panel * 16 + 8] {
                    let count = outputs.saturating_sub(first).min(8);
                    if count == 0 {
                        continue;
                    }
                    // SAFETY: inside the sums; weights of these outputs are written here only.
                    unsafe {
                        transform_weight(
                            sums.get().add(i * right * 8 + first),
                            parts.sums_place(),
                            lanes,
                            per_lane,
                            &mut taps,
                        );
                        for o in 0..count {
                            for (tap, values) in taps.iter().enumerate() {
                                *to.get().add(((first + o) * inputs + i) * 9 + tap) = values[o];
                            }
                        }
                    }
                }
            }
        });
    };
    // SAFETY: all outputs and inputs are visited.
    unsafe { filled(shape.weight_len(), write) }
}

dispatch! {
    /// `sums (+)= left^T right`, both in panels of eight, `panel` numbers apart.
    ///
    /// # Safety
    /// There are `left` and `right` panels of `8 depth` numbers, and sums for all their columns.
    unsafe fn multiply = multiply_with(a: *const f32, left: usize, b: *const f32, right: usize, panel: usize, depth: usize, sums: *mut f32, add: bool)
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn multiply_with<L: Lane>(
    a: *const f32,
    left: usize,
    b: *const f32,
    right: usize,
    panel: usize,
    depth: usize,
    sums: *mut f32,
    add: bool,
) {
    let stride = right * 8;
    let mut column = 0;
    while L::ROWS > 6 && right - column > 1 {
        // As below, with two panels in a register.
        let wide = match (right - column) / 2 {
            1 => 1,
            2 | 4 => 2,
            _ => 3,
        };
        // SAFETY: inside the panels and sums.
        unsafe {
            let b = b.add(column * panel);
            for row in 0..left {
                let (a, to) = (a.add(row * panel), sums.add(row * 8 * stride + column * 8));
                match wide {
                    1 => tile::broad_panels::<L, 1>(a, b, panel, depth, to, stride, add),
                    2 => tile::broad_panels::<L, 2>(a, b, panel, depth, to, stride, add),
                    _ => tile::broad_panels::<L, 3>(a, b, panel, depth, to, stride, add),
                }
            }
        }
        column += 2 * wide;
    }
    while column < right {
        // Three panels at a time fill the registers; a rest of four is better cut into two and two.
        let wide = match right - column {
            1 => 1,
            2 | 4 => 2,
            _ => 3,
        };
        // SAFETY: inside the panels and sums.
        unsafe {
            let b = b.add(column * panel);
            for half in 0..left * 2 {
                let a = a.add(half / 2 * panel + half % 2 * 4);
                let to = sums.add(half * 4 * stride + column * 8);
                match wide {
                    1 => tile::panels::<L, 1>(a, b, panel, depth, to, stride, add),
                    2 => tile::panels::<L, 2>(a, b, panel, depth, to, stride, add),
                    _ => tile::panels::<L, 3>(a, b, panel, depth, to, stride, add),
                }
            }
        }
        column += wide;
    }
}

dispatch! {
    /// $G^T u G$ of eight filters at once, places `step` numbers apart; `u` is the sum of the lanes, in order.
    ///
    /// # Safety
    /// Eight numbers at each of the 36 places of each lane.
    unsafe fn transform_weight = transform_weight_with(from: *const f32, step: usize, lanes: usize, lane: usize, taps: &mut [[f32; 8]; 9])
}

#[inline(always)]
unsafe fn transform_weight_with<L: Lane>(
    from: *const f32,
    step: usize,
    lanes: usize,
    lane: usize,
    taps: &mut [[f32; 8]; 9],
) {
    // SAFETY: inside the places and taps.
    unsafe {
        let mut u = [[L::splat(0.0); 6]; 6];
        for n in 0..lanes {
            for i in 0..REACH {
                for j in 0..REACH {
                    u[i][j] = u[i][j].add(L::load(from.add(n * lane + (i * REACH + j) * step)));
                }
            }
        }
        let g = both_axes!(weight_axis, u, 6, 3);
        for r in 0..3 {
            for s in 0..3 {
                g[r][s].store(taps[r * 3 + s].as_mut_ptr());
            }
        }
    }
}
