//! Windows sliding over channels-last images: means, largest values, and their gradients, on slices.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::Window;
use crate::rows::{ChannelRows, add_rows, fill};

/// Sizes of a pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    pub batch: usize,
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    /// Rows and columns of the output.
    pub out: [usize; 2],
    pub window: Window,
}

impl Grid {
    /// The input positions that the window of output `o` covers on an axis of `size` positions.
    fn covered(&self, axis: usize, o: usize, size: usize) -> Range<usize> {
        let Window { kernel, stride, padding } = self.window;
        let start = o * stride[axis];
        start.saturating_sub(padding[axis])..(start + kernel[axis]).saturating_sub(padding[axis]).min(size)
    }

    /// The outputs whose windows cover input position `i` on an axis.
    fn covering(&self, axis: usize, i: usize) -> Range<usize> {
        let Window { kernel, stride, padding } = self.window;
        let last = i + padding[axis];
        (last + 1).saturating_sub(kernel[axis]).div_ceil(stride[axis])
            ..(last / stride[axis] + 1).min(self.out[axis])
    }

    /// The positions of image `b` covered by output (`y`, `x`), as offsets of their first channel, into `taps`.
    #[inline(always)]
    fn find_taps(&self, b: usize, y: usize, x: usize, taps: &mut Vec<usize>) {
        let Self { height, width, channels, .. } = *self;
        let columns = self.covered(1, x, width);
        taps.clear();
        for row in self.covered(0, y, height) {
            let first = (b * height + row) * width;
            for column in columns.clone() {
                taps.push((first + column) * channels);
            }
        }
    }

    /// One over the number of values that the mean of output (`y`, `x`) counts.
    fn share(&self, y: usize, x: usize, count_padding: bool) -> f32 {
        let [kh, kw] = self.window.kernel;
        let inside = self.covered(0, y, self.height).len() * self.covered(1, x, self.width).len();
        1.0 / (if count_padding { kh * kw } else { inside }) as f32
    }

    fn inputs(&self) -> usize {
        self.batch * self.height * self.width * self.channels
    }

    fn outputs(&self) -> usize {
        self.batch * self.out[0] * self.out[1] * self.channels
    }

    /// Splits the number of an output pixel into image, row and column.
    fn place(&self, pixel: usize) -> [usize; 3] {
        let [oh, ow] = self.out;
        [pixel / (oh * ow), pixel / ow % oh, pixel % ow]
    }
}

/// Mean over each image.
pub(crate) fn mean(x: &[f32], batch: usize, channels: usize) -> Vec<f32> {
    let size = x.len() / batch.max(1);
    let rows = ChannelRows::new(channels);
    let pixels = (size / rows.channels) as f64;
    // A piece holds whole images, as many as fit 64 KiB of input.
    let images = (rows.piece / size.max(1)).max(1);
    let parts = crate::rows::visit(x.len(), images * size.max(1), |start, end| {
        let mut means = Vec::with_capacity((end - start) / size * channels);
        for image in x[start..end].chunks(size) {
            means.extend(rows.fold(&add_rows(image, rows.period)).iter().map(|sum| (sum / pixels) as f32));
        }
        means
    });
    parts.concat()
}

/// Gradient of [`mean`]: every one of `pixels` positions gets its share.
pub(crate) fn mean_gradient(dy: &[f32], pixels: usize, channels: usize) -> Vec<f32> {
    let piece = ChannelRows::new(channels).piece / channels.max(1) * channels.max(1);
    // SAFETY: pieces are whole pixels, and each pixel of a piece is filled by `share_out`.
    unsafe {
        fill(dy.len() * pixels, piece, |start, part| share_out(dy, start / channels, part, pixels, channels))
    }
    .0
}

