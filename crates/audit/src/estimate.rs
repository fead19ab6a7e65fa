//! How many labels are wrong, and what they were mistaken for.
//!
//! Predictions $p_i$ that differ from given labels $g_i$ have two causes: wrong labels, and samples that are hard to tell. How much is
//! due to which cannot be read off the disagreement alone, so three readings are taken:
//!
//! | reading | how | errs |
//! |---|---|---|
//! | careful | mean score of the [model of hidden labels](super::hidden_labels): what is hard to tell is not held against the label | too low where people err on hard samples |
//! | confident | counts of confident predictions (below), after confident learning (Northcutt et al. 2021) | too high where classes overlap and labels are clean |
//! | blunt | share of samples whose likeliest class is not the given one | too high unless networks memorise labels |
//!
//! **Confident counts.** With $\theta_c$ the mean of $p_i(c)$ over the samples given as $c$, sample $i$ counts for cell $(g_i, c)$ if
//! $p_i(c) \ge \theta_c$, of several such $c$ for the one of largest $p_i(c)$. Rows are scaled to the numbers of given labels; a row
//! without a count is taken to be right. The matrices and rates by class come from these counts.
//!
//! **Rate**: the confident reading. **Interval**: from the lowest to the highest of the three, each widened by the 95 % sampling error of
//! a delete-a-group jackknife (20 groups, Student's $t$ with 19 degrees of freedom). It covers the choice of samples in full, and the error
//! of the model as far as the truth lies between a reading that blames the samples and one that blames the labels. It does not
//! cover labels that are wrong in a way the networks have learnt: if every cat is called a dog, nobody will notice.

use crate::Result;
use crate::hidden_labels::{HiddenLabelModel, check};
use negscale_records::statistics::argmax;
use serde::Serialize;

/// Groups of samples that are left out in turn.
pub(crate) const GROUPS: usize = 20;
/// Quantile 0.975 of Student's t with 19 degrees of freedom.
const STUDENT: f64 = 2.093;

/// Share of wrong labels and confusions, estimated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseEstimate {
    /// Share of wrong labels.
    pub rate: f64,
    /// 95 % interval: the readings, widened by their sampling errors.
    pub interval: [f64; 2],
    /// 95 % interval of the rate by the choice of samples alone.
    pub sampling_interval: [f64; 2],
    /// The three readings: careful, confident, blunt.
    pub readings: [f64; 3],
    /// Exponent of the model of hidden labels.
    pub exponent: f64,
    /// By given class: samples.
    pub given_counts: Vec<usize>,
    /// By given class: share of wrong labels.
    pub wrong_by_given: Vec<f64>,
    /// By true class: estimated number of samples.
    pub true_counts: Vec<f64>,
    /// By true class: share of wrong labels.
    pub wrong_by_true: Vec<f64>,
    /// C x C, a row for every true class: probabilities of given ones.
    pub given_by_true: Vec<Vec<f64>>,
    /// C x C, a row for every given class: probabilities of true ones.
    pub true_by_given: Vec<Vec<f64>>,
}

impl NoiseEstimate {
    /// The estimate from predictions (N x C), given labels and the model fitted to them for counting.
    pub fn new(predictions: &[f32], given: &[u32], classes: usize, model: &HiddenLabelModel) -> Result<Self> {
        check(predictions, given, classes)?;
        let votes = Votes::new(predictions, given, classes);
        let joint = votes.joint(None);
        let readings = [model.rate_among(|_| 1.0), wrong_share(&joint, classes), votes.blunt(None)];
        let errors: Vec<f64> = {
            let without = |group: usize| {
                let weight = |sample: usize| f64::from(u8::from(group_of(sample) != group));
                [
                    model.rate_among(weight),
                    wrong_share(&votes.joint(Some(group)), classes),
                    votes.blunt(Some(group)),
                ]
            };
            let all: Vec<[f64; 3]> = (0..GROUPS).map(without).collect();
            (0..3).map(|which| jackknife(all.iter().map(|rates| rates[which]))).collect()
        };
        let reach = |which: usize, sign: f64| readings[which] + sign * STUDENT * errors[which];
        let low = (0..3).map(|which| reach(which, -1.0)).fold(f64::INFINITY, f64::min);
        let high = (0..3).map(|which| reach(which, 1.0)).fold(f64::NEG_INFINITY, f64::max);
        let within = |x: f64| x.clamp(0.0, 1.0);
        let cell = |true_class: usize, given_class: usize| joint[given_class * classes + true_class];
        let true_counts: Vec<f64> = (0..classes).map(|y| (0..classes).map(|g| cell(y, g)).sum()).collect();
        let given_counts = votes.sizes.clone();
        let row = |class: usize, cells: Vec<f64>| {
            let sum: f64 = cells.iter().sum();
            let alone = (0..classes).map(|c| if c == class { 1.0 } else { 0.0 }).collect();
            if sum > 0.0 { cells.into_iter().map(|x| x / sum).collect() } else { alone }
        };
        let given_by_true: Vec<Vec<f64>> =
            (0..classes).map(|y| row(y, (0..classes).map(|g| cell(y, g)).collect())).collect();
        let true_by_given: Vec<Vec<f64>> =
            (0..classes).map(|g| row(g, (0..classes).map(|y| cell(y, g)).collect())).collect();
        let wrong =
            |matrix: &[Vec<f64>]| matrix.iter().enumerate().map(|(c, row)| within(1.0 - row[c])).collect();
        Ok(Self {
            rate: readings[1],
            interval: [within(low), within(high)],
            sampling_interval: [within(reach(1, -1.0)), within(reach(1, 1.0))],
            readings,
            exponent: model.exponent(),
            given_counts,
            wrong_by_given: wrong(&true_by_given),
            wrong_by_true: wrong(&given_by_true),
            true_counts,
            given_by_true,
            true_by_given,
        })
    }

