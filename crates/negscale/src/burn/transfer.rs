//! Numbers out of a tensor, and a scalar with a gradient of ours back into burn's graph.

#[cfg(feature = "flex")]
use super::flex;
use crate::{Error, Real, Result};
#[cfg(feature = "flex")]
use burn::backend::flex::FlexTensor;
use burn::tensor::{Element, Tensor, TensorData};
use std::ops::Deref;

/// A type of numbers that the plug-in computes with.
pub(super) trait Number: Real + Element {
    /// The buffer of a tensor of this type.
    #[cfg(feature = "flex")]
    fn buffer(tensor: &FlexTensor) -> &[Self];
}

macro_rules! number {
    ($kind:ty) => {
        impl Number for $kind {
            #[cfg(feature = "flex")]
            fn buffer(tensor: &FlexTensor) -> &[Self] {
                tensor.storage()
            }
        }
    };
}
number!(f32);
number!(f64);

/// The numbers of a tensor, row after row.
pub(super) enum Numbers<T> {
    #[cfg(feature = "flex")]
    Shared(FlexTensor),
    Copied(Vec<T>),
}

impl<T: Number> Deref for Numbers<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            #[cfg(feature = "flex")]
            Self::Shared(tensor) => flex::slice(tensor),
            Self::Copied(values) => values,
        }
    }
}

/// Reads a tensor: its own memory where that is possible, else a copy.
pub(super) fn read<T: Number>(tensor: &Tensor<2>) -> Result<Numbers<T>> {
    let tensor = tensor.clone().inner();
    #[cfg(feature = "flex")]
    if let Some(shared) = flex::share::<T>(tensor.clone()) {
        return Ok(Numbers::Shared(shared));
    }
    let copied = tensor.try_into_vec_as::<T>();
    copied.map(Numbers::Copied).map_err(|error| Error::Device { reason: error.to_string() })
}

/// A scalar with the given value, whose gradient with respect to `at` is `gradient`.
pub(super) fn scalar_with_gradient<T: Number>(at: Tensor<2>, value: f64, gradient: Vec<T>) -> Tensor<1> {
    #[cfg(feature = "flex")]
    let (at, gradient) = match flex::scalar_with_gradient(at, value, gradient) {
        Ok(scalar) => return scalar,
        Err(unused) => unused,
    };
    let gradient = TensorData::new(gradient, at.shape());
    let gradient = Tensor::<2>::from_data(gradient, (&at.device(), at.dtype()));
    let product = (at * gradient).sum();
    // The product has the gradient; what it has of its own value is taken off again.
    (product.clone() - product.detach()).add_scalar(value)
}
