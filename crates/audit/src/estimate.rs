//! How many labels are wrong, and what they were mistaken for.
//!
//! Predictions $p_i$ that differ from given labels $g_i$ have two causes: wrong labels, and samples that are hard to tell. How much is
//! due to which cannot be read off the disagreement alone, so two readings are taken:
//!
//! | reading | how | errs |
//! |---|---|---|
//! | careful $a$ | mean probability that a label is wrong, by the [model of noise](super::noise_model): what is hard to tell is not held against the label | too low where people err on hard samples |
//! | confident $c$ | counts of confident predictions (below), after confident learning (Northcutt et al. 2021) | too high where classes overlap |
//!
//! **Confident counts.** With $\theta_c$ the mean of $q_i(c)$ over the samples given as $c$, sample $i$ counts for cell $(g_i, c)$ if
//! $q_i(c) \ge \theta_c$, of several such $c$ for the one of largest $q_i(c)$. Rows are scaled to the numbers of given labels; a row
//! without a count is taken to be right.
//!
//! **Where confusions fall.** Noise that does not look at the sample puts labels anywhere; people and overlap put them among classes that look
//! alike. With $k_{yz} \propto \sum_i q_i(y)\, q_i(z)$ the confusions that overlap would make (each row sums to 1), the anchors' confusions $T_{yz}$, $y \ne z$, are taken for a
//! mixture $\lambda k_{yz} + (1 - \lambda) / (C - 1)$, and $\lambda$ is the share that makes them likeliest. Uniform noise has $\lambda$ near 0 however much classes overlap.
//!
//! **Rate**: $(1 - w)\,\gamma(a / c)\,(a + 0.15\,(c - a)) + w\, c\, \phi(a / c)$ with $w$ rising from 0 to 1 along [`ALIKE`] (1 for predictions of given labels, which half agree with wrong ones) and $\phi$ as in [`SHARE_OF_CONFIDENT`]. Uniform noise is what $a$ measures, a little too low with few samples; $\gamma$ rises from 0 to 1 where $\phi$ does first, because a few errors of the models look like
//! uniform noise, too. Otherwise: where labels are clean, $a$ is
//! near 0 however much classes overlap, and so is $\phi$; where people err on hard samples, $a$ sees a part of it and $c$ is about right; where noise depends on classes alone,
//! the truth lies between the two. The curve was drawn on development sets. **Interval**: of the readings that the truth may lie between,
//! from $(2 a + \text{rate}) / 3$ to $(1 - w)\,(a + 0.4\,(c - a)) + 1.1\, w\, c$, each widened by the 95 % sampling error
//! of a delete-a-group jackknife (20 groups, Student's $t$ with 19 degrees of freedom). It does not cover labels that are wrong in a way the models have
//! learnt: if every cat is called a dog, nobody will notice. Matrices and rates by class are the confident counts, their wrong labels scaled
//! to the rate: one estimate, one number.
//!
//! **Nothing to judge.** Predictions that go with the labels no better than with labels drawn by the shares $\pi_c$ of classes say nothing about
//! them. Then there is no rate: the mean of $q_i(g_i) - \sum_c \pi_c q_i(c)$ must be above 0 by three standard errors. Nothing in it is fitted
//! to the label itself, and it does not depend on how sure predictions are. Cross-fitting asks its first round, whose predictions have not heard
//! of the label in any way.

use crate::Result;
use crate::noise_model::{Meaning, NoiseModel};
use crate::predictions::{Entry, Predictions};
use serde::Serialize;

pub(crate) const GROUPS: usize = 20;
/// Quantile 0.975 of Student's t with 19 degrees of freedom.
const STUDENT: f64 = 2.093;
/// Fewer labels than this are not judged.
const LEAST_SAMPLES: usize = 10;
/// Standard errors by which predictions must be better than shares of classes.
const LEAST_GAIN: f64 = 3.0;

/// What is not more than this is due to rounding.
const ROUNDING: f64 = 1e-6;

/// $\phi$: which share of the confident reading the rate is, by the ratio of the careful one to it; straight lines between these.
pub const SHARE_OF_CONFIDENT: [(f64, f64); 5] =
    [(0.22, 0.0), (0.34, 1.0), (0.6, 1.0), (0.78, 0.83), (1.0, 1.0)];
/// Shares of confusions among classes that look alike below which noise is taken for uniform, and above which it is not.
pub const ALIKE: [f64; 2] = [0.3, 0.45];
/// Parts of the way from the careful reading to the confident one that uniform noise lies at, and may lie at.
const UNIFORM: [f64; 2] = [0.15, 0.4];
/// The truth may be above the confident reading by this factor where people err on hard samples.
const HIDDEN_REACH: f64 = 1.1;
/// Rounds that fit the share of confusions that follow overlap.
const MIXTURE_ROUNDS: usize = 50;

