//! The matrix $T$: from anchors, refined on all samples, and what it makes of a prediction of given labels.

use super::{FLOOR, ROUNDS};
use crate::predictions::{Entry, Predictions};
use rayon::prelude::*;

/// Labels that are added to each row of anchors, right and wrong ones as they are on average.
const PRIOR: f64 = 10.0;
/// Wrong labels spread evenly over the other classes, of which the likeliest number is added to each row.
const EVEN: [f64; 6] = [1.0, 3.0, 10.0, 50.0, 250.0, 1000.0];
/// Share of a class that its anchors are.
const ANCHORS: f64 = 0.2;
/// Least anchors of a class that has so many.
const LEAST_ANCHORS: usize = 5;

/// A matrix $T$, and the same by given class.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    pub(super) classes: usize,
    /// C x C, a row for every true class.
    by_true: Vec<f32>,
    /// C x C, a row for every given class.
    by_given: Vec<f32>,
}

impl Transition {
    /// From its rows: C x C, a row for every true class.
    pub(crate) fn new(classes: usize, by_true: Vec<f32>) -> Self {
        let mut by_given = vec![0.0; classes * classes];
        for (at, &t) in by_true.iter().enumerate() {
            by_given[at % classes * classes + at / classes] = t;
        }
        Self { classes, by_true, by_given }
    }

    /// From the surest samples of each class; `sizes` says how many samples a class has.
    pub(super) fn by_anchors(predictions: &Predictions, sizes: &[f64]) -> Self {
        let classes = predictions.classes();
        let anchors = anchors(predictions, sizes);
        let counts: Vec<Vec<f64>> = anchors
            .iter()
            .map(|anchors| {
                let mut counts = vec![0.0; classes];
                anchors.iter().for_each(|&i| counts[predictions.given()[i as usize] as usize] += 1.0);
                counts
            })
            .collect();
        let all: f64 = counts.iter().flatten().sum();
        let right: f64 = counts.iter().enumerate().map(|(class, counts)| counts[class]).sum();
        // One more wrong label than was seen, so that nothing is impossible.
        let wrong = (all - right + 1.0) / (all + 2.0);
        let strength = evenness(&counts);
        let even = strength / (classes.max(2) - 1) as f64;
        let mut by_true = Vec::with_capacity(classes * classes);
        for (class, counts) in counts.iter().enumerate() {
            let all: f64 = counts.iter().sum();
            let kept = (counts[class] + PRIOR * (1.0 - wrong)) / (all + PRIOR);
            let others = all - counts[class] + strength;
            by_true.extend(counts.iter().enumerate().map(|(given, count)| {
                if given == class { kept as f32 } else { ((1.0 - kept) * (count + even) / others) as f32 }
            }));
        }
        Self::new(classes, by_true)
    }

    /// One round of expectation and maximisation: the matrix that makes the given labels of all samples likelier.
    pub(super) fn refined(&self, beliefs: &Predictions) -> Self {
        let classes = self.classes;
        let joint = beliefs.summed(classes * classes, |sample, joint| {
            let given = beliefs.given()[sample];
            let (transition, row) = (self.to_given(given), beliefs.row(sample));
            let part = |e: &Entry| e.probability * transition[e.class as usize];
            let share = 1.0 / row.iter().map(part).sum::<f32>();
            row.iter().for_each(|e| {
                joint[e.class as usize * classes + given as usize] += f64::from(share * part(e));
            });
        });
        let spread = 1.0 / (classes.max(2) - 1) as f64;
        let by_true = joint.chunks_exact(classes.max(1)).enumerate().flat_map(|(class, row)| {
            let total = row.iter().sum::<f64>() + 2.0;
            row.iter()
                .enumerate()
                .map(move |(given, x)| ((x + if given == class { 1.0 } else { spread }) / total) as f32)
        });
        Self::new(classes, by_true.collect())
    }

    /// With a share of it the same for all confusions.
    pub(super) fn with_floor(&self) -> Self {
        let even = FLOOR / self.classes as f32;
        Self::new(self.classes, self.by_true.iter().map(|t| (1.0 - FLOOR) * t + even).collect())
    }

    /// C x C, a row for every true class: probabilities of given ones.
    #[must_use]
    pub fn rows(&self) -> &[f32] {
        &self.by_true
    }

