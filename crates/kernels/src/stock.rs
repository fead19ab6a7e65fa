//! The operations composed of burn's own, for every backend and float type: what runs on GPUs, and on the CPU for floats
//! other than f32. burn differentiates them.

use burn::backend::ops::ConvOptions;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Shape, TensorMetadata};

use crate::{Activation, Window};

const FIRST: [usize; 4] = [0, 3, 1, 2];
const LAST: [usize; 4] = [0, 2, 3, 1];

pub(crate) fn conv<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: Option<FloatTensor<B>>,
    window: Window,
) -> FloatTensor<B> {
    let options = ConvOptions::new(window.stride, window.padding, [1, 1], 1);
    B::float_permute(B::conv2d(B::float_permute(x, &FIRST), weight, bias, options), &LAST)
}

pub(crate) fn conv_add<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    skip: FloatTensor<B>,
    window: Window,
) -> FloatTensor<B> {
    B::float_add(conv::<B>(x, weight, None, window), skip)
}

/// Batch norm with the batch's statistics; output, mean, variance.
pub(crate) fn norm<B: Backend>(
    x: FloatTensor<B>,
    scale: FloatTensor<B>,
    shift: FloatTensor<B>,
    skip: Option<FloatTensor<B>>,
    epsilon: f64,
    act: Activation,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let c = x.shape()[3];
    // Axis by axis: one sum over all rows in f32 has fifty times the rounding on backends that add them one after the other.
    let mean_pixel = |x| [2, 1, 0].into_iter().fold(x, |x, axis| B::float_mean_dim(x, axis));
    let mean = mean_pixel(x.clone());
    let centred = B::float_sub(x, mean.clone());
    let variance = mean_pixel(B::float_mul(centred.clone(), centred.clone()));
    let deviation = B::float_sqrt(B::float_add_scalar(variance.clone(), epsilon.into()));
    let pixel = Shape::new([1, 1, 1, c]);
    let out = B::float_mul(B::float_div(centred, deviation), B::float_reshape(scale, pixel.clone()));
    let out = B::float_add(out, B::float_reshape(shift, pixel));
    let out = activate::<B>(if let Some(skip) = skip { B::float_add(out, skip) } else { out }, act);
    let vector = |tensor| B::float_detach(B::float_reshape(tensor, Shape::new([c])));
    (out, vector(mean), vector(variance))
}

/// Batch norm with given statistics.
#[allow(clippy::too_many_arguments)]
pub(crate) fn norm_fixed<B: Backend>(
    x: FloatTensor<B>,
    scale: FloatTensor<B>,
    shift: FloatTensor<B>,
    mean: FloatTensor<B>,
    variance: FloatTensor<B>,
    skip: Option<FloatTensor<B>>,
    epsilon: f64,
    act: Activation,
) -> FloatTensor<B> {
    let pixel = |tensor: FloatTensor<B>| {
        let c = tensor.shape()[0];
        B::float_reshape(tensor, Shape::new([1, 1, 1, c]))
    };
    let (mean, variance) = (B::float_detach(mean), B::float_detach(variance));
    let factor = B::float_div(scale, B::float_sqrt(B::float_add_scalar(variance, epsilon.into())));
    let out = B::float_add(B::float_mul(B::float_sub(x, pixel(mean)), pixel(factor)), pixel(shift));
    activate::<B>(if let Some(skip) = skip { B::float_add(out, skip) } else { out }, act)
}

pub(crate) fn activate<B: Backend>(x: FloatTensor<B>, act: Activation) -> FloatTensor<B> {
    match act {
        Activation::None => x,
        Activation::Relu => B::relu(x),
        Activation::Leaky(slope) => B::leaky_relu(x, slope.into()),
    }
}

pub(crate) fn mean_pool<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let shape = x.shape();
    let [b, c] = [shape[0], shape[3]];
    let flat = B::float_reshape(x, Shape::new([b, shape[1] * shape[2], c]));
    B::float_reshape(B::float_mean_dim(flat, 1), Shape::new([b, c]))
}

pub(crate) fn avg_pool<B: Backend>(x: FloatTensor<B>, window: Window, count_padding: bool) -> FloatTensor<B> {
    let Window { kernel, stride, padding } = window;
    let out = B::avg_pool2d(B::float_permute(x, &FIRST), kernel, stride, padding, count_padding, false);
    B::float_permute(out, &LAST)
}

pub(crate) fn max_pool<B: Backend>(x: FloatTensor<B>, window: Window) -> FloatTensor<B> {
    let Window { kernel, stride, padding } = window;
    let out = B::max_pool2d(B::float_permute(x, &FIRST), kernel, stride, padding, [1, 1], false);
    B::float_permute(out, &LAST)
}

pub(crate) fn dense<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: Option<FloatTensor<B>>,
    act: Activation,
) -> FloatTensor<B> {
    let out = B::float_matmul(x, B::float_transpose(weight));
    let out = match bias {
        Some(bias) => {
            let c = bias.shape()[0];
            B::float_add(out, B::float_reshape(bias, Shape::new([1, c])))
        }
        None => out,
    };
    activate::<B>(out, act)
}
