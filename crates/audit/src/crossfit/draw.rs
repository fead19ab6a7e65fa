//! Randomness by counters: each draw is a function of its key alone.

/// A key from a key and a number (the finaliser of SplitMix64 over their sum).
pub(crate) fn mix(key: u64, number: u64) -> u64 {
    let mut z = key.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Uniform in (0, 1).
pub(crate) fn unit(key: u64) -> f64 {
    ((mix(key, 0) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Standard normal.
pub(crate) fn normal(key: u64) -> f32 {
    let (radius, angle) = ((-2.0 * unit(key).ln()).sqrt(), std::f64::consts::TAU * unit(mix(key, 1)));
    (radius * angle.cos()) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normals_have_mean_zero_and_deviation_one() {
        let count = 100_000;
        let draws: Vec<f64> = (0..count).map(|at| f64::from(normal(mix(3, at)))).collect();
        let mean = draws.iter().sum::<f64>() / count as f64;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / count as f64;
        assert!(mean.abs() < 0.015 && (square - 1.0).abs() < 0.02, "mean {mean}, square {square}");
    }
}
