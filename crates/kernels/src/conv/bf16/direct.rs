//! Any window, forward and data gradient: a matrix product that reads its windows from a rounded copy of the images.
//!
//! As [`crate::conv::gather`], whose axes say which window belongs to which pixel. Images are always copied, a few rows at a time, with
//! their border and rounded; odd channels are filled up by one of zeros, so that no pair belongs to two pixels.

use super::tile::{COLUMNS, Finish, PANEL, ROWS, put, rows};
use super::wide::{Pair, Wide, dispatch_pairs};
use crate::conv::gather::{Axis, Images, phase};
use crate::conv::tile::{Skip, each_row};
use crate::conv::{Shape, parallel};
use crate::scratch::{Scratch, Shared, filled};

struct Job {
    source: *const f32,
    from: Images,
    target: Shared,
    to: Images,
    rows: Axis,
    columns: Axis,
    panels: Shared,
    bias: *const f32,
    skip: *const f32,
}

// SAFETY: the pointers are only read, but for `target`, where every pixel belongs to one piece of work.
unsafe impl Sync for Job {}

/// See [`crate::conv::forward`].
pub(super) fn forward(
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    skip: Option<&[f32]>,
    shape: &Shape,
    [oh, ow]: [usize; 2],
) -> Vec<f32> {
    let panels = packed(weight, shape);
    // SAFETY: every output pixel is the target of one row of the product; the panels are of these weights.
    unsafe {
        filled(shape.batch * oh * ow * shape.outputs, |y| {
            forward_packed(x, &panels, bias, skip, shape, [oh, ow], y);
        })
    }
}

/// The weights as [`forward_packed`] wants them; of the shape, only channels and window count.
pub(in crate::conv) fn packed(weight: &[f32], shape: &Shape) -> Scratch {
    let Shape { inputs, outputs, window, .. } = *shape;
    let taps: Vec<usize> = (0..window.kernel[0] * window.kernel[1]).collect();
    let step = taps.len();
    pack(weight, &Order { taps: &taps, channels: inputs, step, columns: outputs, stride: inputs * step })
}

/// [`forward`] into `y`, with packed weights.
///
/// # Safety
/// The panels were packed for these channels and this window, the slices have the lengths that the shape says, and `y` has room for the
/// result.
pub(in crate::conv) unsafe fn forward_packed(
    x: &[f32],
    panels: &Scratch,
    bias: Option<&[f32]>,
    skip: Option<&[f32]>,
    shape: &Shape,
    [oh, ow]: [usize; 2],
    y: *mut f32,
) {
    let Shape { batch, height, width, inputs, outputs, window } = *shape;
    let ([kh, kw], [sh, sw], [ph, pw]) = (window.kernel, window.stride, window.padding);
    let job = Job {
        source: x.as_ptr(),
        from: Images { height, width, channels: inputs },
        target: Shared::new(y),
        to: Images { height: oh, width: ow, channels: outputs },
        rows: Axis::forward(oh, kh, sh, ph),
        columns: Axis::forward(ow, kw, sw, pw),
        panels: Shared::new(panels.as_ptr().cast_mut()),
        bias: bias.map_or(std::ptr::null(), <[f32]>::as_ptr),
        skip: skip.map_or(std::ptr::null(), <[f32]>::as_ptr),
    };
    run(&job, batch);
}

