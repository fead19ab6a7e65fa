//! What a device computes differs from the CPU's by rounding alone: operation by operation against the same in f64, and over many steps
//! against what the CPU itself makes of another order of the same sums.

use super::{apart, device, numbers};
use burn::tensor::activation::log_softmax;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use negscale_kernels::{
    Activation, Precision, Window, avg_pool, conv, conv_add, conv_bias, dense, max_pool, mean_pool, norm,
    norm_add, norm_fixed, update,
};
use negscale_nets::optim::{Optimiser, Sgd};
use negscale_nets::{Input, NetSpec, Network, Pass};

/// What is computed from flat inputs.
type Op = fn(&[Tensor<1>]) -> Tensor<1>;

const ONE: Window = Window { kernel: [3, 3], stride: [1, 1], padding: [1, 1] };
const TWO: Window = Window { stride: [2, 2], ..ONE };
const HALVE: Window = Window { kernel: [2, 2], stride: [2, 2], padding: [0, 0] };

fn picture(x: &Tensor<1>, side: usize, channels: usize) -> Tensor<4> {
    x.clone().reshape([-1, side as i32, side as i32, channels as i32])
}

fn weight(x: &Tensor<1>, outputs: usize, inputs: usize) -> Tensor<4> {
    x.clone().reshape([outputs, inputs, 3, 3])
}

/// Far from zero, as sums are that have not been centred.
fn shifted(x: &Tensor<1>) -> Tensor<4> {
    picture(x, 14, 16) + 3.0
}

/// The operations of networks in shapes of `cnn-small`, with the sizes of their inputs.
const OPS: [(&str, &[usize], Op); 14] = [
    ("convolution of one channel", &[16 * 784, 8 * 9], |t| {
        conv(picture(&t[0], 28, 1), weight(&t[1], 8, 1), ONE, Precision::F32).reshape([-1])
    }),
    ("convolution", &[16 * 49 * 16, 32 * 16 * 9], |t| {
        conv(picture(&t[0], 7, 16), weight(&t[1], 32, 16), ONE, Precision::F32).reshape([-1])
    }),
    ("convolution with stride 2, bias", &[16 * 49 * 32, 32 * 32 * 9, 32], |t| {
        conv_bias(picture(&t[0], 7, 32), weight(&t[1], 32, 32), t[2].clone(), TWO, Precision::F32)
            .reshape([-1])
    }),
    ("convolution and sum", &[16 * 49 * 8, 8 * 8 * 9, 16 * 49 * 8], |t| {
        conv_add(picture(&t[0], 7, 8), weight(&t[1], 8, 8), picture(&t[2], 7, 8), ONE, Precision::F32)
            .reshape([-1])
    }),
    ("norm", &[16 * 196 * 16, 16, 16], |t| {
        norm(shifted(&t[0]), t[1].clone(), t[2].clone(), 1e-5, Activation::None).out.reshape([-1])
    }),
    ("norm with rectifier", &[16 * 196 * 16, 16, 16], |t| {
        norm(shifted(&t[0]), t[1].clone(), t[2].clone(), 1e-5, Activation::Relu).out.reshape([-1])
    }),
    ("norm with sum", &[16 * 196 * 16, 16, 16, 16 * 196 * 16], |t| {
        let skip = picture(&t[3], 14, 16);
        norm_add(shifted(&t[0]), t[1].clone(), t[2].clone(), skip, 1e-5, Activation::Relu).out.reshape([-1])
    }),
    ("norm in evaluation", &[16 * 196 * 16, 16, 16], |t| {
        let (mean, variance) = (t[1].clone().detach() + 3.0, t[2].clone().detach() + 2.0);
        let (scale, shift) = (t[1].clone(), t[2].clone());
        norm_fixed(shifted(&t[0]), scale, shift, mean, variance, None, 1e-5, Activation::Relu).reshape([-1])
    }),
    ("max pool", &[16 * 196 * 16], |t| max_pool(picture(&t[0], 14, 16), HALVE).reshape([-1])),
    ("average pool", &[16 * 196 * 16], |t| avg_pool(picture(&t[0], 14, 16), TWO, false).reshape([-1])),
    ("mean of a picture", &[16 * 196 * 16], |t| mean_pool(picture(&t[0], 14, 16)).reshape([-1])),
    ("dense layer", &[16 * 300, 10 * 300, 10], |t| {
        let (x, weight) = (t[0].clone().reshape([16, 300]), t[1].clone().reshape([10, 300]));
        dense(x, weight, Some(t[2].clone()), Activation::None, Precision::F32).reshape([-1])
    }),
    ("log of softmax", &[16 * 10], |t| log_softmax(t[0].clone().reshape([16, 10]) * 5.0, 1).reshape([-1])),
    ("cosines", &[16 * 64], |t| {
        let x = t[0].clone().reshape([16, 64]);
        let x = x.clone() / (x.clone() * x).sum_dim(1).sqrt();
        x.clone().matmul(x.transpose()).reshape([-1])
    }),
];