    /// Frequent confusions: true class, given class, estimated number of labels; most frequent first.
    pub fn confusions(&self) -> Vec<(usize, usize, f64)> {
        let classes = self.given_counts.len();
        let cells = (0..classes).flat_map(|y| (0..classes).map(move |g| (y, g))).filter(|(y, g)| y != g);
        let mut found: Vec<(usize, usize, f64)> =
            cells.map(|(y, g)| (y, g, self.true_counts[y] * self.given_by_true[y][g])).collect();
        found.retain(|(_, _, count)| *count > 0.0);
        found.sort_by(|a, b| b.2.total_cmp(&a.2));
        found
    }
}

/// The confident reading alone, from predictions (N x C) and given labels: quick enough for use in training.
pub fn confident_rate(predictions: &[f32], given: &[u32], classes: usize) -> Result<f64> {
    check(predictions, given, classes)?;
    Ok(wrong_share(&Votes::new(predictions, given, classes).joint(None), classes))
}

/// For which class each sample counts.
struct Votes<'a> {
    given: &'a [u32],
    classes: usize,
    sizes: Vec<usize>,
    confident: Vec<Option<u32>>,
    likeliest: Vec<bool>,
}

impl<'a> Votes<'a> {
    fn new(predictions: &[f32], given: &'a [u32], classes: usize) -> Self {
        let rows = || predictions.chunks(classes.max(1)).zip(given);
        let (mut sizes, mut sums) = (vec![0; classes], vec![0.0; classes]);
        for (row, &label) in rows() {
            sizes[label as usize] += 1;
            sums[label as usize] += f64::from(row[label as usize]);
        }
        // Nothing is confidently of a class that no label names.
        let means =
            sums.iter().zip(&sizes).map(|(sum, &n)| if n > 0 { sum / n as f64 } else { f64::INFINITY });
        let means: Vec<f64> = means.collect();
        let confident = |(row, _): (&[f32], &u32)| {
            let above = (0..classes as u32).filter(|&c| f64::from(row[c as usize]) >= means[c as usize]);
            above.reduce(|best, c| if row[c as usize] > row[best as usize] { c } else { best })
        };
        let agrees = |(row, &label): (&[f32], &u32)| row[label as usize] >= row[argmax(row) as usize];
        let (confident, likeliest) = (rows().map(confident).collect(), rows().map(agrees).collect());
        Self { given, classes, sizes, confident, likeliest }
    }

    /// Samples outside a group.
    fn samples(&self, without: Option<usize>) -> impl Iterator<Item = usize> {
        (0..self.given.len()).filter(move |&i| without != Some(group_of(i)))
    }

    /// Estimated counts, a row for every given class, a column for every true one.
    fn joint(&self, without: Option<usize>) -> Vec<f64> {
        let classes = self.classes;
        let (mut joint, mut sizes) = (vec![0.0; classes * classes], vec![0.0; classes]);
        for i in self.samples(without) {
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

    fn blunt(&self, without: Option<usize>) -> f64 {
        let (mut all, mut differ) = (0usize, 0usize);
        for i in self.samples(without) {
            all += 1;
            differ += usize::from(!self.likeliest[i]);
        }
        if all > 0 { differ as f64 / all as f64 } else { 0.0 }
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
    let count = estimates.clone().count().max(1) as f64;
    let mean = estimates.clone().sum::<f64>() / count;
    ((count - 1.0) / count * estimates.map(|x| (x - mean).powi(2)).sum::<f64>()).sqrt()
}
