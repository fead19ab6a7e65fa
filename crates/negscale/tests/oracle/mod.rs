//! The paper's formulas to the letter, in f64 and plain loops: lists of pairs, d x d and P x P matrices, a double loop for
//! delta. Slow on purpose; shares no code with the library but the class distances.
#![allow(dead_code)] // every test file uses its own part

use negscale::{BatchLabels, PairLists, PairSource, Reduction, Settings, Taxonomy};

/// A batch to evaluate.
#[derive(Debug, Clone)]
pub struct Batch {
    pub features: Vec<f64>,
    pub dim: usize,
    pub labels: Vec<usize>,
    pub confidence: Vec<f64>,
}

impl Batch {
    /// A reproducible batch of sign-free features of uneven lengths.
    pub fn random(b: usize, dim: usize, classes: usize, seed: u64) -> Self {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D;
        let mut uniform = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) as f64 + 0.5) / (1u64 << 31) as f64
        };
        let labels = (0..b).map(|_| (uniform() * classes as f64) as usize).collect();
        let confidence = (0..b).map(|_| uniform()).collect();
        let mut features = Vec::new();
        for _ in 0..b {
            let length = 0.3 + 2.0 * uniform();
            features.extend((0..dim).map(|_| length * (uniform() + uniform() + uniform() - 1.4)));
        }
        Self { features, dim, labels, confidence }
    }

    pub fn given(&self) -> BatchLabels<'_, f64> {
        BatchLabels::new(&self.labels, &self.confidence)
    }

    pub fn unit(&self) -> Vec<Vec<f64>> {
        self.features
            .chunks(self.dim)
            .map(|f| {
                let length = f.iter().map(|v| v * v).sum::<f64>().sqrt();
                f.iter().map(|v| if length > 0.0 { v / length } else { 0.0 }).collect()
            })
            .collect()
    }
}

/// Values of all terms, reduced as the settings say, without weights.
#[derive(Debug, Clone)]
pub struct Values {
    /// |F F^T - I_d|^2, or for means (|F^T F - I_P|^2) / P^2.
    pub global: f64,
    pub local: f64,
    pub dcsa: f64,
    pub total: f64,
    /// Unreduced, in both readings of the identity.
    pub feature_identity: f64,
    pub pair_identity: f64,
    /// |F F^T|^2, the scale against which rounding of the global term is judged.
    pub square: f64,
    /// delta of every related pair, in the order of the list.
    pub delta: Vec<f64>,
}

/// Pairs i < j by definition.
pub fn tree_pairs(labels: &[usize], tree: &Taxonomy, settings: &Settings) -> PairLists {
    assert_eq!(settings.pairs, PairSource::Tree);
    let mut lists = PairLists::default();
    for i in 0..labels.len() {
        for j in i + 1..labels.len() {
            let d = tree.distance(labels[i], labels[j]);
            if d > settings.eta_max {
                lists.unrelated.push((i, j));
            }
            if d > 0 && d <= settings.eta_min {
                lists.related.push((i, j));
            }
        }
    }
    lists
}

/// All terms, literally. `frozen` replaces the deltas, for differences in which delta is a constant.
pub fn values(batch: &Batch, pairs: &PairLists, settings: &Settings, frozen: Option<&[f64]>) -> Values {
    let x = batch.unit();
    let inner = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (p, q, d) = (pairs.unrelated.len(), pairs.related.len(), batch.dim);

    // F, one column per unrelated pair; distances below 1e-3 count as 1e-3.
    let columns: Vec<Vec<f64>> = pairs
        .unrelated
        .iter()
        .map(|&(i, j)| {
            let difference: Vec<f64> = x[i].iter().zip(&x[j]).map(|(a, b)| a - b).collect();
            let length = inner(&difference, &difference).sqrt().max(1e-3);
            difference.iter().map(|v| v / length).collect()
        })
        .collect();
    let (mut feature_identity, mut square) = (0.0, 0.0);
    for r in 0..d {
        for c in 0..d {
            let entry: f64 = columns.iter().map(|v| v[r] * v[c]).sum();
            square += entry * entry;
            feature_identity += (entry - (r == c) as u8 as f64).powi(2);
        }
    }
    let mut pair_identity = 0.0;
    for (r, v) in columns.iter().enumerate() {
        for (c, w) in columns.iter().enumerate() {
            pair_identity += (inner(v, w) - (r == c) as u8 as f64).powi(2);
        }
    }

    let mut local = 0.0;
    for &(i, j) in &pairs.unrelated {
        let weight = (1.0 - batch.confidence[i]) * (1.0 - batch.confidence[j]);
        local += weight * inner(&x[i], &x[j]).powi(2);
    }

    let (mut dcsa, mut delta) = (0.0, Vec::new());
    for (n, &(i, j)) in pairs.related.iter().enumerate() {
        let mut largest = f64::NEG_INFINITY;
        for &(p, q) in &pairs.unrelated {
            for (p, q) in [(p, q), (q, p)] {
                if settings.self_anchor || (p != i && q != j) {
                    largest = largest.max(inner(&x[i], &x[p]) + inner(&x[j], &x[q]));
                }
            }
        }
        delta.push(frozen.map_or(largest / 2.0, |frozen| frozen[n]));
        dcsa += (inner(&x[i], &x[j]) - (1.0 - delta[n])).max(0.0).powi(2);
    }

    let mut global = feature_identity;
    if settings.reduction == Reduction::Mean {
        global = pair_identity / (p * p).max(1) as f64;
        local /= p.max(1) as f64;
        dcsa /= q.max(1) as f64;
    }
    let snop = settings.snop && settings.lambda > 0.0 && p > 0;
    let global = if snop && settings.global > 0.0 { global } else { 0.0 };
    let local = if snop && settings.local > 0.0 { local } else { 0.0 };
    let dcsa = if settings.dcsa && settings.mu > 0.0 && p > 0 && q > 0 { dcsa } else { 0.0 };
    let total = settings.lambda * (settings.global * global + settings.local * local) + settings.mu * dcsa;
    Values { global, local, dcsa, total, feature_identity, pair_identity, square, delta }
}

const STEP: f64 = 1e-5;

/// Central differences of `value` at `at`, one entry at a time.
pub fn differences(at: &[f64], value: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut moved = at.to_vec();
    (0..at.len())
        .map(|k| {
            let mut shifted = |by: f64| {
                moved[k] = at[k] + by;
                let v = value(&moved);
                moved[k] = at[k];
                v
            };
            // Fourth order: the error of the plain quotient would be larger than the tolerance.
            (8.0 * (shifted(STEP) - shifted(-STEP)) - (shifted(2.0 * STEP) - shifted(-2.0 * STEP)))
                / (12.0 * STEP)
        })
        .collect()
}

#[track_caller]
pub fn same_direction(ours: &[f64], numeric: &[f64], what: &str) {
    assert_eq!(ours.len(), numeric.len());
    let norm = numeric.iter().map(|v| v * v).sum::<f64>().sqrt();
    let error = ours.iter().zip(numeric).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    assert!(norm > 1e-4, "{what}: no gradient to compare");
    assert!(error <= 1e-6 * norm, "{what}: off by {error:e} of {norm:e}");
}
