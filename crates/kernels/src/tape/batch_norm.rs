//! Batch norm: what is kept, and the backward pass.

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops as Recorded};
use burn::backend::flex::FlexTensor;

use super::{Variable, record};
use crate::norm::{Past, differentiate};
use crate::rows::{contiguous, slice, wrap};
use crate::{Activation, flex};

/// What the gradients of batch norm need.
#[derive(Debug, Clone)]
struct NormState {
    x: Option<FlexTensor>,
    out: Option<FlexTensor>,
    /// Scale, shift, mean, variance.
    vectors: [FlexTensor; 4],
    epsilon: f64,
    act: Activation,
    fixed: bool,
}

impl NormState {
    fn differentiate(self, dy: FlexTensor, wants: [bool; 4]) -> [Option<FlexTensor>; 4] {
        let [scale, shift, mean, variance] = self.vectors.each_ref().map(slice);
        let (x, out) = (self.x.as_ref(), self.out.as_ref());
        let Self { epsilon, act, fixed, .. } = self;
        let past = Past { x, out, scale, shift, mean, variance, epsilon, act, fixed };
        let found = differentiate(dy, &past, wants);
        let vector = |values: Vec<f32>| {
            let len = values.len();
            wrap(values, [len])
        };
        [found.x, found.scale.map(vector), found.shift.map(vector), found.skip]
    }
}

/// Batch norm; parents `x`, `scale`, `shift`, and perhaps `skip`.
#[derive(Debug)]
struct Norm;

macro_rules! norm_with_parents {
    ($count:literal) => {
        impl Backward<Flex, $count> for Norm {
            type State = NormState;

            fn backward(self, ops: Recorded<NormState, $count>, grads: &mut Gradients, _: &mut Checkpointer) {
                let dy = grads.consume::<Flex>(&ops.node);
                let mut wants = [false; 4];
                for (wanted, parent) in wants.iter_mut().zip(&ops.parents) {
                    *wanted = parent.is_some();
                }
                let found = ops.state.differentiate(dy, wants);
                for (node, gradient) in ops.parents.into_iter().zip(found) {
                    if let (Some(node), Some(gradient)) = (node, gradient) {
                        grads.register::<Flex>(node.id, gradient);
                    }
                }
            }
        }
    };
}
norm_with_parents!(3);
norm_with_parents!(4);

/// Batch norm with the batch's mean and variance, or given ones: output, mean, variance.
#[expect(clippy::expect_used, reason = "recording runs the forward pass, tracked or not")]
pub(super) fn run_norm<C: CheckpointStrategy>(
    [x, scale, shift]: [Variable; 3],
    skip: Option<Variable>,
    given: Option<[FlexTensor; 2]>,
    epsilon: f64,
    act: Activation,
) -> (Variable, FlexTensor, FlexTensor) {
    let fixed = given.is_some();
    // With fixed statistics the input is needed for the gradient of scale, and for the sign of what was activated.
    let keeps_x = !fixed || scale.is_tracked() || (act != Activation::None && skip.is_none());
    let keeps_out = skip.is_some() && act != Activation::None;
    let (x, x_node) = x.into_parts();
    let (scale, scale_node) = scale.into_parts();
    let (shift, shift_node) = shift.into_parts();
    let (skip, skip_node) = skip.map(Variable::into_parts).unzip();
    let mut found = None;
    let forward = |tracked: bool| {
        let (x, scale, shift) = (contiguous(x), contiguous(scale), contiguous(shift));
        let kept = (tracked && keeps_x).then(|| x.clone());
        let (out, mean, variance) = match given {
            None => flex::norm(x, &scale, &shift, skip, epsilon, act),
            Some(given) => {
                let [mean, variance] = given.map(contiguous);
                let out = flex::norm_fixed(x, [&scale, &shift, &mean, &variance], skip, epsilon, act);
                (out, mean, variance)
            }
        };
        found = Some((mean.clone(), variance.clone()));
        let state = tracked.then(|| NormState {
            x: kept,
            out: keeps_out.then(|| out.clone()),
            vectors: [scale, shift, mean, variance],
            epsilon,
            act,
            fixed,
        });
        (out, state)
    };
    let out = match skip_node {
        None => record::<C, _, 3>(Norm, [x_node, scale_node, shift_node], forward),
        Some(skip) => record::<C, _, 4>(Norm, [x_node, scale_node, shift_node, skip], forward),
    };
    let (mean, variance) = found.expect("`record` has run `forward`");
    (out, mean, variance)
}
