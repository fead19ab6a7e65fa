//! Dawid and Skene's model, fitted by expectation and maximisation. The mathematics is in the docs of [`super`].

mod climb;

use super::labels::Labels;
use super::{PRIOR_COUNT, STRENGTHS, Settings};
use rayon::prelude::*;

/// Probabilities below this are taken for this: a sum of a few `f32`s says no more.
const LEAST: f32 = 1e-12;
/// Samples at a time: sums are made within these, then over them, whatever the number of threads.
const CHUNK: usize = 1024;
/// Whose matrices are fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// One for all annotators.
    Pooled,
    /// One for each.
    Single,
}

/// Parameters, and what they make of the samples.
pub(super) struct Model<'a> {
    labels: &'a Labels,
    settings: Settings,
    /// $\ln p_i(y)$, N x C, where there are predictions.
    logs: Option<Vec<f32>>,
    /// $s$.
    pub strength: f64,
    /// $\tau$.
    pub exponent: f64,
    /// $\ln \pi$.
    prior: Vec<f64>,
    /// $M$, $\Theta$.
    matrices: Matrices,
    /// $r_i(y)$, N x C.
    pub posteriors: Vec<f32>,
}

/// What an expectation adds up over the samples with labels.
pub(super) struct Expected {
    /// $\sum_i \ln P(l_i)$.
    pub likelihood: f64,
    /// $\sum_i r_i(y)$.
    mass: Vec<f64>,
    /// Of the likelihood by the exponent.
    slope: f64,
    /// Variance of $\ln p_i$ under the prior, and under the posterior.
    variances: [f64; 2],
}

impl Expected {
    pub fn mass(&self) -> &[f64] {
        &self.mass
    }
}

/// Confusion matrices, as they are computed with.
#[derive(Debug, Clone)]
pub(super) struct Matrices {
    /// $M$ transposed, a row for every given class.
    pub pooled: Vec<f64>,
    /// $\ln \Theta^a_{yl}$, a row over $y$ for every slot $(a, l)$.
    pub by_slot: Vec<f64>,
    /// $\ln(n^a_y + s)$, a row over $y$ for every annotator.
    pub totals: Vec<f64>,
}

/// Parameters alone.
#[derive(Clone)]
pub(super) struct Parameters {
    pub exponent: f64,
    pub prior: Vec<f64>,
    pub matrices: Matrices,
}