/// See [`crate::conv::data_gradient`].
pub(super) fn data_gradient(dy: &[f32], weight: &[f32], shape: &Shape, [oh, ow]: [usize; 2]) -> Vec<f32> {
    let Shape { batch, height, width, inputs, outputs, window } = *shape;
    let ([kh, kw], [sh, sw], [ph, pw]) = (window.kernel, window.stride, window.padding);
    let run = |dx: *mut f32| {
        // A stride may be larger than the image: then some phases have no pixel.
        let (first_rows, first_columns) = (sh.min(height), sw.min(width));
        for (y, x) in (0..first_rows).flat_map(|y| (0..first_columns).map(move |x| (y, x))) {
            let rows = Axis::backward(height, kh, sh, ph, y);
            let columns = Axis::backward(width, kw, sw, pw, x);
            let (phase_y, phase_x) = (phase(y, sh, ph), phase(x, sw, pw));
            let (jy, jx) = (rows.taps, columns.taps);
            let tap = |y: usize, x: usize| (phase_y + sh * (jy - 1 - y)) * kw + phase_x + sw * (jx - 1 - x);
            let taps: Vec<usize> = (0..jy).flat_map(|y| (0..jx).map(move |x| tap(y, x))).collect();
            let order = Order {
                taps: &taps,
                channels: outputs,
                step: inputs * kh * kw,
                columns: inputs,
                stride: kh * kw,
            };
            let mut panels = pack(weight, &order);
            let job = Job {
                source: dy.as_ptr(),
                from: Images { height: oh, width: ow, channels: outputs },
                target: Shared::new(dx),
                to: Images { height, width, channels: inputs },
                rows,
                columns,
                panels: Shared::new(panels.as_mut_ptr()),
                bias: std::ptr::null(),
                skip: std::ptr::null(),
            };
            run(&job, batch);
        }
    };
    // SAFETY: every input pixel has one phase per axis, so every one is written (with 0 where no tap reaches it).
    unsafe { filled(batch * height * width * inputs, run) }
}

/// Where a weight lies: `taps[tap] + channel * step + column * stride`.
struct Order<'a> {
    taps: &'a [usize],
    channels: usize,
    step: usize,
    columns: usize,
    stride: usize,
}

/// Vectors of the panel that begins at this column.
fn vectors(columns: usize, first: usize) -> usize {
    (columns - first).div_ceil(COLUMNS).min(2)
}

/// Packs weights into panels of 32 columns (16 if no more are left), filled up with zeros; rows are taps, and pairs of channels in a tap.
fn pack(weight: &[f32], order: &Order) -> Scratch {
    let Order { taps, channels, columns, .. } = *order;
    let depth = taps.len() * channels.div_ceil(2);
    let mut packed = Scratch::take(columns.div_ceil(PANEL) * depth * PANEL);
    let to = Shared::new(packed.as_mut_ptr());
    parallel(columns.div_ceil(COLUMNS), depth * columns * 8, |half| {
        // SAFETY: every vector of columns has its own places in the buffer.
        unsafe {
            let to = to.get().cast::<Pair>().add(half / 2 * depth * PANEL + half % 2 * COLUMNS);
            pack_columns(weight, order, half * COLUMNS, to);
        }
    });
    packed
}

dispatch_pairs! {
    /// Packs sixteen columns, or those that are left.
    ///
    /// # Safety
    /// `to` has room for them.
    unsafe fn pack_columns = pack_columns_with(weight: &[f32], order: &Order, first: usize, to: *mut Pair)
}

#[inline(always)]
unsafe fn pack_columns_with<W: Wide>(weight: &[f32], order: &Order, first: usize, to: *mut Pair) {
    let Order { taps, channels, step, columns, stride } = *order;
    let count = (columns - first).min(COLUMNS);
    let row = vectors(columns, first / PANEL * PANEL) * COLUMNS;
    let mut to = to;
    for tap in taps {
        let from = weight.as_ptr().wrapping_add(tap + first * stride);
        // SAFETY: inside the weights and the buffer.
        unsafe {
            if step == 1 {
                // Channels of a column are neighbours: 32 of each of the columns, turned.
                for c in (0..channels).step_by(2 * COLUMNS) {
                    let left = channels - c;
                    let mut rows = [W::splat(0.0).neighbours(W::splat(0.0)); COLUMNS];
                    for (j, row) in rows.iter_mut().enumerate().take(count) {
                        let from = from.add(c + j * stride);
                        let further = from.wrapping_add(COLUMNS);
                        *row = W::load_part(from, left)
                            .neighbours(W::load_part(further, left.saturating_sub(COLUMNS)));
                    }
                    for pairs in W::transpose(rows).into_iter().take(left.div_ceil(2)) {
                        W::store_pairs(pairs, to);
                        to = to.add(row);
                    }
                }
                continue;
            }
            for c in (0..channels).step_by(2) {
                let mut both = [W::splat(0.0); 2];
                for (n, values) in both.iter_mut().enumerate().take(channels - c) {
                    *values = load_apart::<W>(from.add((c + n) * step), count, stride);
                }
                W::store_pairs(both[0].pair(both[1]), to);
                to = to.add(row);
            }
        }
    }
}

