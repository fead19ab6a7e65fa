//! Gradient of the weights, for any window: a product over pixels.
//!
//! $$\frac{\partial L}{\partial W_{o,i,r,s}} = \sum_{b,y,x} X_{b,\, y s_h + r - p_h,\, x s_w + s - p_w,\, i}\; dY_{b,y,x,o}$$
//!
//! As in [`super::gather`], a row of a window is one run of numbers, so six neighbouring (column, channel) places of a run are
//! broadcast against sixteen output channels, pixel after pixel ([`super::tile::outer`]).
//!
//! Pixels are cut into blocks that stay in the first-level cache; each block's sums are added to those of its lane, and
//! lanes (their number depends on the shape only) are added in order at the end. So sums are short, which keeps rounding
//! small, and no result depends on the number of threads.

use super::gather::{Images, copy_row};
use super::tile::{self, COLUMNS, Places, ROWS};
use super::{Shape, parallel};
use crate::lane::{Lane, dispatch};
use crate::scratch::{Scratch, Shared, filled};

/// Pixels of a block.
const BLOCK: usize = 128;
/// Pieces of work to aim at: enough for the threads of a large machine.
const PIECES: usize = 8;
/// Numbers that all lanes together may hold.
const ROOM: usize = 4 << 20;

struct Job {
    x: *const f32,
    dy: *const f32,
    shape: Shape,
    out: [usize; 2],
    /// Tiles of six along a run, and panels of sixteen output channels.
    tiles: usize,
    panels: usize,
    lanes: usize,
    /// Panels per piece of work.
    group: usize,
    sums: Shared,
}

// SAFETY: the inputs are only read; every piece of work has its own part of `sums`.
unsafe impl Sync for Job {}

/// See [`super::weight_gradient`].
pub(super) fn gradient(x: &[f32], dy: &[f32], shape: &Shape, out: [usize; 2]) -> Vec<f32> {
    let Shape { batch, inputs, outputs, window, .. } = *shape;
    let [kh, kw] = window.kernel;
    let (tiles, panels) = ((kw * inputs).div_ceil(ROWS), outputs.div_ceil(COLUMNS));
    let per_lane = kh * tiles * panels * ROWS * COLUMNS;
    // First share panels among the pieces, then the batch.
    let group = panels.div_ceil(PIECES).max(panels.min(8));
    let lanes = (PIECES / panels.div_ceil(group)).clamp(1, batch * out[0]).min((ROOM / per_lane).max(1));
    let mut sums = Scratch::take(lanes * per_lane);
    let job = Job {
        x: x.as_ptr(),
        dy: dy.as_ptr(),
        shape: *shape,
        out,
        tiles,
        panels,
        lanes,
        group,
        sums: Shared::new(sums.as_mut_ptr()),
    };
    let groups = panels.div_ceil(group);
    let work = batch * out[0] * out[1] * kh * kw * inputs * outputs;
    parallel(lanes * groups, work, |n| {
        // SAFETY: the job's pointers cover the batch; piece `n` has its own sums.
        unsafe { piece(&job, n / groups, n % groups) };
    });
    let sums = sums.as_mut_slice();
    let gather = |dw: *mut f32| {
        let to = Shared::new(dw);
        parallel(panels, per_lane * lanes * 4, |panel| {
            for (r, s) in (0..kh).flat_map(|r| (0..kw).map(move |s| (r, s))) {
                for i in 0..inputs {
                    let place = s * inputs + i;
                    let tile = (panel * kh + r) * tiles + place / ROWS;
                    let at = (tile * ROWS + place % ROWS) * COLUMNS;
                    let mut row = [0.0f32; COLUMNS];
                    for lane in 0..lanes {
                        let part = &sums[lane * per_lane + at..][..COLUMNS];
                        row.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
                    }
                    for (j, sum) in row.iter().enumerate().take(outputs - panel * COLUMNS) {
                        let o = panel * COLUMNS + j;
                        // SAFETY: inside the weights; every weight is written once.
                        unsafe { *to.get().add(((o * inputs + i) * kh + r) * kw + s) = *sum };
                    }
                }
            }
        });
    };
    // SAFETY: all outputs, inputs and taps are visited.
    unsafe { filled(shape.weight_len(), gather) }
}

dispatch! {
    /// # Safety
    /// The job's pointers cover its batch; nobody else uses the sums of this lane and group.
    unsafe fn piece = piece_with(job: &Job, lane: usize, group: usize)
}

