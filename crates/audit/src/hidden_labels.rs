//! The probability of each given label, from a model with hidden true labels.
//!
//! Sample $i$ has a prediction $p_i$ (probabilities of $C$ classes) and a given label $g_i$. Its true label $y$ is hidden; the given
//! one is drawn from it by a transition matrix $T$:
//!
//! $$ q_i(y) \propto p_i(y)^\tau, \qquad P(g_i \mid x_i) = \sum_y q_i(y)\, T_{y g_i}, \qquad
//!    r_i(y) = \frac{q_i(y)\, T_{y g_i}}{\sum_c q_i(c)\, T_{c g_i}}. $$
//!
//! $T$ and the exponent $\tau$ maximise the likelihood of the given labels: $T$ by expectation and maximisation (a pseudo-count of
//! one on the diagonal and one spread over the rest of each row), $\tau$ on a grid. The exponent calibrates: networks trained
//! on wrong labels are underconfident, those that memorised them overconfident. The **score** is $1 - r_i(g_i)$, the probability that the given
//! label is wrong. Unlike $1 - p_i(g_i)$ it knows which confusions are frequent, and that a doubtful sample of a class that is hardly ever
//! mistaken deserves trust.
//!
//! **Two exponents.** For counting, any exponent may be chosen ([`MIN_EXPONENT_COUNTING`]). For ranking none below 1.4 ([`MIN_EXPONENT_RANKING`]): a flatter
//! prediction explains errors that people make on hard samples as ambiguity, and forgets which labels they are. Average precision on saved
//! predictions with exponent 0.7 / 1 / 1.4 / 2: CIFAR-10N worse 0.927, 0.946, 0.947, 0.946; aggre 0.768, 0.771, 0.767, 0.763; CIFAR-100N
//! 0.815, 0.843, 0.857, 0.858. The likelihood alone chose 0.7 for the first two.
//!
//! A label that differs because the sample itself is ambiguous to the networks is explained by $q$, not by $T$. Hence the mean score
//! is a careful reading of the noise rate: hardly above 0 for clean labels, too small where people err on what networks find hard.
//!
//! Of every prediction the [`KEPT_ENTRIES`] largest entries and that of the given label are kept. That is all of them for up to 129 classes; fewer
//! would flatter small exponents: with 12 of 100, average precision on CIFAR-100N fell from 0.86 to 0.81.

use crate::{Error, Result};
use rayon::prelude::*;
use std::borrow::Cow;

/// Entries of a prediction that are kept beside that of the given label.
pub const KEPT_ENTRIES: usize = 128;
/// The least exponent for counting wrong labels.
pub const MIN_EXPONENT_COUNTING: f64 = 0.7;
/// The least exponent for ranking labels.
pub const MIN_EXPONENT_RANKING: f64 = 1.4;
/// Exponents tried.
const EXPONENTS: [f64; 7] = [0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6];
/// Probabilities below this are taken for this: a sum of a few `f32`s says no more.
const LEAST: f32 = 1e-12;
/// Rounds for each exponent, and further ones for the best.
const ROUNDS: (usize, usize) = (8, 12);
/// Samples at a time: sums are made within these, then over them, whatever the number of threads.
const CHUNK: usize = 4096;

/// One entry of a prediction.
#[derive(Debug, Clone, Copy)]
struct Entry {
    class: u32,
    /// Natural logarithm of the probability, then the calibrated probability.
    value: f32,
}

/// The fitted model.
#[derive(Debug, Clone)]
pub struct HiddenLabelModel {
    classes: usize,
    given: Vec<u32>,
    /// Entries of all samples, the given label's first.
    entries: Vec<Entry>,
    /// Where each sample's entries begin, and the end.
    starts: Vec<usize>,
    exponent: f64,
    /// $T$ transposed, a row for every given class: a sample needs one row.
    by_given: Vec<f64>,
}

/// What a round adds up.
struct Sums {
    /// $\sum_i r_i(y)$ by given and true class.
    joint: Vec<f64>,
    likelihood: f64,
}

