//! Initial weights, drawn from a seed.
//!
//! Every value is a function of (seed, path of the parameter, index): a ChaCha8 stream keyed by seed and path. Neither the
//! order in which layers are built nor what else the network holds can change it. Values are drawn when a parameter is
//! first used, so that a network into which a file is loaded, or whose sizes alone are asked for, draws nothing.
//!
//! | rule | convolution weight | dense weight | their biases |
//! |---|---|---|---|
//! | [`InitScheme::Torch`] | U(-b, b), b = 1/sqrt(fan in) | the same | the same |
//! | [`InitScheme::HeIn`] | N(0, 2/fan in) | the same | U(-b, b) |
//! | [`InitScheme::HeOut`] | N(0, 2/fan out) | U(-b, b) | U(-b, b) |
//! | [`InitScheme::Vgg`] | N(0, 2/fan out) | N(0, 0.01^2) | 0 |
//!
//! Fan in = inputs of one output value, fan out = outputs per input value (out channels x window). Norms begin with scale 1,
//! shift 0.

use burn::module::{Param, ParamId};
use burn::tensor::{Device, Shape, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::fmt::Display;

/// Which published code base the first weights follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitScheme {
    /// PyTorch's layers left as they are (`kaiming_uniform` with a = sqrt 5).
    Torch,
    /// `kaiming_normal`, fan in, for convolutions and dense layers.
    HeIn,
    /// `kaiming_normal`, fan out, for convolutions: torchvision's ResNets.
    HeOut,
    /// torchvision's VGG.
    Vgg,
}

/// One distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Spread {
    Constant(f32),
    Uniform(f64),
    Normal(f64),
}

impl InitScheme {
    pub(super) fn conv(self, fan_in: usize, fan_out: usize) -> Spread {
        match self {
            Self::Torch => uniform(fan_in),
            Self::HeIn => Spread::Normal((2.0 / fan_in as f64).sqrt()),
            Self::HeOut | Self::Vgg => Spread::Normal((2.0 / fan_out as f64).sqrt()),
        }
    }

    pub(super) fn dense(self, fan_in: usize) -> Spread {
        match self {
            Self::Torch | Self::HeOut => uniform(fan_in),
            Self::HeIn => Spread::Normal((2.0 / fan_in as f64).sqrt()),
            Self::Vgg => Spread::Normal(0.01),
        }
    }

    pub(super) fn bias(self, fan_in: usize) -> Spread {
        if self == Self::Vgg { Spread::Constant(0.0) } else { uniform(fan_in) }
    }
}

fn uniform(fan_in: usize) -> Spread {
    Spread::Uniform(1.0 / (fan_in as f64).sqrt())
}

/// A place in a network under construction: where its parameters live and how they begin.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub device: Device,
    pub rule: InitScheme,
    pub seed: u64,
    pub path: String,
}

impl Site {
    pub(super) fn new(seed: u64, rule: InitScheme, device: &Device) -> Self {
        Self { device: device.clone(), rule, seed, path: String::new() }
    }

    /// The place `name` inside this one.
    pub(super) fn at(&self, name: impl Display) -> Self {
        let path = if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) };
        Self { path, ..self.clone() }
    }

    /// A trained parameter, drawn when it is first used.
    pub(super) fn parameter<const D: usize>(
        &self,
        name: &str,
        shape: [usize; D],
        spread: Spread,
    ) -> Param<Tensor<D>> {
        let (seed, path) = (self.seed, self.at(name).path);
        let make = move |device: &Device, require_grad: bool| {
            let values = draw(seed, &path, shape.iter().product(), spread);
            let tensor = Tensor::from_data(TensorData::new(values, shape), device);
            if require_grad { tensor.require_grad() } else { tensor }
        };
        Param::uninitialized(ParamId::new(), make, self.device.clone(), true, Shape::from(shape))
    }
}

/// The stream of (seed, name, step).
pub(super) fn stream(seed: u64, name: &str, step: u64) -> ChaCha8Rng {
    // FNV-1a: the name becomes a number that no platform or compiler changes.
    let name = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let mut key = [0; 32];
    for (part, number) in key.chunks_exact_mut(8).zip([seed, name, step, u64::from_le_bytes(*b"networks")]) {
        part.copy_from_slice(&number.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

/// Numbers in the open interval (0, 1), so that their logarithm is finite.
fn units(seed: u64, path: &str) -> impl FnMut() -> f64 {
    let mut stream = stream(seed, path, 0);
    move || ((stream.next_u64() >> 11) as f64 + 0.5) * f64::powi(2.0, -53)
}

/// Normal numbers of mean 0.
pub(super) fn normals(seed: u64, path: &str, count: usize, deviation: f64) -> Vec<f64> {
    let mut unit = units(seed, path);
    let mut values = Vec::with_capacity(count + 1);
    while values.len() < count {
        // Box and Muller: two independent normals from two uniforms.
        let (radius, angle) = (deviation * (-2.0 * unit().ln()).sqrt(), std::f64::consts::TAU * unit());
        values.extend([radius * angle.cos(), radius * angle.sin()]);
    }
    values.truncate(count);
    values
}

fn draw(seed: u64, path: &str, count: usize, spread: Spread) -> Vec<f32> {
    match spread {
        Spread::Constant(value) => vec![value; count],
        Spread::Uniform(bound) => {
            let mut unit = units(seed, path);
            (0..count).map(|_| (bound * (2.0 * unit() - 1.0)) as f32).collect()
        }
        Spread::Normal(deviation) => {
            normals(seed, path, count, deviation).into_iter().map(|value| value as f32).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[f32]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        (mean, values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n)
    }

    #[test]
    fn uniform_draws_fill_their_bounds_with_the_right_variance() {
        let Spread::Uniform(bound) = InitScheme::Torch.conv(576, 1152) else { panic!("not uniform") };
        assert!((bound - 1.0 / 24.0).abs() < 1e-12);
        let values = draw(1, "conv1.weight", 40_000, Spread::Uniform(bound));
        assert!(values.iter().all(|v| f64::from(v.abs()) <= bound));
        assert!(values.iter().any(|v| f64::from(*v) > 0.999 * bound));
        let (mean, variance) = moments(&values);
        assert!(mean.abs() < 0.02 * bound && (variance / (bound * bound / 3.0) - 1.0).abs() < 0.02);
    }

    #[test]
    fn normal_draws_have_mean_variance_and_tails_of_a_normal() {
        let values = draw(1, "conv1.weight", 40_001, InitScheme::HeOut.conv(27, 576));
        assert_eq!(values.len(), 40_001);
        let (mean, variance) = moments(&values);
        assert!(mean.abs() < 1e-3 && (variance / (2.0 / 576.0) - 1.0).abs() < 0.02, "{mean} {variance}");
        let deviation = variance.sqrt();
        let beyond =
            values.iter().filter(|v| f64::from(v.abs()) > 1.96 * deviation).count() as f64 / 40_001.0;
        assert!((beyond - 0.05).abs() < 0.005, "{beyond}");
    }

    #[test]
    fn a_draw_depends_on_seed_and_path_and_on_nothing_else() {
        let base = draw(1, "a.weight", 8, Spread::Uniform(1.0));
        assert_eq!(base, draw(1, "a.weight", 12, Spread::Uniform(1.0))[..8]);
        assert_ne!(base, draw(2, "a.weight", 8, Spread::Uniform(1.0)));
        assert_ne!(base, draw(1, "b.weight", 8, Spread::Uniform(1.0)));
    }
}
