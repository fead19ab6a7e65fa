//! The operations that image networks spend their time in, fast on a CPU, for burn tensors.
//!
//! **Layout.** Images are channels-last: `[batch, height, width, channels]`. Convolution weights keep PyTorch's order
//! `[out, in, height, width]`, dense weights `[out, in]`, so that published weights load as they are.
//!
//! **Where they run.** On burn's CPU backend f32 tensors are given to kernels of our own, with backward passes written by
//! hand; other float types and GPU backends use burn's own operations. Results do not depend on the number of threads.
//!
//! # Panics
//! Like burn's own operations, all functions panic if shapes do not fit: that is a mistake in a network, not in its input.

pub mod conv;
mod flex;
#[cfg(test)]
mod in_place;
pub mod inference;
mod lane;
mod norm;
mod ops;
mod pool;
mod rows;
mod scratch;
mod slope;
mod stock;
mod tape;
pub mod update;

use burn::backend::{Dispatch, DispatchTensor};
use burn::tensor::Tensor;

pub use tape::listening::{Meter, listen};

use ops::Ops;

/// A sliding window: kernel size, stride and zero padding, each as (rows, columns). The kernel size of a convolution is
/// that of its weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Rows and columns of the window.
    pub kernel: [usize; 2],
    /// Step from one output to the next.
    pub stride: [usize; 2],
    /// Zeros added on each side.
    pub padding: [usize; 2],
}

impl Window {
    /// A square window.
    pub fn square(kernel: usize, stride: usize, padding: usize) -> Self {
        Self { kernel: [kernel; 2], stride: [stride; 2], padding: [padding; 2] }
    }
}

/// What follows a linear operation: `v` where positive, `slope * v` elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// Nothing (slope 1).
    None,
    /// Rectifier (slope 0).
    Relu,
    /// Leaky rectifier with this slope, in [0, 1).
    Leaky(f32),
}

/// How products of convolutions and dense layers are taken, forward and backward. Sums, parameters and everything else are
/// `f32` either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// Factors as they are.
    #[default]
    F32,
    /// Factors rounded to bf16 (8 bits of mantissa, to nearest, ties to even).
    Bf16,
}

/// The precision with which this CPU is fastest: bf16 where it has instructions for it, f32 elsewhere.
pub fn fast_precision() -> Precision {
    if negscale_cpu::has_bf16() { Precision::Bf16 } else { Precision::F32 }
}

/// Convolution without bias.
pub fn conv(x: Tensor<4>, weight: Tensor<4>, window: Window, precision: Precision) -> Tensor<4> {
    check_conv("conv", &x, &weight, window);
    Tensor::from_dispatch(Dispatch::conv(x.into_dispatch(), weight.into_dispatch(), window, precision))
}

/// Convolution, then a sum with `skip`, which has the shape of the result.
pub fn conv_add(
    x: Tensor<4>,
    weight: Tensor<4>,
    skip: Tensor<4>,
    window: Window,
    precision: Precision,
) -> Tensor<4> {
    let out = check_conv("conv_add", &x, &weight, window);
    assert!(skip.dims() == out, "conv_add: skip has shape {:?}, but the result has {out:?}", skip.dims());
    let (x, weight, skip) = (x.into_dispatch(), weight.into_dispatch(), skip.into_dispatch());
    Tensor::from_dispatch(Dispatch::conv_add(x, weight, skip, window, precision))
}

/// Convolution with a bias per output channel.
pub fn conv_bias(
    x: Tensor<4>,
    weight: Tensor<4>,
    bias: Tensor<1>,
    window: Window,
    precision: Precision,
) -> Tensor<4> {
    let [_, _, _, channels] = check_conv("conv_bias", &x, &weight, window);
    check_vectors("conv_bias", channels, [("bias", &bias)]);
    let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
    Tensor::from_dispatch(Dispatch::conv_bias(x, weight, bias, window, precision))
}

