//! How far label noise moved the features, and the right-hand sides of the paper's two bounds, as measured.
//!
//! Lemma (feature perturbation): $\lVert\tilde f_i - f_i\rVert \le \epsilon$ with
//! $\epsilon = G\tau / (\lambda\,\delta_{SNOP} + \mu\,\delta_{DCSA})$. Theorem (classification error): the errors of the clean and of the noisy
//! classifier differ by at most $2\epsilon/\gamma_0$. Every quantity is reported, whether or not the bounds hold:
//!
//! | symbol | measured as |
//! |---|---|
//! | $f_i$, $\tilde f_i$ | unit features of the clean run, and of the run after the rotation that brings them nearest: two networks trained apart agree up to a rotation at best |
//! | $\tau$ | share of wrong labels |
//! | $G$ | largest $\lVert W^\top(p_i - e_{\tilde y_i})\rVert$, the gradient of the cross-entropy on given labels in the features; 0 in units that a ReLU before the classifier switches off |
//! | $\delta_{SNOP}$, $\delta_{DCSA}$ | means of the two losses over batches of the run's features, reduced as in training |
//! | $\gamma_0$ | smallest margin of the clean run, of logits divided by the features' length |
//!
//! # Where this differs from the paper
//!
//! The lemma supposes training with NegScale; for a run without it both losses are measured all the same, with the weights handed
//! over. The bound falls as the losses grow, so a run that minimises them better has a weaker bound: it is reported as
//! printed.

use crate::drift::Classifier;
use crate::groups::Groups;
use crate::kendall::{check, softmax};
use crate::labels::Labels;
use crate::moments::{cross, dot, dots};
use crate::rotation::orthogonal_factor;
use crate::units::Units;
use crate::{Error, Result};
use negscale::{BatchLabels, NegScale, Settings, Taxonomy, Workspace};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Batches over which the losses are measured.
const MOST_BATCHES: usize = 64;

/// $\lVert R\tilde f_i - f_i\rVert$ over the samples that have a direction in both runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Perturbation {
    /// Samples.
    pub samples: usize,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// Largest.
    pub largest: f64,
    /// Mean over samples whose label is right, where the truth is known.
    pub mean_clean: Option<f64>,
    /// Mean over samples whose label is wrong.
    pub mean_noisy: Option<f64>,
}

/// Both bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// $\tau$.
    pub tau: f64,
    /// Mean norm of the gradient.
    pub gradient_mean: f64,
    /// $G$, the largest norm of the gradient.
    pub gradient_largest: f64,
    /// $\lambda$.
    pub lambda: f64,
    /// $\mu$.
    pub mu: f64,
    /// $\delta_{SNOP}$.
    pub snop: f64,
    /// $\delta_{DCSA}$.
    pub dcsa: f64,
    /// $\epsilon$, the right-hand side of the lemma; absent where it divides by 0.
    pub epsilon: Option<f64>,
    /// Share of the samples whose perturbation is within it.
    pub within: Option<f64>,
    /// $\gamma_0$, the smallest margin of the clean run; the theorem wants it above 0.
    pub margin_smallest: f64,
    /// Share of samples with a margin above 0.
    pub margin_positive: f64,
    /// Share of samples that the clean run gets wrong.
    pub error_clean: f64,
    /// Share of samples that the run gets wrong.
    pub error_run: f64,
    /// $2\epsilon/\gamma_0$, the right-hand side of the theorem; absent where its conditions are not met.
    pub error_bound: Option<f64>,
}

/// The perturbation of every sample that has a direction in both runs, and its number.
fn distances(run: &Units, clean: &Units) -> Result<Vec<(usize, f64)>> {
    if run.dim() != clean.dim() || run.len() != clean.len() {
        let size = |units: &Units| format!("{} rows of {}", units.len(), units.dim());
        return Err(Error::size(
            "features of the two runs",
            size(run),
            format!("the clean run has {}", size(clean)),
        ));
    }
    let d = run.dim();
    let keep = |sample: usize| run.has_direction(sample) && clean.has_direction(sample);
    let groups = Groups::whole(run.len(), keep);
    if groups.len() == 0 {
        return Ok(Vec::new());
    }
    // Four rows of the rotation meet two samples at a time; lengths are filled up with zeros to suit.
    let width = d.next_multiple_of(4);
    let mut rotation = vec![0.0; width * width];
    for (row, values) in orthogonal_factor(&cross(&groups, clean, run), d).chunks_exact(d).enumerate() {
        rotation[row * width..][..d].copy_from_slice(values);
    }
    let rows: Vec<&[f64]> = rotation.chunks_exact(width).collect();
    let padded = |units: &Units, sample: u32| {
        let mut values: Vec<f64> = units.unit(sample as usize).collect();
        values.resize(width, 0.0);
        values
    };
    let of_two = |two: &[u32]| {
        let samples = [two[0], *two.last().unwrap_or(&two[0])];
        let (from, to) =
            (samples.map(|sample| padded(run, sample)), samples.map(|sample| padded(clean, sample)));
        let mut squares = [0.0; 2];
        for (at, rows) in rows.as_chunks::<4>().0.iter().enumerate() {
            for (which, moved) in dots([&from[0], &from[1]], *rows).iter().enumerate() {
                let targets = &to[which][4 * at..][..4];
                squares[which] += moved.iter().zip(targets).map(|(m, t)| (m - t).powi(2)).sum::<f64>();
            }
        }
        let found = samples
            .iter()
            .zip(squares)
            .map(|(&sample, square): (&u32, f64)| (sample as usize, square.sqrt()));
        found.take(two.len()).collect::<Vec<_>>()
    };
    Ok(groups.members(0).par_chunks(2).flat_map_iter(of_two).collect())
}