fn tensor(values: &[f32], dtype: DType, device: &Device) -> Tensor<1> {
    let data = TensorData::new(values.to_vec(), [values.len()]).convert_dtype(dtype);
    Tensor::from_data(data, (device, dtype))
}

fn read(tensor: Tensor<1>) -> Vec<f64> {
    tensor.into_data().convert::<f64>().try_to_vec().unwrap()
}

/// Result and gradients of an operation.
fn results(op: Op, sizes: &[usize], dtype: DType, device: &Device) -> Vec<Vec<f64>> {
    let device = device.clone().autodiff();
    let inputs: Vec<Tensor<1>> = (1..)
        .zip(sizes)
        .map(|(seed, &size)| tensor(&numbers(size + seed)[seed..], dtype, &device).require_grad())
        .collect();
    let out = op(&inputs);
    let [len] = out.dims();
    let gradients = (out.clone() * tensor(&numbers(len), dtype, &device)).sum().backward();
    let gradients = inputs.iter().map(|input| read(input.grad(&gradients).unwrap()));
    [read(out)].into_iter().chain(gradients).collect()
}

#[test]
fn every_operation_is_as_near_to_f64_as_rounding_allows() {
    let mut failures = Vec::new();
    let mut compare = |name: &str, exact: &[f64], cpu: &[f64], ours: &[f64]| {
        let (cpu, ours) = (apart(cpu, exact), apart(ours, exact));
        println!("{name}: CPU {cpu:.1e}, device {ours:.1e}");
        // Gradients of a norm's parameters are sums of 3,136 numbers, which f32 adds one after the other.
        if ours.is_nan() || ours > 1e-5 {
            failures.push(format!("{name}: {ours:.1e} from f64, the CPU {cpu:.1e}"));
        }
    };
    for (name, sizes, op) in OPS {
        let exact = results(op, sizes, DType::F64, &Device::flex());
        let cpu = results(op, sizes, DType::F32, &Device::flex());
        let ours = results(op, sizes, DType::F32, &device());
        for (i, exact) in exact.iter().enumerate() {
            let what = if i == 0 { "result".into() } else { format!("gradient {i}") };
            compare(&format!("{name}, {what}"), exact, &cpu[i], &ours[i]);
        }
    }
    let rule = update::Sgd { lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 1e-2 };
    let step = |dtype, device: &Device| {
        let [param, grad, velocity] =
            [1, 2, 3].map(|seed| tensor(&numbers(1000 + seed)[seed..], dtype, device));
        read(update::sgd(param, grad, Some(velocity), rule).0)
    };
    let [exact, cpu] = [DType::F64, DType::F32].map(|dtype| step(dtype, &Device::flex()));
    compare("SGD", &exact, &cpu, &step(DType::F32, &device()));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

const SIDE: usize = 28;
const BATCH: usize = 32;
const STEPS: usize = 50;

/// What is done otherwise than on the CPU as it is.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    Nothing,
    /// The samples of a batch the other way round: the same sums in another order.
    Order,
    /// First weights changed in their last bit.
    LastBit,
}

