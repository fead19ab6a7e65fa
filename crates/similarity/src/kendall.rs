//! How alike two samples (or two runs) order the classes.
//!
//! The Kendall tau distance of two orders of C classes is the share of the C(C-1)/2 pairs of classes that they order
//! differently. The paper's first-order argument rests on it: logits of related samples are to be ordered more alike than those of
//! unrelated ones. With $a_{kl} = \mathrm{sign}(z_k - z_l) \in \{-1, 0, 1\}$ for one order and $b_{kl}$ for the other, and a tie in one of them
//! alone counted as half a difference (Fagin's distance with penalty 1/2),
//! $$K = \frac{2}{C(C-1)} \sum_{k<l} \tfrac12\left(\lvert a_{kl}\rvert + \lvert b_{kl}\rvert - \lvert a_{kl} b_{kl}\rvert - a_{kl} b_{kl}\right),$$
//! which is made of inner products, so its mean over all pairs of samples too is exact in linear time.
//!
//! The other quantity of that argument is the overlap $\sum_k p_i^{(k)} p_j^{(k)}$, to which $\lvert\Delta s_{ij}\rvert$ of a step is to be
//! proportional; here $p$ is the softmax of the logits.

use crate::groups::{BUCKETS, Division, Groups};
use crate::labels::Labels;
use crate::moments::first;
use crate::pairs::{Mean, Pairs, Sums};
use crate::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Above this many classes the pairs of classes are too many, and the distance over pairs of samples is left out.
pub const MOST_CLASSES: usize = 200;

/// How samples order the classes, within a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Orders {
    /// Kendall tau distance of the logits of two samples; absent above [`MOST_CLASSES`] classes.
    pub kendall: Option<Pairs<Mean>>,
    /// Overlap of their probabilities.
    pub overlap: Pairs<Mean>,
}

/// How the same samples order the classes in two runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Mean Kendall tau distance over all samples.
    pub kendall: f64,
    /// The same over samples whose label is right, where the truth is known and there are any.
    pub kendall_clean: Option<f64>,
    /// The same over samples whose label is wrong.
    pub kendall_noisy: Option<f64>,
    /// Share of samples with the same first class.
    pub same_first: f64,
}

pub(crate) fn check(what: &'static str, logits: &[f32], labels: &Labels) -> Result<()> {
    let classes = labels.classes();
    if logits.len() != labels.len() * classes {
        let need = format!("{} samples of {classes} classes need {}", labels.len(), labels.len() * classes);
        return Err(Error::size(what, format!("there are {}", logits.len()), need));
    }
    match logits.iter().position(|z| !z.is_finite()) {
        Some(at) => {
            let (sample, place) = (at / classes, at % classes);
            Err(Error::NotFinite { what, sample, place, value: logits[at] })
        }
        None => Ok(()),
    }
}

fn sign(a: f32, b: f32) -> i32 {
    i32::from(a > b) - i32::from(a < b)
}

/// Softmax of a row of logits.
pub(crate) fn softmax(logits: &[f32], into: &mut [f64]) {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    into.iter_mut().zip(logits).for_each(|(p, &z)| *p = f64::from(z - largest).exp());
    let total: f64 = into.iter().sum();
    into.iter_mut().for_each(|p| *p /= total);
}

/// Orders of the classes over all pairs of samples; `logits` are N x C.
pub fn orders(logits: &[f32], labels: &Labels) -> Result<Orders> {
    check("logits", logits, labels)?;
    let classes = labels.classes();
    let division = Division::new(labels, |_| true);
    let mean = |sums: &Sums<1>| Mean { pairs: sums.pairs, mean: sums.sums[0] / sums.pairs as f64 };
    let row = |sample: usize| &logits[sample * classes..][..classes];
    let groupings = division.groupings();
    let overlap = |groups: &&Groups| first(groups, classes, |sample, into| softmax(row(sample), into));
    let overlap = division.pairs([groupings.iter().map(overlap).collect()], mean);
    let kendall = (2..=MOST_CLASSES).contains(&classes).then(|| {
        let distances = groupings.iter().map(|groups| sum_of_distances(groups, logits, classes));
        division.pairs([distances.collect()], mean)
    });
    Ok(Orders { kendall, overlap })
}