/// What batch norm found in a training batch.
#[derive(Debug, Clone)]
pub struct Normed {
    /// The normalised, scaled, shifted and activated batch.
    pub out: Tensor<4>,
    /// Mean per channel (no gradient).
    pub mean: Tensor<1>,
    /// Variance per channel, divided by the count (no gradient).
    pub variance: Tensor<1>,
}

/// Batch norm with the statistics of the batch: `activation(scale * (x - mean) / sqrt(variance + epsilon) + shift)`.
pub fn norm(x: Tensor<4>, scale: Tensor<1>, shift: Tensor<1>, epsilon: f64, act: Activation) -> Normed {
    let [_, _, _, channels] = x.dims();
    check_vectors("norm", channels, [("scale", &scale), ("shift", &shift)]);
    check_slope("norm", act);
    let (x, scale, shift) = (x.into_dispatch(), scale.into_dispatch(), shift.into_dispatch());
    Normed::from_parts(Dispatch::norm(x, scale, shift, epsilon, act))
}

/// As [`norm`], with `skip` (of the shape of `x`) added before the activation.
pub fn norm_add(
    x: Tensor<4>,
    scale: Tensor<1>,
    shift: Tensor<1>,
    skip: Tensor<4>,
    epsilon: f64,
    act: Activation,
) -> Normed {
    let [_, _, _, channels] = x.dims();
    check_vectors("norm_add", channels, [("scale", &scale), ("shift", &shift)]);
    check_slope("norm_add", act);
    check_skip("norm_add", &x, &skip);
    let (x, scale, shift) = (x.into_dispatch(), scale.into_dispatch(), shift.into_dispatch());
    Normed::from_parts(Dispatch::norm_add(x, scale, shift, skip.into_dispatch(), epsilon, act))
}

impl Normed {
    fn from_parts((out, mean, variance): (DispatchTensor, DispatchTensor, DispatchTensor)) -> Self {
        Self {
            out: Tensor::from_dispatch(out),
            mean: Tensor::from_dispatch(mean),
            variance: Tensor::from_dispatch(variance),
        }
    }
}

/// Batch norm with given statistics, as in evaluation: `activation(scale * (x - mean) / sqrt(variance + epsilon) + shift)`.
/// Differentiable in `x`, `scale`, `shift` and `skip`; mean and variance are constants.
#[allow(clippy::too_many_arguments)]
pub fn norm_fixed(
    x: Tensor<4>,
    scale: Tensor<1>,
    shift: Tensor<1>,
    mean: Tensor<1>,
    variance: Tensor<1>,
    skip: Option<Tensor<4>>,
    epsilon: f64,
    act: Activation,
) -> Tensor<4> {
    let [_, _, _, channels] = x.dims();
    let vectors = [("scale", &scale), ("shift", &shift), ("mean", &mean), ("variance", &variance)];
    check_vectors("norm_fixed", channels, vectors);
    check_slope("norm_fixed", act);
    if let Some(skip) = &skip {
        check_skip("norm_fixed", &x, skip);
    }
    let (x, scale, shift) = (x.into_dispatch(), scale.into_dispatch(), shift.into_dispatch());
    let (mean, variance) = (mean.into_dispatch(), variance.into_dispatch());
    Tensor::from_dispatch(match skip {
        None => Dispatch::norm_fixed(x, scale, shift, mean, variance, epsilon, act),
        Some(skip) => {
            Dispatch::norm_fixed_add(x, scale, shift, mean, variance, skip.into_dispatch(), epsilon, act)
        }
    })
}

/// The activation alone.
pub fn activate<const D: usize>(x: Tensor<D>, act: Activation) -> Tensor<D> {
    check_slope("activate", act);
    match act {
        Activation::None => x,
        act => Tensor::from_dispatch(Dispatch::activate(x.into_dispatch(), act)),
    }
}

/// Mean over all positions of an image.
pub fn mean_pool(x: Tensor<4>) -> Tensor<2> {
    let [_, height, width, _] = x.dims();
    assert!(height > 0 && width > 0, "mean_pool: images of {height} x {width} pixels have no mean");
    Tensor::from_dispatch(Dispatch::mean_pool(x.into_dispatch()))
}

