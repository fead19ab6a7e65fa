//! Operations against the literal formula in f64, central differences of burn's own operations in f64, and training.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod numbers;

use burn::tensor::{DType, Device, Tensor, TensorData, activation};
use negscale_kernels::{
    Activation, Precision, Window, avg_pool, conv, conv_bias, dense, max_pool, mean_pool, norm, norm_add,
    norm_fixed,
};
use numbers::{Case, distance, draw, read};

#[test]
fn a_convolution_is_the_sum_over_its_window() {
    for (k, s, p) in [(1, 1, 0), (3, 1, 1), (3, 2, 1), (5, 3, 2), (1, 2, 0)] {
        for [b, h, w, i, o] in [[1, 1, 1, 1, 1], [2, 6, 5, 3, 5], [1, 9, 8, 17, 8]] {
            if h + 2 * p < k || w + 2 * p < k {
                continue;
            }
            let case = Case::new(&[b * h * w * i, o * i * k * k, o]);
            let (oh, ow) = ((h + 2 * p - k) / s + 1, (w + 2 * p - k) / s + 1);
            let (x, weight, bias) = (draw(1, b * h * w * i), draw(2, o * i * k * k), draw(3, o));
            let mut expected = vec![];
            for at in 0..b * oh * ow * o {
                let (n, r, c, q) = (at / (oh * ow * o), at / (ow * o) % oh, at / o % ow, at % o);
                let mut sum = bias[q];
                for (u, v, z) in (0..k).flat_map(|u| (0..k).flat_map(move |v| (0..i).map(move |z| (u, v, z))))
                {
                    let (row, column) = ((r * s + u).wrapping_sub(p), (c * s + v).wrapping_sub(p));
                    if row < h && column < w {
                        sum +=
                            x[((n * h + row) * w + column) * i + z] * weight[((q * i + z) * k + u) * k + v];
                    }
                }
                expected.push(sum);
            }
            let found = case.run(DType::F32, &|t| {
                let (x, w) = (t[0].clone().reshape([b, h, w, i]), t[1].clone().reshape([o, i, k, k]));
                conv_bias(x, w, t[2].clone(), Window::square(k, s, p), Precision::F32).reshape([-1])
            });
            assert!(distance(&found[0], &expected) < 1e-5);
        }
    }
}

#[test]
fn batch_norm_follows_its_formula_even_far_from_zero() {
    for c in [1, 3, 16, 33, 130] {
        let n = 3 * 31 * 29;
        let x: Vec<f64> = draw(1, n * c).iter().map(|v| f64::from((v + 1000.0) as f32)).collect();
        let data = TensorData::new(x.clone(), [3, 31, 29, c]).convert_dtype(DType::F32);
        let device = Device::flex();
        let ones = Tensor::<1>::ones([c], &device);
        let found = norm(Tensor::from_data(data, &device), ones.clone(), ones - 1.0, 1e-5, Activation::Relu);
        let (mean, variance, out) = (read(found.mean), read(found.variance), read(found.out.reshape([-1])));
        for k in 0..c {
            let values: Vec<f64> = x.iter().skip(k).step_by(c).copied().collect();
            let m = values.iter().sum::<f64>() / n as f64;
            let v = values.iter().map(|x| (x - m).powi(2)).sum::<f64>() / n as f64;
            assert!((mean[k] - m).abs() < 1e-4, "{} {m}", mean[k]);
            assert!((variance[k] / v - 1.0).abs() < 1e-5, "{} {v}", variance[k]);
            for (at, x) in values.iter().enumerate() {
                let y = ((x - m) / (v + 1e-5).sqrt()).max(0.0);
                assert!((out[at * c + k] - y).abs() < 3e-4);
            }
        }
    }
}

