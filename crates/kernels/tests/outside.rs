//! Scalars whose value and gradient are found outside of burn.
#![allow(clippy::unwrap_used)]

use burn::tensor::{DType, Device, Tensor, TensorData};
use negscale_kernels::outside::{read, scalar};

fn tensor(dtype: DType, device: &Device) -> Tensor<2> {
    let values: Vec<f32> = (0..12).map(|i| i as f32 - 5.5).collect();
    Tensor::from_data(TensorData::new(values, [3, 4]).convert_dtype(dtype), (device, dtype))
}

fn numbers(tensor: Tensor<2>) -> Vec<f64> {
    tensor.into_data().convert::<f64>().try_to_vec().unwrap()
}

#[test]
fn numbers_are_read_as_they_are_whatever_type_and_order() {
    let device = Device::flex();
    for x in [tensor(DType::F32, &device), tensor(DType::F64, &device)] {
        for x in [x.clone(), x.clone().transpose(), x.clone().slice([1..3, 1..3]), Tensor::from_inner(x)] {
            let wanted = numbers(x.clone());
            let got: Vec<f64> = read(x).unwrap().iter().map(|&v| v.into()).collect();
            assert_eq!(got, wanted);
        }
    }
}

#[test]
fn what_was_read_stays_when_the_tensor_changes() {
    let x = tensor(DType::F32, &Device::flex());
    let seen = read(x.clone()).unwrap();
    let changed = x.mul_scalar(2.0);
    assert_eq!(numbers(changed)[0], -11.0);
    assert_eq!(seen[0], -5.5);
}

/// Cubes as a formula from outside: value and gradient of sum x^3.
fn cubes(x: Tensor<2>) -> Tensor<1> {
    let seen = read(x.clone()).unwrap();
    let value = seen.iter().map(|&v| f64::from(v).powi(3)).sum();
    let slope = seen.iter().map(|v| 3.0 * v * v).collect();
    scalar(x, value, slope)
}

#[test]
fn value_and_gradient_equal_those_of_the_formula_written_with_burn() {
    let device = Device::flex().autodiff();
    for dtype in [DType::F32, DType::F64] {
        for factor in [1.0, -0.5] {
            let gradient = |cube: &dyn Fn(Tensor<2>) -> Tensor<1>| {
                let x = tensor(dtype, &device).require_grad();
                // The features have another use beside the scalar, as in training; the whole loss may be weighted.
                let inside = x.clone() * 2.0;
                let cubed = cube(inside.clone());
                let value: f64 = cubed.clone().into_data().convert::<f64>().try_to_vec::<f64>().unwrap()[0];
                let loss = cubed * factor + inside.sum();
                let gradients = loss.backward();
                (value, numbers(x.grad(&gradients).unwrap()))
            };
            let (value, slope) = gradient(&cubes);
            let (wanted, wanted_slope) = gradient(&|x| x.powf_scalar(3.0).sum());
            assert!((value - wanted).abs() < 1e-3, "{value} {wanted}");
            for (a, b) in slope.iter().zip(&wanted_slope) {
                assert!((a - b).abs() < 1e-3, "{dtype:?} {factor}: {a} {b}");
            }
        }
    }
}

#[test]
fn without_gradients_it_is_just_the_value() {
    for device in [Device::flex(), Device::flex().autodiff()] {
        let out = scalar(tensor(DType::F32, &device), 7.5, vec![1.0; 12]);
        assert_eq!(out.into_data().convert::<f64>().try_to_vec::<f64>().unwrap(), [7.5]);
    }
}

#[test]
#[should_panic(expected = "scalar: 3 slopes for 12 numbers")]
fn a_wrong_number_of_slopes_is_refused() {
    scalar(tensor(DType::F32, &Device::flex()), 0.0, vec![0.0; 3]);
}
