//! The activation as a type, so that each loop is compiled once per kind and has no branch inside.

use crate::Activation;
use std::mem::MaybeUninit;

/// `v` where positive, `slope * v` elsewhere.
pub(crate) trait Slope: Copy + Send + Sync {
    /// The activated value. Not-a-number stays so, as in PyTorch.
    fn apply(self, v: f32) -> f32;
    /// The gradient `dy` through the activation, where `v` is the value before or after it: for slopes in [0, 1) both
    /// have the same sign.
    fn pass(self, dy: f32, v: f32) -> f32;
}

/// Slope 1.
#[derive(Clone, Copy)]
pub(crate) struct Identity;

/// Slope 0.
#[derive(Clone, Copy)]
pub(crate) struct Rectifier;

/// Any other slope.
#[derive(Clone, Copy)]
pub(crate) struct Leak(pub f32);

impl Slope for Identity {
    #[inline(always)]
    fn apply(self, v: f32) -> f32 {
        v
    }
    #[inline(always)]
    fn pass(self, dy: f32, _: f32) -> f32 {
        dy
    }
}

impl Slope for Rectifier {
    #[inline(always)]
    fn apply(self, v: f32) -> f32 {
        if v < 0.0 { 0.0 } else { v }
    }
    #[inline(always)]
    fn pass(self, dy: f32, v: f32) -> f32 {
        if v <= 0.0 { 0.0 } else { dy }
    }
}

impl Slope for Leak {
    #[inline(always)]
    fn apply(self, v: f32) -> f32 {
        if v > 0.0 { v } else { self.0 * v }
    }
    #[inline(always)]
    fn pass(self, dy: f32, v: f32) -> f32 {
        if v > 0.0 { dy } else { self.0 * dy }
    }
}

/// Evaluates an expression with the slope's type known.
macro_rules! with_slope {
    ($act:expr, $slope:ident => $body:expr) => {
        match $act {
            $crate::Activation::None => {
                let $slope = $crate::slope::Identity;
                $body
            }
            $crate::Activation::Relu => {
                let $slope = $crate::slope::Rectifier;
                $body
            }
            $crate::Activation::Leaky(slope) => {
                let $slope = $crate::slope::Leak(slope);
                $body
            }
        }
    };
}
pub(crate) use with_slope;

negscale_cpu::for_this_cpu! {
    /// Activates in place.
    fn apply_all<A: Slope>(values: &mut [f32], slope: A) {
        for v in values {
            *v = slope.apply(*v);
        }
    }
}

negscale_cpu::for_this_cpu! {
    /// Writes the activated values.
    fn write_all<A: Slope>(values: &[f32], to: &mut [MaybeUninit<f32>], slope: A) {
        for (v, to) in values.iter().zip(to) {
            to.write(slope.apply(*v));
        }
    }
}

negscale_cpu::for_this_cpu! {
    /// Takes the gradient through the activation, in place, by the sign of the output.
    fn pass_all<A: Slope>(dy: &mut [f32], out: &[f32], slope: A) {
        for (dy, &out) in dy.iter_mut().zip(out) {
            *dy = slope.pass(*dy, out);
        }
    }
}

/// Activates `values`.
pub(crate) fn apply(values: &mut [f32], act: Activation) {
    with_slope!(act, slope => apply_all(values, slope));
}

/// Writes the activated `values` to a place of the same length.
pub(crate) fn write(values: &[f32], to: &mut [MaybeUninit<f32>], act: Activation) {
    with_slope!(act, slope => write_all(values, to, slope));
}

/// Turns the gradient of the output into that of what was activated.
pub(crate) fn pass(dy: &mut [f32], out: &[f32], act: Activation) {
    with_slope!(act, slope => pass_all(dy, out, slope));
}