#[test]
fn the_gradient_of_max_pool_goes_to_the_first_maximum() {
    let device = Device::flex().autodiff();
    let x = Tensor::<4>::ones([1, 2, 2, 1], &device).require_grad();
    let grads = max_pool(x.clone(), Window::square(2, 1, 0)).sum().backward();
    assert_eq!(x.grad(&grads).unwrap().into_data().try_to_vec::<f32>().unwrap(), [1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn gradients_in_f64_are_the_central_differences() {
    type Op = Box<dyn Fn(&[Tensor<1>]) -> Tensor<1>>;
    let s = [2, 3, 3, 2];
    let act = Activation::Leaky(0.25);
    let ops: Vec<Op> = vec![
        Box::new(move |t| {
            norm(t[0].clone().reshape(s), t[1].clone(), t[2].clone(), 1e-5, act).out.reshape([-1])
        }),
        Box::new(move |t| {
            let (x, skip) = (t[0].clone().reshape(s), t[3].clone().reshape(s));
            norm_add(x, t[1].clone(), t[2].clone(), skip, 1e-5, act).out.reshape([-1])
        }),
        Box::new(move |t| {
            let (x, skip) = (t[0].clone().reshape(s), t[3].clone().reshape(s));
            let fixed = Tensor::from_data(TensorData::new(vec![0.5, 0.75], [2]), (&x.device(), DType::F64));
            norm_fixed(x, t[1].clone(), t[2].clone(), fixed.clone(), fixed, Some(skip), 1e-5, act)
                .reshape([-1])
        }),
        Box::new(move |t| mean_pool(t[0].clone().reshape(s)).reshape([-1])),
        Box::new(move |t| avg_pool(t[0].clone().reshape(s), Window::square(3, 2, 1), false).reshape([-1])),
        Box::new(move |t| max_pool(t[0].clone().reshape(s), Window::square(2, 1, 1)).reshape([-1])),
        Box::new(move |t| {
            dense(t[0].clone().reshape([18, 2]), t[3].clone().reshape([18, 2]), None, act, Precision::F32)
                .reshape([-1])
        }),
    ];
    let sizes = [36, 2, 2, 36];
    for (o, op) in ops.iter().enumerate() {
        let inputs: Vec<Vec<f64>> = (0..).zip(sizes).map(|(i, n)| draw(i + 1, n)).collect();
        let gradients = Case::new(&sizes).run(DType::F64, op);
        let value = |inputs: &[Vec<f64>]| -> f64 {
            let t: Vec<Tensor<1>> = inputs
                .iter()
                .map(|v| {
                    Tensor::from_data(TensorData::new(v.clone(), [v.len()]), (&Device::flex(), DType::F64))
                })
                .collect();
            let out = read(op(&t));
            out.iter().zip(draw(99, out.len())).map(|(a, b)| a * b).sum()
        };
        for (i, n) in sizes.iter().enumerate().filter(|(i, _)| !gradients[i + 1].is_empty()) {
            for at in 0..*n {
                let shifted = |by: f64| {
                    let mut inputs = inputs.clone();
                    inputs[i][at] += by;
                    value(&inputs)
                };
                let slope = (shifted(1e-6) - shifted(-1e-6)) / 2e-6;
                let found = gradients[i + 1][at];
                assert!((slope - found).abs() < 1e-6 * (1.0 + slope.abs()), "op {o}: {slope} {found}");
            }
        }
    }
}

#[test]
fn twenty_training_steps_go_as_with_stock_burn() {
    let device = Device::flex().autodiff();
    let tensor = |seed, len: usize| {
        Tensor::<1>::from_data(TensorData::new(draw(seed, len), [len]).convert_dtype(DType::F32), &device)
    };
    let train = |ours: bool| -> Vec<f64> {
        let (x, target) = (tensor(1, 8 * 6 * 6 * 3).reshape([8, 6, 6, 3]), tensor(2, 8 * 5).reshape([8, 5]));
        let mut weights = [tensor(3, 8 * 27) * 0.3, tensor(4, 8) + 1.5, tensor(5, 8), tensor(6, 40)];
        let mut losses = vec![];
        for _ in 0..20 {
            let tracked = weights.clone().map(|w| w.detach().require_grad());
            let [w, scale, shift, head] = tracked.clone();
            let y = if ours {
                let y = conv(x.clone(), w.reshape([8, 3, 3, 3]), Window::square(3, 2, 1), Precision::F32);
                let y = mean_pool(norm(y, scale, shift, 1e-5, Activation::Relu).out);
                dense(y, head.reshape([5, 8]), None, Activation::None, Precision::F32)
            } else {
                let options = burn::tensor::ops::ConvOptions::new([2, 2], [1, 1], [1, 1], 1);
                let x = x.clone().permute([0, 3, 1, 2]);
                let y = burn::tensor::module::conv2d(x, w.reshape([8, 3, 3, 3]), None, options);
                let y = y.permute([0, 2, 3, 1]).reshape([72, 8]);
                let mean = y.clone().mean_dim(0);
                let y = y - mean;
                let deviation = (y.clone().powi_scalar(2).mean_dim(0) + 1e-5).sqrt();
                let y = activation::relu(y / deviation * scale.reshape([1, 8]) + shift.reshape([1, 8]));
                let y = y.reshape([8, 9, 8]).mean_dim(1).reshape([8, 8]);
                y.matmul(head.reshape([5, 8]).transpose())
            };
            let loss = (y - target.clone()).powi_scalar(2).mean();
            losses.extend(read(loss.clone().reshape([1])));
            let grads = loss.backward();
            weights = tracked.map(|w| {
                let step = Tensor::from_inner(w.grad(&grads).unwrap()) * 0.1;
                w.detach() - step
            });
        }
        losses
    };
    let (ours, stock) = (train(true), train(false));
    assert!(ours[19] < ours[0]);
    assert!(distance(&ours, &stock) < 1e-4, "{ours:?} {stock:?}");
}

#[test]
#[should_panic(expected = "norm_add: skip has shape [1, 2, 2, 4], but x has [1, 2, 2, 3]")]
fn shapes_that_do_not_fit_are_named() {
    let device = Device::flex();
    let vector = Tensor::<1>::ones([3], &device);
    let (x, skip) = (Tensor::ones([1, 2, 2, 3], &device), Tensor::ones([1, 2, 2, 4], &device));
    norm_add(x, vector.clone(), vector, skip, 1e-5, Activation::None);
}
