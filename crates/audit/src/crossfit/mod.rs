//! Predictions for rows of numbers by models that did not see the row's own label.
//!
//! Rows are dealt into K folds. For each fold, models are trained on the others: networks with one hidden layer (`mlp`) and Gaussians with a
//! common covariance (`gaussians`); a third expert, nearest neighbours, never counts a row's own label. Their predictions are
//! pooled with weights that make the held-out labels likeliest, so that a data set of 150 rows and one of a thousand
//! classes get what suits them without a setting.
//!
//! In further **rounds** the models are taught what the [model of hidden labels](crate::HiddenLabelModel) makes of label and prediction
//! together instead of the label alone: expectation and maximisation with models of $P(y \mid x)$ inside. Where a class is
//! often taken for another one, that is what keeps the models from learning the mistake.

pub(crate) mod draw;
mod gaussians;
mod mlp;
mod pool;
mod targets;

pub use mlp::MlpSettings;
pub use targets::Targets;

use crate::{Error, HiddenLabelModel, MIN_EXPONENT_COUNTING, Result};
use gaussians::{Gaussians, Sums};
use mlp::Mlp;
use rayon::prelude::*;

/// Rows of numbers, all of one length.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    values: &'a [f32],
    dim: usize,
}

impl<'a> Rows<'a> {
    /// Rows of `dim` numbers, row after row.
    ///
    /// # Errors
    /// If the numbers are no whole rows, or one is not finite.
    pub fn new(values: &'a [f32], dim: usize) -> Result<Self> {
        let wrong = |problem| Err(Error::Samples { what: "features", problem });
        if dim == 0 || !values.len().is_multiple_of(dim) {
            return wrong(format!("{} numbers are no rows of {dim}", values.len()));
        }
        if let Some(at) = values.iter().position(|x| !x.is_finite()) {
            return wrong(format!(
                "row {}, column {} is {}: give finite numbers",
                at / dim,
                at % dim,
                values[at]
            ));
        }
        Ok(Self { values, dim })
    }

    /// Numbers of a row.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn row(&self, row: usize) -> &'a [f32] {
        &self.values[row * self.dim..(row + 1) * self.dim]
    }

    fn gather(&self, members: &[u32], into: &mut Vec<f32>) {
        into.clear();
        members.iter().for_each(|&member| into.extend_from_slice(self.row(member as usize)));
    }
}

/// How rows are judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossFitSettings {
    /// Folds K.
    pub folds: usize,
    /// Networks per fold.
    pub networks: usize,
    /// Rounds; the first is taught labels, later ones beliefs.
    pub rounds: usize,
    /// Networks are trained like this.
    pub mlp: MlpSettings,
    /// Seed of everything random.
    pub seed: u64,
}

impl CrossFitSettings {
    /// Settings for so many rows.
    #[must_use]
    pub fn for_rows(rows: usize, seed: u64) -> Self {
        let batch = (rows / 24).clamp(16, 512);
        // At least 1,500 steps: few rows need many passes.
        let epochs = (1500 * batch).div_ceil(rows.max(1)).clamp(8, 120);
        let mlp = MlpSettings { hidden: 256, epochs, batch, rate: 2e-3, decay: 0.0 };
        Self { folds: 5, networks: 1, rounds: 2, mlp, seed }
    }
}

/// What cross-fitting leaves.
#[derive(Debug, Clone)]
pub struct CrossFit {
    /// N x C, by models that did not see the row's label.
    pub predictions: Vec<f32>,
    /// Weights of the experts: networks, Gaussians, neighbours.
    pub weights: Vec<f64>,
}

/// Predicts every row by models fitted to others; `neighbours` gives for each row others that are near, nearest first, and how much each
/// counts.
///
/// # Errors
/// If sizes do not fit or a label is not a class.
pub fn cross_fit(
    rows: &Rows,
    given: &[u32],
    classes: usize,
    neighbours: Option<&[Vec<(u32, f32)>]>,
    settings: &CrossFitSettings,
) -> Result<CrossFit> {
    let mut targets = Targets::of_labels(given, classes);
    let mut done = round(rows, given, &targets, neighbours, settings, 0);
    for number in 1..settings.rounds {
        let model = HiddenLabelModel::fit(&done.predictions, given, classes, MIN_EXPONENT_COUNTING)?;
        targets = Targets::of_rows(model.posteriors(), classes);
        done = round(rows, given, &targets, neighbours, settings, number as u64);
    }
    Ok(done)
}

