//! Fused updates against their formulas in f64, and what they do with memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::tensor::{DType, Device, Tensor, TensorData};
use negscale_kernels::update::{self, Adam, Buffers, Decay, Sgd};

const SGD: Sgd = Sgd { lr: 0.1, momentum: 0.9, nesterov: false, weight_decay: 0.01 };
const ADAM: Adam = Adam {
    lr: 0.01,
    beta1: 0.9,
    beta2: 0.999,
    epsilon: 1e-8,
    weight_decay: 0.02,
    decay: Decay::Gradient,
    step: 3,
};

/// Numbers in (-1, 1), the same for the same purpose.
fn numbers(count: usize, purpose: u64) -> Vec<f32> {
    let mut state = purpose;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn tensor(values: &[f32]) -> Tensor<1> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), &Device::flex())
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

fn assert_close(ours: &[f32], formula: impl Iterator<Item = f64>) {
    for (i, (&ours, formula)) in ours.iter().zip(formula).enumerate() {
        assert!((f64::from(ours) - formula).abs() <= 1e-6 * formula.abs().max(0.1), "{i}: {ours} {formula}");
    }
}

/// Buffers used by some work.
fn count(work: impl FnOnce()) -> Buffers {
    let before = update::buffers();
    work();
    let after = update::buffers();
    Buffers { reused: after.reused - before.reused, copied: after.copied - before.copied }
}

#[test]
fn sgd_follows_its_formula_with_and_without_momentum_and_nesterov() {
    let [p, g, v] = [1, 2, 3].map(|purpose| numbers(1001, purpose));
    let f = |x: f32| f64::from(x);
    let (plain, none) = update::sgd(tensor(&p), tensor(&g), None, SGD);
    assert!(none.is_none());
    assert_close(&values(plain), (0..1001).map(|i| f(p[i]) - 0.1 * (f(g[i]) + 0.01 * f(p[i]))));
    for nesterov in [false, true] {
        let (param, velocity) =
            update::sgd(tensor(&p), tensor(&g), Some(tensor(&v)), Sgd { nesterov, ..SGD });
        let gradient = |i: usize| f(g[i]) + 0.01 * f(p[i]);
        let next = |i: usize| 0.9 * f(v[i]) + gradient(i);
        assert_close(&values(velocity.unwrap()), (0..1001).map(next));
        let along = |i: usize| if nesterov { gradient(i) + 0.9 * next(i) } else { next(i) };
        assert_close(&values(param), (0..1001).map(|i| f(p[i]) - 0.1 * along(i)));
    }
}

#[test]
fn adam_follows_its_formula_with_both_kinds_of_decay() {
    let [p, g, m] = [1, 2, 3].map(|purpose| numbers(1001, purpose));
    let s: Vec<f32> = numbers(1001, 4).iter().map(|s| s.abs() + 0.01).collect();
    let f = |x: f32| f64::from(x);
    for decay in [Decay::Gradient, Decay::Parameter] {
        let moments = [tensor(&m), tensor(&s)];
        let (param, [first, second]) = update::adam(tensor(&p), tensor(&g), moments, Adam { decay, ..ADAM });
        let (into_gradient, shrink) =
            if decay == Decay::Gradient { (0.02, 1.0) } else { (0.0, 1.0 - 0.01 * 0.02) };
        let gradient = |i: usize| f(g[i]) + into_gradient * f(p[i]);
        let m1 = |i: usize| 0.9 * f(m[i]) + 0.1 * gradient(i);
        let s1 = |i: usize| 0.999 * f(s[i]) + 0.001 * gradient(i).powi(2);
        let step = |i: usize| {
            let (m_hat, s_hat) = (m1(i) / (1.0 - 0.9f64.powi(3)), s1(i) / (1.0 - 0.999f64.powi(3)));
            0.01 * m_hat / (s_hat.sqrt() + 1e-8)
        };
        assert_close(&values(first), (0..1001).map(m1));
        assert_close(&values(second), (0..1001).map(s1));
        assert_close(&values(param), (0..1001).map(|i| shrink * f(p[i]) - step(i)));
    }
}

#[test]
fn blend_goes_the_given_part_of_the_way() {
    let blended = update::blend(tensor(&[1.0, -2.0]), tensor(&[3.0, 2.0]), 0.25);
    assert_eq!(values(blended), [1.5, -1.0]);
}

