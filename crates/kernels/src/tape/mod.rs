//! The operations on the CPU with gradients: each records what its backward pass needs, and nothing else.
//!
//! A state holds handles of tensors (no copies), and only those that a wanted gradient needs: the input of a convolution
//! if its weight is tracked, its weight if the input is. Batch norm finds the activated positions again from its input;
//! only with a skip does it hold its output, which whoever consumes it holds anyway.

mod batch_norm;
mod linear;
pub(crate) mod listening;
mod pooling;

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::ops::{Backward, NodeGuard, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, AutodiffBackend, Flex};

use batch_norm::run_norm;
use linear::{Biased, Plain, Summed, run_linear};
use pooling::{Activate, Pool, PoolState};

use crate::flex::{self, Linear, ours};
use crate::ops::Ops;
use crate::rows::contiguous;
use crate::{Activation, Precision, Window, stock};

/// A tensor that may be tracked.
type Variable = FloatTensor<Autodiff<Flex>>;

/// Runs `forward`, with a state for the backward pass if any parent is tracked.
#[expect(clippy::expect_used, reason = "without a state the gradient would be lost in silence")]
fn record<C, O, const N: usize>(
    op: O,
    parents: [NodeGuard; N],
    forward: impl FnOnce(bool) -> (FlexTensor, Option<O::State>),
) -> Variable
where
    C: CheckpointStrategy,
    O: Backward<Flex, N>,
{
    match op.prepare::<C>(parents).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let (out, state) = forward(true);
            prep.finish(state.expect("an operation that is tracked keeps its state"), out)
        }
        OpsKind::UnTracked(prep) => prep.finish(forward(false).0),
    }
}

impl<C: CheckpointStrategy> Ops for Autodiff<Flex, C> {
    fn conv(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        window: Window,
        precision: Precision,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &weight]) {
            return stock::conv::<Self>(x, weight, None, window);
        }
        let parents = [x.node(), weight.node()];
        let linear = Linear::conv(&x, &weight, window, precision);
        record::<C, _, 2>(Plain, parents, run_linear(linear, [x, weight], None, None))
    }

    fn conv_add(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        skip: FloatTensor<Self>,
        window: Window,
        precision: Precision,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &weight, &skip]) {
            return stock::conv_add::<Self>(x, weight, skip, window);
        }
        let (skip, node) = skip.into_parts();
        let parents = [x.node(), weight.node(), node];
        let linear = Linear::conv(&x, &weight, window, precision);
        record::<C, _, 3>(Summed, parents, run_linear(linear, [x, weight], None, Some(skip)))
    }

    fn conv_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        window: Window,
        precision: Precision,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &weight, &bias]) {
            return stock::conv::<Self>(x, weight, Some(bias), window);
        }
        let (bias, node) = bias.into_parts();
        let parents = [x.node(), weight.node(), node];
        let linear = Linear::conv(&x, &weight, window, precision);
        record::<C, _, 3>(Biased, parents, run_linear(linear, [x, weight], Some(bias), None))
    }

    fn norm(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        epsilon: f64,
        act: Activation,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        if !ours(&[&x, &scale, &shift]) {
            return stock::norm::<Self>(x, scale, shift, None, epsilon, act);
        }
        let (out, mean, variance) = run_norm::<C>([x, scale, shift], None, None, epsilon, act);
        (out, Self::from_inner(mean), Self::from_inner(variance))
    }

    fn norm_add(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        skip: FloatTensor<Self>,
        epsilon: f64,
        act: Activation,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        if !ours(&[&x, &scale, &shift, &skip]) {
            return stock::norm::<Self>(x, scale, shift, Some(skip), epsilon, act);
        }
        let (out, mean, variance) = run_norm::<C>([x, scale, shift], Some(skip), None, epsilon, act);
        (out, Self::from_inner(mean), Self::from_inner(variance))
    }

    fn norm_fixed(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        variance: FloatTensor<Self>,
        epsilon: f64,
        act: Activation,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &scale, &shift, &mean, &variance]) {
            return stock::norm_fixed::<Self>(x, scale, shift, mean, variance, None, epsilon, act);
        }
        let given = Some([mean, variance].map(Variable::into_primitive));
        run_norm::<C>([x, scale, shift], None, given, epsilon, act).0
    }

    fn norm_fixed_add(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        variance: FloatTensor<Self>,
        skip: FloatTensor<Self>,
        epsilon: f64,
        act: Activation,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &scale, &shift, &mean, &variance, &skip]) {
            return stock::norm_fixed::<Self>(x, scale, shift, mean, variance, Some(skip), epsilon, act);
        }
        let given = Some([mean, variance].map(Variable::into_primitive));
        run_norm::<C>([x, scale, shift], Some(skip), given, epsilon, act).0
    }

    fn activate(x: FloatTensor<Self>, act: Activation) -> FloatTensor<Self> {
        if !ours(&[&x]) {
            return stock::activate::<Self>(x, act);
        }
        let (x, node) = x.into_parts();
        record::<C, _, 1>(Activate, [node], |_| {
            let out = flex::activate(x, act);
            (out.clone(), Some((out, act)))
        })
    }

    fn mean_pool(x: FloatTensor<Self>) -> FloatTensor<Self> {
        if !ours(&[&x]) {
            return stock::mean_pool::<Self>(x);
        }
        let grid = flex::grid(&x, Window::square(1, 1, 0));
        let (x, node) = x.into_parts();
        record::<C, _, 1>(Pool, [node], |_| (flex::mean_pool(x), Some(PoolState::Mean(grid))))
    }

    fn avg_pool(x: FloatTensor<Self>, window: Window, count_padding: bool) -> FloatTensor<Self> {
        if !ours(&[&x]) {
            return stock::avg_pool::<Self>(x, window, count_padding);
        }
        let grid = flex::grid(&x, window);
        let (x, node) = x.into_parts();
        record::<C, _, 1>(Pool, [node], |_| {
            (flex::avg_pool(x, &grid, count_padding), Some(PoolState::Average(grid, count_padding)))
        })
    }

    fn max_pool(x: FloatTensor<Self>, window: Window) -> FloatTensor<Self> {
        if !ours(&[&x]) {
            return stock::max_pool::<Self>(x, window);
        }
        let grid = flex::grid(&x, window);
        let (x, node) = x.into_parts();
        record::<C, _, 1>(Pool, [node], |_| {
            let x = contiguous(x);
            (flex::max_pool(&x, &grid), Some(PoolState::Largest(grid, x)))
        })
    }

    fn dense(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        act: Activation,
        precision: Precision,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &weight]) {
            return stock::dense::<Self>(x, weight, None, act);
        }
        let parents = [x.node(), weight.node()];
        let linear = Linear::dense(&x, &weight, act, precision);
        record::<C, _, 2>(Plain, parents, run_linear(linear, [x, weight], None, None))
    }

    fn dense_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        act: Activation,
        precision: Precision,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &weight, &bias]) {
            return stock::dense::<Self>(x, weight, Some(bias), act);
        }
        let (bias, node) = bias.into_parts();
        let parents = [x.node(), weight.node(), node];
        let linear = Linear::dense(&x, &weight, act, precision);
        record::<C, _, 3>(Biased, parents, run_linear(linear, [x, weight], Some(bias), None))
    }
}