/// All weights after each step of `cnn-small`, and its loss.
fn course(device: &Device, change: Change) -> Vec<(Vec<f32>, f64)> {
    let device = device.clone().autodiff();
    let input = Input::Image { channels: 1, height: SIDE, width: SIDE };
    let mut net = Network::build(&NetSpec::new("cnn-small", input, 10).scaled(0.5), &device).unwrap();
    if change == Change::LastBit {
        let first = net.read().unwrap();
        let flipped = |values: &Vec<f32>| values.iter().map(|x| f32::from_bits(x.to_bits() ^ 1)).collect();
        let found = net.replace(|entry| {
            first.iter().find(|(other, _)| other == entry).map(|(_, values)| flipped(values))
        });
        net = found.unwrap();
    }
    let mut optimiser = Optimiser::new(Sgd { lr: 0.05, ..Sgd::default() }).unwrap();
    let size = SIDE * SIDE;
    // Three batches in turn.
    let all = numbers(3 * BATCH * size);
    let batches: Vec<(Tensor<4>, Tensor<2, Int>)> = (0..3)
        .map(|batch| {
            let mut order: Vec<usize> = (0..BATCH).map(|i| batch * BATCH + i).collect();
            if change == Change::Order {
                order.reverse();
            }
            let pixels: Vec<f32> = order.iter().flat_map(|i| &all[i * size..][..size]).copied().collect();
            let labels: Vec<i64> = order.iter().map(|i| (i * 7 % 10) as i64).collect();
            let pixels = TensorData::new(pixels, [BATCH, 1, SIDE, SIDE]);
            (
                Tensor::from_data(pixels, &device),
                Tensor::from_data(TensorData::new(labels, [BATCH, 1]), &device),
            )
        })
        .collect();
    (0..STEPS)
        .map(|step| {
            let (pixels, labels) = batches[step % 3].clone();
            let logits = net.forward(pixels, &Pass::train(0, step as u64)).unwrap().logits;
            let loss = -log_softmax(logits, 1).gather(1, labels).mean();
            let value = f64::from(loss.clone().into_scalar::<f32>());
            net = optimiser.step(net.clone(), &mut loss.backward());
            (net.read().unwrap().into_iter().flat_map(|(_, values)| values).collect(), value)
        })
        .collect()
}

#[test]
fn what_pictures_differ_by_is_rounding_that_training_makes_larger() {
    let cpu = course(&Device::flex(), Change::Nothing);
    let order = course(&Device::flex(), Change::Order);
    let bit = course(&Device::flex(), Change::LastBit);
    let ours = course(&device(), Change::Nothing);
    let far = |course: &[(Vec<f32>, f64)]| -> Vec<f64> {
        course.iter().zip(&cpu).map(|(a, b)| apart(&a.0, &b.0)).collect()
    };
    let (far_ours, far_order, far_bit) = (far(&ours), far(&order), far(&bit));
    for step in (0..STEPS).filter(|step| [1, 2, 3, 5, 10, 20, 30, 40, 50].contains(&(step + 1))) {
        println!(
            "step {}: device {:.1e}, other order {:.1e}, last bit {:.1e}; loss {:.4}, device {:.1e}, other order {:.1e}, last bit {:.1e}",
            step + 1,
            far_ours[step],
            far_order[step],
            far_bit[step],
            cpu[step].1,
            (ours[step].1 - cpu[step].1).abs(),
            (order[step].1 - cpu[step].1).abs(),
            (bit[step].1 - cpu[step].1).abs()
        );
    }
    // One step differs by rounding; what fifty make of it is what they make of another order of the CPU's own sums.
    assert!(far_ours[0] < 1e-6, "{:.1e} after one step", far_ours[0]);
    for step in 0..STEPS {
        let most = far_order[..=step].iter().chain(&far_bit[..=step]).fold(1e-7, |a: f64, b| a.max(*b));
        assert!(far_ours[step] < 30.0 * most, "step {}: {:.1e}, {most:.1e}", step + 1, far_ours[step]);
    }
}
