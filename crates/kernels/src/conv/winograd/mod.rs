//! 3x3 convolutions of stride 1 with a quarter of the multiplications (Winograd's minimal filtering, after Lavin and Gray 2016).
//!
//! A 4x4 tile of the output is $Y = A^T [ (G g G^T) \odot (B^T d B) ] A$, where $d$ is the 6x6 tile of the input that it depends on and $g$
//! the 3x3 filter: 36 multiplications instead of 144. Summing over channels inside the brackets turns the products into 36
//! matrix products (tiles x inputs)(inputs x outputs), one per place of the transformed tile.
//!
//! - Data gradient: the same with the filter turned by 180 degrees and inputs and outputs exchanged.
//! - Weight gradient, the transposed map: $dg = G^T [ \sum_{tiles} (B^T d B) \odot (A\, dY A^T) ] G$.
//!
//! # Rounding
//! The result is the same in exact arithmetic. In `f32` its root mean square error is about twice that of the direct sum (the
//! points in [`axes`] are chosen for that; the tests compare with `f64`): far below the noise of a training step.

pub(super) mod axes;
mod product;
mod tiles;
mod weight;

pub(super) use product::{data_gradient, forward};
pub(super) use weight::weight_gradient;

use super::Shape;

/// Side of an output tile, and of the input tile it depends on.
const TILE: usize = 4;
const REACH: usize = 6;
const PLACES: usize = REACH * REACH;
/// Distance added between places, so that the 36 numbers of a tile do not all fall into the same set of the cache.
const SHIFT: usize = 16;

/// Whether this way is faster for this shape.
pub(super) fn pays(shape: &Shape, [oh, ow]: [usize; 2]) -> bool {
    let window = shape.window;
    let fits = window.kernel == [3, 3] && window.stride == [1, 1] && window.padding.iter().all(|&p| p <= 2);
    let waste = (oh.div_ceil(TILE) * ow.div_ceil(TILE) * PLACES) as f64 / (9 * oh * ow) as f64;
    fits && shape.inputs >= 16 && shape.outputs >= 16 && waste < 0.6
}

/// Images cut into tiles.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    /// Zeros before the first row and column.
    pub padding: [usize; 2],
    /// Tiles along each axis.
    pub tiles: [usize; 2],
}

impl Grid {
    /// Image, first row and first column of a tile, in tiles.
    pub fn place(&self, tile: usize) -> [usize; 3] {
        let [rows, columns] = self.tiles;
        [tile / (rows * columns), tile / columns % rows, tile % columns]
    }

    /// Where the `H x W` numbers of one channel of a tile that starts at (`top`, `left`) begin; outside the image, at `zeros`.
    #[inline(always)]
    pub fn corners<const H: usize, const W: usize>(
        &self,
        images: *const f32,
        image: usize,
        top: isize,
        left: isize,
        zeros: *const f32,
    ) -> [[*const f32; W]; H] {
        let inside =
            |from: isize, reach: usize, size: usize| from >= 0 && from + reach as isize <= size as isize;
        if inside(top, H, self.height) && inside(left, W, self.width) {
            let corner = images.wrapping_add(
                ((image * self.height + top as usize) * self.width + left as usize) * self.channels,
            );
            return std::array::from_fn(|i| {
                std::array::from_fn(|j| corner.wrapping_add((i * self.width + j) * self.channels))
            });
        }
        std::array::from_fn(|i| {
            std::array::from_fn(|j| {
                let (y, x) = (top + i as isize, left + j as isize);
                if (0..self.height as isize).contains(&y) && (0..self.width as isize).contains(&x) {
                    images.wrapping_add(
                        ((image * self.height + y as usize) * self.width + x as usize) * self.channels,
                    )
                } else {
                    zeros
                }
            })
        })
    }
}

/// Where transformed tiles go: place `p` of tile `t`, channels `8 c ..`, begins at `p * place + t * tile + c * channel`.
#[derive(Clone, Copy)]
struct Steps {
    place: usize,
    tile: usize,
    channel: usize,
}