negscale_cpu::for_this_cpu! {
    fn share_out(dy: &[f32], first: usize, part: &mut [MaybeUninit<f32>], pixels: usize, channels: usize) {
        let share = 1.0 / pixels as f32;
        for (i, pixel) in part.chunks_mut(channels).enumerate() {
            let image = (first + i) / pixels;
            for (to, &dy) in pixel.iter_mut().zip(&dy[image * channels..]) {
                to.write(dy * share);
            }
        }
    }
}

/// Mean of each window.
pub(crate) fn average(x: &[f32], grid: &Grid, count_padding: bool) -> Vec<f32> {
    // SAFETY: pieces are whole pixels, and `average_pixels` fills each.
    unsafe {
        fill(grid.outputs(), piece(grid), |start, part| {
            average_pixels(x, grid, count_padding, start / grid.channels, part);
        })
    }
    .0
}

/// Gradient of [`average`].
pub(crate) fn average_gradient(dy: &[f32], grid: &Grid, count_padding: bool) -> Vec<f32> {
    // SAFETY: pieces are whole pixels, and `gather_pixels` fills each.
    unsafe {
        fill(grid.inputs(), piece(grid), |start, part| {
            gather_pixels(dy, grid, count_padding, start / grid.channels, part);
        })
    }
    .0
}

/// Largest value of each window.
pub(crate) fn largest(x: &[f32], grid: &Grid) -> Vec<f32> {
    // SAFETY: pieces are whole pixels, and `largest_pixels` fills each.
    unsafe {
        fill(grid.outputs(), piece(grid), |start, part| {
            largest_pixels(x, grid, start / grid.channels, part);
        })
    }
    .0
}

/// Gradient of [`largest`]: all of it goes to the first position that holds the largest value.
pub(crate) fn largest_gradient(dy: &[f32], x: &[f32], grid: &Grid) -> Vec<f32> {
    let image = grid.height * grid.width * grid.channels;
    let images = (ChannelRows::new(grid.channels).piece / image.max(1)).max(1);
    // SAFETY: every value of a piece is first set to zero.
    unsafe {
        fill(grid.inputs(), images * image, |start, part| {
            let part = start_with(part, None);
            scatter_images(dy, x, grid, start / image, part);
        })
    }
    .0
}

/// Values in a piece: whole pixels, about 64 KiB.
fn piece(grid: &Grid) -> usize {
    ChannelRows::new(grid.channels).piece / grid.channels.max(1) * grid.channels.max(1)
}

negscale_cpu::for_this_cpu! {
    fn average_pixels(x: &[f32], grid: &Grid, count_padding: bool, first: usize, part: &mut [MaybeUninit<f32>]) {
        let channels = grid.channels;
        let mut taps = Vec::new();
        for (i, pixel) in part.chunks_mut(channels).enumerate() {
            let [b, row, column] = grid.place(first + i);
            grid.find_taps(b, row, column, &mut taps);
            let pixel = start_with(pixel, taps.first().map(|&at| &x[at..at + channels]));
            for &at in taps.iter().skip(1) {
                for (sum, &v) in pixel.iter_mut().zip(&x[at..at + channels]) {
                    *sum += v;
                }
            }
            let share = grid.share(row, column, count_padding);
            for sum in pixel {
                *sum *= share;
            }
        }
    }
}

negscale_cpu::for_this_cpu! {
    fn gather_pixels(dy: &[f32], grid: &Grid, count_padding: bool, first: usize, part: &mut [MaybeUninit<f32>]) {
        let Grid { height, width, channels, out: [oh, ow], .. } = *grid;
        for (i, pixel) in part.chunks_mut(channels).enumerate() {
            let at = first + i;
            let (b, row, column) = (at / (height * width), at / width % height, at % width);
            let pixel = start_with(pixel, None);
            for y in grid.covering(0, row) {
                for x in grid.covering(1, column) {
                    let share = grid.share(y, x, count_padding);
                    let from = ((b * oh + y) * ow + x) * channels;
                    for (to, &dy) in pixel.iter_mut().zip(&dy[from..from + channels]) {
                        *to += dy * share;
                    }
                }
            }
        }
    }
}

