//! Weight gradient: products of transformed tiles, summed over the batch and transformed back. Pairs of the products are pairs of tiles.

use super::super::tile::{COLUMNS, PANEL, outer};
use super::super::wide::{Pair, Wide, dispatch_pairs};
use super::axes::{gradient_tile, input_tile, weight_tile};
use super::{PLACES, REACH, SHIFT, TILE, Walk};
use crate::conv::winograd::Grid;
use crate::conv::{Shape, parallel};
use crate::scratch::{Scratch, Shared, filled};

/// Pairs of transformed input and gradient held at a time: by one lane, and when all threads share one chunk.
const LANE_CHUNK: usize = 96 * 1024;
const SHARED_CHUNK: usize = 4 << 20;
/// Numbers of sums up to which every lane has its own.
const LANE_SUMS: usize = 420 * 1024;
/// Lanes of small layers.
const LANES: usize = 8;

/// A part of the tiles, transformed and multiplied.
struct Parts {
    source: *const f32,
    from: Grid,
    gradient: *const f32,
    to: Grid,
    zeros: *const f32,
    /// Channels of input and gradient, filled up to whole vectors.
    left: usize,
    right: usize,
    /// Pairs of tiles held at a time.
    chunk: usize,
    /// Tiles there are.
    tiles: usize,
}

// SAFETY: the pointers are only read.
unsafe impl Sync for Parts {}

impl Parts {
    /// Pairs between those of two pairs of tiles. A power of two apart, they would fall into the same few sets of the cache.
    fn left_step(&self) -> usize {
        if self.left.is_multiple_of(128) { self.left + SHIFT } else { self.left }
    }

    fn left_place(&self) -> usize {
        self.left_step() * self.chunk + SHIFT
    }

    fn right_place(&self) -> usize {
        self.right * self.chunk + SHIFT
    }

    /// Numbers between the sums of two places.
    fn sums_place(&self) -> usize {
        self.left * self.right + SHIFT
    }
}

/// See [`crate::conv::weight_gradient`].
pub(in crate::conv::bf16) fn weight_gradient(
    x: &[f32],
    dy: &[f32],
    shape: &Shape,
    [oh, ow]: [usize; 2],
) -> Vec<f32> {
    let Shape { batch, height, width, inputs, outputs, window } = *shape;
    let tiles = [oh.div_ceil(TILE[0]), ow.div_ceil(TILE[1])];
    let from = Grid { height, width, channels: inputs, padding: window.padding, tiles };
    let to = Grid { height: oh, width: ow, channels: outputs, padding: [0, 0], tiles };
    let total = batch * tiles[0] * tiles[1];
    let pairs = total.div_ceil(2);
    let (left, right) = (inputs.next_multiple_of(COLUMNS), outputs.next_multiple_of(COLUMNS));
    let zeros = vec![0.0f32; left.max(right)];
    let per_pair = PLACES * (left + right);
    let own_sums = PLACES * left * right <= LANE_SUMS;
    let chunk = if own_sums {
        (LANE_CHUNK / per_pair).clamp(16, 96)
    } else {
        (SHARED_CHUNK / per_pair).clamp(16, 512)
    }
    .min(pairs);
    let parts = Parts {
        source: x.as_ptr(),
        from,
        gradient: dy.as_ptr(),
        to,
        zeros: zeros.as_ptr(),
        left,
        right,
        chunk,
        tiles: total,
    };
    let lanes = if own_sums { LANES.min(pairs.div_ceil(chunk)) } else { 1 };
    let per_lane = PLACES * parts.sums_place();
    let mut sums = Scratch::take(lanes * per_lane);
    let sums = Shared::new(sums.as_mut_ptr());
    let work = total * PLACES * inputs * outputs;
    let room = PLACES * (parts.left_place() + parts.right_place());
    if own_sums {
        parallel(lanes, work, |lane| {
            let mut space = Scratch::take(room);
            let v = space.as_mut_ptr().cast::<Pair>();
            let (first, last) = (lane * pairs / lanes, (lane + 1) * pairs / lanes);
            for start in (first..last).step_by(chunk) {
                let end = last.min(start + chunk);
                // SAFETY: the lane has its own sums and buffers.
                unsafe {
                    transform(&parts, start, start, end, v);
                    let sums = sums.get().add(lane * per_lane);
                    multiply(&parts, 0, PLACES, end - start, v, sums, start > first);
                }
            }
        });
    } else {
        let mut space = Scratch::take(room);
        let v = Shared::new(space.as_mut_ptr());
        for start in (0..pairs).step_by(chunk) {
            let count = chunk.min(pairs - start);
            const STEP: usize = 4;
            parallel(count.div_ceil(STEP), work, |n| {
                let (first, last) = (start + n * STEP, start + ((n + 1) * STEP).min(count));
                // SAFETY: each pair of tiles has its own places.
                unsafe { transform(&parts, start, first, last, v.get().cast()) };
            });
            parallel(PLACES, work, |place| {
                // SAFETY: each place has its own sums; the chunk is complete.
                unsafe { multiply(&parts, place, place + 1, count, v.get().cast(), sums.get(), start > 0) };
            });
        }
    }
    let write = |dw: *mut f32| {
        let to = Shared::new(dw);
        parallel(outputs.div_ceil(COLUMNS), inputs * outputs * 60 * lanes, |vector| {
            let first = vector * COLUMNS;
            let count = (outputs - first).min(COLUMNS);
            // SAFETY: inside the sums; weights of these outputs are written here only.
            unsafe { transform_back(&parts, sums.get().add(first), lanes, first, count, inputs, to.get()) };
        });
    };
    // SAFETY: all outputs and inputs are visited.
    unsafe { filled(shape.weight_len(), write) }
}

