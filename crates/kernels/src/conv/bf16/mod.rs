//! Convolutions whose factors are rounded to bf16: see [`wide`] for the arithmetic.

mod tile;
pub(super) mod wide;
mod winograd;

use super::Shape;

/// The nearest bf16 (ties to even), as an `f32`.
fn rounded(values: &[f32]) -> Vec<f32> {
    values.iter().map(|&value| wide::widen(wide::round(value))).collect()
}

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
    super::forward(&rounded(x), &rounded(weight), bias, skip, shape, crate::Precision::F32)
}

/// See [`super::data_gradient`].
pub(super) fn data_gradient(dy: &[f32], weight: &[f32], shape: &Shape, out: [usize; 2]) -> Vec<f32> {
    if winograd::pays(shape, out) {
        return winograd::data_gradient(dy, weight, shape, out);
    }
    super::data_gradient(&rounded(dy), &rounded(weight), shape, crate::Precision::F32)
}

/// See [`super::weight_gradient`].
pub(super) fn weight_gradient(x: &[f32], dy: &[f32], shape: &Shape, out: [usize; 2]) -> Vec<f32> {
    if winograd::pays(shape, out) {
        return winograd::weight_gradient(x, dy, shape, out);
    }
    super::weight_gradient(&rounded(x), &rounded(dy), shape, crate::Precision::F32)
}