#[test]
fn doubles_take_burns_own_operations_and_agree() {
    let double = |purpose| tensor(&numbers(50, purpose)).cast(DType::F64);
    let single = |purpose| tensor(&numbers(50, purpose));
    let positive = |t: Tensor<1>| t.abs();
    for nesterov in [false, true] {
        let rule = Sgd { nesterov, ..SGD };
        let (wide, wide_velocity) = update::sgd(double(1), double(2), Some(double(3)), rule);
        let (ours, velocity) = update::sgd(single(1), single(2), Some(single(3)), rule);
        assert_eq!(wide.dtype(), DType::F64);
        assert_close(&values(ours), wide.into_data().iter::<f64>());
        assert_close(&values(velocity.unwrap()), wide_velocity.unwrap().into_data().iter::<f64>());
    }
    let (wide, _) = update::sgd(double(1), double(2), None, SGD);
    assert_close(&values(update::sgd(single(1), single(2), None, SGD).0), wide.into_data().iter::<f64>());
    for decay in [Decay::Gradient, Decay::Parameter] {
        let rule = Adam { decay, ..ADAM };
        let (wide, _) = update::adam(double(1), double(2), [double(3), positive(double(4))], rule);
        let (ours, _) = update::adam(single(1), single(2), [single(3), positive(single(4))], rule);
        assert_close(&values(ours), wide.into_data().iter::<f64>());
    }
    let wide = update::blend(double(1), double(2), 0.3);
    assert_close(&values(update::blend(single(1), single(2), 0.3)), wide.into_data().iter::<f64>());
}

#[test]
fn buffers_that_nobody_else_holds_are_overwritten() {
    let [p, g, v, s] = [1, 2, 3, 4].map(|purpose| tensor(&numbers(100, purpose)));
    let used = count(|| {
        let (p, v) = update::sgd(p, g.clone(), Some(v), SGD);
        let (p, _) = update::sgd(p, g.clone(), None, SGD);
        let (p, [first, second]) = update::adam(p, g.clone(), [v.unwrap(), s.abs()], ADAM);
        update::blend(p, first, 0.5);
        drop(second);
    });
    assert_eq!(used, Buffers { reused: 2 + 1 + 3 + 1, copied: 0 });
}

#[test]
fn a_shared_buffer_is_copied_and_its_other_holder_keeps_its_values() {
    let (p, g) = (tensor(&[1.0, 2.0]), tensor(&[10.0, 10.0]));
    let holder = p.clone();
    let rule = Sgd { weight_decay: 0.0, ..SGD };
    let used = count(|| assert_eq!(values(update::sgd(p, g, None, rule).0), [0.0, 1.0]));
    assert_eq!(used, Buffers { reused: 0, copied: 1 });
    assert_eq!(values(holder), [1.0, 2.0]);
}

#[test]
fn a_transposed_gradient_meets_the_right_parameters() {
    let square =
        |values: [f32; 4]| Tensor::<2>::from_data(TensorData::new(values.to_vec(), [2, 2]), &Device::flex());
    let rule = Sgd { lr: 1.0, weight_decay: 0.0, ..SGD };
    let (param, _) = update::sgd(square([0.0; 4]), square([1.0, 2.0, 3.0, 4.0]).transpose(), None, rule);
    assert_eq!(values(param), [-1.0, -3.0, -2.0, -4.0]);
    let turned = square([1.0, 2.0, 3.0, 4.0]).transpose();
    let (param, _) = update::sgd(turned, square([1.0; 4]), None, rule);
    assert_eq!(values(param), [0.0, 2.0, 1.0, 3.0]);
}

#[test]
fn a_view_into_a_larger_buffer_is_updated_alone() {
    let rows = Tensor::<2>::from_data(TensorData::new(vec![1f32, 2.0, 3.0, 4.0], [2, 2]), &Device::flex());
    let second = rows.slice([1..2, 0..2]);
    let grad = Tensor::<2>::from_data(TensorData::new(vec![1f32, 1.0], [1, 2]), &Device::flex());
    let (param, _) = update::sgd(second, grad, None, Sgd { lr: 1.0, weight_decay: 0.0, ..SGD });
    assert_eq!(values(param), [2.0, 3.0]);
}

#[test]
fn large_tensors_give_the_same_bits_with_any_number_of_threads() {
    let count = (1 << 16) + 12_345;
    let [p, g, m] = [1, 2, 3].map(|purpose| numbers(count, purpose));
    let run = |part: std::ops::Range<usize>| {
        let of = |values: &[f32]| tensor(&values[part.clone()]);
        let (plain, _) = update::sgd(of(&p), of(&g), None, SGD);
        let (sgd, velocity) = update::sgd(of(&p), of(&g), Some(of(&m)), Sgd { nesterov: true, ..SGD });
        let (adam, [first, second]) = update::adam(of(&p), of(&g), [of(&m), of(&m).abs()], ADAM);
        let blend = update::blend(of(&p), of(&g), 0.1);
        [plain, sgd, velocity.unwrap(), adam, first, second, blend].map(values)
    };
    let with = |threads: usize| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| run(0..count))
    };
    let one = with(1);
    assert!(one == with(2) && one == with(3));
    // The end of a tensor, small enough for one thread and cut at another place, has the same values.
    let end = run(count - 1001..count);
    for (all, end) in one.iter().zip(&end) {
        assert_eq!(&all[count - 1001..], &end[..]);
    }
}