fn round(
    rows: &Rows,
    given: &[u32],
    targets: &Targets,
    neighbours: Option<&[Vec<(u32, f32)>]>,
    settings: &CrossFitSettings,
    number: u64,
) -> CrossFit {
    let (count, classes) = (rows.len(), targets.classes());
    let key = draw::mix(settings.seed, number);
    let fold = |row: usize| (draw::mix(key, row as u64) % settings.folds as u64) as usize;
    let mut members = vec![Vec::new(); settings.folds];
    (0..count).for_each(|row| members[fold(row)].push(row as u32));
    let others = |fold: usize| -> Vec<u32> {
        let mut others: Vec<u32> =
            members.iter().enumerate().filter(|(at, _)| *at != fold).flat_map(|(_, m)| m.clone()).collect();
        others.sort_unstable();
        others
    };
    let sums: Vec<Sums> = members.par_iter().map(|members| Sums::over(rows, targets, members)).collect();
    let linear: Vec<Vec<f32>> = (0..settings.folds)
        .into_par_iter()
        .map(|fold| {
            let mut out = vec![0.0; members[fold].len() * classes];
            if let Some(sums) = Sums::all_but(&sums, fold) {
                Gaussians::fit(&sums).log_probabilities(rows, &members[fold], &mut out);
            }
            out
        })
        .collect();
    let deep: Vec<Vec<f32>> = (0..settings.folds * settings.networks)
        .into_par_iter()
        .map(|at| {
            let fold = at / settings.networks;
            let network =
                Mlp::fit(rows, targets, &others(fold), &settings.mlp, draw::mix(key, 1000 + at as u64));
            let mut out = vec![0.0; members[fold].len() * classes];
            network.log_probabilities(rows, &members[fold], &mut out);
            out
        })
        .collect();
    let deep: Vec<Vec<f32>> = deep.chunks(settings.networks).map(mean_of_probabilities).collect();
    let scatter = |parts: Vec<Vec<f32>>| {
        let mut all = vec![0.0f32; count * classes];
        for (members, part) in members.iter().zip(parts) {
            for (&member, row) in members.iter().zip(part.chunks_exact(classes)) {
                all[member as usize * classes..][..classes].copy_from_slice(row);
            }
        }
        all
    };
    let mut experts = vec![scatter(deep), scatter(linear)];
    if let Some(near) = neighbours {
        experts.push(votes(near, targets));
    }
    let views: Vec<&[f32]> = experts.iter().map(Vec::as_slice).collect();
    let weights = pool::weights(&views, targets, given.len());
    let mut predictions = vec![0.0; count * classes];
    predictions.par_chunks_mut(classes).enumerate().with_min_len(256).for_each(|(row, out)| {
        pool::pooled(&views, &weights, row * classes..(row + 1) * classes, out);
    });
    CrossFit { predictions, weights }
}

/// The logarithm of the mean probability of several networks.
fn mean_of_probabilities(networks: &[Vec<f32>]) -> Vec<f32> {
    let mut mean = networks[0].clone();
    if networks.len() > 1 {
        for (at, mean) in mean.iter_mut().enumerate() {
            let sum: f32 = networks.iter().map(|network| network[at].exp()).sum();
            *mean = (sum / networks.len() as f32).max(1e-13).ln();
        }
    }
    mean
}

/// Logarithms of weighted votes of near rows, each voting as it is taught; half a vote is spread over all classes.
fn votes(near: &[Vec<(u32, f32)>], targets: &Targets) -> Vec<f32> {
    let classes = targets.classes();
    let mut all = vec![0.5 / classes as f32; near.len() * classes];
    all.par_chunks_mut(classes).zip(near).with_min_len(64).for_each(|(row, near)| {
        for &(other, weight) in near {
            targets.row(other as usize).iter().for_each(|&(class, t)| row[class as usize] += weight * t);
        }
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|v| *v = (*v / sum).ln());
    });
    all
}

pub(crate) fn softmax(row: &mut [f32]) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for z in row.iter_mut() {
        *z = (*z - most).exp();
        sum += *z;
    }
    row.iter_mut().for_each(|z| *z /= sum);
}

pub(crate) fn log_softmax(row: &mut [f32]) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = row.iter().map(|z| (z - most).exp()).sum();
    let all = most + sum.ln();
    row.iter_mut().for_each(|z| *z -= all);
}
