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
use crate::conv::winograd::Grid;

/// Rows and columns of an output tile, and of the input tile it depends on.
const TILE: [usize; 2] = [4, 2];
const REACH: [usize; 2] = [6, 4];
const PLACES: usize = REACH[0] * REACH[1];
/// Distance added between places (in numbers of 4 bytes), so that those of a tile do not all fall into the same set of the cache.
const SHIFT: usize = 16;

/// Channels of input and output from which on fewer multiplications outweigh the transforms: forward and for the data, and for the
/// weights, whose direct way is slower.
const PRODUCT_FROM: usize = 32;
const WEIGHT_FROM: usize = 16;

/// Whether this way is faster forward and for the data gradient.
pub(super) fn pays(shape: &Shape, out: [usize; 2]) -> bool {
    fits(shape, out) && shape.inputs.min(shape.outputs) >= PRODUCT_FROM
}

/// Whether this way is faster for the weight gradient.
pub(super) fn pays_for_weights(shape: &Shape, out: [usize; 2]) -> bool {
    fits(shape, out) && shape.inputs.min(shape.outputs) >= WEIGHT_FROM
}

fn fits(shape: &Shape, [oh, ow]: [usize; 2]) -> bool {
    let window = shape.window;
    let fits = window.kernel == [3, 3] && window.stride == [1, 1] && window.padding.iter().all(|&p| p <= 2);
    let waste = (oh.div_ceil(TILE[0]) * ow.div_ceil(TILE[1]) * PLACES) as f64 / (9 * oh * ow) as f64;
    fits && waste < 0.7
}

/// A place in the order of tiles: image, row and column of tiles.
#[derive(Clone, Copy)]
struct Walk {
    at: [usize; 3],
    tiles: [usize; 2],
}

impl Walk {
    fn new(grid: &Grid, tile: usize) -> Self {
        Self { at: grid.place(tile), tiles: grid.tiles }
    }

    /// The next tile; a division per tile would take as long as transforming sixteen channels.
    #[inline(always)]
    fn advance(&mut self) {
        let [image, row, column] = &mut self.at;
        *column += 1;
        if *column == self.tiles[1] {
            *column = 0;
            *row += 1;
            if *row == self.tiles[0] {
                *row = 0;
                *image += 1;
            }
        }
    }

    /// Where the `H x W` numbers of a tile of these images begin.
    #[inline(always)]
    fn corners<const H: usize, const W: usize>(
        &self,
        grid: &Grid,
        images: *const f32,
        zeros: *const f32,
    ) -> [[*const f32; W]; H] {
        let [image, row, column] = self.at;
        let top = (row * TILE[0]) as isize - grid.padding[0] as isize;
        let left = (column * TILE[1]) as isize - grid.padding[1] as isize;
        grid.corners(images, image, top, left, zeros)
    }
}