/// How far the features of the run lie from those of the clean run, after the best rotation; absent where no sample has a
/// direction in both.
pub fn perturbation(run: &Units, clean: &Units, labels: &Labels) -> Result<Option<Perturbation>> {
    labels.fit("rows of features", run.len())?;
    Ok(summarise(&distances(run, clean)?, labels))
}

fn summarise(distances: &[(usize, f64)], labels: &Labels) -> Option<Perturbation> {
    let mean = |keep: &dyn Fn(usize) -> bool| {
        let kept: Vec<f64> = distances.iter().filter(|(i, _)| keep(*i)).map(|(_, x)| *x).collect();
        (!kept.is_empty()).then(|| kept.iter().sum::<f64>() / kept.len() as f64)
    };
    let mut sorted: Vec<f64> = distances.iter().map(|(_, x)| *x).collect();
    sorted.sort_by(f64::total_cmp);
    let right = labels.truth().map(|truth| move |i: usize| truth[i] == labels.given()[i]);
    Some(Perturbation {
        samples: sorted.len(),
        mean: mean(&|_| true)?,
        median: sorted[sorted.len() / 2],
        largest: *sorted.last()?,
        mean_clean: right.as_ref().and_then(|right| mean(right)),
        mean_noisy: right.as_ref().and_then(|right| mean(&|i| !right(i))),
    })
}

/// A network's view of the samples.
#[derive(Debug, Clone, Copy)]
pub struct NetworkOutput<'a> {
    /// Unit features.
    pub units: &'a Units<'a>,
    /// Logits, N x C.
    pub logits: &'a [f32],
}

/// What the bounds need beside the two views.
#[derive(Debug, Clone)]
pub struct BoundInputs<'a> {
    /// The run's classifier.
    pub classifier: Classifier<'a>,
    /// The class tree.
    pub tree: &'a Taxonomy,
    /// Weights, thresholds and reduction of NegScale.
    pub settings: &'a Settings,
    /// Samples per batch, over which its losses are reduced.
    pub batch: usize,
}

/// The perturbation and both bounds. `labels` must know the truth; without it there is no noise rate.
pub fn bound(
    run: NetworkOutput,
    clean: NetworkOutput,
    labels: &Labels,
    terms: &BoundInputs,
) -> Result<(Option<Perturbation>, Option<Bound>)> {
    labels.fit("rows of features", run.units.len())?;
    let distances = distances(run.units, clean.units)?;
    let perturbation = summarise(&distances, labels);
    let (Some(truth), Some(tau), Some(_)) = (labels.truth(), labels.wrong(), perturbation) else {
        return Ok((perturbation, None));
    };
    let (gradient_mean, gradient_largest) = gradients(run, labels, terms.classifier)?;
    let (snop, dcsa) = losses(run, labels, terms)?;
    let Settings { lambda, mu, .. } = *terms.settings;
    let denominator = lambda * snop + mu * dcsa;
    let epsilon = (denominator > 0.0).then(|| gradient_largest * tau / denominator);
    let within = epsilon.map(|epsilon| {
        distances.iter().filter(|(_, x)| *x <= epsilon).count() as f64 / distances.len() as f64
    });
    let margins: Vec<f64> = margins(clean, truth, labels.classes());
    let margin_smallest = margins.iter().copied().fold(f64::INFINITY, f64::min);
    let count = labels.len() as f64;
    let error = |seen: NetworkOutput| {
        let wrong = margins_of(seen.logits, truth, labels.classes()).filter(|margin| *margin <= 0.0);
        wrong.count() as f64 / count
    };
    let bound = Bound {
        tau,
        gradient_mean,
        gradient_largest,
        lambda,
        mu,
        snop,
        dcsa,
        epsilon,
        within,
        margin_smallest,
        margin_positive: margins.iter().filter(|margin| **margin > 0.0).count() as f64 / count,
        error_clean: error(clean),
        error_run: error(run),
        error_bound: epsilon
            .filter(|_| margin_smallest > 0.0 && tau < 0.5)
            .map(|e| 2.0 * e / margin_smallest),
    };
    Ok((perturbation, Some(bound)))
}

