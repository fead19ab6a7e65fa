//! Predictions of many samples, of which the likeliest classes are kept.
//!
//! A row of C probabilities is kept as its [`KEPT_CLASSES`] largest entries, that of the given label among them; what is left over is
//! known as a sum. Up to that many classes nothing is lost, and beyond it a thousand classes need no more memory than 32.

use crate::{Error, Result};
use rayon::prelude::*;

/// Classes of a prediction that are kept.
pub const KEPT_CLASSES: usize = 32;
/// Probabilities below this are taken for this: a sum of a few `f32`s says no more.
const LEAST: f32 = 1e-12;

/// A class and its probability.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Entry {
    /// The class.
    pub class: u32,
    /// Its probability.
    pub probability: f32,
}

/// Predictions of N samples with given labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    classes: usize,
    width: usize,
    given: Vec<u32>,
    /// `width` entries for each sample, in the order of classes.
    entries: Vec<Entry>,
}

impl Predictions {
    /// From all probabilities (N x C, row after row) and given labels.
    ///
    /// # Errors
    /// If sizes do not fit, a label is not a class, or a number is no probability.
    pub fn new(probabilities: &[f32], given: &[u32], classes: usize) -> Result<Self> {
        check(probabilities, given, classes)?;
        let mut kept = Self::empty(given, classes);
        let rows = kept.entries.par_chunks_mut(kept.width.max(1));
        rows.zip(probabilities.par_chunks(classes.max(1)))
            .zip(given)
            .with_min_len(256)
            .for_each(|((entries, row), &given)| keep(row, given, entries));
        Ok(kept)
    }

    /// For labels that are known to be classes, with nothing predicted yet.
    pub(crate) fn empty(given: &[u32], classes: usize) -> Self {
        let width = classes.min(KEPT_CLASSES);
        Self { classes, width, given: given.to_vec(), entries: vec![Entry::default(); given.len() * width] }
    }

    /// Sets what is predicted of a sample: a row of C probabilities.
    pub(crate) fn set(&mut self, sample: usize, row: &[f32]) {
        let (width, given) = (self.width, self.given[sample]);
        keep(row, given, &mut self.entries[sample * width..(sample + 1) * width]);
    }

    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.given.len()
    }

    /// Whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// The labels as given.
    #[must_use]
    pub fn given(&self) -> &[u32] {
        &self.given
    }

    /// What is kept of a sample's prediction, in the order of classes.
    #[must_use]
    pub fn row(&self, sample: usize) -> &[Entry] {
        &self.entries[sample * self.width..(sample + 1) * self.width]
    }

    /// The likeliest class; the first among equals.
    #[must_use]
    pub fn likeliest(&self, sample: usize) -> Entry {
        let more = |best: Entry, next: &Entry| if next.probability > best.probability { *next } else { best };
        let row = self.row(sample);
        row.first().map_or(Entry::default(), |first| row[1..].iter().fold(*first, more))
    }

    /// The probability of a class, 0 where it was not kept.
    #[must_use]
    pub fn probability(&self, sample: usize, class: u32) -> f32 {
        let row = self.row(sample);
        let at = row.binary_search_by_key(&class, |entry| entry.class);
        at.map_or(0.0, |at| row[at].probability)
    }

    /// The same samples and classes with other probabilities: `change` gets each sample and its entries.
    pub(crate) fn changed(&self, change: impl Fn(usize, &mut [Entry]) + Sync) -> Self {
        let mut other = self.clone();
        let rows = other.entries.par_chunks_mut(self.width.max(1)).enumerate().with_min_len(64);
        rows.for_each(|(sample, entries)| change(sample, entries));
        other
    }

    /// `size` sums over all samples: `add` gets each sample and the sums it adds to. Taken within pieces that do not depend on the number of threads.
    pub(crate) fn summed(&self, size: usize, add: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
        const PIECE: usize = 8192;
        let piece = |piece: usize| {
            let mut sums = vec![0.0f64; size];
            (piece * PIECE..((piece + 1) * PIECE).min(self.len())).for_each(|sample| add(sample, &mut sums));
            sums
        };
        let pieces: Vec<Vec<f64>> = (0..self.len().div_ceil(PIECE)).into_par_iter().map(piece).collect();
        pieces.into_iter().fold(vec![0.0; size], |mut total, piece| {
            total.iter_mut().zip(piece).for_each(|(total, x)| *total += x);
            total
        })
    }

    /// $\sum_i p_i(y)\, p_i(z)$ for $y \ne z$, and 0 for $y = z$: how often two classes are in question for the same sample (C x C).
    pub(crate) fn overlap(&self) -> Vec<f64> {
        self.summed(self.classes * self.classes, |sample, sums| {
            let row = self.row(sample);
            for one in row.iter().filter(|e| e.probability > 1e-3) {
                let from = one.class as usize * self.classes;
                for other in row.iter().filter(|e| e.class != one.class) {
                    sums[from + other.class as usize] += f64::from(one.probability * other.probability);
                }
            }
        })
    }

    /// Probabilities raised to a power and made to sum to 1 again; what is not kept is taken to be one more class.
    #[must_use]
    pub fn tempered(&self, exponent: f32) -> Self {
        self.changed(|_, entries| {
            let rest = (1.0 - entries.iter().map(|entry| entry.probability).sum::<f32>()).max(0.0);
            entries.iter_mut().for_each(|entry| entry.probability = entry.probability.powf(exponent));
            let others = (self.classes - entries.len()) as f32;
            let rest = if others > 0.0 { others * (rest / others).powf(exponent) } else { 0.0 };
            let sum = rest + entries.iter().map(|entry| entry.probability).sum::<f32>();
            entries.iter_mut().for_each(|entry| entry.probability /= sum);
        })
    }
}

