//! Convolutions whose factors are rounded to bf16: see [`wide`] for the arithmetic.

mod direct;
mod point;
mod tile;
mod weight;
mod wide;
mod winograd;

use super::Shape;

pub(super) use direct::{forward_packed, packed};

/// See [`super::forward`].
pub(super) fn forward(
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    skip: Option<&[f32]>,
    shape: &Shape,
    out: [usize; 2],
) -> Vec<f32> {
    if winograd::pays(shape, out) {
        return winograd::forward(x, weight, bias, skip, shape, out);
    }
    direct::forward(x, weight, bias, skip, shape, out)
}

/// See [`super::data_gradient`].
pub(super) fn data_gradient(dy: &[f32], weight: &[f32], shape: &Shape, out: [usize; 2]) -> Vec<f32> {
    if winograd::pays(shape, out) {
        return winograd::data_gradient(dy, weight, shape, out);
    }
    direct::data_gradient(dy, weight, shape, out)
}

/// See [`super::weight_gradient`].
pub(super) fn weight_gradient(x: &[f32], dy: &[f32], shape: &Shape, out: [usize; 2]) -> Vec<f32> {
    if winograd::pays_for_weights(shape, out) {
        return winograd::weight_gradient(x, dy, shape, out);
    }
    if crate::conv::point::fits(shape) {
        return point::gradient(x, dy, shape);
    }
    weight::gradient(x, dy, shape)
}
