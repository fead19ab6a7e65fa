//! Tensors of burn's CPU backend without copies: features are read in place, the gradient is handed over.
//!
//! The scalar is an operation of its own in burn's graph, whose backward pass has nothing left to compute. Tensors of other
//! backends are given back, so that any set of backends can be switched on beside this one.

use super::transfer::Number;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, BackendTensor, DispatchTensor, DispatchTensorKind as Kind, Flex, TensorMetadata,
};
use burn::tensor::{DType, Tensor, TensorData};

/// The tensor itself, its numbers in order, if it is of this backend and type.
pub(super) fn share<T: Number>(tensor: Tensor<2>) -> Option<FlexTensor> {
    if tensor.dtype() != T::dtype() {
        return None;
    }
    match tensor.into_dispatch().kind {
        Kind::Flex(BackendTensor::Float(tensor)) => Some(contiguous(tensor)),
        _ => None,
    }
}

/// The numbers of a contiguous tensor.
pub(super) fn slice<T: Number>(tensor: &FlexTensor) -> &[T] {
    let layout = tensor.layout();
    &T::buffer(tensor)[layout.start_offset()..][..layout.num_elements()]
}

/// A scalar with the given value, whose gradient with respect to `at` is `gradient`. Gives both back if `at` is of another
/// backend or type.
pub(super) fn scalar_with_gradient<T: Number>(
    at: Tensor<2>,
    value: f64,
    gradient: Vec<T>,
) -> Result<Tensor<1>, (Tensor<2>, Vec<T>)> {
    if at.dtype() != T::dtype() {
        return Err((at, gradient));
    }
    let scalar = FlexTensor::from_data(TensorData::new(vec![T::of(value)], [1]));
    let DispatchTensor { kind, autodiff } = at.into_dispatch();
    let kind = match kind {
        Kind::Flex(BackendTensor::Float(_)) => Kind::Flex(BackendTensor::Float(scalar)),
        Kind::Autodiff(kind) => match *kind {
            Kind::Flex(BackendTensor::Autodiff(at)) => {
                let gradient = FlexTensor::from_data(TensorData::new(gradient, at.shape()));
                let recorded = record(at.into_parts().1, scalar, gradient);
                Kind::Autodiff(Box::new(Kind::Flex(BackendTensor::Autodiff(recorded))))
            }
            kind => {
                let kind = Kind::Autodiff(Box::new(kind));
                return Err((Tensor::from_dispatch(DispatchTensor { kind, autodiff }), gradient));
            }
        },
        kind => return Err((Tensor::from_dispatch(DispatchTensor { kind, autodiff }), gradient)),
    };
    Ok(Tensor::from_dispatch(DispatchTensor { kind, autodiff }))
}

/// The scalar as a child of `parent` in the graph, with the gradient for its backward pass if the parent wants one.
fn record(parent: NodeGuard, scalar: FlexTensor, gradient: FlexTensor) -> FloatTensor<Autodiff<Flex>> {
    // Nothing is computed again in the backward pass, so every strategy of checkpoints comes to the same.
    match GivenGradient.prepare::<NoCheckpointing>([parent]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(gradient, scalar),
        OpsKind::UnTracked(prep) => prep.finish(scalar),
    }
}

/// The operation; its state is the gradient of the parent where the scalar's own is 1.
#[derive(Debug)]
struct GivenGradient;

impl Backward<Flex, 1> for GivenGradient {
    type State = FlexTensor;

    fn backward(self, ops: Ops<FlexTensor, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let own = contiguous(gradients.consume::<Flex>(&ops.node));
        let [Some(parent)] = ops.parents else { return };
        let factor = match own.dtype() {
            DType::F64 => slice::<f64>(&own)[0],
            _ => slice::<f32>(&own)[0].into(),
        };
        let gradient =
            if factor == 1.0 { ops.state } else { Flex::float_mul_scalar(ops.state, factor.into()) };
        gradients.register::<Flex>(parent.id, gradient);
    }
}

fn contiguous(tensor: FlexTensor) -> FlexTensor {
    if tensor.is_contiguous() { tensor } else { tensor.to_contiguous() }
}

#[cfg(test)]
mod tests {
    use super::super::transfer::{Numbers, read, scalar_with_gradient};
    use super::*;
    use burn::tensor::Device;

