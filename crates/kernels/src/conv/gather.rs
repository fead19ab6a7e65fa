//! Convolution as a matrix product that needs no copy of its windows.
//!
//! In a channels-last image, one row of a window is one contiguous run of `kernel columns x channels` numbers. So an output pixel
//! is a product of `kernel rows` runs with the weights, and pixels are the rows of the product (see [`super::tile::rows`]). Only images
//! with padding are copied, with their border, a few rows at a time.
//!
//! The same loop does the data gradient. For an input pixel at row $i$ (padding $p$, stride $s$), the outputs that saw it are
//! the rows $o$ with $s o + r = i + p$, $0 \le r < k$: so $r = (i+p) \bmod s + s j$ and $o = \lfloor (i+p)/s \rfloor - j$. All pixels with
//! the same $(i+p) \bmod s$ use the same taps, and are a stride-1 convolution of the output gradient with those taps in reverse.

use super::tile::{self, COLUMNS, Finish, Skip};
use super::{Shape, parallel};
use crate::lane::{Lane, dispatch};
use crate::scratch::{Scratch, Shared, filled};

/// Along one axis: pixels `first, first + step, ...` of the target (`count` of them); the window of the n-th starts at
/// `origin + n * stride` of the source and has `taps` places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub first: usize,
    pub step: usize,
    pub count: usize,
    pub origin: isize,
    pub stride: usize,
    pub taps: usize,
}

impl Axis {
    /// The outputs of a convolution along one axis.
    pub fn forward(out: usize, kernel: usize, stride: usize, padding: usize) -> Self {
        Self { first: 0, step: 1, count: out, origin: -(padding as isize), stride, taps: kernel }
    }

    /// The inputs `first, first + stride, ...` of `size`, which all see the taps of one phase (see [`phase`]).
    pub fn backward(size: usize, kernel: usize, stride: usize, padding: usize, first: usize) -> Self {
        let phase = phase(first, stride, padding);
        let count = (size - first).div_ceil(stride);
        let taps = if phase < kernel { (kernel - phase).div_ceil(stride) } else { 0 };
        let origin = ((first + padding) / stride) as isize - taps as isize + 1;
        Self { first, step: stride, count, origin, stride: 1, taps }
    }

    /// Whether some window leaves a source of this size.
    fn leaves(&self, size: usize) -> bool {
        self.origin < 0 || self.origin + ((self.count - 1) * self.stride + self.taps) as isize > size as isize
    }
}

/// The first tap that an input position sees: what its place in the padded image leaves when divided by the stride.
pub(super) fn phase(position: usize, stride: usize, padding: usize) -> usize {
    (position + padding) % stride
}

/// Size of a channels-last image.
#[derive(Clone, Copy)]
pub(super) struct Images {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

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
    padded: bool,
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
    let panels = packed(weight, shape);
    // SAFETY: every output pixel is the target of one row of the product; the panels are of these weights.
    unsafe {
        filled(shape.batch * oh * ow * shape.outputs, |y| {
            forward_packed(x, &panels, bias, skip, shape, [oh, ow], y);
        })
    }
}

