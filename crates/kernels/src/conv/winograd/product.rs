//! Forward pass and data gradient: filters and tiles are transformed, multiplied and transformed back.

use super::axes::{filter_both, load_places, output_both};
use super::tiles::transform_input_with;
use super::{Grid, PLACES, REACH, SHIFT, Steps, TILE};
use crate::conv::tile::{self, COLUMNS, Finish, Skip};
use crate::conv::{Shape, parallel};
use crate::lane::{Lane, dispatch};
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
    /// Panels of 16 output channels per piece of work.
    group: usize,
}

// SAFETY: the pointers are only read, but for `target`, where every pixel belongs to one piece of work.
unsafe impl Sync for Job {}

/// See [`crate::conv::forward`].
pub(in crate::conv) fn forward(
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

/// See [`crate::conv::data_gradient`].
pub(in crate::conv) fn data_gradient(
    dy: &[f32],
    weight: &[f32],
    shape: &Shape,
    [oh, ow]: [usize; 2],
) -> Vec<f32> {
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
    let block =
        (HELD / (PLACES * from.channels)).clamp(12, 96).next_multiple_of(12).min(tiles.next_multiple_of(12));
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
        for p in 0..PLACES {
            let mut panel = first_panel;
            while panel < last_panel {
                let wide = if L::ROWS > 6 && last_panel - panel > 1 { 2 } else { 1 };
                let filter = job.filters.get().add((panel * PLACES + p) * filter_place(depth));
                let to = m.add(p * result_place + (panel - first_panel) * COLUMNS);
                let (from, sizes) = (v.add(p * place), [tiles, row, result, depth]);
                match (L::ROWS, wide) {
                    (12, 2) => multiply::<L, 12, 2>(from, to, sizes, filter),
                    (12, _) => multiply::<L, 12, 1>(from, to, sizes, filter),
                    _ => multiply::<L, 6, 1>(from, to, sizes, filter),
                }
                panel += wide;
            }
        }
        let start = first_panel * COLUMNS;
        let channels = (job.to.channels - start).min(result);
        for t in 0..tiles {
            transform_output::<L>(job, first + t, start, channels, m.add(t * result), result_place);
        }
    }
}

/// The products of some tiles, `row` numbers apart, with `C` panels of filters, into rows of `result` numbers.
///
/// # Safety
/// All of them exist.
#[inline(always)]
unsafe fn multiply<L: Lane, const R: usize, const C: usize>(
    v: *const f32,
    m: *mut f32,
    [tiles, row, result, depth]: [usize; 4],
    filter: *const f32,
) {
    let finish = Finish { bias: std::ptr::null(), skip: Skip::Nothing, clips: false, columns: C * COLUMNS };
    for start in (0..tiles).step_by(R) {
        let mut source = [v; R];
        let mut target = [m; R];
        // SAFETY: by contract.
        unsafe {
            for i in 0..R {
                // The last block repeats its last row: computed again, it gives the same numbers.
                let tile = (start + i).min(tiles - 1);
                source[i] = v.add(tile * row);
                target[i] = m.add(tile * result);
            }
            let step = PLACES * filter_place(depth);
            tile::rows::<L, R, C>(&source, &target, 1, 0, depth, filter, step, &finish);
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
