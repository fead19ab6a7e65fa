//! What a transformer computes besides products with its weights, on rows of plain numbers.

/// Numbers treated alike at a time.
const LANES: usize = 16;

/// $e^x$ to some 2 units of the last place, for $x \le 0$; what would be below the smallest normal number is about that.
///
/// $e^x = 2^k e^r$ with whole $k$ and $|r| \le \ln 2 / 2$, and $e^r$ by seven terms of its series.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Added and taken away again, it leaves a whole number.
    const ROUND: f32 = 12_582_912.0;
    let shifted = x.max(-87.0) * std::f32::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    // ln 2 in two parts, the first with few digits: k times it is exact.
    let r = (x.max(-87.0) - k * 0.693_359_4) + k * 2.121_944_4e-4;
    let mut sum = 1.0 / 720.0;
    for c in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = sum * r + c;
    }
    // The last bits of the shifted number are k.
    sum * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

/// $\mathrm{erf}(x / \sqrt 2)$ to $4 \cdot 10^{-7}$: $x P(x^2) / Q(x^2)$ for $|x| \le 5.6$, beyond which it is 1 to that precision. The
/// coefficients are a fit of our own: `benches/torch/erf.py`.
#[inline(always)]
fn erf_of_root_half(x: f32) -> f32 {
    const P: [f32; 6] =
        [4.429_046e-8, 1.271_291_7e-5, 3.476_950_5e-4, 9.414_482e-3, 6.875_169e-2, 7.978_844_6e-1];
    const Q: [f32; 6] = [1.180_203_9e-6, 7.510_06e-5, 1.912_961_1e-3, 2.893_993e-2, 2.528_332e-1, 1.0];
    let x = x.clamp(-5.6, 5.6);
    let t = x * x;
    let (mut p, mut q) = (0.0, 0.0);
    for (&a, &b) in P.iter().zip(&Q) {
        p = p * t + a;
        q = q * t + b;
    }
    x * p / q
}

negscale_cpu::for_this_cpu! {
    /// $x \Phi(x)$, with the distribution function of the normal distribution, for every number.
    pub(super) fn gelu(values: &mut [f32]) {
        for x in values {
            *x *= 0.5 * (1.0 + erf_of_root_half(*x));
        }
    }
}

/// The sum, in an order that vector code can take.
#[inline(always)]
fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0f32; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest: f32 = chunks.remainder().iter().map(|&x| of(x)).sum();
    for chunk in chunks {
        for (sum, &x) in sums.iter_mut().zip(chunk) {
            *sum += of(x);
        }
    }
    sums.iter().sum::<f32>() + rest
}

negscale_cpu::for_this_cpu! {
    /// Every row $x$ becomes $w (x - m) / \sqrt{v + \epsilon} + b$, with its mean $m$ and its variance $v$.
    pub(super) fn norm(rows: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
        let width = weight.len();
        for row in rows.chunks_exact_mut(width) {
            let mean = sum(row, |x| x) / width as f32;
            let variance = sum(row, |x| (x - mean) * (x - mean)) / width as f32;
            let scale = 1.0 / (variance + epsilon).sqrt();
            for ((x, &w), &b) in row.iter_mut().zip(weight).zip(bias) {
                *x = (*x - mean) * scale * w + b;
            }
        }
    }
}

negscale_cpu::for_this_cpu! {
    /// The mean of some rows, with length 1.
    pub(super) fn unit_mean(rows: &[f32], to: &mut [f32]) {
        to.fill(0.0);
        for row in rows.chunks_exact(to.len()) {
            for (sum, &x) in to.iter_mut().zip(row) {
                *sum += x;
            }
        }
        // The divisor of the mean makes no difference to the direction.
        let length = sum(to, |x| x * x).sqrt().max(f32::MIN_POSITIVE);
        for x in to {
            *x /= length;
        }
    }
}

/// Sizes of the attention of one text.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub tokens: usize,
    pub heads: usize,
    /// Numbers of a head.
    pub size: usize,
}

/// Rows that are computed at a time.
const ROWS: usize = 4;

