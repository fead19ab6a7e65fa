//! Scalars whose value and gradient are found outside of burn, such as a loss with a closed form of its own: read the
//! numbers of a tensor, compute, and hand value and gradient back. On the CPU nothing is copied on the way in, and the way
//! back costs no pass over the gradient.

use burn::backend::flex::FlexTensor;
use burn::backend::{BackendTensor, Dispatch, DispatchTensorKind};
use burn::tensor::{DType, Tensor};
use std::ops::Deref;

use crate::ops::Ops;
use crate::rows::{contiguous, slice};

/// The numbers of a tensor, row after row.
#[derive(Debug)]
pub struct Numbers(Kept);

#[derive(Debug)]
enum Kept {
    Shared(FlexTensor),
    Copied(Vec<f32>),
}

impl Deref for Numbers {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match &self.0 {
            Kept::Shared(tensor) => slice(tensor),
            Kept::Copied(values) => values,
        }
    }
}

/// Reads a tensor. Its own memory where it is f32 on the CPU and in order, else a copy.
///
/// # Errors
/// What the device says if it cannot give the numbers.
pub fn read<const D: usize>(x: Tensor<D>) -> Result<Numbers, String> {
    let x = x.inner();
    if x.dtype() == DType::F32
        && let DispatchTensorKind::Flex(BackendTensor::Float(x)) = x.clone().into_dispatch().kind
    {
        return Ok(Numbers(Kept::Shared(contiguous(x))));
    }
    let values = x.try_into_vec_as::<f32>().map_err(|error| error.to_string())?;
    Ok(Numbers(Kept::Copied(values)))
}

/// A scalar with the given value, whose gradient with respect to `x` is `slope`.
///
/// # Panics
/// If there are not as many slopes as numbers in `x`.
pub fn scalar<const D: usize>(x: Tensor<D>, value: f64, slope: Vec<f32>) -> Tensor<1> {
    let count: usize = x.dims().iter().product();
    assert!(slope.len() == count, "scalar: {} slopes for {count} numbers", slope.len());
    Tensor::from_dispatch(Dispatch::outside(x.into_dispatch(), value, slope))
}
