//! Gradient of the weights, for any window: a product over pixels, taken two by two.
//!
//! As in [`crate::conv::weight`]. The pairs of the product are neighbouring output pixels $x$, $x + 1$ of a row, so the copy of the images
//! holds each number beside the one a stride further. A row's last pixel may be paired with one that no window sees: both are 0 there.

use super::tile::{COLUMNS, OUTER, PANEL, outer};
use super::wide::{Pair, Wide, dispatch_pairs};
use crate::conv::{Shape, parallel};
use crate::scratch::{Scratch, Shared, filled};

/// Pairs of pixels of a block.
const BLOCK: usize = 128;
/// Places that are copied side by side.
const NARROW: usize = 24;
/// Pieces of work to aim at: enough for the threads of a large machine.
const PIECES: usize = 8;
/// Numbers that all lanes together may hold.
const ROOM: usize = 4 << 20;

struct Job {
    x: *const f32,
    dy: *const f32,
    shape: Shape,
    out: [usize; 2],
    /// Places of a run, filled up to whole blocks of rows, and output channels, filled up to whole vectors.
    places: usize,
    channels: usize,
    lanes: usize,
    /// Vectors of output channels per piece of work.
    group: usize,
    sums: Shared,
}

// SAFETY: the inputs are only read; every piece of work has its own part of `sums`.
unsafe impl Sync for Job {}

/// See [`crate::conv::weight_gradient`].
pub(super) fn gradient(x: &[f32], dy: &[f32], shape: &Shape) -> Vec<f32> {
    let out = shape.checked_out();
    let Shape { batch, inputs, outputs, window, .. } = *shape;
    let [kh, kw] = window.kernel;
    let (places, channels) = ((kw * inputs).next_multiple_of(OUTER), outputs.next_multiple_of(COLUMNS));
    let per_lane = kh * places * channels;
    let vectors = channels / COLUMNS;
    // First share channels among the pieces, then the batch.
    let group = vectors.div_ceil(PIECES).max(vectors.min(8)).next_multiple_of(2).min(vectors);
    let groups = vectors.div_ceil(group);
    let lanes = PIECES.div_ceil(groups).clamp(1, batch * out[0]).min((ROOM / per_lane).max(1));
    let mut sums = Scratch::take(lanes * per_lane);
    let job = Job {
        x: x.as_ptr(),
        dy: dy.as_ptr(),
        shape: *shape,
        out,
        places,
        channels,
        lanes,
        group,
        sums: Shared::new(sums.as_mut_ptr()),
    };
    let work = batch * out[0] * out[1] * kh * kw * inputs * outputs;
    parallel(lanes * groups, work, |n| {
        // SAFETY: the job's pointers cover the batch; piece `n` has its own sums.
        unsafe { piece(&job, n / groups, n % groups) };
    });
    let sums = sums.as_mut_slice();
    let gather = |dw: *mut f32| {
        let to = Shared::new(dw);
        parallel(vectors, per_lane * lanes * 4, |vector| {
            let first = vector * COLUMNS;
            for (r, s) in (0..kh).flat_map(|r| (0..kw).map(move |s| (r, s))) {
                for i in 0..inputs {
                    let at = (r * places + s * inputs + i) * channels + first;
                    let mut row = [0.0f32; COLUMNS];
                    for lane in 0..lanes {
                        let part = &sums[lane * per_lane + at..][..COLUMNS];
                        row.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
                    }
                    for (j, sum) in row.iter().enumerate().take(outputs - first) {
                        // SAFETY: inside the weights; every weight is written once.
                        unsafe { *to.get().add((((first + j) * inputs + i) * kh + r) * kw + s) = *sum };
                    }
                }
            }
        });
    };
    // SAFETY: all outputs, inputs and taps are visited.
    unsafe { filled(shape.weight_len(), gather) }
}

dispatch_pairs! {
    /// # Safety
    /// The job's pointers cover its batch; nobody else uses the sums of this lane and group.
    unsafe fn piece = piece_with(job: &Job, lane: usize, group: usize)
}

