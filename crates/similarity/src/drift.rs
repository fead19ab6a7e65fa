//! The change of similarity that one gradient step makes, to first order and with no term dropped.
//!
//! As in the paper's argument, features are free: a step of size $\gamma$ on the cross-entropy of its given label moves $f_i$ by $-\gamma g_i$, with
//! $$ g_i = W^\top q_i, \qquad q_i = p_i - e_{\tilde y_i}, $$
//! $p_i$ the softmax of the logits and $W$ the classifier, C x d (where the classifier begins with a ReLU, $g_i$ is 0 where $f_i \le 0$). The unit
//! feature $u_i = f_i / \lvert f_i \rvert$ then moves by $\gamma a_i$ and the cosine $s_{ij} = u_i^\top u_j$ by $\gamma\, \dot s_{ij}$, up to $O(\gamma^2)$:
//! $$ a_i = -\frac{g_i - (g_i^\top u_i)\, u_i}{\lvert f_i \rvert}, \qquad \dot s_{ij} = a_i^\top u_j + u_i^\top a_j. $$
//! Without a ReLU, logits (less the bias) $z_j = W f_j$ say it all:
//! $$ \dot s_{ij} = -\frac{q_i^\top z_j + q_j^\top z_i}{\lvert f_i \rvert \lvert f_j \rvert}
//!    + s_{ij} \left( \frac{q_i^\top z_i}{\lvert f_i \rvert^2} + \frac{q_j^\top z_j}{\lvert f_j \rvert^2} \right). $$
//!
//! # Where this differs from the paper
//!
//! The paper ends at $\lvert\dot s_{ij}\rvert \approx 2 \sum_k p_i^{(k)} p_j^{(k)}$ ([`Step::paper`]). On the way it
//!
//! - takes probabilities for logits ($q_i^\top z_j$ has logits of $j$, which can be negative and large),
//! - drops the label's own term, $z_j^{(\tilde y_i)}$, the only one through which labels, and so label noise, act at all,
//! - drops the renormalisation, the second half of the formula above.
//!
//! A network does not move features freely: a step on some samples moves those of all. What it really does is measured by
//! [`steps`](crate::steps).

use crate::kendall::{check, softmax};
use crate::labels::Labels;
use crate::moments::dot;
use crate::perturbation::far_apart;
use crate::units::Units;
use crate::{ByRelation, Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Samples whose pairs are looked at: half a million pairs.
pub const MOST_SAMPLES: usize = 1024;

/// What turns features into logits.
#[derive(Debug, Clone, Copy)]
pub struct Classifier<'a> {
    /// C x d: row k holds $w_k$.
    pub weights: &'a [f32],
    /// Whether features pass a ReLU first.
    pub rectifies: bool,
}

impl Classifier<'_> {
    pub(crate) fn fit(&self, classes: usize, d: usize) -> Result<()> {
        if self.weights.len() == classes * d {
            return Ok(());
        }
        let got = format!("there are {} weights", self.weights.len());
        Err(Error::size("classifier", got, format!("{classes} classes of {d} features need {}", classes * d)))
    }

    /// Gradient of the cross-entropy in a sample's features, from its residuals $q$.
    pub(crate) fn gradient(&self, features: &[f32], q: &[f64]) -> Vec<f64> {
        let d = features.len();
        let mut gradient = vec![0.0; d];
        for (row, q) in self.weights.chunks_exact(d).zip(q) {
            gradient.iter_mut().zip(row).for_each(|(g, &w)| *g += q * f64::from(w));
        }
        if self.rectifies {
            gradient.iter_mut().zip(features).filter(|(_, f)| **f <= 0.0).for_each(|(g, _)| *g = 0.0);
        }
        gradient
    }
}

/// Change of the cosine of some pairs, for a step of size 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Number of unordered pairs.
    pub pairs: u64,
    /// Mean of $\dot s$: positive where samples are drawn together.
    pub mean: f64,
    /// Mean of $\lvert\dot s\rvert$.
    pub absolute: f64,
    /// Mean of $\dot s$ for a step on true labels, where they are known: the rest of `mean` is due to wrong labels.
    pub clean: Option<f64>,
    /// What the paper keeps: the mean of $2 \sum_k p_i^{(k)} p_j^{(k)}$.
    pub paper: f64,
}

/// Change of cosines by the relation of two samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Samples whose pairs were looked at, from all over the set.
    pub samples: usize,
    /// Relations by given labels.
    pub given: ByRelation<Step>,
    /// Relations by true labels, where they are known.
    pub truth: Option<ByRelation<Step>>,
    /// Correlation of $\lvert\dot s\rvert$ with what the paper keeps of it, over pairs of different given classes.
    pub correlation: Option<f64>,
}

/// What a pair needs to know of a sample.
struct Moved {
    sample: usize,
    unit: Vec<f64>,
    /// $a_i$ by given labels.
    given: Vec<f64>,
    /// $a_i$ by true labels.
    truth: Option<Vec<f64>>,
    p: Vec<f64>,
}