/// The largest entries of a row and that of the given label, in the order of classes.
fn keep(row: &[f32], given: u32, into: &mut [Entry]) {
    let entry = |class: usize| Entry { class: class as u32, probability: row[class].max(LEAST) };
    if into.len() == row.len() {
        into.iter_mut().enumerate().for_each(|(class, kept)| *kept = entry(class));
        return;
    }
    let mut order: Vec<u32> = (0..row.len() as u32).filter(|&class| class != given).collect();
    let most = into.len() - 1;
    let larger = |a: &u32, b: &u32| row[*b as usize].total_cmp(&row[*a as usize]).then(a.cmp(b));
    order.select_nth_unstable_by(most, larger);
    order.truncate(most);
    order.push(given);
    order.sort_unstable();
    into.iter_mut().zip(order).for_each(|(kept, class)| *kept = entry(class as usize));
}

/// Refuses what is no prediction of these labels.
fn check(predictions: &[f32], given: &[u32], classes: usize) -> Result<()> {
    let outside = given.iter().position(|&label| label as usize >= classes);
    match outside.filter(|_| given.len().checked_mul(classes) == Some(predictions.len())) {
        Some(_) => check_labels("predictions", given, classes),
        None => check_rows(predictions, given.len(), classes),
    }
}

/// Refuses labels that are not classes; `what` is what they belong to.
pub(crate) fn check_labels(what: &'static str, given: &[u32], classes: usize) -> Result<()> {
    let Some(at) = given.iter().position(|&label| label as usize >= classes) else { return Ok(()) };
    let problem = format!("label {} of sample {at} is not a class: there are {classes}", given[at]);
    Err(Error::Samples { what, problem })
}

/// Refuses what is no prediction of so many samples.
pub(crate) fn check_rows(predictions: &[f32], samples: usize, classes: usize) -> Result<()> {
    let problem = if samples.checked_mul(classes) != Some(predictions.len()) {
        format!("{} numbers for {samples} samples of {classes} classes", predictions.len())
    } else if let Some(at) = predictions.iter().position(|p| !(0.0..=1.0).contains(p)) {
        format!("sample {} has {}, which is outside [0, 1]", at / classes, predictions[at])
    } else {
        return Ok(());
    };
    Err(Error::Samples { what: "predictions", problem })
}
