//! Tests of what memory and threads do: buffers are taken over where they can be, and threads change no bit.
#![allow(clippy::unwrap_used)]

use burn::tensor::{Device, Tensor, TensorData};

use crate::rows::IN_PLACE;
use crate::{
    Activation, Precision, Window, activate, avg_pool, conv, dense, max_pool, mean_pool, norm, norm_add,
    norm_fixed,
};

fn tensor<const D: usize>(seed: usize, shape: [usize; D], device: &Device) -> Tensor<D> {
    let values = (0..shape.iter().product::<usize>())
        .map(|i| ((i * 7919 + seed * 104_729) % 1013) as f32 / 500.0 - 1.0)
        .collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn in_place_during(work: impl FnOnce()) -> usize {
    let before = IN_PLACE.get();
    work();
    IN_PLACE.get() - before
}

#[test]
fn evaluation_overwrites_a_tensor_that_nobody_else_holds() {
    for device in [Device::flex(), Device::flex().autodiff()] {
        let x = tensor(1, [2, 4, 4, 3], &device);
        let [a, b, c, d] = [1, 2, 3, 4].map(|seed| tensor(seed, [3], &device).abs() + 0.5);
        let run = |x| norm_fixed(x, a.clone(), b.clone(), c.clone(), d.clone(), None, 1e-5, Activation::Relu);
        assert_eq!(in_place_during(|| drop(run(x.clone()))), 0, "the caller still holds x");
        assert_eq!(in_place_during(|| drop(run(x))), 1);
        let y = tensor(2, [2, 4, 4, 3], &device);
        assert_eq!(in_place_during(|| drop(activate(y, Activation::Relu))), 1);
    }
}

#[test]
fn backward_passes_overwrite_the_gradient_they_consume() {
    let device = Device::flex().autodiff();
    let [scale, shift] = [1, 2].map(|seed| tensor(seed, [3], &device).require_grad());
    let start = || tensor(3, [2, 4, 4, 3], &device).require_grad() * 2.0;
    // The factor keeps the gradient of the output a tensor of its own.
    let factor = tensor(5, [2, 4, 4, 3], &device);
    let out = norm(start(), scale.clone(), shift.clone(), 1e-5, Activation::Relu).out;
    let loss = (out * factor.clone()).sum();
    assert_eq!(in_place_during(|| drop(loss.backward())), 1, "norm writes dx over dy");
    let out = norm_add(start(), scale, shift, start(), 1e-5, Activation::Relu).out;
    let loss = (out * factor).sum();
    assert_eq!(in_place_during(|| drop(loss.backward())), 1, "norm_add writes dy' over dy, and dx anew");
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let run = || {
        let device = Device::flex().autodiff();
        let x = tensor(1, [9, 17, 16, 20], &device).require_grad(); // more values than one thread keeps for itself
        let w = tensor(2, [20, 20, 1, 1], &device).require_grad();
        let [scale, shift] = [3, 4].map(|seed| tensor(seed, [20], &device).require_grad());
        let y = conv(x.clone(), w.clone(), Window::square(1, 1, 0), Precision::F32);
        let y = norm(y, scale.clone(), shift.clone(), 1e-5, Activation::Relu).out;
        let y = norm_add(y, scale.clone(), shift.clone(), x.clone(), 1e-5, Activation::Leaky(0.1)).out;
        let y = avg_pool(max_pool(y, Window::square(3, 1, 1)), Window::square(3, 1, 1), false);
        let y = dense(mean_pool(y), tensor(6, [5, 20], &device), None, Activation::Relu, Precision::F32);
        let mut bits: Vec<u32> = read(y.clone());
        let grads = (y.clone() * y).sum().backward();
        bits.extend(read(x.grad(&grads).unwrap()));
        bits.extend(read(w.grad(&grads).unwrap()));
        bits.extend(read(scale.grad(&grads).unwrap()));
        bits
    };
    let with = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run);
    let one = with(1);
    assert!(one == with(2) && one == with(3));
}

fn read<const D: usize>(tensor: Tensor<D>) -> Vec<u32> {
    tensor.into_data().try_to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}