/// The weights as [`forward_packed`] wants them; of the shape, only channels and window count.
pub(super) fn packed(weight: &[f32], shape: &Shape) -> Scratch {
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
pub(super) unsafe fn forward_packed(
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
    let (rows, columns) = (Axis::forward(oh, kh, sh, ph), Axis::forward(ow, kw, sw, pw));
    let job = Job {
        source: x.as_ptr(),
        from: Images { height, width, channels: inputs },
        target: Shared::new(y),
        to: Images { height: oh, width: ow, channels: outputs },
        rows,
        columns,
        panels: Shared::new(panels.as_ptr().cast_mut()),
        bias: bias.map_or(std::ptr::null(), <[f32]>::as_ptr),
        skip: skip.map_or(std::ptr::null(), <[f32]>::as_ptr),
        padded: rows.leaves(height) || columns.leaves(width),
    };
    run(&job, batch);
}

/// See [`super::data_gradient`].
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
            run(
                &Job {
                    source: dy.as_ptr(),
                    from: Images { height: oh, width: ow, channels: outputs },
                    target: Shared::new(dx),
                    to: Images { height, width, channels: inputs },
                    rows,
                    columns,
                    panels: Shared::new(panels.as_mut_ptr()),
                    bias: std::ptr::null(),
                    skip: std::ptr::null(),
                    padded: rows.leaves(oh) || columns.leaves(ow),
                },
                batch,
            );
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

/// Packs weights into panels of 16 columns, filled up with zeros; rows are taps, and channels in a tap.
fn pack(weight: &[f32], order: &Order) -> Scratch {
    let Order { taps, channels, step, columns, stride } = *order;
    let depth = taps.len() * channels;
    let panels = columns.div_ceil(COLUMNS);
    let mut packed = Scratch::take(panels * depth * COLUMNS);
    let to = Shared::new(packed.as_mut_ptr());
    parallel(panels, depth * columns * 4, |p| {
        let (first, count) = (p * COLUMNS, (columns - p * COLUMNS).min(COLUMNS));
        for (t, tap) in taps.iter().enumerate() {
            for c in 0..channels {
                let from = &weight[tap + c * step + first * stride..];
                let mut row = [0.0; COLUMNS];
                for (j, value) in row.iter_mut().enumerate().take(count) {
                    *value = from[j * stride];
                }
                // SAFETY: inside the buffer; every row is written by one panel's work.
                unsafe {
                    to.get().add((p * depth + t * channels + c) * COLUMNS).cast::<[f32; COLUMNS]>().write(row)
                };
            }
        }
    });
    packed
}

/// Numbers of the source that one piece of work reads: a padded copy of that size stays in the second-level cache.
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
    let panels = job.to.channels.div_ceil(COLUMNS);
    let groups = PIECES.div_ceil(blocks).min(panels.div_ceil(4));
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

dispatch! {
    /// # Safety
    /// The job's pointers cover its batch, and nobody else writes the rows `first..last` in these panels of channels.
    unsafe fn block_of_rows = block_of_rows_with(job: &Job, first: usize, last: usize, panel: usize, last_panel: usize)
}

#[inline(always)]
unsafe fn block_of_rows_with<L: Lane>(job: &Job, first: usize, last: usize, panel: usize, last_panel: usize) {
    let Job { from, to, rows, columns, .. } = *job;
    let depth = rows.taps * columns.taps * from.channels;
    let image = from.height * from.width * from.channels;
    let span = (columns.count - 1) * columns.stride + columns.taps;
    let mut sources: Vec<*const f32> = Vec::with_capacity((last - first) * columns.count);
    let mut targets: Vec<*mut f32> = Vec::with_capacity((last - first) * columns.count);
    // At most one slab per image that the block touches, each of the rows it needs.
    let slab_rows = |count: usize| (count - 1) * rows.stride + rows.taps;
    let images = (last - 1) / rows.count - first / rows.count + 1;
    let room = if job.padded {
        // Between the rows of one image only: a stride may be longer than an image.
        (last - first - images) * rows.stride + images * rows.taps.max(1)
    } else {
        0
    };
    let mut slab = Scratch::take(room * span * from.channels);
    let mut free = slab.as_mut_ptr();
    let run_stride = if job.padded { span } else { from.width } * from.channels;
    let mut at = first;
    // SAFETY: pointers stay in the images and in the slab, as the axes say.
    unsafe {
        while at < last {
            let (b, y) = (at / rows.count, at % rows.count);
            let count = (last - at).min(rows.count - y);
            let base = job.source.wrapping_add(b * image);
            let origin_y = rows.origin + (y * rows.stride) as isize;
            if job.padded {
                for r in 0..slab_rows(count) {
                    copy_row(
                        base,
                        from,
                        origin_y + r as isize,
                        columns.origin,
                        span,
                        free.add(r * run_stride),
                    );
                }
            }
            for n in 0..count {
                let target_row = (b * to.height + rows.first + (y + n) * rows.step) * to.width;
                for x in 0..columns.count {
                    sources.push(if job.padded {
                        free.add(n * rows.stride * run_stride + x * columns.stride * from.channels)
                    } else {
                        let row = (origin_y + (n * rows.stride) as isize) as usize;
                        let column = (columns.origin + (x * columns.stride) as isize) as usize;
                        base.wrapping_add((row * from.width + column) * from.channels)
                    });
                    targets.push(
                        job.target.get().add((target_row + columns.first + x * columns.step) * to.channels),
                    );
                }
            }
            if job.padded {
                free = free.add(slab_rows(count) * run_stride);
            }
            at += count;
        }
        let mut panel = panel;
        while panel < last_panel {
            let first = panel * COLUMNS;
            // Registers for twice as many rows are registers for twice as many columns.
            let wide = if L::ROWS > 6 && last_panel - panel > 1 { 2 } else { 1 };
            let finish = Finish {
                bias: if job.bias.is_null() { job.bias } else { job.bias.add(first) },
                clips: false,
                skip: if job.skip.is_null() {
                    Skip::Nothing
                } else {
                    Skip::Like { target: job.target.get(), skip: job.skip }
                },
                columns: (to.channels - first).min(wide * COLUMNS),
            };
            let weights = job.panels.get().add(panel * depth * COLUMNS);
            let step = depth * COLUMNS;
            let runs = [rows.taps, run_stride, columns.taps * from.channels];
            match (L::ROWS, wide) {
                (12, 2) => multiply::<L, 12, 2>(&sources, &targets, first, runs, weights, step, &finish),
                (12, _) => multiply::<L, 12, 1>(&sources, &targets, first, runs, weights, step, &finish),
                _ => multiply::<L, 6, 1>(&sources, &targets, first, runs, weights, step, &finish),
            }
            panel += wide;
        }
    }
}

/// The product of all rows with `C` panels, into the targets from column `first` on.
///
/// # Safety
/// Sources, targets and panels are as [`tile::rows`] wants them.
#[inline(always)]
unsafe fn multiply<L: Lane, const R: usize, const C: usize>(
    sources: &[*const f32],
    targets: &[*mut f32],
    first: usize,
    [runs, run_stride, length]: [usize; 3],
    weights: *const f32,
    step: usize,
    finish: &Finish,
) {
    let total = sources.len();
    for start in (0..total).step_by(R) {
        let mut source = [sources[start]; R];
        let mut target = [targets[start]; R];
        for i in 0..R {
            // The last tile repeats its last row: computed again, it gives the same numbers.
            let row = (start + i).min(total - 1);
            source[i] = sources[row];
            target[i] = targets[row].wrapping_add(first);
        }
        // SAFETY: by contract.
        unsafe { tile::rows::<L, R, C>(&source, &target, runs, run_stride, length, weights, step, finish) };
    }
}

/// Copies `span` pixels of a row, starting at column `origin`, with zeros outside the image.
///
/// # Safety
/// `image` is an image of the given size, `to` has room for the pixels.
pub(super) unsafe fn copy_row(
    image: *const f32,
    from: Images,
    row: isize,
    origin: isize,
    span: usize,
    to: *mut f32,
) {
    let c = from.channels;
    // SAFETY: `left` and `inside` are cut to the image.
    unsafe {
        if row < 0 || row >= from.height as isize {
            std::ptr::write_bytes(to, 0, span * c);
            return;
        }
        let left = (-origin).clamp(0, span as isize) as usize;
        let start = (origin + left as isize) as usize;
        let inside = from.width.saturating_sub(start).min(span - left);
        std::ptr::write_bytes(to, 0, left * c);
        std::ptr::copy_nonoverlapping(
            image.add((row as usize * from.width + start.min(from.width)) * c),
            to.add(left * c),
            inside * c,
        );
        std::ptr::write_bytes(to.add((left + inside) * c), 0, (span - left - inside) * c);
    }
}
