//! The tiles of a batch, transformed.

use super::axes::{both_axes, gradient_axis, input_axis, load_tile};
use super::{Grid, REACH, Steps, TILE};
use crate::lane::{Lane, dispatch};

/// A map from a tile of `S x S` places to one of 6 x 6.
trait Map<const S: usize> {
    /// # Safety
    /// Called with a lane that the CPU has.
    unsafe fn both<L: Lane>(tile: [[L; S]; S]) -> [[L; REACH]; REACH];
}

struct Input;
struct Gradient;

impl Map<REACH> for Input {
    #[inline(always)]
    unsafe fn both<L: Lane>(tile: [[L; REACH]; REACH]) -> [[L; REACH]; REACH] {
        // SAFETY: by contract.
        unsafe { both_axes!(input_axis, tile, 6, 6) }
    }
}

impl Map<TILE> for Gradient {
    #[inline(always)]
    unsafe fn both<L: Lane>(tile: [[L; TILE]; TILE]) -> [[L; REACH]; REACH] {
        // SAFETY: by contract.
        unsafe { both_axes!(gradient_axis, tile, 4, 6) }
    }
}

dispatch! {
    /// Transforms tiles `first..last` of the input images by $B^T d B$. Channels are filled up with zeros to a multiple of 8.
    ///
    /// # Safety
    /// `images` covers the grid, `to` the places that `steps` say; `zeros` has 8 numbers more than there are channels, all 0.
    pub(super) unsafe fn transform_input = transform_input_with(images: *const f32, grid: &Grid, first: usize, last: usize, zeros: *const f32, to: *mut f32, steps: Steps)
}

dispatch! {
    /// Transforms tiles `first..last` of an output gradient by $A\, dY A^T$, as [`transform_input`] does the input.
    ///
    /// # Safety
    /// As for [`transform_input`].
    pub(super) unsafe fn transform_gradient = transform_gradient_with(images: *const f32, grid: &Grid, first: usize, last: usize, zeros: *const f32, to: *mut f32, steps: Steps)
}

#[inline(always)]
pub(super) unsafe fn transform_input_with<L: Lane>(
    images: *const f32,
    grid: &Grid,
    first: usize,
    last: usize,
    zeros: *const f32,
    to: *mut f32,
    steps: Steps,
) {
    // SAFETY: the same contract.
    unsafe { transform::<L, REACH, Input>(images, grid, first, last, zeros, to, steps) }
}

#[inline(always)]
unsafe fn transform_gradient_with<L: Lane>(
    images: *const f32,
    grid: &Grid,
    first: usize,
    last: usize,
    zeros: *const f32,
    to: *mut f32,
    steps: Steps,
) {
    // SAFETY: the same contract.
    unsafe { transform::<L, TILE, Gradient>(images, grid, first, last, zeros, to, steps) }
}

#[inline(always)]
unsafe fn transform<L: Lane, const S: usize, M: Map<S>>(
    images: *const f32,
    grid: &Grid,
    first: usize,
    last: usize,
    zeros: *const f32,
    to: *mut f32,
    steps: Steps,
) {
    for tile in first..last {
        let [image, ty, tx] = grid.place(tile);
        let top = (ty * TILE) as isize - grid.padding[0] as isize;
        let left = (tx * TILE) as isize - grid.padding[1] as isize;
        let corners = grid.corners::<S, S>(images, image, top, left, zeros);
        let to = to.wrapping_add((tile - first) * steps.tile);
        for c in (0..grid.channels).step_by(8) {
            let count = (grid.channels - c).min(8);
            // SAFETY: corners point to `channels` numbers, `to` to room for all places.
            unsafe {
                let v = M::both(load_tile::<L, S>(&corners, c, count));
                let to = to.add(c / 8 * steps.channel);
                for i in 0..REACH {
                    for j in 0..REACH {
                        v[i][j].store(to.add((i * REACH + j) * steps.place));
                    }
                }
            }
        }
    }
}