    fn tensor(device: &Device, dtype: DType) -> Tensor<2> {
        let values: Vec<f32> = (0..12).map(|i| i as f32 - 5.5).collect();
        Tensor::from_data(TensorData::new(values, [3, 4]).convert_dtype(dtype), (device, dtype))
    }

    fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
        tensor.try_into_vec_as().unwrap()
    }

    #[test]
    fn what_is_read_lies_where_the_tensor_has_it() {
        for device in [Device::flex(), Device::flex().autodiff()] {
            let x = tensor(&device, DType::F32);
            let own = share::<f32>(x.clone().inner()).unwrap();
            let seen = read::<f32>(&x).unwrap();
            assert_eq!(seen.as_ptr(), slice::<f32>(&own).as_ptr());
            assert_eq!(numbers(x.mul_scalar(2.0))[0], -11.0);
            assert_eq!(seen[0], -5.5, "what was read stays when the tensor is used up");
        }
    }

    #[test]
    fn numbers_are_read_as_they_are_whatever_type_and_order() {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            let x = tensor(&Device::flex(), dtype);
            for x in [x.clone(), x.clone().transpose(), x.clone().slice([1..3, 1..3]), x.autodiff()] {
                let wanted = numbers(x.clone());
                let single = read::<f32>(&x).unwrap();
                assert_eq!(matches!(single, Numbers::Shared(_)), dtype == DType::F32);
                assert_eq!(single.iter().map(|&v| v.into()).collect::<Vec<f64>>(), wanted);
                assert_eq!(read::<f64>(&x).unwrap()[..], wanted);
            }
        }
    }

    #[test]
    fn the_gradient_is_taken_over_as_it_is() {
        let x = tensor(&Device::flex().autodiff(), DType::F32).require_grad();
        let gradient = vec![0.25f32; 12];
        let place = gradient.as_ptr();
        let loss = scalar_with_gradient(x.clone(), 7.5, gradient);
        let found = x.grad(&loss.backward()).unwrap();
        assert_eq!(slice::<f32>(&share::<f32>(found.inner()).unwrap()).as_ptr(), place);
    }

    #[test]
    fn value_and_gradient_equal_those_of_a_formula_written_with_burn() {
        let balanced = Device::flex().autodiff().gradient_checkpointing();
        for (device, dtype) in [
            (Device::flex().autodiff(), DType::F32),
            (Device::flex().autodiff(), DType::F64),
            (Device::flex().autodiff(), DType::F16),
            (balanced, DType::F32),
        ] {
            for factor in [1.0, -0.5] {
                let result = |cubes: &dyn Fn(Tensor<2>) -> Tensor<1>| {
                    let x = tensor(&device, dtype).require_grad();
                    // The features have another use beside the scalar, as in training; the whole loss may be weighted.
                    let inside = x.clone() * 0.5;
                    let cubed = cubes(inside.clone());
                    let value = numbers(cubed.clone())[0];
                    let loss = cubed * factor + inside.sum();
                    (value, numbers(x.grad(&loss.backward()).unwrap()))
                };
                let ours = result(&|x| {
                    let seen = read::<f64>(&x).unwrap();
                    let value = seen.iter().map(|v| v.powi(3)).sum();
                    let gradient: Vec<f32> = seen.iter().map(|v| (3.0 * v * v) as f32).collect();
                    match dtype {
                        DType::F64 => {
                            scalar_with_gradient(x, value, gradient.iter().map(|&g| f64::from(g)).collect())
                        }
                        _ => scalar_with_gradient(x, value, gradient),
                    }
                });
                let by_burn = result(&|x| x.powf_scalar(3.0).sum());
                let slack = if dtype == DType::F16 { 0.05 } else { 1e-4 };
                assert!((ours.0 - by_burn.0).abs() < slack, "{} {}", ours.0, by_burn.0);
                for (a, b) in ours.1.iter().zip(&by_burn.1) {
                    assert!((a - b).abs() < slack, "{dtype:?} {factor}: {a} {b}");
                }
            }
        }
    }

    #[test]
    fn without_a_graph_it_is_just_the_value() {
        for device in [Device::flex(), Device::flex().autodiff()] {
            let loss = scalar_with_gradient(tensor(&device, DType::F32), 7.5, vec![1.0f32; 12]);
            assert_eq!(loss.is_autodiff(), device.is_autodiff());
            assert_eq!(numbers(loss), [7.5]);
        }
    }
}
