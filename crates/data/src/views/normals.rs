//! Standard normal numbers by looking them up.
//!
//! The table holds the quantiles $\Phi^{-1}((i + 1/2)/n)$, $i = 0, \dots, n - 1$, $n = 4096$, divided by their own deviation: a value
//! drawn from it has mean 0 and variance 1 exactly, and at most 3.7. That is a normal number as far as jitter can tell, for one
//! look into 16 KiB instead of a logarithm, a root and a cosine.

use std::f64::consts::{FRAC_1_SQRT_2, PI};
use std::sync::LazyLock;

const SIZE: usize = 4096;

static TABLE: LazyLock<Box<[f32; SIZE]>> = LazyLock::new(|| Box::new(fill()));

/// The table.
pub(super) struct Normals;

impl Normals {
    /// The number that 16 random bits stand for; the upper 12 are used.
    pub fn get(bits: u16) -> f32 {
        TABLE[usize::from(bits >> 4)]
    }
}

fn fill() -> [f32; SIZE] {
    let mut upper = [0f64; SIZE / 2];
    let mut x = 0.0;
    for (i, value) in upper.iter_mut().enumerate() {
        // Each quantile is where the search for the next one begins.
        x = quantile(0.5 + (i as f64 + 0.5) / SIZE as f64, x);
        *value = x;
    }
    let deviation = (upper.iter().map(|x| x * x).sum::<f64>() / upper.len() as f64).sqrt();
    let mut table = [0f32; SIZE];
    for (i, x) in upper.into_iter().enumerate() {
        let x = (x / deviation) as f32;
        (table[SIZE / 2 + i], table[SIZE / 2 - 1 - i]) = (x, -x);
    }
    table
}

/// Where the distribution function of standard normal numbers is p, for p from 1/2 to about 0.9999, by Newton's steps from a point
/// below. The function is concave there, so the steps do not overshoot.
fn quantile(p: f64, below: f64) -> f64 {
    let mut x = below;
    for _ in 0..30 {
        let density = (-0.5 * x * x).exp() * FRAC_1_SQRT_2 / PI.sqrt();
        let step = (p - 0.5 - density * series(x)) / density;
        x += step;
        if step.abs() < 1e-13 {
            break;
        }
    }
    x
}

/// $x + x^3/3 + x^5/(3 \cdot 5) + \dots$, which times the density is the distribution function beyond 1/2.
fn series(x: f64) -> f64 {
    let (mut sum, mut term, mut odd) = (0.0, x, 1.0);
    while term.abs() > sum * 1e-17 {
        sum += term;
        odd += 2.0;
        term *= x * x / odd;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_printed_tables() {
        for (p, x) in [
            (0.5, 0.0),
            (0.75, 0.674_489_750_196_081_7),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_813),
        ] {
            assert!((quantile(p, 0.0) - x).abs() < 1e-12, "{p}: {}", quantile(p, 0.0));
        }
    }

    #[test]
    fn values_are_ordered_and_have_the_moments_of_a_normal_number() {
        assert!(TABLE.is_sorted());
        let moment = |k| TABLE.iter().map(|&x| f64::from(x).powi(k)).sum::<f64>() / SIZE as f64;
        assert!(moment(1).abs() < 1e-12 && (moment(2) - 1.0).abs() < 1e-6, "{} {}", moment(1), moment(2));
        assert!(moment(3).abs() < 1e-12 && (moment(4) - 3.0).abs() < 0.02, "{}", moment(4));
        assert_eq!((Normals::get(0), Normals::get(u16::MAX)), (TABLE[0], -TABLE[0]));
        assert!((3.4..3.7).contains(&Normals::get(u16::MAX)));
    }
}