/// What a sample's label could be instead.
pub(crate) struct Alternative {
    /// The likeliest class other than the given one.
    pub class: u32,
    /// Its probability.
    pub probability: f64,
    /// The probability of the given class.
    pub given: f64,
}

impl HiddenLabelModel {
    /// Fits the model to predictions (N x C) and given labels, with an exponent of at least `least`.
    pub fn fit(predictions: &[f32], given: &[u32], classes: usize, least: f64) -> Result<Self> {
        let (mut model, logs) = Self::begin(predictions, given, classes)?;
        if model.is_trivial() {
            return Ok(model);
        }
        let mut best = None::<(f64, f64, Vec<f64>)>;
        for exponent in EXPONENTS.into_iter().filter(|&exponent| exponent >= least) {
            let likelihood = model.fit_at(&logs, exponent);
            if best.as_ref().is_some_and(|(most, ..)| likelihood <= *most) {
                break; // the likelihood has one peak
            }
            best = Some((likelihood, exponent, model.by_given.clone()));
        }
        if let Some((_, exponent, by_given)) = best {
            model.set_exponent(&logs, exponent);
            model.by_given = by_given;
        }
        model.settle();
        Ok(model)
    }

    /// The model with an exponent of at least `least`: this one, or one fitted to the same predictions and labels at `least`, because
    /// the likelihood has one peak and falls from there on.
    pub fn with_exponent_from(&self, predictions: &[f32], least: f64) -> Result<Cow<'_, Self>> {
        if self.exponent >= least || self.is_trivial() {
            return Ok(Cow::Borrowed(self));
        }
        let (mut model, logs) = Self::begin(predictions, &self.given, self.classes)?;
        model.fit_at(&logs, least);
        model.settle();
        Ok(Cow::Owned(model))
    }

    /// A model without rounds, and logarithms of the entries that are kept.
    fn begin(predictions: &[f32], given: &[u32], classes: usize) -> Result<(Self, Vec<Entry>)> {
        check(predictions, given, classes)?;
        let (logs, starts) = keep(predictions, given, classes);
        let entries = logs.iter().map(|entry| Entry { value: 1.0, ..*entry }).collect();
        let by_given = first(classes);
        Ok((Self { classes, given: given.to_vec(), entries, starts, exponent: 1.0, by_given }, logs))
    }

    /// Whether there is nothing to fit.
    fn is_trivial(&self) -> bool {
        self.given.is_empty() || self.classes < 2
    }

    /// First rounds at an exponent; gives the mean log-likelihood before the last of them.
    fn fit_at(&mut self, logs: &[Entry], exponent: f64) -> f64 {
        self.set_exponent(logs, exponent);
        self.by_given = first(self.classes);
        (0..ROUNDS.0).fold(f64::NEG_INFINITY, |_, _| self.round())
    }

    /// Further rounds, at the exponent that is kept.
    fn settle(&mut self) {
        (0..ROUNDS.1).for_each(|_| {
            self.round();
        });
    }

    fn set_exponent(&mut self, logs: &[Entry], exponent: f64) {
        self.exponent = exponent;
        self.entries = logs.to_vec();
        let mut rows: Vec<&mut [Entry]> = Vec::with_capacity(self.given.len());
        let mut rest = self.entries.as_mut_slice();
        for bounds in self.starts.windows(2) {
            let (row, others) = rest.split_at_mut(bounds[1] - bounds[0]);
            rows.push(row);
            rest = others;
        }
        rows.into_par_iter().with_min_len(256).for_each(|row| {
            let most = row.iter().map(|entry| entry.value).fold(f32::NEG_INFINITY, f32::max);
            let mut sum = 0.0;
            for entry in row.iter_mut() {
                entry.value = (exponent as f32 * (entry.value - most)).exp();
                sum += f64::from(entry.value);
            }
            row.iter_mut().for_each(|entry| entry.value = (f64::from(entry.value) / sum) as f32);
        });
    }

    /// A sample's entries, each with its part of the likelihood by this transposed $T$, and the sum of these.
    fn parts<'a>(
        &'a self,
        by_given: &'a [f64],
        sample: usize,
    ) -> (impl Iterator<Item = (usize, f64)> + 'a, f64) {
        let given = self.given[sample] as usize;
        let transition = &by_given[given * self.classes..(given + 1) * self.classes];
        let part = |entry: &Entry| {
            let class = entry.class as usize;
            (class, f64::from(entry.value) * transition[class])
        };
        let row = &self.entries[self.starts[sample]..self.starts[sample + 1]];
        let sum: f64 = row.iter().map(|entry| part(entry).1).sum();
        (row.iter().map(part), sum)
    }

    /// One round of expectation and maximisation; gives the mean log-likelihood before it.
    fn round(&mut self) -> f64 {
        let (by_given, likelihood) = self.improve(|_| 1.0);
        self.by_given = by_given;
        likelihood
    }

    /// What a round on weighted samples makes of the transposed $T$, and the mean log-likelihood before it.
    fn improve(&self, weight: impl Fn(usize) -> f64 + Sync) -> (Vec<f64>, f64) {
        let sums = self.add_up(&weight);
        let classes = self.classes;
        let spread = 1.0 / (classes - 1) as f64;
        let mut totals = vec![0.0; classes];
        for row in sums.joint.chunks(classes) {
            totals.iter_mut().zip(row).for_each(|(total, sum)| *total += sum);
        }
        let mut by_given = sums.joint;
        for (given, row) in by_given.chunks_mut(classes).enumerate() {
            for (class, (t, total)) in row.iter_mut().zip(&totals).enumerate() {
                *t = (*t + if given == class { 1.0 } else { spread }) / (total + 2.0);
            }
        }
        (by_given, sums.likelihood / self.given.len() as f64)
    }

    fn add_up(&self, weight: &(impl Fn(usize) -> f64 + Sync)) -> Sums {
        let cells = self.classes * self.classes;
        let samples: Vec<usize> = (0..self.given.len()).collect();
        let of_chunk = |chunk: &[usize]| {
            let mut sums = Sums { joint: vec![0.0; cells], likelihood: 0.0 };
            for &sample in chunk {
                let weight = weight(sample);
                if weight == 0.0 {
                    continue;
                }
                let (parts, sum) = self.parts(&self.by_given, sample);
                let given = self.given[sample] as usize;
                let joint = &mut sums.joint[given * self.classes..(given + 1) * self.classes];
                let share = weight / sum;
                parts.for_each(|(class, part)| joint[class] += share * part);
                sums.likelihood += weight * sum.ln();
            }
            sums
        };
        let all: Vec<Sums> = samples.par_chunks(CHUNK).map(of_chunk).collect();
        all.into_iter().fold(Sums { joint: vec![0.0; cells], likelihood: 0.0 }, |mut total, sums| {
            total.joint.iter_mut().zip(sums.joint).for_each(|(total, part)| *total += part);
            total.likelihood += sums.likelihood;
            total
        })
    }

    /// The probability that each given label is wrong.
    pub fn scores(&self) -> Vec<f64> {
        self.scores_by(&self.by_given)
    }

    fn scores_by(&self, by_given: &[f64]) -> Vec<f64> {
        let score = |sample| {
            let (parts, sum) = self.parts(by_given, sample);
            // Without subtraction: of two labels that are surely wrong, one is more so.
            let others: f64 = parts.skip(1).map(|(_, part)| part).sum();
            (others / sum).clamp(0.0, 1.0)
        };
        (0..self.given.len()).into_par_iter().with_min_len(256).map(score).collect()
    }

    /// For each sample the likeliest class other than the given one, and the probabilities of both; the given label alone where
    /// there is no other class.
    pub(crate) fn alternatives(&self) -> Vec<Alternative> {
        let alternative = |sample| {
            let (mut parts, sum) = self.parts(&self.by_given, sample);
            let given = parts.next().map_or(0.0, |(_, part)| part / sum);
            let first = Alternative { class: self.given[sample], probability: 0.0, given };
            parts.fold(first, |best, (class, part)| match part / sum {
                probability if probability > best.probability || best.class == self.given[sample] => {
                    Alternative { class: class as u32, probability, ..best }
                }
                _ => best,
            })
        };
        (0..self.given.len()).into_par_iter().with_min_len(256).map(alternative).collect()
    }

    /// What is believed of each sample: the probabilities of true classes that are not negligible, summing to 1.
    pub(crate) fn posteriors(&self) -> Vec<Vec<(u32, f32)>> {
        let posterior = |sample| {
            let (parts, sum) = self.parts(&self.by_given, sample);
            let mut row: Vec<(u32, f32)> =
                parts.map(|(class, part)| (class as u32, (part / sum) as f32)).collect();
            row.retain(|&(_, probability)| probability > 1e-3);
            let kept: f32 = row.iter().map(|(_, probability)| probability).sum();
            row.iter_mut().for_each(|(_, probability)| *probability /= kept);
            row
        };
        (0..self.given.len()).into_par_iter().with_min_len(256).map(posterior).collect()
    }

    /// The mean score of the samples with a weight, after one more round on them alone.
    pub(crate) fn rate_among(&self, weight: impl Fn(usize) -> f64 + Sync) -> f64 {
        let improved = (self.classes > 1).then(|| self.improve(&weight).0);
        let scores = self.scores_by(improved.as_deref().unwrap_or(&self.by_given));
        let (sum, total) = (scores.iter().enumerate())
            .fold((0.0, 0.0), |(sum, total), (i, score)| (sum + weight(i) * score, total + weight(i)));
        if total > 0.0 { sum / total } else { 0.0 }
    }

    /// The exponent $\tau$ that was chosen.
    pub fn exponent(&self) -> f64 {
        self.exponent
    }

    /// $T$, C x C: a row for every true class, the probabilities of given ones.
    pub fn transition(&self) -> Vec<f64> {
        let classes = self.classes;
        (0..classes * classes).map(|at| self.by_given[at % classes * classes + at / classes]).collect()
    }
}

