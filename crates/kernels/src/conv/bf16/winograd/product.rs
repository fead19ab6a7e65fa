//! Forward pass and data gradient: tiles are transformed, multiplied with the filters and transformed back.

use super::super::tile::{COLUMNS, PANEL, ROWS, rows};
use super::super::wide::{Pair, Wide, dispatch_pairs};
use super::axes::{input_tile, output_tile};
use super::filters::{filter_place, transform, vectors};
use super::{PLACES, REACH, SHIFT, TILE, Walk};
use crate::conv::tile::each_row;
use crate::conv::winograd::Grid;
use crate::conv::{Shape, parallel};
use crate::scratch::{Scratch, Shared, filled};

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
    /// Panels of output channels per piece of work.
    group: usize,
}

// SAFETY: the pointers are only read, but for `target`, where every pixel belongs to one piece of work.
unsafe impl Sync for Job {}

/// See [`crate::conv::forward`].
pub(in crate::conv::bf16) fn forward(
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    skip: Option<&[f32]>,
    shape: &Shape,
    [oh, ow]: [usize; 2],
) -> Vec<f32> {
    let Shape { batch, height, width, inputs, outputs, window } = *shape;
    let mut filters = transform(weight, [inputs, outputs], [9, inputs * 9], false);
    let tiles = [oh.div_ceil(TILE[0]), ow.div_ceil(TILE[1])];
    let from = Grid { height, width, channels: inputs, padding: window.padding, tiles };
    let to = Grid { height: oh, width: ow, channels: outputs, padding: [0, 0], tiles };
    convolve(x, from, to, &mut filters, bias, skip, batch)
}

/// See [`crate::conv::data_gradient`].
pub(in crate::conv::bf16) fn data_gradient(
    dy: &[f32],
    weight: &[f32],
    shape: &Shape,
    [oh, ow]: [usize; 2],
) -> Vec<f32> {
    let Shape { batch, height, width, inputs, outputs, window } = *shape;
    let mut filters = transform(weight, [outputs, inputs], [inputs * 9, 9], true);
    let tiles = [height.div_ceil(TILE[0]), width.div_ceil(TILE[1])];
    let from =
        Grid { height: oh, width: ow, channels: outputs, padding: window.padding.map(|p| 2 - p), tiles };
    let to = Grid { height, width, channels: inputs, padding: [0, 0], tiles };
    convolve(dy, from, to, &mut filters, None, None, batch)
}

/// Numbers (of 2 bytes) of transformed input that one piece of work may hold.
const HELD: usize = 256 * 1024;

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
    let panels = to.channels.div_ceil(PANEL);
    let block = (HELD / (PLACES * from.channels))
        .clamp(ROWS, 48)
        .next_multiple_of(ROWS)
        .min(tiles.next_multiple_of(ROWS));
    let blocks = tiles.div_ceil(block);
    // With few tiles, output channels are shared among the threads too.
    let groups = if blocks >= 8 { 1 } else { (8 / blocks).min(panels.div_ceil(2)).max(1) };
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

dispatch_pairs! {
    /// # Safety
    /// The job's pointers cover its batch, and nobody else writes this block's tiles in this group's channels.
    unsafe fn piece = piece_with(job: &Job, block: usize, group: usize)
}

#[inline(always)]
unsafe fn piece_with<W: Wide>(job: &Job, block: usize, group: usize) {
    let (first, last) = (block * job.block, ((block + 1) * job.block).min(job.tiles));
    let panels = job.to.channels.div_ceil(PANEL);
    let (first_panel, last_panel) = (group * job.group, ((group + 1) * job.group).min(panels));
    let depth = job.from.channels;
    // In pairs.
    let row = depth.next_multiple_of(COLUMNS) / 2;
    let (place, result_place) = (job.block * row + SHIFT, job.block * PANEL + SHIFT);
    let mut space = Scratch::take(PLACES * (place + result_place) + depth + COLUMNS);
    // SAFETY: the space holds the transformed input, the products of a panel and a row of zeros, in this order.
    unsafe {
        let v = space.as_mut_ptr().cast::<Pair>();
        let m = space.as_mut_ptr().add(PLACES * place);
        let zeros = m.add(PLACES * result_place);
        std::ptr::write_bytes(zeros, 0, depth + COLUMNS);
        let start = Walk::new(&job.to, first);
        let mut walk = start;
        for tile in 0..last - first {
            transform_tile::<W>(job, &walk, zeros, v.add(tile * row), place);
            walk.advance();
        }
        for panel in first_panel..last_panel {
            let channel = panel * PANEL;
            let filters = job.filters.get().cast::<Pair>().add(panel * PLACES * filter_place(depth));
            if vectors(job.to.channels, channel) == 2 {
                multiply::<W, 2>(v, [row, place], last - first, filters, depth, m, result_place);
            } else {
                multiply::<W, 1>(v, [row, place], last - first, filters, depth, m, result_place);
            }
            let mut walk = start;
            for tile in 0..last - first {
                transform_back::<W>(job, &walk, channel, m.add(tile * PANEL), result_place);
                walk.advance();
            }
        }
    }
}

