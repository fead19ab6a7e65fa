//! 3x3 convolutions of stride 1 with a quarter of the multiplications (Winograd's minimal filtering, after Lavin and Gray 2016).
//!
//! A 4x4 tile of the output is $Y = A^T [ (G g G^T) \odot (B^T d B) ] A$, where $d$ is the 6x6 tile of the input that it depends on and $g$
//! the 3x3 filter: 36 multiplications instead of 144. Summing over channels inside the brackets turns the products into 36
//! matrix products (tiles x inputs)(inputs x outputs), one per place of the transformed tile.
//!
//! - Data gradient: the same with the filter turned by 180 degrees and inputs and outputs exchanged.
//! - Weight gradient, the transposed map: $dg = G^T [ \sum_{tiles} (B^T d B) \odot (A\, dY A^T) ] G$.
//!
//! # Rounding
//! The result is the same in exact arithmetic. In `f32` the transforms lose about one decimal digit against the direct sum
//! (measured in the tests against `f64`): far below the noise of a training step.

use super::tile::{self, COLUMNS, Finish, ROWS};
use super::{Shape, parallel};
use crate::lane::{Lane, dispatch};
use crate::scratch::{Scratch, Shared, filled};

/// Side of an output tile, and of the input tile it depends on.
const TILE: usize = 4;
const REACH: usize = 6;
const PLACES: usize = REACH * REACH;
/// Distance added between places, so that the 36 numbers of a tile do not all fall into the same set of the cache.
const SHIFT: usize = 16;

/// Whether this way is faster for this shape.
pub(super) fn pays(shape: &Shape, [oh, ow]: [usize; 2]) -> bool {
    let window = shape.window;
    let fits = window.kernel == [3, 3] && window.stride == [1, 1] && window.padding.iter().all(|&p| p <= 2);
    let waste = (oh.div_ceil(TILE) * ow.div_ceil(TILE) * PLACES) as f64 / (9 * oh * ow) as f64;
    fits && shape.inputs >= 16 && shape.outputs >= 16 && waste < 0.6
}

/// Images cut into tiles.
#[derive(Clone, Copy)]
struct Grid {
    height: usize,
    width: usize,
    channels: usize,
    /// Zeros before the first row and column.
    padding: [usize; 2],
    /// Tiles along each axis.
    tiles: [usize; 2],
}

impl Grid {
    /// Image, first row and first column of a tile, in tiles.
    fn place(&self, tile: usize) -> [usize; 3] {
        let [rows, columns] = self.tiles;
        [tile / (rows * columns), tile / columns % rows, tile % columns]
    }

    /// Where the `S x S` numbers of one channel of a tile that starts at (`top`, `left`) begin; outside the image, at `zeros`.
    #[inline(always)]
    fn corners<const S: usize>(
        &self,
        images: *const f32,
        image: usize,
        top: isize,
        left: isize,
        zeros: *const f32,
    ) -> [[*const f32; S]; S] {
        let inside = |from: isize, size: usize| from >= 0 && from + S as isize <= size as isize;
        if inside(top, self.height) && inside(left, self.width) {
            let corner = images.wrapping_add(
                ((image * self.height + top as usize) * self.width + left as usize) * self.channels,
            );
            return std::array::from_fn(|i| {
                std::array::from_fn(|j| corner.wrapping_add((i * self.width + j) * self.channels))
            });
        }
        std::array::from_fn(|i| {
            std::array::from_fn(|j| {
                let (y, x) = (top + i as isize, left + j as isize);
                if (0..self.height as isize).contains(&y) && (0..self.width as isize).contains(&x) {
                    images.wrapping_add(
                        ((image * self.height + y as usize) * self.width + x as usize) * self.channels,
                    )
                } else {
                    zeros
                }
            })
        })
    }
}

/// Where transformed tiles go: place `p` of tile `t`, channels `8 c ..`, begins at `p * place + t * tile + c * channel`.
#[derive(Clone, Copy)]
struct Steps {
    place: usize,
    tile: usize,
    channel: usize,
}

// ---- The transforms along one axis ----

