//! The operations that image networks spend their time in, fast on a CPU, for burn tensors.
//!
//! **Layout.** Images are channels-last: `[batch, height, width, channels]`. Convolution weights keep PyTorch's order
//! `[out, in, height, width]`, dense weights `[out, in]`, so that published weights load as they are.

pub mod conv;
pub mod update;

use burn::tensor::module::{avg_pool2d, max_pool2d};
use burn::tensor::ops::{AvgPoolOptions, ConvOptions, MaxPoolOptions};
use burn::tensor::{Tensor, activation};

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

/// Convolution without bias.
pub fn conv(x: Tensor<4>, weight: Tensor<4>, window: Window) -> Tensor<4> {
    let options = ConvOptions::new(window.stride, window.padding, [1, 1], 1);
    burn::tensor::module::conv2d(x.permute([0, 3, 1, 2]), weight, None, options).permute([0, 2, 3, 1])
}

/// Convolution, then a sum with `skip`, which has the shape of the result.
pub fn conv_add(x: Tensor<4>, weight: Tensor<4>, skip: Tensor<4>, window: Window) -> Tensor<4> {
    conv(x, weight, window) + skip
}

/// Convolution with a bias per output channel.
pub fn conv_bias(x: Tensor<4>, weight: Tensor<4>, bias: Tensor<1>, window: Window) -> Tensor<4> {
    let [channels] = bias.dims();
    conv(x, weight, window) + bias.reshape([1, 1, 1, channels])
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
    stock_norm(x, scale, shift, None, epsilon, act)
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
    stock_norm(x, scale, shift, Some(skip), epsilon, act)
}

fn stock_norm(
    x: Tensor<4>,
    scale: Tensor<1>,
    shift: Tensor<1>,
    skip: Option<Tensor<4>>,
    epsilon: f64,
    act: Activation,
) -> Normed {
    let [b, h, w, c] = x.dims();
    let flat = x.reshape([b * h * w, c]);
    let mean = flat.clone().mean_dim(0);
    let centred = flat - mean.clone();
    let variance = centred.clone().powi_scalar(2).mean_dim(0);
    let out = centred / (variance.clone() + epsilon).sqrt() * scale.reshape([1, c]) + shift.reshape([1, c]);
    let out = out.reshape([b, h, w, c]);
    let out = activate(if let Some(skip) = skip { out + skip } else { out }, act);
    Normed { out, mean: mean.reshape([c]).detach(), variance: variance.reshape([c]).detach() }
}

/// Batch norm with given statistics, as in evaluation: `activation(scale * (x - mean) / sqrt(variance + epsilon) + shift)`.
/// Differentiable in `x`, `scale` and `shift`.
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
    let [_, _, _, c] = x.dims();
    let factor = (scale / (variance + epsilon).sqrt()).reshape([1, 1, 1, c]);
    let out = (x - mean.reshape([1, 1, 1, c])) * factor + shift.reshape([1, 1, 1, c]);
    activate(if let Some(skip) = skip { out + skip } else { out }, act)
}

/// The activation alone.
pub fn activate<const D: usize>(x: Tensor<D>, act: Activation) -> Tensor<D> {
    match act {
        Activation::None => x,
        Activation::Relu => activation::relu(x),
        Activation::Leaky(slope) => activation::leaky_relu(x, f64::from(slope)),
    }
}

/// Mean over all positions of an image.
pub fn mean_pool(x: Tensor<4>) -> Tensor<2> {
    let [b, h, w, c] = x.dims();
    x.reshape([b, h * w, c]).mean_dim(1).reshape([b, c])
}

/// Mean over windows; padded zeros count only if `count_padding`.
pub fn avg_pool(x: Tensor<4>, window: Window, count_padding: bool) -> Tensor<4> {
    let options = AvgPoolOptions::new(window.kernel)
        .with_stride(window.stride)
        .with_padding(window.padding)
        .with_count_include_pad(count_padding);
    avg_pool2d(x.permute([0, 3, 1, 2]), options).permute([0, 2, 3, 1])
}

/// Largest value of each window.
pub fn max_pool(x: Tensor<4>, window: Window) -> Tensor<4> {
    let options = MaxPoolOptions::new(window.kernel).with_stride(window.stride).with_padding(window.padding);
    max_pool2d(x.permute([0, 3, 1, 2]), options).permute([0, 2, 3, 1])
}

/// Dense layer: `activation(x weight^T + bias)` with `weight` of shape `[out, in]`.
pub fn dense(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>, act: Activation) -> Tensor<2> {
    let out = x.matmul(weight.transpose());
    activate(if let Some(bias) = bias { out + bias.unsqueeze::<2>() } else { out }, act)
}