/// $B^T d B$ of one tile, rounded, places `place` pairs apart.
///
/// # Safety
/// `to` has room for all places; `zeros` holds 16 more than there are channels.
#[inline(always)]
unsafe fn transform_tile<W: Wide>(job: &Job, walk: &Walk, zeros: *const f32, to: *mut Pair, place: usize) {
    let grid = &job.from;
    let corners = walk.corners::<{ REACH[0] }, { REACH[1] }>(grid, job.source, zeros);
    for c in (0..grid.channels).step_by(COLUMNS) {
        // SAFETY: corners point to `channels` numbers, `to` to room for all places.
        unsafe {
            let count = (grid.channels - c).min(COLUMNS);
            let v = input_tile::<W>(&corners, c, count);
            let to = to.add(c / 2);
            for i in 0..6 {
                for j in 0..4 {
                    v[i][j].store_rounded(to.add((i * 4 + j) * place).cast());
                }
            }
        }
    }
}

/// The products of all places of some tiles with a panel of filters.
///
/// # Safety
/// `v` holds the tiles, `m` has room for the products.
#[inline(always)]
unsafe fn multiply<W: Wide, const C: usize>(
    v: *const Pair,
    [row, place]: [usize; 2],
    tiles: usize,
    filters: *const Pair,
    depth: usize,
    m: *mut f32,
    result_place: usize,
) {
    // SAFETY: by contract.
    unsafe {
        for p in 0..PLACES {
            let (v, filter) = (v.add(p * place), filters.add(p * filter_place(depth)));
            for start in (0..tiles).step_by(ROWS) {
                let mut source = [v; ROWS];
                let mut target = [m; ROWS];
                for i in 0..ROWS {
                    // The last block repeats its last row: computed again, it gives the same numbers.
                    let tile = (start + i).min(tiles - 1);
                    source[i] = v.add(tile * row);
                    target[i] = m.add(p * result_place + tile * PANEL);
                }
                let sums = rows::<W, C>(&source, 1, 0, depth.div_ceil(2), filter);
                each_row!(ROWS, i => store_row(sums[i], target[i]));
            }
        }
    }
}

/// Stores a row of sums.
///
/// # Safety
/// There is room for them.
#[inline(always)]
unsafe fn store_row<W: Wide, const C: usize>(sums: [W; C], to: *mut f32) {
    for (c, sum) in sums.into_iter().enumerate() {
        // SAFETY: by contract.
        unsafe { sum.store(to.add(c * COLUMNS)) };
    }
}

/// $A^T m A$ of one tile, with bias and skip, into up to 32 channels of the target from `start` on.
///
/// # Safety
/// `m` holds the tile's products, places `place` numbers apart.
#[inline(always)]
unsafe fn transform_back<W: Wide>(job: &Job, walk: &Walk, start: usize, m: *const f32, place: usize) {
    let to = job.to;
    let [image, ty, tx] = walk.at;
    let (top, left) = (ty * TILE[0], tx * TILE[1]);
    let (height, width) = (TILE[0].min(to.height - top), TILE[1].min(to.width - left));
    for c in (start..to.channels.min(start + PANEL)).step_by(COLUMNS) {
        let count = (to.channels - c).min(COLUMNS);
        // SAFETY: only pixels of the image and existing channels are touched.
        unsafe {
            let y = output_tile::<W>(m.add(c - start), place);
            let corner = ((image * to.height + top) * to.width + left) * to.channels + c;
            let plain = job.bias.is_null() && job.skip.is_null() && count == COLUMNS;
            if plain && [height, width] == TILE {
                for i in 0..4 {
                    for j in 0..2 {
                        y[i][j].store(job.target.get().add(corner + (i * to.width + j) * to.channels));
                    }
                }
                continue;
            }
            for i in 0..4 {
                for j in 0..2 {
                    if i < height && j < width {
                        let at = corner + (i * to.width + j) * to.channels;
                        let mut value = y[i][j];
                        if !job.bias.is_null() {
                            value = value.add(W::load_part(job.bias.add(c), count));
                        }
                        if !job.skip.is_null() {
                            value = value.add(W::load_part(job.skip.add(at), count));
                        }
                        value.store_part(job.target.get().add(at), count);
                    }
                }
            }
        }
    }
}