/// $B^T d$.
#[inline(always)]
unsafe fn input_axis<L: Lane>(d: [L; 6]) -> [L; 6] {
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
unsafe fn output_axis<L: Lane>(m: [L; 6]) -> [L; 4] {
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
unsafe fn gradient_axis<L: Lane>(y: [L; 4]) -> [L; 6] {
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
unsafe fn filter_axis<L: Lane>(g: [L; 3]) -> [L; 6] {
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
unsafe fn weight_axis<L: Lane>(u: [L; 6]) -> [L; 3] {
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

// No closures here or below: a closure would be compiled for any CPU, and every operation in it become a call.

/// Eight channels from `c` on of all places of a tile.
///
/// # Safety
/// Every corner has `c + count` numbers.
#[inline(always)]
unsafe fn load_tile<L: Lane, const S: usize>(
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
unsafe fn load_places<L: Lane>(from: *const f32, step: usize) -> [[L; 6]; 6] {
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

// ---- Tiles of a batch, transformed ----

dispatch! {
    /// Transforms tiles `first..last` of the input images by $B^T d B$. Channels are filled up with zeros to a multiple of 8.
    ///
    /// # Safety
    /// `images` covers the grid, `to` the places that `steps` say; `zeros` has 8 numbers more than there are channels, all 0.
    unsafe fn transform_input = transform_input_with(images: *const f32, grid: &Grid, first: usize, last: usize, zeros: *const f32, to: *mut f32, steps: Steps)
}

#[inline(always)]
unsafe fn transform_input_with<L: Lane>(
    images: *const f32,
    grid: &Grid,
    first: usize,
    last: usize,
    zeros: *const f32,
    to: *mut f32,
    steps: Steps,
) {
    for tile in first..last {
        let [image, ty, tx] = grid.place(tile);
        let top = (ty * TILE) as isize - grid.padding[0] as isize;
        let left = (tx * TILE) as isize - grid.padding[1] as isize;
        let corners = grid.corners::<REACH>(images, image, top, left, zeros);
        let to = to.wrapping_add((tile - first) * steps.tile);
        for c in (0..grid.channels).step_by(8) {
            let count = (grid.channels - c).min(8);
            // SAFETY: corners point to `channels` numbers, `to` to room for all places.
            unsafe {
                let d = load_tile::<L, REACH>(&corners, c, count);
                let v = both_axes!(input_axis, d, 6, 6);
                let to = to.add(c / 8 * steps.channel);
                for i in 0..REACH {
                    for j in 0..REACH {
                        v[i][j].store(to.add((i * REACH + j) * steps.place));
                    }
                }
            }
        }
    }
}

dispatch! {
    /// Transforms tiles `first..last` of an output gradient by $A\, dY A^T$, as [`transform_input`] does the input.
    ///
    /// # Safety
    /// As for [`transform_input`].
    unsafe fn transform_gradient = transform_gradient_with(images: *const f32, grid: &Grid, first: usize, last: usize, zeros: *const f32, to: *mut f32, steps: Steps)
}

#[inline(always)]
unsafe fn transform_gradient_with<L: Lane>(
    images: *const f32,
    grid: &Grid,
    first: usize,
    last: usize,
    zeros: *const f32,
    to: *mut f32,
    steps: Steps,
) {
    for tile in first..last {
        let [image, ty, tx] = grid.place(tile);
        let corners = grid.corners::<TILE>(images, image, (ty * TILE) as isize, (tx * TILE) as isize, zeros);
        let to = to.wrapping_add((tile - first) * steps.tile);
        for c in (0..grid.channels).step_by(8) {
            let count = (grid.channels - c).min(8);
            // SAFETY: as in `transform_input_with`.
            unsafe {
                let y = load_tile::<L, TILE>(&corners, c, count);
                let z = both_axes!(gradient_axis, y, 4, 6);
                let to = to.add(c / 8 * steps.channel);
                for i in 0..REACH {
                    for j in 0..REACH {
                        z[i][j].store(to.add((i * REACH + j) * steps.place));
                    }
                }
            }
        }
    }
}

// ---- Forward and data gradient ----

struct Job {
    source: *const f32,
    from: Grid,
    target: Shared,
    to: Grid,
    filters: Shared,
    bias: *const f32,
    skip: *const f32,
    tiles: usize,
    block: usize,
    /// Panels of 16 output channels per piece of work.
    group: usize,
}

// SAFETY: the pointers are only read, but for `target`, where every pixel belongs to one piece of work.
unsafe impl Sync for Job {}

/// See [`super::forward`].
pub(super) fn forward(
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    skip: Option<&[f32]>,
    shape: &Shape,
    [oh, ow]: [usize; 2],
) -> Vec<f32> {
    let Shape { batch, height, width, inputs, outputs, window } = *shape;
    let mut filters = transform_filters(weight, [inputs, outputs], [9, inputs * 9], false);
    let tiles = [oh.div_ceil(TILE), ow.div_ceil(TILE)];
    let from = Grid { height, width, channels: inputs, padding: window.padding, tiles };
    let to = Grid { height: oh, width: ow, channels: outputs, padding: [0, 0], tiles };
    convolve(x, from, to, &mut filters, bias, skip, batch)
}

/// See [`super::data_gradient`].
pub(super) fn data_gradient(dy: &[f32], weight: &[f32], shape: &Shape, [oh, ow]: [usize; 2]) -> Vec<f32> {
    let Shape { batch, height, width, inputs, outputs, window } = *shape;
    let mut filters = transform_filters(weight, [outputs, inputs], [inputs * 9, 9], true);
    let tiles = [height.div_ceil(TILE), width.div_ceil(TILE)];
    let from =
        Grid { height: oh, width: ow, channels: outputs, padding: window.padding.map(|p| 2 - p), tiles };
    let to = Grid { height, width, channels: inputs, padding: [0, 0], tiles };
    convolve(dy, from, to, &mut filters, None, None, batch)
}

/// Distance between the places of a panel of filters.
fn filter_place(inputs: usize) -> usize {
    inputs * COLUMNS + SHIFT
}

/// $G g G^T$ for all pairs of channels: panel of 16 outputs, place, input, output in the panel.
/// The filter of a pair begins at `input * steps[0] + output * steps[1]`; `turned` reads it backwards.
fn transform_filters(
    weight: &[f32],
    [inputs, outputs]: [usize; 2],
    steps: [usize; 2],
    turned: bool,
) -> Scratch {
    let panels = outputs.div_ceil(COLUMNS);
    let place = filter_place(inputs);
    let mut filters = Scratch::take(panels * PLACES * place);
    let to = Shared::new(filters.as_mut_ptr());
    parallel(panels, inputs * outputs * 100, |panel| {
        let count = (outputs - panel * COLUMNS).min(COLUMNS);
        let from = &weight[panel * COLUMNS * steps[1]..];
        // SAFETY: the filters of `count` outputs lie in `from`; every panel has its own part of the buffer.
        unsafe { transform_panel(from, inputs, count, steps, turned, to.get().add(panel * PLACES * place)) };
    });
    filters
}

dispatch! {
    /// Filters of up to sixteen outputs and all inputs.
    ///
    /// # Safety
    /// `to` has room for 36 places of `filter_place(inputs)` numbers.
    unsafe fn transform_panel = transform_panel_with(weight: &[f32], inputs: usize, outputs: usize, steps: [usize; 2], turned: bool, to: *mut f32)
}

#[inline(always)]
unsafe fn transform_panel_with<L: Lane>(
    weight: &[f32],
    inputs: usize,
    outputs: usize,
    steps: [usize; 2],
    turned: bool,
    to: *mut f32,
) {
    let mut taps = [[0.0f32; COLUMNS]; 9];
    let place = filter_place(inputs);
    for i in 0..inputs {
        for o in 0..outputs {
            let from = &weight[i * steps[0] + o * steps[1]..][..9];
            for tap in 0..9 {
                taps[tap][o] = from[if turned { 8 - tap } else { tap }];
            }
        }
        // SAFETY: inside the taps and the places.
        unsafe {
            let left = filter_both::<L>(&taps, 0);
            let right = filter_both::<L>(&taps, 8);
            let to = to.add(i * COLUMNS);
            for r in 0..REACH {
                for s in 0..REACH {
                    let to = to.add((r * REACH + s) * place);
                    left[r][s].store(to);
                    right[r][s].store(to.add(8));
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn filter_both<L: Lane>(taps: &[[f32; COLUMNS]; 9], half: usize) -> [[L; 6]; 6] {
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

/// Numbers of transformed input that one piece of work may hold.
const HELD: usize = 160 * 1024;

fn convolve(
    source: &[f32],
    from: Grid,
    to: Grid,
    filters: &mut Scratch,
    bias: Option<&[f32]>,
    skip: Option<&[f32]>,
    batch: usize,
) -> Vec<f32> {
    let tiles = batch * to.tiles[0] * to.tiles[1];
    let panels = to.channels.div_ceil(COLUMNS);
    let block = (HELD / (PLACES * from.channels))
        .clamp(12, 96)
        .next_multiple_of(ROWS)
        .min(tiles.next_multiple_of(ROWS));
    let blocks = tiles.div_ceil(block);
    // With few tiles, output channels are shared among the threads too.
    let groups = if blocks >= 8 { 1 } else { (8 / blocks).min(panels.div_ceil(4)).max(1) };
    let group = panels.div_ceil(groups);
    let groups = panels.div_ceil(group);
    let work = tiles * PLACES * from.channels * to.channels;
    let run = |y: *mut f32| {
        let job = Job {
            source: source.as_ptr(),
            from,
            target: Shared::new(y),
            to,
            filters: Shared::new(filters.as_mut_ptr()),
            bias: bias.map_or(std::ptr::null(), <[f32]>::as_ptr),
            skip: skip.map_or(std::ptr::null(), <[f32]>::as_ptr),
            tiles,
            block,
            group,
        };
        parallel(blocks * groups, work, |n| {
            // SAFETY: the job's pointers cover the batch; no two pieces write the same tiles and channels.
            unsafe { piece(&job, n / groups, n % groups) };
        });
    };
    // SAFETY: the tiles cover every output pixel, the groups every channel.
    unsafe { filled(batch * to.height * to.width * to.channels, run) }
}

dispatch! {
    /// # Safety
    /// The job's pointers cover its batch, and nobody else writes this block's tiles in this group's channels.
    unsafe fn piece = piece_with(job: &Job, block: usize, group: usize)
}

#[inline(always)]
unsafe fn piece_with<L: Lane>(job: &Job, block: usize, group: usize) {
    let (first, last) = (block * job.block, ((block + 1) * job.block).min(job.tiles));
    let panels = job.to.channels.div_ceil(COLUMNS);
    let (first_panel, last_panel) = (group * job.group, ((group + 1) * job.group).min(panels));
    let depth = job.from.channels;
    let (row, result) = (depth.next_multiple_of(8), (last_panel - first_panel) * COLUMNS);
    let (place, result_place) = (job.block * row + SHIFT, job.block * result + SHIFT);
    let mut space = Scratch::take(PLACES * (place + result_place) + row + 8);
    let tiles = last - first;
    // SAFETY: the space holds the transformed input, the products and a row of zeros, in this order.
    unsafe {
        let v = space.as_mut_ptr();
        let m = v.add(PLACES * place);
        let zeros = m.add(PLACES * result_place);
        std::ptr::write_bytes(zeros, 0, row + 8);
        transform_input_with::<L>(
            job.source,
            &job.from,
            first,
            last,
            zeros,
            v,
            Steps { place, tile: row, channel: 8 },
        );
        let finish = Finish { bias: std::ptr::null(), skip: 0, has_skip: false, columns: COLUMNS };
        for p in 0..PLACES {
            for panel in first_panel..last_panel {
                let filter = job.filters.get().add((panel * PLACES + p) * filter_place(depth));
                for t in (0..tiles).step_by(ROWS) {
                    let at = |i: usize| (t + i).min(tiles - 1);
                    let source = std::array::from_fn(|i| v.add(p * place + at(i) * row).cast_const());
                    let target = std::array::from_fn(|i| {
                        m.add(p * result_place + at(i) * result + (panel - first_panel) * COLUMNS)
                    });
                    tile::rows::<L>(&source, &target, 1, 0, depth, filter, &finish);
                }
            }
        }
        let start = first_panel * COLUMNS;
        let channels = (job.to.channels - start).min(result);
        for t in 0..tiles {
            transform_output::<L>(job, first + t, start, channels, m.add(t * result), result_place);
        }
    }
}

/// $A^T m A$ of one tile, with bias and skip, into the target.
///
/// # Safety
/// `m` holds the tile's products for `channels` channels from `start` on, places `place` numbers apart.
#[inline(always)]
unsafe fn transform_output<L: Lane>(
    job: &Job,
    tile: usize,
    start: usize,
    channels: usize,
    m: *const f32,
    place: usize,
) {
    let to = job.to;
    let [image, ty, tx] = to.place(tile);
    let (top, left) = (ty * TILE, tx * TILE);
    let (rows, columns) = (TILE.min(to.height - top), TILE.min(to.width - left));
    for c in (0..channels).step_by(8) {
        let count = (channels - c).min(8);
        // SAFETY: only pixels of the image and existing channels are touched.
        unsafe {
            let m = load_places::<L>(m.add(c), place);
            let y = output_both::<L>(m);
            for i in 0..rows {
                for j in 0..columns {
                    let at = ((image * to.height + top + i) * to.width + left + j) * to.channels + start + c;
                    let mut value = y[i][j];
                    if count == 8 {
                        if !job.bias.is_null() {
                            value = value.add(L::load(job.bias.add(start + c)));
                        }
                        if !job.skip.is_null() {
                            value = value.add(L::load(job.skip.add(at)));
                        }
                        value.store(job.target.get().add(at));
                    } else {
                        if !job.bias.is_null() {
                            value = value.add(L::load_part(job.bias.add(start + c), count));
                        }
                        if !job.skip.is_null() {
                            value = value.add(L::load_part(job.skip.add(at), count));
                        }
                        value.store_part(job.target.get().add(at), count);
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn output_both<L: Lane>(m: [[L; 6]; 6]) -> [[L; 4]; 4] {
    // SAFETY: called with a lane that the CPU has.
    unsafe { both_axes!(output_axis, m, 6, 4) }
}

// ---- Weight gradient ----

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

/// See [`super::weight_gradient`].
pub(super) fn weight_gradient(x: &[f32], dy: &[f32], shape: &Shape, [oh, ow]: [usize; 2]) -> Vec<f32> {
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