negscale_cpu::for_this_cpu! {
    /// Attention among the tokens of one text. Rows of `from` are queries, keys and values of all heads; a row of `to` gets, in each head,
    /// $\sum_j p_j v_j$ with $p = \mathrm{softmax}(q k_j / \sqrt{d})$. `room` keeps its memory from one call to the next.
    pub(super) fn attend(from: &[f32], heads: Heads, to: &mut [f32], room: &mut Vec<f32>) {
        let Heads { tokens, heads, size } = heads;
        let width = heads * size;
        // Keys with tokens side by side, values, and scores of some queries; filled up with zeros to whole vectors.
        let (across, deep) = (tokens.next_multiple_of(LANES), size.next_multiple_of(LANES));
        room.clear();
        room.resize(size * across + tokens * deep + ROWS * across, 0.0);
        let (keys, rest) = room.split_at_mut(size * across);
        let (values, scores) = rest.split_at_mut(tokens * deep);
        let scale = 1.0 / (size as f32).sqrt();
        for head in 0..heads {
            for token in 0..tokens {
                let row = &from[token * 3 * width + head * size..];
                for (d, &key) in row[width..][..size].iter().enumerate() {
                    keys[d * across + token] = key * scale;
                }
                values[token * deep..][..size].copy_from_slice(&row[2 * width..][..size]);
            }
            for first in (0..tokens).step_by(ROWS) {
                // The last rows repeat the last token.
                let row = |i: usize| (first + i).min(tokens - 1);
                let queries: [&[f32]; ROWS] =
                    std::array::from_fn(|i| &from[row(i) * 3 * width + head * size..][..size]);
                for column in (0..across).step_by(LANES) {
                    let sums = product(queries, &keys[column..], across);
                    for (i, sums) in sums.iter().enumerate() {
                        scores[i * across + column..][..LANES].copy_from_slice(sums);
                    }
                }
                let mut totals = [0.0; ROWS];
                for (total, scores) in totals.iter_mut().zip(scores.chunks_exact_mut(across)) {
                    *total = exponentials(&mut scores[..tokens]);
                }
                let scores: [&[f32]; ROWS] = std::array::from_fn(|i| &scores[i * across..][..tokens]);
                for column in (0..size).step_by(LANES) {
                    let sums = product(scores, &values[column..], deep);
                    for i in 0..ROWS.min(tokens - first) {
                        let to = &mut to[(first + i) * width + head * size + column..];
                        for (to, &sum) in to.iter_mut().zip(&sums[i]).take(size - column) {
                            *to = sum / totals[i];
                        }
                    }
                }
            }
        }
    }
}

/// `sums[i][j] = sum over k of left[i][k] right[k * stride + j]`.
#[inline(always)]
fn product(left: [&[f32]; ROWS], right: &[f32], stride: usize) -> [[f32; LANES]; ROWS] {
    let mut sums = [[0.0f32; LANES]; ROWS];
    let depth = left[0].len();
    let left = left.map(|row| &row[..depth]);
    for k in 0..depth {
        let right = &right[k * stride..][..LANES];
        for i in 0..ROWS {
            for j in 0..LANES {
                sums[i][j] += left[i][k] * right[j];
            }
        }
    }
    sums
}

/// Numbers become powers of e, relative to the largest; gives their sum.
#[inline(always)]
fn exponentials(values: &mut [f32]) -> f32 {
    let mut largest = [f32::NEG_INFINITY; LANES];
    for chunk in values.chunks(LANES) {
        for (largest, &x) in largest.iter_mut().zip(chunk) {
            *largest = if x > *largest { x } else { *largest };
        }
    }
    let largest = largest.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for x in values.iter_mut() {
        *x = exp(*x - largest);
    }
    sum(values, |x| x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_e_and_the_normal_distribution_are_right_to_seven_digits() {
        for n in 0..=40_000 {
            let x = -(n as f32) / 500.0;
            let wanted = f64::from(x).exp();
            assert!((f64::from(exp(x)) / wanted - 1.0).abs() < 4e-7, "{x}: {} {wanted}", exp(x));
        }
        assert!(exp(f32::NEG_INFINITY) < 1e-37);
        // Central differences of the result are the density of the normal distribution, and the ends are known.
        let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let mut integral = 0.0;
        for n in 0..60_000 {
            let x = f64::from(n) / 10_000.0;
            integral += 2.0 * density(x + 5e-5) / 10_000.0;
            let (end, found) = (x + 1e-4, erf_of_root_half((x + 1e-4) as f32));
            assert!((f64::from(found) - integral).abs() < 6e-7, "{end}: {found} {integral}");
            assert_eq!(erf_of_root_half(-(end as f32)), -found);
        }
        let mut odd = [f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -f32::MAX, 0.0];
        gelu(&mut odd);
        assert_eq!(odd[0], f32::INFINITY);
        assert!(odd[2] > 3e38 && odd[4] == 0.0);
    }

    #[test]
    fn rows_are_normed_and_averaged() {
        let mut rows: Vec<f32> = (0..38).map(|n| (n * n % 11) as f32).collect();
        norm(&mut rows, &[2.0; 19], &[1.0; 19], 0.0);
        for row in rows.chunks(19) {
            let mean = row.iter().sum::<f32>() / 19.0;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 19.0;
            assert!((mean - 1.0).abs() < 1e-5 && (variance - 4.0).abs() < 1e-4, "{mean} {variance}");
        }
        let mut mean = [f32::NAN; 2];
        unit_mean(&[1.0, 5.0, 5.0, 3.0], &mut mean);
        assert_eq!(mean, [0.6, 0.8]);
        unit_mean(&[0.0, 0.0], &mut mean);
        assert_eq!(mean, [0.0; 2]);
    }
}
