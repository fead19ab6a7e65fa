//! Convolution of channels-last images, on slices: forward, gradient of the data, gradient of the weights.
//!
//! Two ways, chosen by the shape alone: `gather` (any window; a matrix product that reads windows where they are) and `winograd`
//! (3x3 windows of stride 1 with enough channels; a quarter of the multiplications). Sums over pixels and channels are taken in
//! an order that the shape fixes, so the number of threads does not change a bit of any result.

mod bf16;
mod gather;
mod packed;
mod point;
pub(crate) mod tile;
mod weight;
mod winograd;

pub use packed::Packed;

use crate::{Precision, Window};
use rayon::prelude::*;

/// No copy that a kernel makes is larger than what it copies by more than this factor (a tile has 96 numbers).
const LARGEST_COPY: usize = 128;

/// Sizes of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Images in the batch.
    pub batch: usize,
    /// Rows of an input image.
    pub height: usize,
    /// Columns of an input image.
    pub width: usize,
    /// Channels of the input.
    pub inputs: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// Kernel size, stride and padding.
    pub window: Window,
}

impl Shape {
    /// Rows and columns of the output; `None` if the padded image is smaller than the kernel (or has more rows or columns than
    /// can be counted) or a stride is 0.
    pub fn out(&self) -> Option<[usize; 2]> {
        let side = |size: usize, axis: usize| {
            let window = self.window;
            let padded = window.padding[axis].checked_mul(2)?.checked_add(size)?;
            padded.checked_sub(window.kernel[axis])?.checked_div(window.stride[axis])?.checked_add(1)
        };
        Some([side(self.height, 0)?, side(self.width, 1)?])
    }

    #[expect(clippy::panic, reason = "whoever calls a kernel sees to the shapes")]
    pub(crate) fn checked_out(&self) -> [usize; 2] {
        let Some(out) = self.out().filter(|_| self.window.kernel.iter().all(|&k| k > 0)) else {
            panic!("convolution: the kernel does not fit: {self:?}");
        };
        assert!(self.countable(out), "convolution: more numbers than memory can hold: {self:?}");
        out
    }

    /// Whether the padded input, the output and the weights, and copies of them filled up to whole tiles, have sizes that a
    /// `usize` can hold. The kernels rely on it: a product that wraps would make a buffer too small. An empty axis
    /// counts as one, so that the others are looked at too.
    fn countable(&self, [oh, ow]: [usize; 2]) -> bool {
        let Self { batch, height, width, inputs, outputs, window } = *self;
        let ([kh, kw], [ph, pw]) = (window.kernel, window.padding);
        [
            [batch, height + 2 * ph, width + 2 * pw, inputs],
            [batch, oh, ow, outputs],
            [outputs, inputs, kh, kw],
        ]
        .iter()
        .all(|sizes| {
            let count = sizes.iter().try_fold(1usize, |count, &size| count.checked_mul(size.max(1)));
            count.is_some_and(|count| count <= usize::MAX / LARGEST_COPY)
        })
    }

    fn x_len(&self) -> usize {
        self.batch * self.height * self.width * self.inputs
    }

    fn y_len(&self) -> usize {
        let [oh, ow] = self.checked_out();
        self.batch * oh * ow * self.outputs
    }

    fn weight_len(&self) -> usize {
        self.outputs * self.inputs * self.window.kernel[0] * self.window.kernel[1]
    }
}

/// `y = conv(x, weight) + bias + skip`. `x` is `[batch, height, width, inputs]`, `weight` `[outputs, inputs, kernel, kernel]`,
/// the result and `skip` `[batch, out height, out width, outputs]`.
///
/// # Panics
/// If a slice has not the length that `shape` says, or `shape` has no output or more numbers than memory can hold.
pub fn forward(
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    skip: Option<&[f32]>,
    shape: &Shape,
    precision: Precision,
) -> Vec<f32> {
    let out = shape.checked_out();
    check("x", x, shape.x_len(), shape);
    check("weight", weight, shape.weight_len(), shape);
    bias.inspect(|bias| check("bias", bias, shape.outputs, shape));
    skip.inspect(|skip| check("skip", skip, shape.y_len(), shape));
    if shape.y_len() == 0 {
        return Vec::new();
    }
    if precision == Precision::Bf16 {
        return bf16::forward(x, weight, bias, skip, shape, out);
    }
    if winograd::pays(shape, out) {
        return winograd::forward(x, weight, bias, skip, shape, out);
    }
    gather::forward(x, weight, bias, skip, shape, out)
}

/// Gradient with respect to `x`, of the shape of `x`.
///
/// # Panics
/// If a slice has not the length that `shape` says, or `shape` has no output or more numbers than memory can hold.
pub fn data_gradient(dy: &[f32], weight: &[f32], shape: &Shape, precision: Precision) -> Vec<f32> {
    let out = shape.checked_out();
    check("dy", dy, shape.y_len(), shape);
    check("weight", weight, shape.weight_len(), shape);
    if shape.x_len() == 0 {
        return Vec::new();
    }
    if dy.is_empty() {
        return vec![0.0; shape.x_len()];
    }
    if precision == Precision::Bf16 {
        return bf16::data_gradient(dy, weight, shape, out);
    }
    if winograd::pays(shape, out) {
        return winograd::data_gradient(dy, weight, shape, out);
    }
    gather::data_gradient(dy, weight, shape, out)
}

/// Gradient with respect to `weight`, of the shape of `weight`.
///
/// # Panics
/// If a slice has not the length that `shape` says, or `shape` has no output or more numbers than memory can hold.
pub fn weight_gradient(x: &[f32], dy: &[f32], shape: &Shape, precision: Precision) -> Vec<f32> {
    let out = shape.checked_out();
    check("x", x, shape.x_len(), shape);
    check("dy", dy, shape.y_len(), shape);
    if shape.x_len() == 0 || shape.y_len() == 0 {
        return vec![0.0; shape.weight_len()];
    }
    if precision == Precision::Bf16 {
        return bf16::weight_gradient(x, dy, shape, out);
    }
    if winograd::pays(shape, out) {
        return winograd::weight_gradient(x, dy, shape, out);
    }
    if point::fits(shape) {
        return point::gradient(x, dy, shape);
    }
    weight::gradient(x, dy, shape, out)
}

fn check(name: &str, slice: &[f32], length: usize, shape: &Shape) {
    assert!(
        slice.len() == length,
        "convolution: {name} has {} numbers, its shape says {length}: {shape:?}",
        slice.len()
    );
}

/// Multiply-adds below which waking other threads costs more than it saves.
const SHARED_FROM: usize = 1 << 20;

/// Calls `piece(n)` for all `n < pieces`, on all cores if there are enough multiply-adds to do.
fn parallel(pieces: usize, work: usize, piece: impl Fn(usize) + Sync + Send) {
    if work < SHARED_FROM || pieces < 2 {
        (0..pieces).for_each(piece);
    } else {
        (0..pieces).into_par_iter().with_max_len(1).for_each(piece);
    }
}