/// The matrix that rounds begin with: most labels are right.
fn first(classes: usize) -> Vec<f64> {
    let other = if classes > 1 { 0.2 / (classes - 1) as f64 } else { 0.0 };
    let cell =
        |at: usize| if at / classes == at % classes { if classes > 1 { 0.8 } else { 1.0 } } else { other };
    (0..classes * classes).map(cell).collect()
}

/// Logarithms of the entries that are kept, and where each sample's begin.
fn keep(predictions: &[f32], given: &[u32], classes: usize) -> (Vec<Entry>, Vec<usize>) {
    let rows: Vec<Vec<Entry>> = predictions
        .par_chunks(classes.max(1))
        .zip(given)
        .with_min_len(256)
        .map(|(row, &given)| {
            let mut others: Vec<u32> = (0..classes as u32).filter(|&class| class != given).collect();
            if others.len() > KEPT_ENTRIES {
                let order = |a: &u32, b: &u32| row[*b as usize].total_cmp(&row[*a as usize]).then(a.cmp(b));
                others.select_nth_unstable_by(KEPT_ENTRIES - 1, order);
                others.truncate(KEPT_ENTRIES);
            }
            let entry = |class: u32| Entry { class, value: row[class as usize].max(LEAST).ln() };
            std::iter::once(given).chain(others).map(entry).collect()
        })
        .collect();
    let mut starts = Vec::with_capacity(rows.len() + 1);
    starts.push(0);
    for row in &rows {
        starts.push(starts[starts.len() - 1] + row.len());
    }
    (rows.into_iter().flatten().collect(), starts)
}

/// Refuses what is no prediction of these labels.
pub(crate) fn check(predictions: &[f32], given: &[u32], classes: usize) -> Result<()> {
    let outside = given.iter().position(|&label| label as usize >= classes);
    match outside.filter(|_| given.len().checked_mul(classes) == Some(predictions.len())) {
        Some(at) => {
            let problem = format!("label {} of sample {at} is not a class: there are {classes}", given[at]);
            Err(Error::Samples { what: "predictions", problem })
        }
        None => check_rows(predictions, given.len(), classes),
    }
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
