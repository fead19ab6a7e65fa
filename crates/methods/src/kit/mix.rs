//! MixUp: every sample of a pool blended with a partner, and its target alike.
//!
//! With one weight $\lambda \sim \mathrm{Beta}(\alpha, \alpha)$ and one permutation $\pi$ for the whole pool,
//! $x_i \leftarrow \lambda x_i + (1 - \lambda) x_{\pi(i)}$. Methods that care which of the two is the sample take
//! $\max(\lambda, 1 - \lambda)$ instead of $\lambda$, so that it is never the smaller part of its own blend.

use burn::tensor::{Int, Tensor, TensorData};
use negscale_data::draw::Draw;
use negscale_nets::Samples;

/// How the samples of one pool are blended.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    /// $\lambda$, the sample's own part.
    pub weight: f32,
    /// $\pi$: the partner of every sample.
    pub partner: Vec<u32>,
}

impl Mix {
    /// Draws $\lambda \sim \mathrm{Beta}(\alpha, \alpha)$, then partners for a pool of `size`. With `own_first` the weight is
    /// $\max(\lambda, 1 - \lambda)$. An `alpha` of 0 or below means no blending.
    pub fn draw(draw: &mut Draw, size: usize, alpha: f64, own_first: bool) -> Self {
        let weight = if alpha > 0.0 { beta(draw, alpha, alpha) } else { 1.0 };
        let weight = if own_first { weight.max(1.0 - weight) } else { weight };
        Self { weight: weight as f32, partner: draw.permutation(size) }
    }

    /// Blended rows: samples, or targets. As many rows as there are partners.
    pub fn rows(&self, rows: Tensor<2>) -> Tensor<2> {
        self.blend(rows)
    }

    /// Blended samples. As many as there are partners.
    pub fn samples(&self, samples: Samples) -> Samples {
        match samples {
            Samples::Images(images) => Samples::Images(self.blend(images)),
            Samples::Rows(rows) => Samples::Rows(self.blend(rows)),
        }
    }

    fn blend<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        // Not only quicker: 0 times an infinite value would be no number.
        if self.weight == 1.0 {
            return x;
        }
        let partner: Vec<i64> = self.partner.iter().map(|&i| i64::from(i)).collect();
        let partner = TensorData::new(partner, [self.partner.len()]);
        let partner = Tensor::<1, Int>::from_data(partner, &x.device());
        x.clone() * self.weight + x.select(0, partner) * (1.0 - self.weight)
    }
}

/// A draw from $\mathrm{Gamma}(a, 1)$, $a > 0$: density $x^{a-1} e^{-x} / \Gamma(a)$.
pub fn gamma(draw: &mut Draw, a: f64) -> f64 {
    log_gamma(draw, a).exp()
}

/// A draw from $\mathrm{Beta}(a, b)$, $a, b > 0$: $x / (x + y)$ with $x \sim \mathrm{Gamma}(a, 1)$, $y \sim \mathrm{Gamma}(b, 1)$.
pub fn beta(draw: &mut Draw, a: f64, b: f64) -> f64 {
    // From logarithms, because for small a and b both draws may be too small for a number, though not their ratio.
    let x = log_gamma(draw, a);
    let y = log_gamma(draw, b);
    1.0 / (1.0 + (y - x).exp())
}

/// The logarithm of a draw from $\mathrm{Gamma}(a, 1)$, by the method of Marsaglia and Tsang (2000).
///
/// With $d = a - 1/3$, $c = 1/\sqrt{9d}$, $n$ normal and $v = (1 + cn)^3 > 0$, the value $dv$ is accepted with probability
/// $\exp(n^2/2 + d - dv + d \log v)$. Below $a = 1$, a draw for $a + 1$ times $u^{1/a}$, $u$ uniform, does it.
fn log_gamma(draw: &mut Draw, a: f64) -> f64 {
    if a < 1.0 {
        return log_gamma(draw, a + 1.0) + log_unit(draw) / a;
    }
    let d = a - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let n = draw.normal();
        let root = 1.0 + c * n;
        if root > 0.0 {
            let log_v = 3.0 * root.ln();
            if log_unit(draw) < 0.5 * n * n + d - d * root.powi(3) + d * log_v {
                return d.ln() + log_v;
            }
        }
    }
}

/// The logarithm of a uniform draw from (0, 1].
fn log_unit(draw: &mut Draw) -> f64 {
    (1.0 - draw.unit()).ln()
}
