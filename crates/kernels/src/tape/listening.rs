//! A place in the graph where the gradient that comes by is measured, and goes on as it is.

use super::Variable;
use crate::rows::{contiguous, slice};
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::{BackendTensor, DType, DispatchTensor, DispatchTensorKind as Kind, Flex};
use burn::tensor::Tensor;
use std::sync::{Arc, Mutex, PoisonError};

/// Length of the gradients that came by since it was last read.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Mutex<Option<f64>>>);

impl Meter {
    fn add(&self, square: f64) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *sum = Some(sum.unwrap_or(0.0) + square);
    }

    /// The length of all gradients together since the last call, if any came by.
    pub fn take(&self) -> Option<f64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map(f64::sqrt)
    }
}

/// The tensor itself; in the backward pass `meter` takes in the length of its gradient. Only f32 tensors of burn's CPU backend that are
/// tracked can be listened to; any other is given back as it is.
pub fn listen(x: Tensor<2>, meter: &Meter) -> Tensor<2> {
    if x.dtype() != DType::F32 {
        return x;
    }
    let DispatchTensor { kind, autodiff } = x.into_dispatch();
    let kind = match kind {
        Kind::Autodiff(inner) => match *inner {
            Kind::Flex(BackendTensor::Autodiff(x)) => {
                Kind::Autodiff(Box::new(Kind::Flex(BackendTensor::Autodiff(record(x, meter)))))
            }
            other => Kind::Autodiff(Box::new(other)),
        },
        other => other,
    };
    Tensor::from_dispatch(DispatchTensor { kind, autodiff })
}

fn record(x: Variable, meter: &Meter) -> Variable {
    let (value, node) = x.into_parts();
    match Listen.prepare::<NoCheckpointing>([node]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(meter.clone(), value),
        OpsKind::UnTracked(prep) => prep.finish(value),
    }
}

/// The operation; its state is where the length goes.
#[derive(Debug)]
struct Listen;

impl Backward<Flex, 1> for Listen {
    type State = Meter;

    fn backward(self, ops: Ops<Meter, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient: FlexTensor = contiguous(gradients.consume::<Flex>(&ops.node));
        if gradient.dtype() == DType::F32 {
            ops.state.add(slice(&gradient).iter().map(|&g| f64::from(g) * f64::from(g)).sum());
        }
        let [Some(parent)] = ops.parents else { return };
        gradients.register::<Flex>(parent.id, gradient);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, TensorData};

    #[test]
    fn the_gradient_goes_on_as_it_is_and_its_length_is_known_once() {
        let device = Device::flex().autodiff();
        let gradient = |meter: Option<&Meter>| {
            let data = TensorData::new(vec![1.0f32, -2.0, 0.5, 3.0], [2, 2]);
            let x = Tensor::<2>::from_data(data, &device).require_grad();
            let inside = x.clone() * 2.0;
            let heard = meter.map_or(inside.clone(), |meter| listen(inside.clone(), meter));
            // Two uses: one that is listened to, one that is not.
            let loss = (heard.clone() * heard).sum() + inside.sum();
            x.grad(&loss.backward()).unwrap().into_data().try_to_vec::<f32>().unwrap()
        };
        let meter = Meter::default();
        assert_eq!(meter.take(), None);
        assert_eq!(gradient(Some(&meter)), gradient(None));
        // The gradient of the square at 2 x is 4 x.
        let length = (16.0 * (1.0 + 4.0 + 0.25 + 9.0f64)).sqrt();
        assert!((meter.take().unwrap() - length).abs() < 1e-6);
        assert_eq!(meter.take(), None);
    }

    #[test]
    fn a_tensor_without_a_graph_is_given_back() {
        let x = Tensor::<2>::from_data(TensorData::new(vec![1.0f32, 2.0], [1, 2]), &Device::flex());
        let meter = Meter::default();
        assert_eq!(listen(x, &meter).into_data().try_to_vec::<f32>().unwrap(), [1.0, 2.0]);
        assert_eq!(meter.take(), None);
    }
}