/// The first `count` numbers, `stride` apart; the rest are 0.
///
/// # Safety
/// They exist.
#[inline(always)]
unsafe fn load_apart<W: Wide>(from: *const f32, count: usize, stride: usize) -> W {
    // SAFETY: by contract.
    unsafe {
        if stride == 1 {
            return W::load_part(from, count);
        }
        let mut values = [0.0f32; COLUMNS];
        for (j, value) in values.iter_mut().enumerate().take(count) {
            *value = *from.add(j * stride);
        }
        W::load(values.as_ptr())
    }
}

/// Numbers of the source that one piece of work reads: their rounded copy stays in the second-level cache.
const SLAB: usize = 48 * 1024;

/// Pieces of work to aim at: enough for the threads of a large machine.
const PIECES: usize = 16;

fn run(job: &Job, batch: usize) {
    // A piece of work is some consecutive rows of target pixels, in the order of the batch; with few of them, output
    // channels are shared too.
    let row_numbers = (job.columns.count.max(1) * job.from.channels)
        .saturating_mul(job.columns.stride)
        .saturating_mul(job.rows.stride);
    let total = batch * job.rows.count;
    let block = (SLAB / row_numbers.max(1)).clamp(1, total);
    let blocks = total.div_ceil(block);
    let panels = job.to.channels.div_ceil(PANEL);
    let groups = PIECES.div_ceil(blocks).min(panels.div_ceil(2));
    let group = panels.div_ceil(groups);
    let groups = panels.div_ceil(group);
    let work =
        total * job.columns.count * job.rows.taps * job.columns.taps * job.from.channels * job.to.channels;
    parallel(blocks * groups, work, |n| {
        let (first, panel) = (n / groups * block, n % groups * group);
        let (last, last_panel) = ((first + block).min(total), (panel + group).min(panels));
        // SAFETY: the job's pointers cover the batch; no other piece writes these rows in these channels.
        unsafe { block_of_rows(job, first, last, panel, last_panel) };
    });
}

dispatch_pairs! {
    /// # Safety
    /// The job's pointers cover its batch, and nobody else writes the rows `first..last` in these panels of channels.
    unsafe fn block_of_rows = block_of_rows_with(job: &Job, first: usize, last: usize, panel: usize, last_panel: usize)
}

#[inline(always)]
unsafe fn block_of_rows_with<W: Wide>(job: &Job, first: usize, last: usize, panel: usize, last_panel: usize) {
    let Job { from, to, rows, columns, .. } = *job;
    // In pairs.
    let pixel = from.channels.div_ceil(2);
    let depth = rows.taps * columns.taps * pixel;
    let image = from.height * from.width * from.channels;
    let span = (columns.count - 1) * columns.stride + columns.taps;
    let mut sources: Vec<*const Pair> = Vec::with_capacity((last - first) * columns.count);
    let mut targets: Vec<*mut f32> = Vec::with_capacity((last - first) * columns.count);
    // At most one slab per image that the block touches, each of the rows it needs.
    let slab_rows = |count: usize| (count - 1) * rows.stride + rows.taps;
    let images = (last - 1) / rows.count - first / rows.count + 1;
    // Between the rows of one image only: a stride may be longer than an image.
    let room = (last - first - images) * rows.stride + images * rows.taps.max(1);
    let run_stride = span * pixel;
    // Rounding stores sixteen numbers at a time, and may go that far beyond the end.
    let mut slab = Scratch::take(room * run_stride + COLUMNS);
    let mut free = slab.as_mut_ptr().cast::<Pair>();
    let mut at = first;
    // SAFETY: pointers stay in the images and in the slab, as the axes say.
    unsafe {
        while at < last {
            let (b, y) = (at / rows.count, at % rows.count);
            let count = (last - at).min(rows.count - y);
            let base = job.source.wrapping_add(b * image);
            let origin_y = rows.origin + (y * rows.stride) as isize;
            for r in 0..slab_rows(count) {
                round_row::<W>(
                    base,
                    from,
                    origin_y + r as isize,
                    columns.origin,
                    span,
                    free.add(r * run_stride),
                );
            }
            for n in 0..count {
                let target_row = (b * to.height + rows.first + (y + n) * rows.step) * to.width;
                for x in 0..columns.count {
                    sources.push(free.add(n * rows.stride * run_stride + x * columns.stride * pixel));
                    targets.push(
                        job.target.get().add((target_row + columns.first + x * columns.step) * to.channels),
                    );
                }
            }
            free = free.add(slab_rows(count) * run_stride);
            at += count;
        }
        let runs = [rows.taps, run_stride, columns.taps * pixel];
        for panel in panel..last_panel {
            let first = panel * PANEL;
            let finish = Finish {
                bias: if job.bias.is_null() { job.bias } else { job.bias.add(first) },
                skip: if job.skip.is_null() {
                    Skip::Nothing
                } else {
                    Skip::Like { target: job.target.get(), skip: job.skip }
                },
                columns: (to.channels - first).min(PANEL),
            };
            let weights = job.panels.get().cast::<Pair>().add(panel * depth * PANEL);
            if vectors(to.channels, first) == 2 {
                multiply::<W, 2>(&sources, &targets, first, runs, weights, &finish);
            } else {
                multiply::<W, 1>(&sources, &targets, first, runs, weights, &finish);
            }
        }
    }
}