impl<'a> Model<'a> {
    /// The model after a first maximisation from soft majority votes, in which predictions count as one more voice.
    pub fn start(labels: &'a Labels, predictions: Option<&[f32]>, settings: Settings) -> Self {
        let classes = labels.classes();
        let logs = predictions.map(|p| p.par_iter().with_min_len(CHUNK).map(|p| p.max(LEAST).ln()).collect());
        let mut votes = match predictions {
            Some(predictions) => predictions.to_vec(),
            None => vec![0.0; labels.samples() * classes],
        };
        let mut mass = vec![0.0; classes];
        for (sample, row) in votes.chunks_mut(classes).enumerate() {
            let slots = labels.slots_of(sample);
            if slots.is_empty() {
                continue;
            }
            slots.iter().for_each(|&slot| row[labels.owners()[slot as usize].1 as usize] += 1.0);
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|vote| *vote /= sum);
            mass.iter_mut().zip(row.iter()).for_each(|(mass, &vote)| *mass += f64::from(vote));
        }
        let mut model = Self {
            labels,
            settings,
            logs,
            strength: settings.strength.unwrap_or(STRENGTHS[0]),
            exponent: 1f64.clamp(settings.exponents[0], settings.exponents[1]),
            prior: Vec::new(),
            matrices: Matrices {
                pooled: Vec::new(),
                by_slot: Vec::new(),
                totals: vec![0.0; labels.annotators() * classes],
            },
            posteriors: votes,
        };
        model.maximise(Stage::Pooled, &mass);
        model
    }

    pub fn has_predictions(&self) -> bool {
        self.logs.is_some()
    }

    pub fn parameters(&self) -> Parameters {
        Parameters { exponent: self.exponent, prior: self.prior.clone(), matrices: self.matrices.clone() }
    }

    pub fn set(&mut self, parameters: Parameters) {
        (self.exponent, self.prior) = (parameters.exponent, parameters.prior);
        self.matrices = parameters.matrices;
    }

    /// A label's $\ln \Theta^a_{yl}$ over $y$.
    pub fn row(&self, slot: u32) -> &[f64] {
        let classes = self.labels.classes();
        &self.matrices.by_slot[slot as usize * classes..(slot as usize + 1) * classes]
    }

    /// Writes $\ln q_i(y) + \sum_a \ln \Theta^a_{y l_{ia}}$; gives the mean and variance of $\ln p_i$ under $q_i$.
    pub fn joint(&self, sample: usize, into: &mut [f64]) -> (f64, f64) {
        let classes = self.labels.classes();
        let mut moments = (0.0, 0.0);
        match &self.logs {
            None => into.copy_from_slice(&self.prior),
            Some(logs) => {
                let logs = &logs[sample * classes..(sample + 1) * classes];
                into.iter_mut().zip(logs).for_each(|(q, &log)| *q = self.exponent * f64::from(log));
                let all = log_sum(into);
                into.iter_mut().for_each(|q| *q -= all);
                moments = mean_and_variance(into.iter().map(|q| q.exp()), logs);
            }
        }
        for &slot in self.labels.slots_of(sample) {
            into.iter_mut().zip(self.row(slot)).for_each(|(sum, log)| *sum += log);
        }
        moments
    }

    /// Posteriors under the present parameters. Those of samples that are `left_out` become 0.
    pub fn expect(&mut self, left_out: impl Fn(usize) -> bool + Sync) -> Expected {
        let classes = self.labels.classes();
        let mut posteriors = std::mem::take(&mut self.posteriors);
        let of_chunk = |(chunk, rows): (usize, &mut [f32])| {
            let mut sums =
                Expected { likelihood: 0.0, mass: vec![0.0; classes], slope: 0.0, variances: [0.0; 2] };
            let mut joint = vec![0.0; classes];
            for (at, row) in rows.chunks_mut(classes).enumerate() {
                let sample = chunk * CHUNK + at;
                if left_out(sample) {
                    row.fill(0.0);
                    continue;
                }
                let (prior_mean, prior_variance) = self.joint(sample, &mut joint);
                let all = log_sum(&joint);
                row.iter_mut().zip(&joint).for_each(|(r, log)| *r = (log - all).exp() as f32);
                if self.labels.slots_of(sample).is_empty() {
                    continue;
                }
                sums.likelihood += all;
                sums.mass.iter_mut().zip(row.iter()).for_each(|(mass, &r)| *mass += f64::from(r));
                if let Some(logs) = &self.logs {
                    let logs = &logs[sample * classes..(sample + 1) * classes];
                    let (mean, variance) = mean_and_variance(row.iter().map(|&r| f64::from(r)), logs);
                    sums.slope += mean - prior_mean;
                    sums.variances[0] += prior_variance;
                    sums.variances[1] += variance;
                }
            }
            sums
        };
        let all: Vec<Expected> =
            posteriors.par_chunks_mut(CHUNK * classes).enumerate().map(of_chunk).collect();
        self.posteriors = posteriors;
        let none = Expected { likelihood: 0.0, mass: vec![0.0; classes], slope: 0.0, variances: [0.0; 2] };
        all.into_iter().fold(none, |mut total, sums| {
            total.likelihood += sums.likelihood;
            total.mass.iter_mut().zip(sums.mass).for_each(|(total, mass)| *total += mass);
            total.slope += sums.slope;
            total.variances[0] += sums.variances[0];
            total.variances[1] += sums.variances[1];
            total
        })
    }

    /// $n^a_{yl} = \sum_{i: l_{ia} = l} r_i(y)$, a row over $y$ for every slot.
    fn counts(&self) -> Vec<f64> {
        let classes = self.labels.classes();
        let mut counts = vec![0.0; self.labels.owners().len() * classes];
        counts.par_chunks_mut(classes).enumerate().for_each(|(slot, row)| {
            for &sample in self.labels.members(slot) {
                let at = sample as usize * classes;
                let posterior = &self.posteriors[at..at + classes];
                row.iter_mut().zip(posterior).for_each(|(count, &r)| *count += f64::from(r));
            }
        });
        counts
    }

    /// Parameters that maximise the expected likelihood: prior and matrices, not the exponent.
    pub fn maximise(&mut self, stage: Stage, mass: &[f64]) {
        let (labels, classes, strength) = (self.labels, self.labels.classes(), self.strength);
        let all = mass.iter().sum::<f64>() + PRIOR_COUNT * classes as f64;
        self.prior = mass.iter().map(|mass| ((mass + PRIOR_COUNT) / all).ln()).collect();
        let mut counts = self.counts();
        match stage {
            Stage::Pooled => {
                self.matrices.pooled = pseudo_counts(classes);
                for (row, &(_, given)) in counts.chunks(classes).zip(labels.owners()) {
                    let at = given as usize * classes;
                    self.matrices.pooled[at..at + classes]
                        .iter_mut()
                        .zip(row)
                        .for_each(|(sum, count)| *sum += count);
                }
                let mut totals = vec![0.0; classes];
                for row in self.matrices.pooled.chunks(classes) {
                    totals.iter_mut().zip(row).for_each(|(total, count)| *total += count);
                }
                for row in self.matrices.pooled.chunks_mut(classes) {
                    row.iter_mut().zip(&totals).for_each(|(cell, total)| *cell /= total);
                }
                for (row, &(_, given)) in counts.chunks_mut(classes).zip(labels.owners()) {
                    let at = given as usize * classes;
                    row.iter_mut()
                        .zip(&self.matrices.pooled[at..])
                        .for_each(|(cell, pooled)| *cell = pooled.ln());
                }
            }
            Stage::Single => {
                for annotator in 0..labels.annotators() {
                    let slots = labels.slots_by(annotator);
                    let mine = &mut counts[slots.start * classes..slots.end * classes];
                    let totals = &mut self.matrices.totals[annotator * classes..(annotator + 1) * classes];
                    totals.fill(strength);
                    for row in mine.chunks(classes) {
                        totals.iter_mut().zip(row).for_each(|(total, count)| *total += count);
                    }
                    totals.iter_mut().for_each(|total| *total = total.ln());
                    for (row, slot) in mine.chunks_mut(classes).zip(slots) {
                        let at = labels.owners()[slot].1 as usize * classes;
                        for ((cell, pooled), total) in
                            row.iter_mut().zip(&self.matrices.pooled[at..]).zip(totals.iter())
                        {
                            *cell = (*cell + strength * pooled).ln() - total;
                        }
                    }
                }
            }
        }
        self.matrices.by_slot = counts;
    }
}

/// Pseudo-counts of the pooled matrix: one on the diagonal, one spread over the rest of each row.
fn pseudo_counts(classes: usize) -> Vec<f64> {
    let other = if classes > 1 { 1.0 / (classes - 1) as f64 } else { 0.0 };
    (0..classes * classes).map(|at| if at / classes == at % classes { 1.0 } else { other }).collect()
}

/// $\ln \sum \exp$.
pub(super) fn log_sum(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln()
}

fn mean_and_variance(weights: impl Iterator<Item = f64> + Clone, values: &[f32]) -> (f64, f64) {
    let mean: f64 = weights.clone().zip(values).map(|(weight, &value)| weight * f64::from(value)).sum();
    let square = |(weight, &value): (f64, &f32)| weight * (f64::from(value) - mean).powi(2);
    (mean, weights.zip(values).map(square).sum())
}

#[cfg(test)]
mod tests;
