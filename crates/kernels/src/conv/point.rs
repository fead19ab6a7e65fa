//! Gradient of the weights of dense layers and 1x1 convolutions of stride 1: one matrix product, $dW = dY^T X$ over all pixels.
//!
//! Rows of the product are output channels, columns input channels: just how the weights lie in memory. Some output channels at a
//! time, `dY` is transposed, so that a channel's pixels are one run for [`tile::rows`]; `X` is packed into panels.

use super::tile::{self, COLUMNS, Finish, Skip};
use super::{Shape, parallel};
use crate::lane::{Lane, dispatch};
use crate::scratch::{Scratch, Shared, filled};

/// Pixels whose products are added up before they go to memory: bounds the copies, and the length of sums in f32.
const PIXELS: usize = 1024;
/// Output channels of a piece of work.
const CHANNELS: usize = 48;

/// Whether this is such a layer.
pub(super) fn fits(shape: &Shape) -> bool {
    let window = shape.window;
    window.kernel == [1, 1] && window.stride == [1, 1] && window.padding == [0, 0]
}

/// One block of pixels, ready to be multiplied.
struct Block {
    /// The block's first pixel of the gradient.
    dy: Shared,
    /// Its inputs in panels of 16.
    panels: Shared,
    dw: Shared,
    pixels: usize,
    inputs: usize,
    outputs: usize,
    /// Whether the products are added to what is there.
    adds: bool,
}

/// See [`super::weight_gradient`].
pub(super) fn gradient(x: &[f32], dy: &[f32], shape: &Shape) -> Vec<f32> {
    let Shape { inputs, outputs, .. } = *shape;
    let total = shape.batch * shape.height * shape.width;
    let panels = inputs.div_ceil(COLUMNS);
    let mut packed = Scratch::take(panels * PIXELS.min(total) * COLUMNS);
    let packed = Shared::new(packed.as_mut_ptr());
    let blocks = outputs.div_ceil(CHANNELS);
    let groups = 8usize.div_ceil(blocks).min(panels.div_ceil(4));
    let group = panels.div_ceil(groups);
    let write = |dw: *mut f32| {
        let dw = Shared::new(dw);
        for start in (0..total).step_by(PIXELS) {
            let pixels = PIXELS.min(total - start);
            parallel(panels, pixels * inputs * 4, |p| {
                let (first, count) = (p * COLUMNS, (inputs - p * COLUMNS).min(COLUMNS));
                for n in 0..pixels {
                    let mut row = [0.0; COLUMNS];
                    row[..count].copy_from_slice(&x[(start + n) * inputs + first..][..count]);
                    // SAFETY: inside the buffer; every panel is written by its own work.
                    unsafe {
                        packed.get().add((p * pixels + n) * COLUMNS).cast::<[f32; COLUMNS]>().write(row)
                    };
                }
            });
            let from = Shared::new(dy[start * outputs..].as_ptr().cast_mut());
            let block = Block { dy: from, panels: packed, dw, pixels, inputs, outputs, adds: start > 0 };
            parallel(blocks * panels.div_ceil(group), pixels * inputs * outputs, |n| {
                let (channel, panel) = (n % blocks * CHANNELS, n / blocks * group);
                let (channels, last) = (CHANNELS.min(outputs - channel), (panel + group).min(panels));
                // SAFETY: the block's pointers cover its pixels; every piece has its own weights.
                unsafe { piece(&block, channel, channels, panel, last) };
            });
        }
    };
    // SAFETY: all channels of both sides are visited in the first block of pixels, and there is one.
    unsafe { filled(inputs * outputs, write) }
}

dispatch! {
    /// # Safety
    /// The block's pointers cover its pixels; nobody else writes the weights of these channels and panels.
    unsafe fn piece = piece_with(block: &Block, channel: usize, channels: usize, panel: usize, last: usize)
}

#[inline(always)]
unsafe fn piece_with<L: Lane>(block: &Block, channel: usize, channels: usize, panel: usize, last: usize) {
    let Block { pixels, inputs, outputs, .. } = *block;
    // Not a power of two apart, or all channels would fall into the same sets of the cache.
    let run = pixels.next_multiple_of(8) + 8;
    let mut turned = Scratch::take(channels * run);
    let turned = turned.as_mut_ptr();
    // SAFETY: pointers stay in the block, the copy and this piece's weights.
    unsafe {
        for n in 0..pixels {
            let from = block.dy.get().add(n * outputs + channel);
            for c in 0..channels {
                *turned.add(c * run + n) = *from.add(c);
            }
        }
        let mut panel = panel;
        while panel < last {
            let first = panel * COLUMNS;
            let wide = if L::ROWS > 6 && last - panel > 1 { 2 } else { 1 };
            let columns = (inputs - first).min(wide * COLUMNS);
            let skip = if block.adds { Skip::Target } else { Skip::Nothing };
            let finish = Finish { bias: std::ptr::null(), skip, clips: false, columns };
            let weights = block.panels.get().add(panel * pixels * COLUMNS);
            let to = block.dw.get().add(channel * inputs + first);
            let sizes = [channels, run, inputs, pixels];
            match (L::ROWS, wide) {
                (12, 2) => multiply::<L, 12, 2>(turned, to, sizes, weights, &finish),
                (12, _) => multiply::<L, 12, 1>(turned, to, sizes, weights, &finish),
                _ => multiply::<L, 6, 1>(turned, to, sizes, weights, &finish),
            }
            panel += wide;
        }
    }
}

/// The products of `channels` runs of `pixels` numbers, `run` apart, with `C` panels, into rows `inputs` apart.
///
/// # Safety
/// All of them exist.
#[inline(always)]
unsafe fn multiply<L: Lane, const R: usize, const C: usize>(
    turned: *const f32,
    to: *mut f32,
    [channels, run, inputs, pixels]: [usize; 4],
    weights: *const f32,
    finish: &Finish,
) {
    let mut nowhere = [0.0f32; 2 * COLUMNS];
    for start in (0..channels).step_by(R) {
        // Rows that do not exist go to a place of their own.
        let mut source = [turned; R];
        let mut target = [nowhere.as_mut_ptr(); R];
        // SAFETY: by contract.
        unsafe {
            for i in 0..R.min(channels - start) {
                source[i] = turned.add((start + i) * run);
                target[i] = to.add((start + i) * inputs);
            }
            tile::rows::<L, R, C>(&source, &target, 1, 0, pixels, weights, pixels * COLUMNS, finish);
        }
    }
}