/// The product of all rows with one panel, from column `first` of the targets on.
///
/// # Safety
/// Sources and targets are as [`rows`] and [`put`] want them.
#[inline(always)]
unsafe fn multiply<W: Wide, const C: usize>(
    sources: &[*const Pair],
    targets: &[*mut f32],
    first: usize,
    [runs, run_stride, length]: [usize; 3],
    weights: *const Pair,
    finish: &Finish,
) {
    let total = sources.len();
    for start in (0..total).step_by(ROWS) {
        let mut source = [sources[start]; ROWS];
        let mut target = [targets[start]; ROWS];
        for i in 0..ROWS {
            // The last block repeats its last row: computed again, it gives the same numbers.
            let row = (start + i).min(total - 1);
            source[i] = sources[row];
            target[i] = targets[row];
        }
        // SAFETY: by contract.
        unsafe {
            let sums = rows::<W, C>(&source, runs, run_stride, length, weights);
            each_row!(ROWS, i => put::<W, C>(sums[i], target[i].add(first), finish));
        }
    }
}

/// Copies and rounds `span` pixels of a row, starting at column `origin`, with zeros outside the image.
///
/// # Safety
/// `image` is an image of the given size, `to` has room for the pixels and 16 pairs more, which may be overwritten.
#[inline(always)]
unsafe fn round_row<W: Wide>(
    image: *const f32,
    from: Images,
    row: isize,
    origin: isize,
    span: usize,
    to: *mut Pair,
) {
    let (c, pixel) = (from.channels, from.channels.div_ceil(2));
    // SAFETY: `left` and `inside` are cut to the image.
    unsafe {
        if row < 0 || row >= from.height as isize {
            std::ptr::write_bytes(to, 0, span * pixel);
            return;
        }
        let left = (-origin).clamp(0, span as isize) as usize;
        let start = (origin + left as isize) as usize;
        let inside = from.width.saturating_sub(start).min(span - left);
        std::ptr::write_bytes(to, 0, left * pixel);
        let source = image.add((row as usize * from.width + start.min(from.width)) * c);
        let target = to.add(left * pixel);
        if c == 1 {
            // Each number beside a 0.
            for n in (0..inside).step_by(COLUMNS) {
                let count = (inside - n).min(COLUMNS);
                W::store_pairs(W::load_part(source.add(n), count).pair(W::splat(0.0)), target.add(n));
            }
        } else if c.is_multiple_of(2) {
            for n in (0..inside * c).step_by(COLUMNS) {
                let count = (inside * c - n).min(COLUMNS);
                W::load_part(source.add(n), count).store_rounded(target.add(n / 2).cast());
            }
        } else {
            for n in 0..inside {
                for k in (0..c).step_by(COLUMNS) {
                    let count = (c - k).min(COLUMNS);
                    W::load_part(source.add(n * c + k), count)
                        .store_rounded(target.add(n * pixel + k / 2).cast());
                }
            }
        }
        // After the rounding, which may have written beyond the pixels.
        std::ptr::write_bytes(to.add((left + inside) * pixel), 0, (span - left - inside) * pixel);
    }
}
