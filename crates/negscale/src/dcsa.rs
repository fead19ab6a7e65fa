//! DCSA, the Dissimilarity-Calibrated Similarity Adjustment (paper, equations 7 and 8).
//!
//! A related pair may be at most as similar as $1 - \delta_{ij}$, where
//!
//! $$\delta_{ij} = \tfrac12 \max_{(p,q) \in P_{neg}} (G_{ip} + G_{jq}) \quad\text{(both orders of a pair)}, \qquad
//! L_{DCSA} = \sum_{P_{sim}} \max(0,\; G_{ij} - (1 - \delta_{ij}))^2.$$
//!
//! Since $P_{neg}$ depends on groups of samples only (classes, see [`pairs`](crate::pairs)), the maximum over pairs is a maximum over groups:
//!
//! $$m_i(c) = \max_{p \in c} G_{ip}, \quad h_j(c) = \max_{c' \text{ unrelated to } c} m_j(c'), \quad
//! \delta_{ij} = \tfrac12 \max_c\,(m_i(c) + h_j(c)),$$
//!
//! which is equal to the last bit and costs $O(B^2 + BC^2 + QC)$ instead of $O(QP)$.
//!
//! # Where this differs from the paper
//! $\delta$ is a constant of the gradient unless `delta_gradient` is set; `self_anchor = false` leaves out $p = i$ and $q = j$.
//!
//! Other readings: with `similarity = "half"` all similarities are $(1 + G)/2$, so that the gap is $(G_{ij} + \delta_{ij})/2$;
//! with `delta_features = "epoch"` $\delta$ is made from the Gram matrix of the epoch's frozen pass; with `delta_quantile` $\tau < 1$
//! $m_i(c)$ is not the largest but the $\lceil \tau n \rceil$-th smallest of the $n$ cosines with class $c$, since one mislabelled twin
//! makes the largest meaningless.

use crate::pairs::{Batch, PairSets};
use crate::rows::{Row, for_rows, pairs_of};
use crate::{Real, Settings};
use negscale_cpu::for_this_cpu;
use rayon::prelude::*;

/// Buffers, each B x groups.
#[derive(Debug, Default)]
pub(crate) struct Buffers<T> {
    /// m: per sample and group the largest cosine with a member.
    nearest: Vec<T>,
    /// h: per sample and group the largest m over the groups unrelated to it.
    across: Vec<T>,
    /// m while it is found, for a piece of samples with a row per group.
    by_group: Vec<T>,
}

/// Samples of a piece of work.
const PIECE: usize = 32;

for_this_cpu! {
    /// The term. Adds `scale` times its derivative to `gamma`; returns the unscaled sum and the number of pairs above
    /// their cap.
    pub(crate) fn cap<T: Real>(
        batch: Batch<T>,
        delta_gram: &[T],
        settings: &Settings,
        scale: f64,
        gamma: &mut [T],
        buffers: &mut Buffers<T>,
        rows: &mut [Row],
    ) -> (f64, usize) {
        let Batch { threads, gram, b, pairs } = batch;
        let k = pairs.groups;
        let Buffers { nearest, across, by_group } = buffers;
        for buffer in [&mut *nearest, &mut *across, &mut *by_group] {
            buffer.resize(b * k, T::ZERO);
        }
        let [m, h, scratch] = [&mut *nearest, across, by_group].map(|buffer| buffer.par_chunks_mut(PIECE * k));
        let seen = Batch { gram: delta_gram, ..batch };
        threads.each(m.zip(h).zip(scratch).enumerate(), |(piece, ((nearest, across), by_group))| {
            if settings.delta_quantile < 1.0 {
                find_quantile(seen, settings, piece * PIECE, nearest);
            } else {
                find_nearest(seen, settings.self_anchor, piece * PIECE, nearest, by_group);
            }
            reach_across(pairs, nearest, across);
        });
        let nearest = &*nearest;
        let across = &*across;

        let (a, offset) = settings.similarity_of_cosine();
        let (a, cap) = (T::of(a), T::of(1.0 - 2.0 * offset));
        let factor = T::of(scale) * a;
        for_rows(threads, gamma, rows, b, |i, row, out| {
            *out = Row::default();
            let (cosines, nearest) = (&gram[i * b..][..b], &nearest[i * k..][..k]);
            for class in pairs.related_to(i) {
                for &j in class {
                    let delta = largest_sum(nearest, &across[j * k..][..k]) / T::of(2.0);
                    let gap = a * cosines[j] - (cap - a * delta);
                    if gap > T::ZERO {
                        out.sum += (gap * gap).wide();
                        out.count += 1;
                        row[j] += factor * gap;
                    }
                }
            }
        });
        if settings.delta_gradient {
            through_delta(batch, settings, factor, gamma, nearest, across);
        }
        pairs_of(rows)
    }
}

