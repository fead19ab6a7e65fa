//! Several predictions made one: a weighted product, calibrated to what the labels say.
//!
//! Expert $m$ gives $\ell_{im}(c)$, the logarithm of a probability. The pooled prediction is
//! $p_i(c) \propto \exp \sum_m a_m \ell_{im}(c)$, and the weights maximise $\sum_i \sum_c t_{ic} \log p_i(c)$ for targets $t$, which is
//! concave in $a$: Newton's steps, and an expert whose weight would be negative is left out.

use super::targets::Targets;
use rayon::prelude::*;

/// Newton's steps.
const STEPS: usize = 12;
/// Logarithms below this are taken for this.
const LEAST: f32 = -30.0;
/// Rows that the weights are fitted to, at most, evenly spread.
pub const MOST_ROWS: usize = 20_000;

/// The weights of experts, each with C logarithms of probabilities for every one of these rows.
pub fn weights(experts: &[&[f32]], targets: &Targets, rows: &[u32]) -> Vec<f64> {
    let mut used = vec![true; experts.len()];
    loop {
        let weights = fit(experts, &used, targets, rows);
        let worst =
            (0..experts.len()).filter(|&m| used[m]).min_by(|&a, &b| weights[a].total_cmp(&weights[b]));
        match worst {
            Some(m) if weights[m] < 0.0 && used.iter().filter(|used| **used).count() > 1 => used[m] = false,
            _ => return weights.into_iter().map(|a| a.max(0.0)).collect(),
        }
    }
}

fn fit(experts: &[&[f32]], used: &[bool], targets: &Targets, rows: &[u32]) -> Vec<f64> {
    let active = used.iter().filter(|used| **used).count().max(1) as f64;
    let mut a: Vec<f64> = used.iter().map(|&used| if used { 1.0 / active } else { 0.0 }).collect();
    let mut now = climb(experts, &a, targets, rows);
    for _ in 0..STEPS {
        let step = newton(&now.gradient, &mut now.curvature, used);
        let mut share = 1.0;
        // The objective is concave, so a step that is short enough improves it.
        let better = loop {
            let tried: Vec<f64> = a
                .iter()
                .zip(&step)
                .map(|(a, step)| (a + share * step.clamp(-1.0, 1.0)).clamp(-1.0, 8.0))
                .collect();
            let next = climb(experts, &tried, targets, rows);
            if next.likelihood > now.likelihood {
                break Some((tried, next));
            }
            share *= 0.5;
            if share < 0.01 {
                break None;
            }
        };
        let Some((tried, next)) = better else { break };
        let gain = next.likelihood - now.likelihood;
        (a, now) = (tried, next);
        if gain < 1e-6 * rows.len() as f64 {
            break;
        }
    }
    a
}

/// The objective at some weights, its gradient and its curvature.
struct Climb {
    likelihood: f64,
    gradient: Vec<f64>,
    curvature: Vec<f64>,
}

fn climb(experts: &[&[f32]], a: &[f64], targets: &Targets, rows: &[u32]) -> Climb {
    const PIECE: usize = 512;
    let (count, classes) = (experts.len(), targets.classes());
    let zero = || Climb { likelihood: 0.0, gradient: vec![0.0; count], curvature: vec![0.0; count * count] };
    let piece = |(piece, rows): (usize, &[u32])| {
        let (mut sums, mut p) = (zero(), vec![0.0f32; classes]);
        for (at, &row) in rows.iter().enumerate() {
            let start = (piece * PIECE + at) * classes;
            pooled(experts, a, start..start + classes, &mut p);
            let of = |m: usize, c: usize| f64::from(experts[m][start + c].max(LEAST));
            let means: Vec<f64> =
                (0..count).map(|m| (0..classes).map(|c| f64::from(p[c]) * of(m, c)).sum()).collect();
            for &(c, t) in targets.row(row as usize) {
                sums.likelihood += f64::from(t) * f64::from(p[c as usize]).max(1e-30).ln();
                for m in 0..count {
                    sums.gradient[m] += f64::from(t) * (of(m, c as usize) - means[m]);
                }
            }
            for m in 0..count {
                for n in 0..=m {
                    let both: f64 = (0..classes).map(|c| f64::from(p[c]) * of(m, c) * of(n, c)).sum();
                    sums.curvature[m * count + n] += both - means[m] * means[n];
                }
            }
        }
        sums
    };
    let pieces: Vec<Climb> = rows.par_chunks(PIECE).enumerate().map(piece).collect();
    pieces.into_iter().fold(zero(), |mut total, sums| {
        total.likelihood += sums.likelihood;
        total.gradient.iter_mut().zip(sums.gradient).for_each(|(total, x)| *total += x);
        total.curvature.iter_mut().zip(sums.curvature).for_each(|(total, x)| *total += x);
        total
    })
}

