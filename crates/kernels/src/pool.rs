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

    /// The positions of image `b` covered by output (`y`, `x`), as offsets of their first channel.
    #[inline(always)]
    fn taps(&self, b: usize, y: usize, x: usize) -> Taps {
        let Self { height, width, channels, .. } = *self;
        let (rows, columns) = (self.covered(0, y, height), self.covered(1, x, width));
        let first = ((b * height + rows.start) * width + columns.start) * channels;
        let (rows, columns) = (rows.len(), columns.len());
        Taps {
            at: first,
            left: columns,
            rows: if columns > 0 { rows } else { 0 },
            columns,
            channels,
            line: width * channels,
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

/// Row by row through a window. By hand, because the adapters of iterators are not compiled with the instructions of the function
/// they are used in, and each of their steps is then a call.
struct Taps {
    at: usize,
    /// Columns left in this row, and rows left with this one.
    left: usize,
    rows: usize,
    columns: usize,
    channels: usize,
    /// Values from one row of the image to the next.
    line: usize,
}

impl Iterator for Taps {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.rows == 0 {
            return None;
        }
        let here = self.at;
        self.left -= 1;
        if self.left > 0 {
            self.at += self.channels;
        } else {
            self.rows -= 1;
            self.left = self.columns;
            self.at = here + self.line - (self.columns - 1) * self.channels;
        }
        Some(here)
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
        for (i, pixel) in part.chunks_mut(channels).enumerate() {
            let [b, row, column] = grid.place(first + i);
            let mut taps = grid.taps(b, row, column);
            let pixel = start_with(pixel, taps.next().map(|at| &x[at..at + channels]));
            for at in taps {
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
        for (i, pixel) in part.chunks_mut(channels).enumerate() {
            let [b, row, column] = grid.place(first + i);
            let mut taps = grid.taps(b, row, column);
            let pixel = start_with(pixel, taps.next().map(|at| &x[at..at + channels]));
            for at in taps {
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
        let mut best = vec![0.0f32; channels];
        let mut which = vec![0u32; channels];
        for (i, image) in part.chunks_mut(height * width * channels).enumerate() {
            let b = first + i;
            for pixel in 0..oh * ow {
                let (row, column) = (pixel / ow, pixel % ow);
                for (k, at) in (0u32..).zip(grid.taps(b, row, column)) {
                    let values = &x[at..at + channels];
                    if k == 0 {
                        best.copy_from_slice(values);
                        which.fill(0);
                        continue;
                    }
                    for ((&v, best), which) in values.iter().zip(&mut best).zip(&mut which) {
                        let wins = beats(v, *best);
                        *best = if wins { v } else { *best };
                        *which = if wins { k } else { *which };
                    }
                }
                let from = ((b * oh + row) * ow + column) * channels;
                let dy = &dy[from..from + channels];
                for (k, at) in (0u32..).zip(grid.taps(0, row, column)) {
                    for ((to, &dy), &which) in image[at..at + channels].iter_mut().zip(dy).zip(&which) {
                        *to += if which == k { dy } else { 0.0 };
                    }
                }
            }
        }
    }
}

/// Whether `v` replaces the largest value so far. Not-a-number always does, and stays, as in PyTorch.
#[inline(always)]
fn beats(v: f32, best: f32) -> bool {
    v > best || v.is_nan()
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