/// Sum of the distances over the unordered pairs of every bucket.
fn sum_of_distances(groups: &Groups, logits: &[f32], classes: usize) -> [f64; BUCKETS] {
    // All sums are of whole numbers, so they are exact in any order.
    let of_class = |k: usize| {
        let width = classes - k - 1;
        let of_group = |group: usize| {
            let (mut signs, mut untied) = (vec![0.0; width], vec![0.0; width]);
            for &sample in groups.members(group) {
                let row = &logits[sample as usize * classes..][..classes];
                for (at, &z) in row[k + 1..].iter().enumerate() {
                    let sign = sign(row[k], z);
                    signs[at] += f64::from(sign);
                    untied[at] += f64::from(sign.abs());
                }
            }
            (signs, untied)
        };
        let sums: Vec<(Vec<f64>, Vec<f64>)> = (0..groups.len()).map(of_group).collect();
        let total = |group: usize| sums[group].1.iter().sum::<f64>();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut buckets = [0.0; BUCKETS];
        for a in 0..groups.len() {
            for b in a..groups.len() {
                let (n, m) = (groups.members(a).len() as f64, groups.members(b).len() as f64);
                let (of_a, of_b) = (&sums[a], &sums[b]);
                let twice = m * total(a) + n * total(b) - dot(&of_a.1, &of_b.1) - dot(&of_a.0, &of_b.0);
                buckets[groups.bucket(a, b)] += if a == b { twice / 4.0 } else { twice / 2.0 };
            }
        }
        buckets
    };
    let parts: Vec<[f64; BUCKETS]> = (0..classes - 1).into_par_iter().map(of_class).collect();
    let count = (classes * (classes - 1) / 2) as f64;
    std::array::from_fn(|bucket| parts.iter().map(|part| part[bucket]).sum::<f64>() / count)
}

/// Kendall tau distance of two orders, given by a score for each class.
pub fn distance(a: &[f32], b: &[f32]) -> f64 {
    let classes = a.len().min(b.len());
    if classes < 2 {
        return 0.0;
    }
    let mut halves = 0;
    for k in 0..classes {
        for l in k + 1..classes {
            let (a, b) = (sign(a[k], a[l]), sign(b[k], b[l]));
            halves += a.abs() + b.abs() - (a * b).abs() - a * b;
        }
    }
    f64::from(halves) / (classes * (classes - 1)) as f64
}

/// How two runs order the classes of the same samples.
pub fn agreement(run: &[f32], clean: &[f32], labels: &Labels) -> Result<Agreement> {
    check("logits", run, labels)?;
    check("logits of the clean run", clean, labels)?;
    let classes = labels.classes().max(1);
    let rows = run.par_chunks(classes).zip(clean.par_chunks(classes));
    let distances: Vec<f64> = rows.map(|(a, b)| distance(a, b)).collect();
    let first = |row: &[f32]| (1..row.len()).fold(0, |best, at| if row[at] > row[best] { at } else { best });
    let same = run.chunks(classes).zip(clean.chunks(classes)).filter(|(a, b)| first(a) == first(b)).count();
    let mean = |keep: &dyn Fn(usize) -> bool| {
        let kept: Vec<f64> = (0..distances.len()).filter(|&i| keep(i)).map(|i| distances[i]).collect();
        (!kept.is_empty()).then(|| kept.iter().sum::<f64>() / kept.len() as f64)
    };
    let right = labels.truth().map(|truth| move |i: usize| truth[i] == labels.given()[i]);
    Ok(Agreement {
        kendall: mean(&|_| true).unwrap_or(0.0),
        kendall_clean: right.as_ref().and_then(|right| mean(right)),
        kendall_noisy: right.as_ref().and_then(|right| mean(&|i| !right(i))),
        same_first: same as f64 / distances.len().max(1) as f64,
    })
}