/// Share of wrong labels and confusions, estimated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseEstimate {
    /// Share of wrong labels; 0 if nothing can be judged.
    pub rate: f64,
    /// 95 % interval: the readings, widened by their sampling errors.
    pub interval: [f64; 2],
    /// The two readings: careful, confident.
    pub readings: [f64; 2],
    /// Share of the surest samples' confusions that fall among classes that look alike, rather than anywhere: $\lambda$.
    pub among_alike: f64,
    /// Why nothing can be said about the labels, if so.
    pub cannot_judge: Option<String>,
    /// Exponent of the model of noise.
    pub exponent: f64,
    /// By given class: samples.
    pub given_counts: Vec<usize>,
    /// By given class: share of wrong labels.
    pub wrong_by_given: Vec<f64>,
    /// By true class: estimated number of samples.
    pub true_counts: Vec<f64>,
    /// By true class: share of wrong labels.
    pub wrong_by_true: Vec<f64>,
    /// C x C, a row for every given class, a column for every true one: estimated numbers of samples.
    #[serde(skip)]
    pub joint: Vec<f64>,
}

impl NoiseEstimate {
    /// The estimate by a model.
    #[must_use]
    pub fn new(model: &NoiseModel) -> Self {
        let careful: Vec<f64> = model.alternatives().iter().map(|found| 1.0 - found.given).collect();
        Self::of(model, &careful)
    }

    /// The same, with the probability that each label is wrong.
    pub(crate) fn of(model: &NoiseModel, careful: &[f64]) -> Self {
        let classes = model.beliefs().classes();
        let votes = Votes::new(model.beliefs());
        let joint = votes.joint(None);
        let mean = |without: Option<usize>| {
            let kept = careful.iter().enumerate().filter(|(i, _)| without != Some(group_of(*i)));
            let (sum, count) = kept.fold((0.0, 0usize), |(sum, count), (_, x)| (sum + x, count + 1));
            if count > 0 { sum / count as f64 } else { 0.0 }
        };
        let readings = [mean(None), wrong_share(&joint, classes)];
        let without = |group| [mean(Some(group)), wrong_share(&votes.joint(Some(group)), classes)];
        let all: Vec<[f64; 2]> = (0..GROUPS).map(without).collect();
        let reach = [0, 1].map(|which| STUDENT * jackknife(all.iter().map(|rates| rates[which])));
        let [careful, confident] = readings;
        let cannot_judge = cannot_judge(model);
        let among_alike = among_alike(model);
        // Models that were taught the labels themselves half agree with them: their careful reading falls short.
        let alike = match model.meaning() {
            Meaning::TrueLabels => rise(ALIKE, among_alike),
            Meaning::GivenLabels => 1.0,
        };
        let mixed = |uniform: f64, hidden: f64| (1.0 - alike) * uniform + alike * hidden;
        let (rate, interval) = match cannot_judge {
            Some(_) => (0.0, [0.0, 1.0]),
            None => {
                let uniform = UNIFORM.map(|part| careful + part * (confident - careful).max(0.0));
                let ratio = careful / confident.max(1e-9);
                let is_noise = rise([SHARE_OF_CONFIDENT[0].0, SHARE_OF_CONFIDENT[1].0], ratio);
                let rate = mixed(is_noise * uniform[0], confident * share_of_confident(ratio));
                let low = if rate > 0.0 { (2.0 * careful + rate) / 3.0 - reach[0] } else { 0.0 };
                let high = mixed(uniform[1], HIDDEN_REACH * confident).max(rate) + reach[1];
                (rate, [low.min(rate), high].map(|x| x.clamp(0.0, 1.0)))
            }
        };
        let joint = scaled(joint, classes, rate);
        let cell = |true_class: usize, given: usize| joint[given * classes + true_class];
        let true_counts: Vec<f64> = (0..classes).map(|y| (0..classes).map(|g| cell(y, g)).sum()).collect();
        let wrong =
            |class: usize, all: f64| if all > 0.0 { (1.0 - cell(class, class) / all).max(0.0) } else { 0.0 };
        Self {
            rate,
            interval,
            readings,
            among_alike,
            cannot_judge,
            exponent: f64::from(model.exponent()),
            wrong_by_given: (0..classes).map(|g| wrong(g, votes.sizes[g] as f64)).collect(),
            wrong_by_true: (0..classes).map(|y| wrong(y, true_counts[y])).collect(),
            given_counts: votes.sizes,
            true_counts,
            joint,
        }
    }