/// Mean over windows; padded zeros count only if `count_padding`. Padding is at most half the kernel.
pub fn avg_pool(x: Tensor<4>, window: Window, count_padding: bool) -> Tensor<4> {
    check_pool("avg_pool", &x, window);
    Tensor::from_dispatch(Dispatch::avg_pool(x.into_dispatch(), window, count_padding))
}

/// Largest value of each window; its gradient goes to the first position that holds it. Padding is at most half the kernel.
pub fn max_pool(x: Tensor<4>, window: Window) -> Tensor<4> {
    check_pool("max_pool", &x, window);
    Tensor::from_dispatch(Dispatch::max_pool(x.into_dispatch(), window))
}

/// Dense layer: `activation(x weight^T + bias)` with `weight` of shape `[out, in]`.
pub fn dense(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    act: Activation,
    precision: Precision,
) -> Tensor<2> {
    let ([_, inputs], [outputs, expected]) = (x.dims(), weight.dims());
    assert!(
        inputs == expected,
        "dense: x has shape {:?}, but weight has {:?}: the second sizes must agree",
        x.dims(),
        weight.dims()
    );
    check_slope("dense", act);
    if let Some(bias) = &bias {
        check_vectors("dense", outputs, [("bias", bias)]);
    }
    let (x, weight) = (x.into_dispatch(), weight.into_dispatch());
    Tensor::from_dispatch(match bias {
        None => Dispatch::dense(x, weight, act, precision),
        Some(bias) => Dispatch::dense_bias(x, weight, bias.into_dispatch(), act, precision),
    })
}

/// Checks the sizes of a convolution, and gives the shape of its result.
#[expect(
    clippy::panic,
    reason = "sizes that do not fit are the caller's mistake, as in burn's own operations"
)]
fn check_conv(name: &str, x: &Tensor<4>, weight: &Tensor<4>, window: Window) -> [usize; 4] {
    let ([batch, height, width, inputs], [outputs, expected, kh, kw]) = (x.dims(), weight.dims());
    assert!(
        inputs == expected,
        "{name}: x has shape {:?} (channels last), but weight has {:?}: {expected} input channels",
        x.dims(),
        weight.dims()
    );
    let window = Window { kernel: [kh, kw], ..window };
    let shape = conv::Shape { batch, height, width, inputs, outputs, window };
    let Some([oh, ow]) = shape.out() else {
        panic!(
            "{name}: no output for x of shape {:?} and {window:?}: the padded image is smaller than the kernel, or a stride is 0",
            x.dims()
        );
    };
    [batch, oh, ow, outputs]
}

fn check_pool(name: &str, x: &Tensor<4>, window: Window) {
    let [batch, height, width, channels] = x.dims();
    let shape = conv::Shape { batch, height, width, inputs: channels, outputs: channels, window };
    let fits = (0..2).all(|axis| window.kernel[axis] > 0 && 2 * window.padding[axis] <= window.kernel[axis]);
    assert!(
        fits && shape.out().is_some(),
        "{name}: no output for x of shape {:?} and {window:?}: the padded image is smaller than the kernel, a stride or \
         the kernel is 0, or the padding is more than half the kernel",
        x.dims()
    );
}

fn check_vectors<const N: usize>(name: &str, channels: usize, vectors: [(&str, &Tensor<1>); N]) {
    for (vector, tensor) in vectors {
        assert!(
            tensor.dims() == [channels],
            "{name}: {vector} has shape {:?}, but there are {channels} channels",
            tensor.dims()
        );
    }
}

fn check_skip(name: &str, x: &Tensor<4>, skip: &Tensor<4>) {
    let (x, skip) = (x.dims(), skip.dims());
    assert!(x == skip, "{name}: skip has shape {skip:?}, but x has {x:?}");
}

fn check_slope(name: &str, act: Activation) {
    if let Activation::Leaky(slope) = act {
        assert!(
            (0.0..1.0).contains(&slope),
            "{name}: the slope {slope} of the leaky rectifier is not in [0, 1)"
        );
    }
}