dispatch_pairs! {
    /// Transforms the pairs of tiles `first..last` of the chunk that begins at the pair `start`.
    ///
    /// # Safety
    /// `space` has room for a chunk, and nobody else writes these tiles.
    unsafe fn transform = transform_with(parts: &Parts, start: usize, first: usize, last: usize, space: *mut Pair)
}

#[inline(always)]
unsafe fn transform_with<W: Wide>(parts: &Parts, start: usize, first: usize, last: usize, space: *mut Pair) {
    let (left_place, right_place) = (parts.left_place(), parts.right_place());
    let mut walk = Walk::new(&parts.from, 2 * first);
    for pair in first..last {
        let nothing = ([[parts.zeros; REACH[1]]; REACH[0]], [[parts.zeros; TILE[1]]; TILE[0]]);
        let mut both = [nothing; 2];
        for (second, corners) in both.iter_mut().enumerate() {
            // A last tile without a second one is paired with zeros.
            if pair * 2 + second < parts.tiles {
                *corners = (
                    walk.corners::<{ REACH[0] }, { REACH[1] }>(&parts.from, parts.source, parts.zeros),
                    walk.corners::<{ TILE[0] }, { TILE[1] }>(&parts.to, parts.gradient, parts.zeros),
                );
                walk.advance();
            }
        }
        let [(first_input, first_gradient), (second_input, second_gradient)] = &both;
        let (inputs, outputs) = (parts.from.channels, parts.to.channels);
        // SAFETY: corners point to as many numbers as there are channels, `space` to room for all places.
        unsafe {
            // The gradient in panels of 32 channels (16 if no more are left), each with all pairs of the chunk.
            let v = space.add((pair - start) * parts.left_step());
            let z = space.add(PLACES * left_place);
            for c in (0..inputs).step_by(COLUMNS) {
                let count = (inputs - c).min(COLUMNS);
                let a = input_tile::<W>(first_input, c, count);
                let b = input_tile::<W>(second_input, c, count);
                for i in 0..6 {
                    for j in 0..4 {
                        W::store_pairs(a[i][j].pair(b[i][j]), v.add((i * 4 + j) * left_place + c));
                    }
                }
            }
            for c in (0..outputs).step_by(COLUMNS) {
                let count = (outputs - c).min(COLUMNS);
                let a = gradient_tile::<W>(first_gradient, c, count);
                let b = gradient_tile::<W>(second_gradient, c, count);
                let first = c / PANEL * PANEL;
                let width = (parts.right - first).min(PANEL);
                let z = z.add(first * parts.chunk + (pair - start) * width + c - first);
                for i in 0..6 {
                    for j in 0..4 {
                        W::store_pairs(a[i][j].pair(b[i][j]), z.add((i * 4 + j) * right_place));
                    }
                }
            }
        }
    }
}

dispatch_pairs! {
    /// Adds the products of `count` pairs of tiles at the places `first..last` to `sums` (or sets them).
    ///
    /// # Safety
    /// `space` holds the tiles, `sums` all places.
    unsafe fn multiply = multiply_with(parts: &Parts, first: usize, last: usize, count: usize, space: *const Pair, sums: *mut f32, add: bool)
}

#[inline(always)]
unsafe fn multiply_with<W: Wide>(
    parts: &Parts,
    first: usize,
    last: usize,
    count: usize,
    space: *const Pair,
    sums: *mut f32,
    add: bool,
) {
    let (left, right) = (parts.left, parts.right);
    for place in first..last {
        // SAFETY: by contract.
        unsafe {
            let v = space.add(place * parts.left_place());
            let z = space.add(PLACES * parts.left_place() + place * parts.right_place());
            let sums = sums.add(place * parts.sums_place());
            for column in (0..right).step_by(PANEL) {
                let (z, to, step) = (z.add(column * parts.chunk), sums.add(column), parts.left_step());
                if right - column > COLUMNS {
                    outer::<W, 2>(v, left, step, z, count, to, right, add);
                } else {
                    outer::<W, 1>(v, left, step, z, count, to, right, add);
                }
            }
        }
    }
}

dispatch_pairs! {
    /// $G^T u G$ for up to sixteen outputs and all inputs; `u` is the sum of the lanes, in order.
    ///
    /// # Safety
    /// `from` holds the sums of these outputs, `to` all weights.
    unsafe fn transform_back = transform_back_with(parts: &Parts, from: *const f32, lanes: usize, first: usize, count: usize, inputs: usize, to: *mut f32)
}

#[inline(always)]
unsafe fn transform_back_with<W: Wide>(
    parts: &Parts,
    from: *const f32,
    lanes: usize,
    first: usize,
    count: usize,
    inputs: usize,
    to: *mut f32,
) {
    let step = parts.sums_place();
    for input in 0..inputs {
        // SAFETY: inside the places and the weights.
        unsafe {
            let from = from.add(input * parts.right);
            let mut u = [[W::splat(0.0); 4]; 6];
            for lane in 0..lanes {
                let from = from.add(lane * PLACES * step);
                for i in 0..6 {
                    for j in 0..4 {
                        u[i][j] = u[i][j].add(W::load(from.add((i * 4 + j) * step)));
                    }
                }
            }
            let g = weight_tile(u);
            let mut taps = [[0.0f32; COLUMNS]; 9];
            for r in 0..3 {
                for s in 0..3 {
                    g[r][s].store(taps[r * 3 + s].as_mut_ptr());
                }
            }
            for o in 0..count {
                let to = to.add(((first + o) * inputs + input) * 9);
                for (tap, values) in taps.iter().enumerate() {
                    *to.add(tap) = values[o];
                }
            }
        }
    }
}