    pub(super) fn to_given(&self, given: u32) -> &[f32] {
        &self.by_given[given as usize * self.classes..][..self.classes]
    }

    /// $q$ from $p$: what explains a prediction of given labels.
    pub(super) fn explain(&self, entries: &mut [Entry], work: &mut Work) {
        let width = entries.len();
        let Work { part, target, belief, predicted } = work;
        part.clear();
        for from in entries.iter() {
            let row = &self.by_true[from.class as usize * self.classes..][..self.classes];
            part.extend(entries.iter().map(|to| row[to.class as usize]));
        }
        target.clear();
        target.extend(entries.iter().map(|entry| entry.probability));
        belief.clear();
        belief.extend_from_slice(target);
        normalise(belief);
        predicted.resize(width, 0.0);
        // What is not kept, as one more class.
        let rest = (1.0 - target.iter().sum::<f32>()).max(0.0);
        for _ in 0..ROUNDS {
            predicted.fill(1e-30);
            for (&q, row) in belief.iter().zip(part.chunks_exact(width)) {
                predicted.iter_mut().zip(row).for_each(|(sum, t)| *sum += q * t);
            }
            let left = (1.0 - predicted.iter().sum::<f32>()).max(1e-6);
            predicted.iter_mut().zip(target.iter()).for_each(|(m, p)| *m = p / *m);
            for (q, row) in belief.iter_mut().zip(part.chunks_exact(width)) {
                let (mut inside, mut known) = (0.0f32, 0.0f32);
                for (ratio, t) in predicted.iter().zip(row) {
                    inside += ratio * t;
                    known += t;
                }
                *q *= inside + (1.0 - known).max(0.0) * rest / left;
            }
            normalise(belief);
        }
        entries.iter_mut().zip(belief.iter()).for_each(|(entry, &q)| entry.probability = q);
    }
}

/// Work space of a thread.
#[derive(Default)]
pub(super) struct Work {
    part: Vec<f32>,
    target: Vec<f32>,
    belief: Vec<f32>,
    predicted: Vec<f32>,
}

fn normalise(row: &mut [f32]) {
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= sum);
}

/// How many wrong labels, spread evenly, are added to those of a class's anchors: the number by which a Dirichlet prior makes all of them likeliest.
/// Uniform noise wants many, flips between two classes few.
fn evenness(counts: &[Vec<f64>]) -> f64 {
    let others = (counts.len().max(2) - 1) as f64;
    let rising = |from: f64, count: f64| (0..count as usize).map(|j| (from + j as f64).ln()).sum::<f64>();
    let likelihood = |strength: f64| -> f64 {
        let row = |(class, row): (usize, &Vec<f64>)| {
            let wrong = row.iter().enumerate().filter(|(given, _)| *given != class).map(|(_, count)| *count);
            let cells: f64 = wrong.clone().map(|count| rising(strength / others, count)).sum();
            cells - rising(strength, wrong.sum())
        };
        counts.iter().enumerate().map(row).sum()
    };
    let better = |best: (f64, f64), strength: f64| {
        let found = likelihood(strength);
        if found > best.1 { (strength, found) } else { best }
    };
    EVEN.into_iter().fold((EVEN[0], f64::NEG_INFINITY), better).0
}

/// By class, the samples that look most like it.
fn anchors(predictions: &Predictions, sizes: &[f64]) -> Vec<Vec<u32>> {
    let mut likely: Vec<Vec<(f32, u32)>> = vec![Vec::new(); predictions.classes()];
    for sample in 0..predictions.len() {
        for entry in predictions.row(sample) {
            likely[entry.class as usize].push((entry.probability, sample as u32));
        }
    }
    let largest = |(mut likely, &size): (Vec<(f32, u32)>, &f64)| {
        let wanted = ((ANCHORS * size) as usize).max(LEAST_ANCHORS.min(size.round() as usize));
        let wanted = wanted.min(likely.len());
        let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if wanted > 0 && wanted < likely.len() {
            likely.select_nth_unstable_by(wanted - 1, order);
        }
        likely.truncate(wanted);
        likely.into_iter().map(|(_, sample)| sample).collect()
    };
    likely.into_par_iter().zip(sizes).map(largest).collect()
}