negscale_cpu::for_this_cpu! {
    fn largest_pixels(x: &[f32], grid: &Grid, first: usize, part: &mut [MaybeUninit<f32>]) {
        let channels = grid.channels;
        let mut taps = Vec::new();
        for (i, pixel) in part.chunks_mut(channels).enumerate() {
            let [b, row, column] = grid.place(first + i);
            grid.find_taps(b, row, column, &mut taps);
            let pixel = start_with(pixel, taps.first().map(|&at| &x[at..at + channels]));
            for &at in taps.iter().skip(1) {
                for (best, &v) in pixel.iter_mut().zip(&x[at..at + channels]) {
                    *best = if beats(v, *best) { v } else { *best };
                }
            }
        }
    }
}

negscale_cpu::for_this_cpu! {
    fn scatter_images(dy: &[f32], x: &[f32], grid: &Grid, first: usize, part: &mut [f32]) {
        let Grid { height, width, channels, out: [oh, ow], .. } = *grid;
        let size = height * width * channels;
        let mut taps = Vec::new();
        for (i, image) in part.chunks_mut(size).enumerate() {
            let b = first + i;
            let x = &x[b * size..(b + 1) * size];
            for row in 0..oh {
                for column in 0..ow {
                    grid.find_taps(0, row, column, &mut taps);
                    let from = ((b * oh + row) * ow + column) * channels;
                    let dy = &dy[from..from + channels];
                    // So many channels at a time that all of their numbers stay in registers.
                    let mut c = 0;
                    while c < channels {
                        let count = (channels - c).min(LANES);
                        if count == LANES {
                            scatter_channels::<LANES>(&taps, x, c, &dy[c..], image);
                        } else {
                            (c..channels).for_each(|c| scatter_channels::<1>(&taps, x, c, &dy[c..], image));
                        }
                        c += count;
                    }
                }
            }
        }
    }
}

/// Channels that [`scatter_channels`] takes at a time.
const LANES: usize = 16;

/// Gives the gradient of `N` channels from `c` on to the first of the taps that holds the largest value.
#[inline(always)]
fn scatter_channels<const N: usize>(taps: &[usize], x: &[f32], c: usize, dy: &[f32], image: &mut [f32]) {
    let Some((&first, others)) = taps.split_first() else { return };
    let (mut best, mut which) = ([0.0f32; N], [0u32; N]);
    best.copy_from_slice(&x[first + c..first + c + N]);
    for (k, &at) in (1u32..).zip(others) {
        let mut values = [0.0f32; N];
        values.copy_from_slice(&x[at + c..at + c + N]);
        for j in 0..N {
            let wins = beats(values[j], best[j]);
            best[j] = if wins { values[j] } else { best[j] };
            which[j] = if wins { k } else { which[j] };
        }
    }
    let mut share = [0.0f32; N];
    share.copy_from_slice(&dy[..N]);
    for (k, &at) in (0u32..).zip(taps) {
        let to = &mut image[at + c..at + c + N];
        let mut sums = [0.0f32; N];
        sums.copy_from_slice(to);
        for j in 0..N {
            sums[j] += if which[j] == k { share[j] } else { 0.0 };
        }
        to.copy_from_slice(&sums);
    }
}

/// Whether `v` replaces the largest value so far. Not-a-number always does, and stays, as in PyTorch.
#[inline(always)]
fn beats(v: f32, best: f32) -> bool {
    // Without a branch, so that loops over channels become vector code.
    (v > best) | v.is_nan()
}

/// Gives a pixel its first values (zeros if there are none).
#[inline(always)]
fn start_with<'a>(pixel: &'a mut [MaybeUninit<f32>], values: Option<&[f32]>) -> &'a mut [f32] {
    match values {
        Some(values) => pixel.write_copy_of_slice(values),
        None => {
            for slot in pixel.iter_mut() {
                slot.write(0.0);
            }
            // SAFETY: every value was written by the loop above.
            unsafe { pixel.assume_init_mut() }
        }
    }
}
