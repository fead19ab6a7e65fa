//! Convolutions and dense layers: what is kept, and the backward passes.

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops as Recorded};
use burn::backend::flex::FlexTensor;

use super::Variable;
use crate::flex::{Linear, PIECE};
use crate::rows::{add_channels, contiguous, overwrite, slice, wrap};
use crate::{Activation, conv, slope};

/// What the gradients of a convolution or dense layer need.
#[derive(Debug, Clone)]
pub(super) struct LinearState {
    linear: Linear,
    x: Option<FlexTensor>,
    weight: Option<FlexTensor>,
    /// The output, if activated.
    out: Option<FlexTensor>,
}

/// Convolution or dense layer without a third parent.
#[derive(Debug)]
pub(super) struct Plain;
/// With a bias as third parent.
#[derive(Debug)]
pub(super) struct Biased;
/// With a sum as third parent.
#[derive(Debug)]
pub(super) struct Summed;

/// Gradients of input and weight, as far as wanted, and what is left for the third parent: the gradient through the
/// activation.
fn differentiate_linear(
    state: LinearState,
    dy: FlexTensor,
    wants: [bool; 2],
) -> (Option<FlexTensor>, Option<FlexTensor>, FlexTensor) {
    let LinearState { linear, x, weight, out } = state;
    let dy = match out {
        None => contiguous(dy),
        Some(out) => {
            let out = slice(&out);
            overwrite(dy, PIECE, |start, part| {
                slope::pass(part, &out[start..start + part.len()], linear.act);
            })
            .0
        }
    };
    let weight_gradient = x.filter(|_| wants[1]).map(|x| {
        linear.wrap_weight(conv::weight_gradient(slice(&x), slice(&dy), &linear.shape, linear.precision))
    });
    let data_gradient = weight.filter(|_| wants[0]).map(|weight| {
        linear.wrap_input(conv::data_gradient(slice(&dy), slice(&weight), &linear.shape, linear.precision))
    });
    (data_gradient, weight_gradient, dy)
}

impl Backward<Flex, 2> for Plain {
    type State = LinearState;

    fn backward(self, ops: Recorded<LinearState, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let [x, weight] = ops.parents;
        let (dx, dw, _) = differentiate_linear(ops.state, dy, [x.is_some(), weight.is_some()]);
        for (node, gradient) in [(x, dx), (weight, dw)] {
            if let (Some(node), Some(gradient)) = (node, gradient) {
                grads.register::<Flex>(node.id, gradient);
            }
        }
    }
}

impl Backward<Flex, 3> for Biased {
    type State = LinearState;

    fn backward(self, ops: Recorded<LinearState, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let outputs = ops.state.linear.shape.outputs;
        let [x, weight, bias] = ops.parents;
        let (dx, dw, dy) = differentiate_linear(ops.state, dy, [x.is_some(), weight.is_some()]);
        let db = bias.as_ref().map(|_| wrap(add_channels(slice(&dy), outputs), [outputs]));
        for (node, gradient) in [(x, dx), (weight, dw), (bias, db)] {
            if let (Some(node), Some(gradient)) = (node, gradient) {
                grads.register::<Flex>(node.id, gradient);
            }
        }
    }
}

impl Backward<Flex, 3> for Summed {
    type State = LinearState;

    fn backward(self, ops: Recorded<LinearState, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let [x, weight, skip] = ops.parents;
        let (dx, dw, dy) = differentiate_linear(ops.state, dy, [x.is_some(), weight.is_some()]);
        for (node, gradient) in [(x, dx), (weight, dw), (skip, Some(dy))] {
            if let (Some(node), Some(gradient)) = (node, gradient) {
                grads.register::<Flex>(node.id, gradient);
            }
        }
    }
}

/// Forward pass and state of a convolution or dense layer.
pub(super) fn run_linear(
    linear: Linear,
    [x, weight]: [Variable; 2],
    bias: Option<FlexTensor>,
    skip: Option<FlexTensor>,
) -> impl FnOnce(bool) -> (FlexTensor, Option<LinearState>) {
    move |tracked| {
        let (keeps_x, keeps_weight) = (weight.is_tracked(), x.is_tracked());
        let x = contiguous(x.into_primitive());
        let weight = contiguous(weight.into_primitive());
        let out = linear.forward(&x, &weight, bias, skip);
        let state = tracked.then(|| LinearState {
            linear,
            x: keeps_x.then_some(x),
            weight: keeps_weight.then_some(weight),
            out: (linear.act != Activation::None).then(|| out.clone()),
        });
        (out, state)
    }
}
