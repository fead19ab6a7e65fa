//! The operations as an extension of burn's backends. The default bodies are those of [`stock`], so a backend without
//! kernels of its own (any GPU) needs an empty `impl`.
#![allow(missing_docs, clippy::too_many_arguments)] // the public functions of the crate say what each operation does

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, backend_extension};

use crate::{Activation, Precision, Window, stock};

#[backend_extension(Flex, Autodiff, Cube: cfg(feature = "gpu"))]
pub(crate) trait Ops: Backend {
    fn conv(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        window: Window,
        _precision: Precision,
    ) -> FloatTensor<Self> {
        stock::conv::<Self>(x, weight, None, window)
    }

    fn conv_add(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        skip: FloatTensor<Self>,
        window: Window,
        _precision: Precision,
    ) -> FloatTensor<Self> {
        stock::conv_add::<Self>(x, weight, skip, window)
    }

    fn conv_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        window: Window,
        _precision: Precision,
    ) -> FloatTensor<Self> {
        stock::conv::<Self>(x, weight, Some(bias), window)
    }

    fn norm(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        epsilon: f64,
        act: Activation,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        stock::norm::<Self>(x, scale, shift, None, epsilon, act)
    }

    fn norm_add(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        skip: FloatTensor<Self>,
        epsilon: f64,
        act: Activation,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        stock::norm::<Self>(x, scale, shift, Some(skip), epsilon, act)
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
        stock::norm_fixed::<Self>(x, scale, shift, mean, variance, None, epsilon, act)
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
        stock::norm_fixed::<Self>(x, scale, shift, mean, variance, Some(skip), epsilon, act)
    }

    fn activate(x: FloatTensor<Self>, act: Activation) -> FloatTensor<Self> {
        stock::activate::<Self>(x, act)
    }

    fn mean_pool(x: FloatTensor<Self>) -> FloatTensor<Self> {
        stock::mean_pool::<Self>(x)
    }

    fn avg_pool(x: FloatTensor<Self>, window: Window, count_padding: bool) -> FloatTensor<Self> {
        stock::avg_pool::<Self>(x, window, count_padding)
    }

    fn max_pool(x: FloatTensor<Self>, window: Window) -> FloatTensor<Self> {
        stock::max_pool::<Self>(x, window)
    }

    fn dense(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        act: Activation,
        _precision: Precision,
    ) -> FloatTensor<Self> {
        stock::dense::<Self>(x, weight, None, act)
    }

    fn dense_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        act: Activation,
        _precision: Precision,
    ) -> FloatTensor<Self> {
        stock::dense::<Self>(x, weight, Some(bias), act)
    }
}

#[cfg(feature = "gpu")]
mod gpu {
    use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
    use burn::backend::{Autodiff, Cube};

    impl super::Ops for Cube {}
    impl<C: CheckpointStrategy> super::Ops for Autodiff<Cube, C> {}
}