for_this_cpu! {
    /// m of the samples from `from` on, as many as `nearest` has rows for.
    fn find_nearest<T: Real>(batch: Batch<T>, self_anchor: bool, from: usize, nearest: &mut [T], by_group: &mut [T]) {
        let Batch { gram, b, pairs, .. } = batch;
        let k = pairs.groups;
        let count = nearest.len() / k;
        // G is symmetric, so whole rows can be compared at a time: here with a row per group, then turned over.
        by_group.fill(T::LOWEST);
        for (p, &group) in pairs.group_of.iter().enumerate() {
            let largest = &mut by_group[group * count..][..count];
            let own = p.wrapping_sub(from);
            let before = largest.get(own).copied();
            largest.iter_mut().zip(&gram[p * b + from..]).for_each(|(m, &g)| *m = m.larger(g));
            if let Some(before) = before.filter(|_| !self_anchor) {
                largest[own] = before;
            }
        }
        for (i, row) in nearest.chunks_mut(k).enumerate() {
            row.iter_mut().enumerate().for_each(|(c, m)| *m = by_group[c * count + i]);
        }
    }
}

for_this_cpu! {
    /// h from m, for some samples.
    fn reach_across<T: Real>(pairs: &PairSets<T>, nearest: &[T], across: &mut [T]) {
        let k = pairs.groups;
        for (nearest, across) in nearest.chunks(k).zip(across.chunks_mut(k)) {
            across.fill(T::LOWEST);
            for (&m, barrier) in nearest.iter().zip(pairs.barrier.chunks(k)) {
                for (h, &closed) in across.iter_mut().zip(barrier) {
                    *h = h.larger(m + closed);
                }
            }
        }
    }
}

/// m of the samples from `from` on by the quantile: minus infinity for a class without another sample.
fn find_quantile<T: Real>(batch: Batch<T>, settings: &Settings, from: usize, nearest: &mut [T]) {
    let Batch { gram, b, pairs, .. } = batch;
    let k = pairs.groups;
    let mut cosines = Vec::new();
    for (at, row) in nearest.chunks_mut(k).enumerate() {
        let i = from + at;
        for (c, m) in row.iter_mut().enumerate() {
            cosines.clear();
            let others = pairs.samples(c).iter().filter(|&&p| settings.self_anchor || p != i);
            cosines.extend(others.map(|&p| gram[i * b + p]));
            let place = (settings.delta_quantile * cosines.len() as f64).ceil() as usize;
            *m = if place == 0 {
                T::LOWEST
            } else {
                *cosines.select_nth_unstable_by(place - 1, |a, b| a.wide().total_cmp(&b.wide())).1
            };
        }
    }
}

/// max over c of a(c) + b(c), in four independent chains.
#[inline(always)]
fn largest_sum<T: Real>(a: &[T], b: &[T]) -> T {
    let mut chains = [T::LOWEST; 4];
    let (whole_a, whole_b) = (a.chunks_exact(4), b.chunks_exact(4));
    for (c, (x, y)) in whole_a.remainder().iter().zip(whole_b.remainder()).enumerate() {
        chains[c] = *x + *y;
    }
    for (x, y) in whole_a.zip(whole_b) {
        for c in 0..4 {
            chains[c] = chains[c].larger(x[c] + y[c]);
        }
    }
    chains[0].larger(chains[1]).larger(chains[2].larger(chains[3]))
}

/// Adds what flows through delta: $\partial\delta_{ij} = \frac12(\partial G_{ip} + \partial G_{jq})$ at the maximal
/// $(p, q)$, the first one where several are. An option, so it looks the maximum up again instead of recording it
/// in every run.
fn through_delta<T: Real>(
    batch: Batch<T>,
    settings: &Settings,
    factor: T,
    gamma: &mut [T],
    nearest: &[T],
    across: &[T],
) {
    let Batch { gram, b, pairs, .. } = batch;
    let k = pairs.groups;
    let half = T::of(0.5);
    let (a, offset) = settings.similarity_of_cosine();
    let (a, cap) = (T::of(a), T::of(1.0 - 2.0 * offset));
    let at = |i: usize, c: usize| {
        let m = nearest[i * k + c];
        let is_anchor = |&&p: &&usize| (settings.self_anchor || p != i) && gram[i * b + p] == m;
        pairs.samples(c).iter().find(is_anchor).copied()
    };
    let mut add = |i: usize, p: usize, amount: T| {
        // The derivative of a symmetric G: half on either side of the diagonal, all of it on the diagonal.
        gamma[i * b + p] += half * amount;
        gamma[p * b + i] += half * amount;
    };
    for i in 0..b {
        for &j in pairs.related_to(i).flatten().filter(|&&j| j > i) {
            let (mine, theirs) = (&nearest[i * k..][..k], &across[j * k..][..k]);
            let largest = largest_sum(mine, theirs);
            let gap = a * gram[i * b + j] - (cap - a * (largest / T::of(2.0)));
            if gap <= T::ZERO {
                continue;
            }
            let chosen = (0..k).find(|&c| mine[c] + theirs[c] == largest);
            let anchors = chosen.and_then(|c| {
                let other =
                    (0..k).find(|&o| pairs.barrier[c * k + o] == T::ZERO && nearest[j * k + o] == theirs[c]);
                Some((at(i, c)?, at(j, other?)?))
            });
            if let Some((p, q)) = anchors {
                // d(gap^2) = 2 gap d(delta) = gap (dG_ip + dG_jq)
                add(i, p, factor * gap);
                add(j, q, factor * gap);
            }
        }
    }
}
