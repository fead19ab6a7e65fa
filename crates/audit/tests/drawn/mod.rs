//! Rows that are drawn by counters.

/// A standard normal number by seed and place.
pub fn normal(seed: u64, at: u64) -> f32 {
    let unit = |part: u64| {
        let mut z = (seed << 44).wrapping_add(at * 2 + part + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    ((-2.0 * unit(0).ln()).sqrt() * (std::f64::consts::TAU * unit(1)).cos()) as f32
}

/// Gaussian clusters of deviation 1 about centres of deviation `spread`, row after row in turns.
pub fn clusters(count: usize, dim: usize, clusters: usize, spread: f32) -> Vec<f32> {
    let centre = |cluster: usize, p: usize| spread * normal(1, (cluster * dim + p) as u64);
    let value = |at: usize| centre(at / dim % clusters, at % dim) + normal(2, at as u64);
    (0..count * dim).map(value).collect()
}
