//! Scalars found outside: the gradient is there already.

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops as Recorded};
use burn::backend::flex::FlexTensor;

use crate::flex::PIECE;
use crate::rows::{contiguous, overwrite, slice};

/// Holds the gradient for a factor of 1.
#[derive(Debug)]
pub(super) struct Outside;

impl Backward<Flex, 1> for Outside {
    type State = FlexTensor;

    fn backward(self, ops: Recorded<FlexTensor, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let factor = slice(&contiguous(grads.consume::<Flex>(&ops.node)))[0];
        let [Some(node)] = ops.parents else { return };
        let stretch = |_: usize, part: &mut [f32]| part.iter_mut().for_each(|slope| *slope *= factor);
        let gradient = if factor == 1.0 { ops.state } else { overwrite(ops.state, PIECE, stretch).0 };
        grads.register::<Flex>(node.id, gradient);
    }
}