/// The drift of the pairs of up to [`MOST_SAMPLES`] samples that have a direction; absent where there are no two. `logits` are N x C.
pub fn drift(
    units: &Units,
    logits: &[f32],
    classifier: Classifier,
    labels: &Labels,
) -> Result<Option<Drift>> {
    labels.fit("rows of features", units.len())?;
    check("logits", logits, labels)?;
    let classes = labels.classes();
    classifier.fit(classes, units.dim())?;
    let place = far_apart(labels.len());
    let chosen: Vec<usize> =
        (0..labels.len()).map(place).filter(|&i| units.has_direction(i)).take(MOST_SAMPLES).collect();
    let moved = |&sample: &usize| {
        let unit: Vec<f64> = units.unit(sample).collect();
        let mut p = vec![0.0; classes];
        softmax(&logits[sample * classes..][..classes], &mut p);
        let by = |label: u32| {
            let mut q = p.clone();
            q[label as usize] -= 1.0;
            let g = classifier.gradient(units.row(sample), &q);
            let along = dot(&g, &unit);
            g.iter().zip(&unit).map(|(g, u)| (along * u - g) * units.inverse(sample)).collect::<Vec<f64>>()
        };
        let given = by(labels.given()[sample]);
        let truth = labels.truth().map(|truth| by(truth[sample]));
        Moved { sample, given, truth, unit, p }
    };
    let all: Vec<Moved> = chosen.par_iter().map(moved).collect();
    if all.len() < 2 {
        return Ok(None);
    }
    let of_row = |at: usize| {
        let mut sums = Sums::default();
        let i = &all[at];
        for j in &all[at + 1..] {
            let change = dot(&i.given, &j.unit) + dot(&i.unit, &j.given);
            let clean = match (&i.truth, &j.truth) {
                (Some(a), Some(b)) => dot(a, &j.unit) + dot(&i.unit, b),
                _ => 0.0,
            };
            let values = [change, change.abs(), clean, 2.0 * dot(&i.p, &j.p)];
            let by = |labels_of: &[u32]| labels.relation(labels_of[i.sample], labels_of[j.sample]);
            let relation = by(labels.given());
            sums.given[relation].add(values);
            if let Some(truth) = labels.truth() {
                sums.truth[by(truth)].add(values);
            }
            if relation != 0 {
                let (x, y) = (values[1], values[3]);
                sums.squares.iter_mut().zip([x * x, y * y, x * y]).for_each(|(sum, v)| *sum += v);
            }
        }
        sums
    };
    let rows: Vec<Sums> = (0..all.len()).into_par_iter().map(of_row).collect();
    let mut total = Sums::default();
    rows.iter().for_each(|row| total.merge(row));
    let is_known = labels.truth().is_some();
    let by = |sums: &[Part; 4]| ByRelation::of(|at| sums[at].step(is_known));
    Ok(Some(Drift {
        samples: all.len(),
        given: by(&total.given),
        truth: is_known.then(|| by(&total.truth)),
        correlation: total.correlation(),
    }))
}

#[derive(Clone, Copy, Default)]
struct Part {
    pairs: u64,
    /// Change, its absolute value, change by true labels, the paper's.
    sums: [f64; 4],
}

impl Part {
    fn add(&mut self, values: [f64; 4]) {
        self.pairs += 1;
        self.sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }

    fn merge(&mut self, other: &Self) {
        self.pairs += other.pairs;
        self.sums.iter_mut().zip(other.sums).for_each(|(sum, value)| *sum += value);
    }

    fn step(&self, is_known: bool) -> Option<Step> {
        let [mean, absolute, clean, paper] = self.sums.map(|sum| sum / self.pairs as f64);
        let clean = is_known.then_some(clean);
        (self.pairs > 0).then_some(Step { pairs: self.pairs, mean, absolute, clean, paper })
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    given: [Part; 4],
    truth: [Part; 4],
    /// Over pairs of different given classes: squares of |change| and of the paper's, and their product.
    squares: [f64; 3],
}

impl Sums {
    fn merge(&mut self, other: &Self) {
        self.given.iter_mut().zip(&other.given).for_each(|(a, b)| a.merge(b));
        self.truth.iter_mut().zip(&other.truth).for_each(|(a, b)| a.merge(b));
        self.squares.iter_mut().zip(other.squares).for_each(|(a, b)| *a += b);
    }

    fn correlation(&self) -> Option<f64> {
        let mut different = Part::default();
        self.given[1..].iter().for_each(|part| different.merge(part));
        let n = different.pairs as f64;
        let [_, x, _, y] = different.sums.map(|sum| sum / n);
        let [xx, yy, xy] = self.squares.map(|sum| sum / n);
        let spread = ((xx - x * x).max(0.0) * (yy - y * y).max(0.0)).sqrt();
        // Below this the variances are rounding errors.
        (spread > 1e-12 * (xx * yy).sqrt()).then(|| ((xy - x * y) / spread).clamp(-1.0, 1.0))
    }
}
