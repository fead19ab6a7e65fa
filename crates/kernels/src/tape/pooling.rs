//! Activations and pools: what is kept, and the backward passes.

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops as Recorded};
use burn::backend::flex::FlexTensor;

use crate::flex::PIECE;
use crate::pool::{self, Grid};
use crate::rows::{contiguous, overwrite, slice, wrap};
use crate::{Activation, slope};

/// The activation alone; holds its output.
#[derive(Debug)]
pub(super) struct Activate;

impl Backward<Flex, 1> for Activate {
    type State = (FlexTensor, Activation);

    fn backward(self, ops: Recorded<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let (out, act) = ops.state;
        if let [Some(node)] = ops.parents {
            let out = slice(&out);
            let work =
                |start: usize, part: &mut [f32]| slope::pass(part, &out[start..start + part.len()], act);
            grads.register::<Flex>(node.id, overwrite(dy, PIECE, work).0);
        }
    }
}

/// Pooling; holds no more than its sizes, except for the largest values, which are found again in the input.
#[derive(Debug)]
pub(super) struct Pool;

#[derive(Debug, Clone)]
pub(super) enum PoolState {
    Mean(Grid),
    Average(Grid, bool),
    Largest(Grid, FlexTensor),
}

impl Backward<Flex, 1> for Pool {
    type State = PoolState;

    fn backward(self, ops: Recorded<PoolState, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = contiguous(grads.consume::<Flex>(&ops.node));
        let [Some(node)] = ops.parents else { return };
        let values = slice(&dy);
        let (grid, dx) = match &ops.state {
            PoolState::Mean(grid) => {
                (grid, pool::mean_gradient(values, grid.height * grid.width, grid.channels))
            }
            PoolState::Average(grid, count) => (grid, pool::average_gradient(values, grid, *count)),
            PoolState::Largest(grid, x) => (grid, pool::largest_gradient(values, slice(x), grid)),
        };
        let dx = wrap(dx, [grid.batch, grid.height, grid.width, grid.channels]);
        grads.register::<Flex>(node.id, dx);
    }
}