    /// Frequent confusions: true class, given class, estimated number of labels; most frequent first.
    #[must_use]
    pub fn confusions(&self) -> Vec<(usize, usize, f64)> {
        let classes = self.given_counts.len();
        let cells = (0..classes).flat_map(|y| (0..classes).map(move |g| (y, g))).filter(|(y, g)| y != g);
        let mut found: Vec<(usize, usize, f64)> =
            cells.map(|(y, g)| (y, g, self.joint[g * classes + y])).collect();
        found.retain(|(_, _, count)| *count > 0.0);
        found.sort_by(|a, b| b.2.total_cmp(&a.2));
        found
    }

    /// C x C, a row for every true class: probabilities of given ones.
    #[must_use]
    pub fn given_by_true(&self) -> Vec<Vec<f64>> {
        let classes = self.given_counts.len();
        let row = |y: usize| (0..classes).map(|g| self.joint[g * classes + y]).collect();
        (0..classes).map(|y| shares(y, row(y))).collect()
    }

    /// C x C, a row for every given class: probabilities of true ones.
    #[must_use]
    pub fn true_by_given(&self) -> Vec<Vec<f64>> {
        let classes = self.given_counts.len();
        self.joint.chunks(classes.max(1)).enumerate().map(|(g, row)| shares(g, row.to_vec())).collect()
    }

    /// How many labels are wrong, in whole labels.
    #[must_use]
    pub fn wrong_labels(&self) -> usize {
        (self.rate * self.given_counts.iter().sum::<usize>() as f64).round() as usize
    }
}

/// $\lambda$: the share of the anchors' confusions that fall where beliefs overlap, by expectation and maximisation.
fn among_alike(model: &NoiseModel) -> f64 {
    let (beliefs, transition) = (model.beliefs(), model.transition().rows());
    let classes = beliefs.classes();
    if classes < 3 {
        // Of two classes, there is one that a label can be mistaken for.
        return 1.0;
    }
    let overlap = beliefs.overlap();
    let even = 1.0 / (classes - 1) as f64;
    let mut cells = Vec::with_capacity(classes * (classes - 1));
    for (y, (row, t)) in overlap.chunks(classes).zip(transition.chunks(classes)).enumerate() {
        let sum: f64 = row.iter().sum();
        let cell = |z: usize| (f64::from(t[z]), if sum > 0.0 { row[z] / sum } else { even });
        cells.extend((0..classes).filter(|&z| z != y).map(cell));
    }
    let all: f64 = cells.iter().map(|(t, _)| t).sum();
    (0..MIXTURE_ROUNDS).fold(0.5, |share, _| {
        let part = |&(t, k): &(f64, f64)| t * share * k / (share * k + (1.0 - share) * even);
        if all > 0.0 { (cells.iter().map(part).sum::<f64>() / all).clamp(1e-6, 1.0) } else { 1.0 }
    })
}

/// From 0 at the first of two numbers to 1 at the second, in a straight line.
fn rise([from, to]: [f64; 2], at: f64) -> f64 {
    ((at - from) / (to - from)).clamp(0.0, 1.0)
}

/// $\phi$.
fn share_of_confident(ratio: f64) -> f64 {
    let curve = SHARE_OF_CONFIDENT;
    let ratio = ratio.clamp(curve[0].0, curve[curve.len() - 1].0);
    let pieces = curve.windows(2).find(|ends| ratio <= ends[1].0);
    pieces.map_or(1.0, |ends| {
        let [(from, low), (to, high)] = [ends[0], ends[1]];
        low + (high - low) * (ratio - from) / (to - from)
    })
}

/// Parts of a whole; without a whole, the class itself.
fn shares(class: usize, cells: Vec<f64>) -> Vec<f64> {
    let sum: f64 = cells.iter().sum();
    let part = |(c, x): (usize, f64)| if sum > 0.0 { x / sum } else { f64::from(u8::from(c == class)) };
    cells.into_iter().enumerate().map(part).collect()
}

/// Counts with as many wrong labels as the rate says.
fn scaled(mut joint: Vec<f64>, classes: usize, rate: f64) -> Vec<f64> {
    let now = wrong_share(&joint, classes);
    let factor = if now > 0.0 { (rate / now).min(1.0) } else { 1.0 };
    for (given, row) in joint.chunks_mut(classes.max(1)).enumerate() {
        let mut moved = 0.0;
        for (_, cell) in row.iter_mut().enumerate().filter(|(class, _)| *class != given) {
            moved += *cell * (1.0 - factor);
            *cell *= factor;
        }
        row[given] += moved;
    }
    joint
}