#[inline(always)]
unsafe fn piece_with<W: Wide>(job: &Job, lane: usize, group: usize) {
    let Shape { batch, height, width, inputs, outputs, window } = job.shape;
    let ([kh, kw], [sh, sw], [ph, pw]) = (window.kernel, window.stride, window.padding);
    let [oh, ow] = job.out;
    let vectors = job.channels / COLUMNS;
    let (first_vector, last_vector) = (group * job.group, ((group + 1) * job.group).min(vectors));
    let (first_channel, channels) = (first_vector * COLUMNS, (last_vector - first_vector) * COLUMNS);
    // Rows of output pixels, in the order of the batch.
    let (first, last) = (lane * batch * oh / job.lanes, (lane + 1) * batch * oh / job.lanes);
    let pairs = ow.div_ceil(2);
    // Pixels that the first windows of the pairs see, and the numbers of a row of the copy: up to seven places of no use are read after
    // the last. Rows a power of two apart would all fall into the same few sets of the cache.
    let span = 2 * (pairs - 1) * sw + kw;
    // Where windows have one column and see no border, only pixels with a pair are copied.
    let point = kw == 1 && [ph, pw] == [0, 0];
    let filled = inputs.next_multiple_of(COLUMNS);
    let row = if point { pairs * filled } else { span * inputs } + OUTER;
    let pair_step = if point { filled } else { sw.wrapping_mul(2 * inputs) };
    let row = if row.is_multiple_of(256) { row + 16 } else { row };
    let band = (BLOCK / pairs).clamp(1, (last - first).max(1));
    // `kernel` rows for each image of a band, and `stride` rows for each further output; a band that begins inside an image
    // touches one more. A stride may be longer than an image, so it must not count for the first output of one.
    let images = band.div_ceil(oh);
    let slab_rows = (band - images) * sh + images * kh + kh.saturating_sub(sh);
    let mut slab = Scratch::take(slab_rows * row + COLUMNS);
    let mut gradient = Scratch::take(band * pairs * channels);
    let mut narrow = Scratch::take(band * pairs * NARROW);
    let mut left: Vec<*const Pair> = Vec::with_capacity(band);
    // SAFETY: pointers stay in the images, the copies and this piece's sums.
    unsafe {
        let sums = job.sums.get().add(lane * kh * job.places * job.channels + first_channel);
        let gradient = gradient.as_mut_ptr().cast::<Pair>();
        let mut at = first;
        if first == last {
            for line in 0..kh * job.places {
                std::ptr::write_bytes(sums.add(line * job.channels), 0, channels);
            }
        }
        while at < last {
            let adds = at > first;
            left.clear();
            let mut free = slab.as_mut_ptr().cast::<Pair>();
            let end = last.min(at + band);
            while at < end {
                let (b, y) = (at / oh, at % oh);
                let count = (end - at).min(oh - y);
                let rows = (count - 1) * sh + kh;
                for r in 0..rows {
                    let source = (y * sh + r) as isize - ph as isize;
                    let inside = (0..height as isize).contains(&source);
                    let from = inside.then(|| job.x.add((b * height + source as usize) * width * inputs));
                    let to = free.add(r * row);
                    // A stride may be longer than can be counted, if it is never taken.
                    let step = sw.saturating_mul(inputs);
                    match from {
                        Some(from) if point => pair_pixels::<W>(from, step, ow, inputs, filled, to),
                        from => pair_row::<W>(from, width * inputs, pw * inputs, step, row, to),
                    }
                }
                for n in 0..count {
                    let from = job.dy.add(((b * oh + y + n) * ow) * outputs + first_channel);
                    // Panels of 32 channels (16 if no more are left), each with all pairs of the band.
                    for c in (0..channels).step_by(PANEL) {
                        let here = (channels - c).min(PANEL);
                        let to = gradient.add(c * band * pairs + left.len() * pairs * here);
                        let there = (outputs - first_channel).saturating_sub(c);
                        pair_pixels::<W>(from.wrapping_add(c), outputs, ow, there, here, to);
                    }
                    left.push(free.add(n * sh * row));
                }
                free = free.add(rows * row);
                at += count;
            }
            let narrow = narrow.as_mut_ptr().cast::<Pair>();
            for r in 0..kh {
                for place in (0..job.places).step_by(NARROW) {
                    // Some places of all pairs, side by side: as they lie, they fall into the same few sets of the cache.
                    let here = (job.places - place).min(NARROW);
                    let mut to = narrow;
                    for from in &left {
                        let mut from = from.add(r * row + place);
                        for _ in 0..pairs {
                            for n in (0..here).step_by(OUTER) {
                                let eight = from.add(n).cast::<[Pair; OUTER]>().read_unaligned();
                                to.add(n).cast::<[Pair; OUTER]>().write_unaligned(eight);
                            }
                            to = to.add(NARROW);
                            from = from.wrapping_add(pair_step);
                        }
                        if !ow.is_multiple_of(2) {
                            // No gradient belongs to the second pixel: 0 times infinity would be a number of its taps.
                            for n in 0..here {
                                (*to.sub(NARROW).add(n))[1] = 0;
                            }
                        }
                    }
                    let to = sums.add((r * job.places + place) * job.channels);
                    let count = left.len() * pairs;
                    for column in (0..channels).step_by(PANEL) {
                        let (right, to) = (gradient.add(column * band * pairs), to.add(column));
                        if channels - column > COLUMNS {
                            outer::<W, 2>(narrow, here, NARROW, right, count, to, job.channels, adds);
                        } else {
                            outer::<W, 1>(narrow, here, NARROW, right, count, to, job.channels, adds);
                        }
                    }
                }
            }
        }
    }
}

