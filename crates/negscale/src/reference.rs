//! The paper's formulas as printed, with a list of pairs and the d x P matrix of directions.
//!
//! For comparison only, in speed and in value: [`NegScale::loss_and_gradient`] gives the same numbers for a small part of the
//! time and memory. Supports what the paper prints; other forms are refused.

use crate::product::{View, product};
use crate::real::dot;
use crate::threads::Threads;
use crate::{BatchLabels, Error, NegScale, Real, Reduction, Result, TermState, Terms};

/// Value, record and gradient of the raw features.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LossAndGradient<T> {
    /// $\lambda(\text{global} + \text{local}) + \mu\,\text{dcsa}$.
    pub value: f64,
    /// What the value is made of.
    pub terms: Terms,
    /// B x d.
    pub gradient: Vec<T>,
}

/// Bytes that [`loss_and_gradient`] needs for a batch with `p` unrelated pairs, nearly all of them for the directions and their
/// gradient.
pub fn bytes_needed<T>(p: usize, dim: usize) -> usize {
    (2 * p * dim + dim * dim) * size_of::<T>()
}

/// The loss and its gradient, as printed.
pub fn loss_and_gradient<T: Real>(
    plugin: &NegScale,
    features: &[T],
    dim: usize,
    batch: &BatchLabels<T>,
) -> Result<LossAndGradient<T>> {
    let s = plugin.settings();
    if !s.is_printed() {
        let requirement = "only what the paper prints is computed here; use NegScale::loss_and_gradient";
        return Err(Error::Setting { name: "negscale", value: format!("{s:?}"), requirement });
    }
    if dim == 0 || features.len() != batch.labels.len() * dim {
        let why = format!("{} labels times dimension {dim}, which must not be 0", batch.labels.len());
        return Err(Error::Size {
            what: "features",
            got: features.len(),
            need: batch.labels.len() * dim,
            why,
        });
    }
    let pairs = plugin.pairs(batch)?;
    let (p, q) = (pairs.unrelated.len(), pairs.related.len());
    let two = T::of(2.0);
    let lengths: Vec<T> = features.chunks(dim).map(|f| T::of(dot(f, f).sqrt())).collect();
    let x: Vec<T> = features.iter().enumerate().map(|(at, &f)| f / lengths[at / dim]).collect();
    let row = |i: usize| &x[i * dim..][..dim];
    let cosine = |i: usize, j: usize| T::of(dot(row(i), row(j)));
    let (entries, unrelated, related) = match s.reduction {
        Reduction::Mean => ((p * p) as f64, p as f64, q as f64),
        Reduction::Sum => (1.0, 1.0, 1.0),
    };
    let mut gradient = vec![T::ZERO; x.len()];
    let mut add = |i: usize, factor: T, v: &[T]| {
        gradient[i * dim..][..dim].iter_mut().zip(v).for_each(|(g, &v)| *g += factor * v);
    };
    let (mut global, mut local, mut dcsa, mut capped) = (0.0, 0.0, 0.0, 0);
    let snop = s.snop && s.lambda > 0.0 && p > 0;
    let cap = s.dcsa && s.mu > 0.0 && p > 0 && q > 0;

    if snop && s.global > 0.0 {
        let mut directions = Vec::with_capacity(p * dim);
        let mut distances = Vec::with_capacity(p);
        for &(i, j) in &pairs.unrelated {
            let start = directions.len();
            directions.extend(row(i).iter().zip(row(j)).map(|(&a, &b)| a - b));
            let v = &mut directions[start..];
            let distance = T::of(dot(v, v).sqrt().max(1e-3));
            v.iter_mut().for_each(|v| *v = *v / distance);
            distances.push(distance);
        }
        let f = View::new(&directions, p, dim);
        let mut excess = vec![T::ZERO; dim * dim];
        let threads = Threads::for_work(p * dim * dim);
        product(threads, &mut excess, T::ONE, f.transposed(), f);
        let trace: f64 = (0..dim).map(|k| excess[k * dim + k].wide()).sum();
        let identity = if s.reduction == Reduction::Mean { p } else { dim };
        global = (dot(&excess, &excess) - 2.0 * trace + identity as f64) / entries;
        (0..dim).for_each(|k| excess[k * dim + k] = excess[k * dim + k] - T::ONE);
        let mut slopes = vec![T::ZERO; p * dim];
        let scale = T::of(4.0 * s.lambda * s.global / entries);
        product(threads, &mut slopes, scale, f, View::new(&excess, dim, dim));
        for (n, &(i, j)) in pairs.unrelated.iter().enumerate() {
            let (slope, v) = (&mut slopes[n * dim..][..dim], &directions[n * dim..][..dim]);
            if distances[n].wide() > 1e-3 {
                let along = T::of(dot(slope, v));
                slope.iter_mut().zip(v).for_each(|(g, &v)| *g = *g - along * v);
            }
            add(i, T::ONE / distances[n], slope);
            add(j, -T::ONE / distances[n], slope);
        }
    }
    if snop && s.local > 0.0 {
        let scale = T::of(s.lambda * s.local / unrelated) * two;
        for &(i, j) in &pairs.unrelated {
            let weight = (T::ONE - batch.confidence[i]) * (T::ONE - batch.confidence[j]);
            let g = cosine(i, j);
            local += (weight * g * g).wide();
            add(i, scale * weight * g, row(j));
            add(j, scale * weight * g, row(i));
        }
        local /= unrelated;
    }
    if cap {
        let b = lengths.len();
        let gram: Vec<T> = (0..b * b).map(|at| cosine(at / b, at % b)).collect();
        let scale = T::of(s.mu / related) * two;
        for &(i, j) in &pairs.related {
            let mut largest = T::LOWEST;
            for &(p, q) in &pairs.unrelated {
                if s.self_anchor || (p != i && q != j) {
                    largest = largest.larger(gram[i * b + p] + gram[j * b + q]);
                }
                if s.self_anchor || (q != i && p != j) {
                    largest = largest.larger(gram[i * b + q] + gram[j * b + p]);
                }
            }
            let gap = gram[i * b + j] - (T::ONE - largest / two);
            if gap > T::ZERO {
                dcsa += (gap * gap).wide();
                capped += 1;
                add(i, scale * gap, row(j));
                add(j, scale * gap, row(i));
            }
        }
        dcsa /= related;
    }
    for (i, g) in gradient.chunks_mut(dim).enumerate() {
        let along = T::of(dot(g, row(i)));
        g.iter_mut().zip(row(i)).for_each(|(g, &x)| *g = (*g - along * x) / lengths[i]);
    }
    let state = |on: bool| if on { TermState::Active } else { TermState::Off };
    let terms = Terms {
        global,
        local,
        dcsa,
        anchor: 0.0,
        snop_state: state(snop),
        dcsa_state: state(cap),
        unrelated_pairs: p,
        related_pairs: q,
        capped_pairs: capped,
        identical_pairs: 0,
        zero_features: 0,
        scale: 1.0,
    };
    Ok(LossAndGradient {
        value: s.lambda * (s.global * global + s.local * local) + s.mu * dcsa,
        terms,
        gradient,
    })
}