#[inline(always)]
unsafe fn piece_with<L: Lane>(job: &Job, lane: usize, group: usize) {
    let Shape { batch, height, width, inputs, outputs, window } = job.shape;
    let ([kh, kw], [sh, sw], [ph, pw]) = (window.kernel, window.stride, window.padding);
    let [oh, ow] = job.out;
    let (first_panel, last_panel) = (group * job.group, ((group + 1) * job.group).min(job.panels));
    // Rows of output pixels, in the order of the batch.
    let (first, last) = (lane * batch * oh / job.lanes, (lane + 1) * batch * oh / job.lanes);
    // Reading six places at the end of the last run, or sixteen channels of the last pixel, must stay inside a buffer: so
    // both are copied, the image with its border, the gradient with its channels filled up to whole panels.
    // Rows a power of two apart would all fall into the same few sets of the cache.
    let row = ((ow - 1) * sw + kw) * inputs;
    let row = if row % 256 == 0 { row + 16 } else { row };
    let image = Images { height, width, channels: inputs };
    let band = (BLOCK / ow).clamp(1, (last - first).max(1));
    let channels = (last_panel - first_panel) * COLUMNS;
    let here = channels.min(outputs - first_panel * COLUMNS);
    // `kernel` rows for each image of a band, and `stride` rows for each further output; a band that begins inside an image
    // touches one more. A stride may be longer than an image, so it must not count for the first output of one.
    let images = band.div_ceil(oh);
    let slab_rows = (band - images) * sh + images * kh + kh.saturating_sub(sh);
    let mut slab = Scratch::take(slab_rows * row + 8);
    let mut gradient = Scratch::take(band * ow * channels);
    let mut left: Vec<*const f32> = Vec::with_capacity(band * ow);
    let mut right: Vec<*const f32> = Vec::with_capacity(band * ow);
    let pixels = band * ow;
    let packs = last_panel - first_panel > 1;
    let apart = if L::ROWS > 6 { 12 } else { 8 };
    let mut packed = Scratch::take(pixels * apart);
    let packed = packed.as_mut_ptr().cast_const();
    let side_by_side: Vec<*const f32> = (0..pixels).map(|n| packed.wrapping_add(n * apart)).collect();
    let per_panel = kh * job.tiles * ROWS * COLUMNS;
    // SAFETY: pointers stay in the images, the copies and this piece's sums.
    unsafe {
        let sums = job.sums.get().add((lane * job.panels + first_panel) * per_panel);
        std::ptr::write_bytes(sums, 0, (last_panel - first_panel) * per_panel);
        std::ptr::write_bytes(slab.as_mut_ptr().add(slab_rows * row), 0, 8);
        let mut at = first;
        while at < last {
            left.clear();
            right.clear();
            let mut free = slab.as_mut_ptr();
            let end = last.min(at + band);
            while at < end {
                let (b, y) = (at / oh, at % oh);
                let count = (end - at).min(oh - y);
                let rows = (count - 1) * sh + kh;
                for r in 0..rows {
                    let source = (y * sh + r) as isize - ph as isize;
                    let from = job.x.add(b * height * width * inputs);
                    copy_row(from, image, source, -(pw as isize), (ow - 1) * sw + kw, free.add(r * row));
                }
                for n in 0..count * ow {
                    let to = gradient.as_mut_ptr().add(right.len() * COLUMNS);
                    let from = job.dy.add(((b * oh + y) * ow + n) * outputs + first_panel * COLUMNS);
                    // Panel by panel, each with all pixels of the band.
                    for panel in 0..last_panel - first_panel {
                        let (to, from) = (to.add(panel * pixels * COLUMNS), from.add(panel * COLUMNS));
                        let count = (here - panel * COLUMNS).min(COLUMNS);
                        std::ptr::copy_nonoverlapping(from, to, count);
                        std::ptr::write_bytes(to.add(count), 0, COLUMNS - count);
                    }
                    left.push(free.add(n / ow * sh * row + n % ow * sw * inputs));
                    right.push(to);
                }
                free = free.add(rows * row);
                at += count;
            }
            for r in 0..kh {
                let mut tile = 0;
                while tile < job.tiles {
                    let offset = r * row + tile * ROWS;
                    // Where the registers have room, two tiles at a time: their sums lie one after the other.
                    let both = L::ROWS > 6 && job.tiles - tile > 1;
                    let places = if packs {
                        // Side by side, the numbers of each pixel are read from as few lines of the cache as can be.
                        for (from, to) in left.iter().zip(&side_by_side) {
                            L::load(from.add(offset)).store(to.cast_mut());
                            if both {
                                L::load(from.add(offset + 4)).store(to.add(4).cast_mut());
                            }
                        }
                        Places { left: &side_by_side[..left.len()], offset: 0, right: &right }
                    } else {
                        Places { left: &left, offset, right: &right }
                    };
                    for panel in 0..last_panel - first_panel {
                        let to = sums.add(((panel * kh + r) * job.tiles + tile) * ROWS * COLUMNS);
                        if both {
                            tile::outer::<L, 12>(&places, panel * pixels * COLUMNS, to);
                        } else {
                            tile::outer::<L, 6>(&places, panel * pixels * COLUMNS, to);
                        }
                    }
                    tile += if both { 2 } else { 1 };
                }
            }
        }
    }
}