/// Logit of the true class above the largest other one.
fn margins_of<'a>(logits: &'a [f32], truth: &'a [u32], classes: usize) -> impl Iterator<Item = f64> + 'a {
    logits.chunks(classes.max(1)).zip(truth).map(|(row, &label)| {
        let others = row.iter().enumerate().filter(|(class, _)| *class != label as usize);
        let best = others.map(|(_, z)| f64::from(*z)).fold(f64::NEG_INFINITY, f64::max);
        f64::from(row[label as usize]) - best
    })
}

/// The same divided by the length of the features; samples without a direction have none.
fn margins(seen: NetworkOutput, truth: &[u32], classes: usize) -> Vec<f64> {
    margins_of(seen.logits, truth, classes)
        .enumerate()
        .map(|(i, margin)| margin * seen.units.inverse(i))
        .collect()
}

/// Mean and largest norm of the gradient in the features.
fn gradients(run: NetworkOutput, labels: &Labels, classifier: Classifier) -> Result<(f64, f64)> {
    let classes = labels.classes();
    classifier.fit(classes, run.units.dim())?;
    check("logits", run.logits, labels)?;
    let norm = |(sample, logits): (usize, &[f32])| {
        let mut q = vec![0.0; classes];
        softmax(logits, &mut q);
        q[labels.given()[sample] as usize] -= 1.0;
        let gradient = classifier.gradient(run.units.row(sample), &q);
        dot(&gradient, &gradient).sqrt()
    };
    let norms: Vec<f64> = run.logits.par_chunks(classes).enumerate().map(norm).collect();
    let mean = norms.iter().sum::<f64>() / norms.len().max(1) as f64;
    Ok((mean, norms.iter().copied().fold(0.0, f64::max)))
}

/// Means of SNOP and DCSA over batches of samples from all over the set.
fn losses(run: NetworkOutput, labels: &Labels, terms: &BoundInputs) -> Result<(f64, f64)> {
    let (samples, d, classes) = (labels.len(), run.units.dim(), labels.classes());
    let batch = terms.batch.clamp(1, samples.max(1));
    // Weights and warm-up belong to training; here both losses are wanted.
    let settings = terms.settings.clone().with_lambda(1.0).with_mu(1.0).with_snop(true).with_dcsa(true);
    let (global, local) = (settings.global, settings.local);
    let plugin = NegScale::new(terms.tree, settings)?;
    let mut workspace = Workspace::<f32>::new();
    let place = far_apart(samples);
    let batches = (samples / batch).clamp(1, MOST_BATCHES);
    let (mut snop, mut dcsa) = (0.0, 0.0);
    for number in 0..batches {
        let chosen: Vec<usize> = (number * batch..(number + 1) * batch).map(&place).collect();
        let features: Vec<f32> = chosen.iter().flat_map(|&i| run.units.row(i)).copied().collect();
        let given: Vec<usize> = chosen.iter().map(|&i| labels.given()[i] as usize).collect();
        let mut p = vec![0.0; classes];
        let confidence = chosen.iter().map(|&i| {
            softmax(&run.logits[i * classes..][..classes], &mut p);
            p.iter().copied().fold(0.0, f64::max).min(1.0) as f32
        });
        let confidence: Vec<f32> = confidence.collect();
        let batch = BatchLabels::new(&given, &confidence).with_refurbished(&given).with_step(number as u64);
        let terms = plugin.loss_and_gradient(&features, d, &batch, &mut workspace)?.terms;
        snop += global * terms.global + local * terms.local;
        dcsa += terms.dcsa;
    }
    Ok((snop / batches as f64, dcsa / batches as f64))
}

/// An order of the samples that visits each once, neighbours far apart: data may be sorted by class.
pub(crate) fn far_apart(samples: usize) -> impl Fn(usize) -> usize {
    // A step without a common divisor.
    let step = (samples * 618 / 1000..).find(|&step| gcd(step, samples) == 1).unwrap_or(1);
    move |at| (at as u128 * step as u128 % samples as u128) as usize
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