/// Solves (curvature) step = gradient among the experts in use, by elimination; unused ones stay.
fn newton(gradient: &[f64], curvature: &mut [f64], used: &[bool]) -> Vec<f64> {
    let count = gradient.len();
    let mut right = gradient.to_vec();
    for m in 0..count {
        for n in m + 1..count {
            curvature[m * count + n] = curvature[n * count + m];
        }
    }
    for m in 0..count {
        curvature[m * count + m] += 1e-6 * curvature[m * count + m] + 1e-9;
        if !used[m] {
            (0..count).for_each(|n| {
                curvature[m * count + n] = 0.0;
                curvature[n * count + m] = 0.0;
            });
            curvature[m * count + m] = 1.0;
            right[m] = 0.0;
        }
    }
    for m in 0..count {
        for n in m + 1..count {
            let factor = curvature[n * count + m] / curvature[m * count + m];
            (m..count).for_each(|k| curvature[n * count + k] -= factor * curvature[m * count + k]);
            right[n] -= factor * right[m];
        }
    }
    for m in (0..count).rev() {
        let known: f64 = (m + 1..count).map(|n| curvature[m * count + n] * right[n]).sum();
        right[m] = (right[m] - known) / curvature[m * count + m];
    }
    right
}

/// One row of the pooled prediction.
pub fn pooled(experts: &[&[f32]], weights: &[f64], at: std::ops::Range<usize>, out: &mut [f32]) {
    out.fill(0.0);
    for (expert, &a) in experts.iter().zip(weights) {
        if a != 0.0 {
            out.iter_mut().zip(&expert[at.clone()]).for_each(|(z, &l)| *z += a as f32 * l.max(LEAST));
        }
    }
    super::softmax(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crossfit::draw;

    #[test]
    fn an_overconfident_expert_is_cooled_and_a_useless_one_left_out() {
        let (rows, classes) = (4000usize, 3usize);
        let (mut good, mut noise, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..rows {
            let logits: Vec<f32> =
                (0..classes).map(|c| draw::normal(draw::mix(5, (i * classes + c) as u64))).collect();
            let mut p = logits.clone();
            crate::crossfit::softmax(&mut p);
            let u = draw::unit(draw::mix(6, i as u64)) as f32;
            labels.push(if u < p[0] {
                0
            } else if u < p[0] + p[1] {
                1
            } else {
                2
            });
            let mut twice: Vec<f32> = logits.iter().map(|z| 2.0 * z).collect();
            crate::crossfit::log_softmax(&mut twice);
            good.extend(twice);
            let mut other: Vec<f32> =
                (0..classes).map(|c| draw::normal(draw::mix(7, (i * classes + c) as u64))).collect();
            crate::crossfit::log_softmax(&mut other);
            noise.extend(other);
        }
        let a = weights(
            &[&good, &noise],
            &Targets::of_labels(&labels, classes),
            &(0..rows as u32).collect::<Vec<_>>(),
        );
        assert!((a[0] - 0.5).abs() < 0.05, "twice too sure, so half the weight: {a:?}");
        assert!(a[1].abs() < 0.05, "{a:?}");
    }
}