/// A row of an image as pairs: number `n` of the padded row beside number `n + step`. `from` is the row, of `length` numbers, or
/// `None` for a row of zeros; `before` zeros precede it.
///
/// # Safety
/// `to` has room for `row` pairs and 16 more, which may be overwritten.
#[inline(always)]
unsafe fn pair_row<W: Wide>(
    from: Option<*const f32>,
    length: usize,
    before: usize,
    step: usize,
    row: usize,
    to: *mut Pair,
) {
    // SAFETY: by contract; numbers are read only inside the row.
    unsafe {
        let Some(from) = from else {
            std::ptr::write_bytes(to, 0, row);
            return;
        };
        for n in (0..row).step_by(COLUMNS) {
            let pairs = part::<W>(from, length, before, n).pair(part::<W>(
                from,
                length,
                before,
                n.saturating_add(step),
            ));
            W::store_pairs(pairs, to.add(n));
        }
    }
}

/// Sixteen numbers from place `n` of a padded row on.
///
/// # Safety
/// There are `length` numbers at `from`.
#[inline(always)]
unsafe fn part<W: Wide>(from: *const f32, length: usize, before: usize, n: usize) -> W {
    // SAFETY: cut to the row.
    unsafe {
        if n >= before + length {
            return W::splat(0.0);
        }
        if n >= before && n - before + COLUMNS <= length {
            return W::load(from.add(n - before));
        }
        let mut whole = [0.0f32; COLUMNS];
        for (i, value) in whole.iter_mut().enumerate() {
            if n + i >= before && n + i - before < length {
                *value = *from.add(n + i - before);
            }
        }
        W::load(whole.as_ptr())
    }
}

/// A row of `width` pixels, `step` numbers apart, as pairs of neighbours: `channels` of them, of which `there` exist at most.
///
/// # Safety
/// `to` has room for them.
#[inline(always)]
unsafe fn pair_pixels<W: Wide>(
    from: *const f32,
    step: usize,
    width: usize,
    there: usize,
    channels: usize,
    to: *mut Pair,
) {
    for x in (0..width).step_by(2) {
        for c in (0..channels).step_by(COLUMNS) {
            let count = there.saturating_sub(c).min(COLUMNS);
            // SAFETY: inside the row.
            unsafe {
                let first = W::load_part(from.wrapping_add(x * step + c), count);
                let second = if x + 1 < width {
                    W::load_part(from.wrapping_add((x + 1) * step + c), count)
                } else {
                    W::splat(0.0)
                };
                W::store_pairs(first.pair(second), to.add(x / 2 * channels + c));
            }
        }
    }
}
