//! 3x3 convolutions of stride 1 in bf16 with a third of the multiplications: tiles of 4 x 2 outputs.
//!
//! As in [`crate::conv::winograd`], with the transforms in `f32` and what they give rounded to bf16. Rounding happens in the transformed numbers, and the
//! way back enlarges it. With $F(4 \times 4)$ the relative error of the result is 1.1e-2, the best points included, against 2.4e-3 of the
//! direct sum: too much. With $F(4 \times 2)$, along rows by the points of [`axes`](crate::conv::winograd::axes) and along columns by 0, 1, -1, it is
//! 6.5e-3, for 24 multiplications instead of 72.

mod axes;
mod filters;
mod product;
mod weight;

pub(super) use product::{data_gradient, forward};
pub(super) use weight::weight_gradient;

use crate::conv::Shape;

/// Rows and columns of an output tile, and of the input tile it depends on.
const TILE: [usize; 2] = [4, 2];
const REACH: [usize; 2] = [6, 4];
const PLACES: usize = REACH[0] * REACH[1];
/// Distance added between places (in numbers of 4 bytes), so that those of a tile do not all fall into the same set of the cache.
const SHIFT: usize = 16;

/// Whether this way is faster for this shape.
pub(super) fn pays(shape: &Shape, [oh, ow]: [usize; 2]) -> bool {
    let window = shape.window;
    let fits = window.kernel == [3, 3] && window.stride == [1, 1] && window.padding.iter().all(|&p| p <= 2);
    let waste = (oh.div_ceil(TILE[0]) * ow.div_ceil(TILE[1]) * PLACES) as f64 / (9 * oh * ow) as f64;
    fits && std::env::var("NOWINO").is_err() && shape.inputs >= 16 && shape.outputs >= 16 && waste < 0.7
}
