//! Seeded numbers, and the comparison of an operation in f32 with the same operation in f64.
#![allow(dead_code, clippy::unwrap_used)]

use burn::tensor::{DType, Device, Tensor, TensorData};

/// Numbers in [-1, 1), a function of seed and position.
pub fn draw(seed: u64, len: usize) -> Vec<f64> {
    (0..len as u64)
        .map(|i| {
            let mut z =
                (seed << 32 ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            // 24 bits, so that f32 holds the number exactly.
            ((z ^ z >> 31) >> 40) as f64 / f64::from(1u32 << 23) - 1.0
        })
        .collect()
}

/// Flat inputs of an operation.
pub struct Case {
    inputs: Vec<Vec<f64>>,
    tracked: u32,
}

impl Case {
    pub fn new(sizes: &[usize]) -> Self {
        let inputs = sizes.iter().enumerate().map(|(i, &size)| draw(i as u64 + 1, size)).collect();
        Self { inputs, tracked: u32::MAX }
    }

    /// Tracks only the inputs whose bit is set.
    pub fn tracking(mut self, mask: u32) -> Self {
        self.tracked = mask;
        self
    }

    pub fn tensors(&self, dtype: DType, device: &Device) -> Vec<Tensor<1>> {
        let tensor = |values: &Vec<f64>| {
            Tensor::from_data(
                TensorData::new(values.clone(), [values.len()]).convert_dtype(dtype),
                (device, dtype),
            )
        };
        self.inputs.iter().map(tensor).collect()
    }

    /// Output and gradients (empty where not tracked) of `sum(coefficients * op(inputs))`.
    pub fn run(&self, dtype: DType, op: &dyn Fn(&[Tensor<1>]) -> Tensor<1>) -> Vec<Vec<f64>> {
        let device = Device::flex().autodiff();
        let inputs: Vec<Tensor<1>> = (0..)
            .zip(self.tensors(dtype, &device))
            .map(|(i, t)| if self.tracked >> i & 1 == 1 { t.require_grad() } else { t })
            .collect();
        let out = op(&inputs);
        assert_eq!(out.dtype(), dtype);
        let mut results = vec![read(out.clone())];
        if inputs.iter().any(Tensor::is_require_grad) {
            let [len] = out.dims();
            let weights = TensorData::new(draw(99, len), [len]).convert_dtype(dtype);
            let grads = (out * Tensor::from_data(weights, (&device, dtype))).sum().backward();
            for input in &inputs {
                results.push(input.grad(&grads).map(read).unwrap_or_default());
            }
        }
        results
    }
}

pub fn read(tensor: Tensor<1>) -> Vec<f64> {
    tensor.into_data().convert::<f64>().try_to_vec().unwrap()
}

/// The largest difference, relative to the largest value (at least 1e-3).
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let size = b.iter().fold(1e-3, |m: f64, v| m.max(v.abs()));
    a.iter().zip(b).fold(0.0, |m: f64, (a, b)| if (a - b).is_nan() { f64::NAN } else { m.max((a - b).abs()) })
        / size
}

/// Asserts that output and gradients in f32 are those in f64, within rounding.
pub fn agree(name: &str, case: &Case, op: impl Fn(&[Tensor<1>]) -> Tensor<1>) {
    let (ours, stock) = (case.run(DType::F32, &op), case.run(DType::F64, &op));
    assert_eq!(ours.len(), stock.len());
    for (i, (ours, stock)) in ours.iter().zip(&stock).enumerate() {
        let gap = distance(ours, stock);
        assert!(gap < 2e-5, "{name}: result {i} differs by {gap:e}");
    }
}