/// Why predictions say nothing about labels, if they do not.
pub(crate) fn cannot_judge(model: &NoiseModel) -> Option<String> {
    if let Some(doubt) = model.doubt() {
        return Some(doubt.to_owned());
    }
    let count = model.beliefs().len();
    let mut sizes = vec![0usize; model.beliefs().classes()];
    model.beliefs().given().iter().for_each(|&given| sizes[given as usize] += 1);
    let used = sizes.iter().filter(|size| **size > 0).count();
    if count == 0 {
        return Some("there are no labels".into());
    }
    if used < 2 {
        return Some("all labels are of one class; there is nothing it could have been mistaken for".into());
    }
    let share = |class: u32| sizes[class as usize] as f64 / count as f64;
    let gain = |sample: usize| {
        let (row, given) = (model.beliefs().row(sample), model.beliefs().given()[sample]);
        let own = model.beliefs().probability(sample, given);
        // The least of many classes may be kept only because it is given.
        let is_chosen = row.len() == sizes.len() || row.iter().any(|e| e.probability < own);
        let usual = |e: &Entry| share(e.class) * f64::from(e.probability);
        (if is_chosen { f64::from(own) } else { 0.0 }) - row.iter().map(usual).sum::<f64>()
    };
    let gains: Vec<f64> = (0..count).map(gain).collect();
    let mean = gains.iter().sum::<f64>() / count as f64;
    let variance = gains.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count.max(2) - 1) as f64;
    if mean > LEAST_GAIN * (variance / count as f64).sqrt() + ROUNDING && count >= LEAST_SAMPLES {
        return None;
    }
    Some(format!(
        "predictions of {count} labels of {used} classes are not clearly better than guessing by the shares of classes, so the \
         features say too little about the labels; give more samples or better features"
    ))
}

/// The confident reading alone, from predictions (N x C) and given labels: quick enough for use in training.
///
/// # Errors
/// If sizes do not fit or a label is not a class.
pub fn confident_rate(predictions: &[f32], given: &[u32], classes: usize) -> Result<f64> {
    let predictions = Predictions::new(predictions, given, classes)?;
    Ok(wrong_share(&Votes::new(&predictions).joint(None), classes))
}

/// For which class each sample counts.
struct Votes<'a> {
    given: &'a [u32],
    classes: usize,
    sizes: Vec<usize>,
    confident: Vec<Option<u32>>,
}

impl<'a> Votes<'a> {
    fn new(predictions: &'a Predictions) -> Self {
        let (given, classes) = (predictions.given(), predictions.classes());
        let (mut sizes, mut sums) = (vec![0usize; classes], vec![0.0f64; classes]);
        for (sample, &label) in given.iter().enumerate() {
            sizes[label as usize] += 1;
            sums[label as usize] += f64::from(predictions.probability(sample, label));
        }
        // Nothing is confidently of a class that no label names.
        let mean = |(sum, &size): (&f64, &usize)| if size > 0 { sum / size as f64 } else { f64::INFINITY };
        let means: Vec<f64> = sums.iter().zip(&sizes).map(mean).collect();
        let confident = |sample: usize| {
            let above = |e: &&Entry| f64::from(e.probability) >= means[e.class as usize];
            let most =
                |best: Entry, next: Entry| if next.probability > best.probability { next } else { best };
            predictions.row(sample).iter().filter(above).copied().reduce(most).map(|e| e.class)
        };
        let confident = (0..given.len()).map(confident).collect();
        Self { given, classes, sizes, confident }
    }

    /// Estimated counts of all samples outside a group, a row for every given class, a column for every true one.
    fn joint(&self, without: Option<usize>) -> Vec<f64> {
        let classes = self.classes;
        let (mut joint, mut sizes) = (vec![0.0; classes * classes], vec![0.0; classes]);
        for i in (0..self.given.len()).filter(|&i| without != Some(group_of(i))) {
            let given = self.given[i] as usize;
            sizes[given] += 1.0;
            if let Some(class) = self.confident[i] {
                joint[given * classes + class as usize] += 1.0;
            }
        }
        for (given, row) in joint.chunks_mut(classes.max(1)).enumerate() {
            let sum: f64 = row.iter().sum();
            if sum > 0.0 {
                row.iter_mut().for_each(|x| *x *= sizes[given] / sum);
            } else {
                row[given] = sizes[given];
            }
        }
        joint
    }
}

fn wrong_share(joint: &[f64], classes: usize) -> f64 {
    let all: f64 = joint.iter().sum();
    let right: f64 = (0..classes).map(|class| joint[class * classes + class]).sum();
    if all > 0.0 { (1.0 - right / all).clamp(0.0, 1.0) } else { 0.0 }
}

/// The group of a sample: by its number, but without any period that data may have.
pub(crate) fn group_of(sample: usize) -> usize {
    let mixed = (sample as u64 ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 32) as usize * GROUPS) >> 32
}

/// Standard error from estimates that each leave a group out.
pub(crate) fn jackknife(estimates: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = GROUPS as f64;
    let mean = estimates.clone().sum::<f64>() / count;
    ((count - 1.0) / count * estimates.map(|x| (x - mean).powi(2)).sum::<f64>()).sqrt()
}
