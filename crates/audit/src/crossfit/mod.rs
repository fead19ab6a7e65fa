//! Predictions for rows of numbers by models that did not see the row's own label.
//!
//! Rows are dealt into K folds. For each fold, models are trained on the others: networks with one hidden layer (`mlp`) and Gaussians with a
//! common covariance (`gaussians`); a third expert, nearest neighbours, never counts a row's own label. Their predictions are
//! pooled with weights that make the held-out labels likeliest, so that a data set of 150 rows and one of a thousand
//! classes get what suits them without a setting.
//!
//! In further **rounds** the models are taught what the [model of hidden labels](crate::NoiseModel) makes of label and prediction
//! together instead of the label alone: expectation and maximisation with models of $P(y \mid x)$ inside. Where a class is
//! often taken for another one, that is what keeps the models from learning the mistake.

pub(crate) mod draw;
mod experts;
mod file;
mod frozen;
mod gaussians;
mod mlp;
mod model;
mod pool;
mod rows;
mod scaling;
mod targets;

pub use frozen::FrozenAudit;
pub use mlp::MlpSettings;
pub use model::{AboutModel, AuditModel, SampleEstimate};
pub use rows::Rows;
pub use targets::Targets;

use crate::estimate::cannot_judge;
use crate::noise_model::{Meaning, NoiseModel};
use crate::predictions::check_labels;
use crate::{Error, Predictions, Ranking, Result};
use experts::{Experts, near};
use gaussians::{Gaussians, Sums};
use mlp::Mlp;
use rayon::prelude::*;
use scaling::Scaling;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How rows are judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossFitSettings {
    /// Folds K.
    pub folds: usize,
    /// Rounds; the first is taught labels, later ones beliefs.
    pub rounds: usize,
    /// Networks are trained like this.
    pub mlp: MlpSettings,
    /// Networks per fold; the mean of what they say is taken.
    pub networks: usize,
    /// Nearest neighbours that vote; 0 for none.
    pub neighbours: usize,
    /// Passes over the rows in later rounds, which go on from the networks of the round before.
    pub later_epochs: usize,
    /// Seed of everything random.
    pub seed: u64,
}

impl CrossFitSettings {
    /// Settings for so many rows of so many classes, chosen on the development sets of `docs/decisions/013-audit.md`.
    #[must_use]
    pub fn new(rows: usize, classes: usize, seed: u64) -> Self {
        let batch = (rows / 24).clamp(16, 256);
        // At least 500 steps: few rows need many passes.
        let epochs = (500 * batch).div_ceil(rows.max(1)).clamp(5, 60);
        let per_class = rows / classes.max(1);
        // Few rows are memorised sooner.
        let decay = (0.5 * (50_000.0 / rows.max(1) as f32).sqrt()).clamp(0.5, 5.0);
        Self {
            folds: if rows < 2_000 {
                10
            } else if rows < 10_000 {
                5
            } else {
                3
            },
            // Beliefs of few rows go round in circles.
            rounds: if per_class < 20 { 2 } else { 3 },
            // With few rows of a class, means and neighbours know more. A second network gives less than neighbours do.
            networks: usize::from(per_class >= 20),
            neighbours: if rows <= MOST_VOTES { 20 } else { 0 },
            mlp: MlpSettings { hidden: 256, epochs, batch, rate: 3e-3, decay },
            later_epochs: (epochs * 4).div_ceil(5),
            seed,
        }
    }
}

/// Models that were fitted without the rows of one fold.
#[derive(Debug, Clone, PartialEq)]
struct FoldModels {
    networks: Vec<Mlp>,
    gaussians: Gaussians,
}

impl FoldModels {
    /// Logarithms of what networks and Gaussians say of some rows: an array of rows x C each.
    fn ask(&self, rows: &Rows, members: &[u32], classes: usize) -> Vec<Vec<f32>> {
        let size = members.len() * classes;
        let (mut networks, mut one) = (vec![0.0; size], vec![0.0; size]);
        let share = 1.0 / self.networks.len().max(1) as f32;
        for network in &self.networks {
            network.log_probabilities(rows, members, &mut one);
            networks.iter_mut().zip(&one).for_each(|(mean, l)| *mean += share * l);
        }
        self.gaussians.log_probabilities(rows, members, &mut one);
        vec![networks, one]
    }
}

/// What cross-fitting leaves.
#[derive(Debug, Clone)]
pub struct CrossFit {
    /// By models that did not see the row's label.
    pub predictions: Predictions,
    /// The model of noise fitted to them.
    pub model: NoiseModel,
    /// Weights of the experts: networks, Gaussians, neighbours.
    pub weights: Vec<f64>,
    folds: Vec<FoldModels>,
    scaling: Scaling,
}

impl CrossFit {
    /// Every label ranked, with an estimate of how many are wrong.
    ///
    /// # Errors
    /// If there are fewer names than classes.
    pub fn ranking(&self, class_names: &[String]) -> Result<Ranking> {
        Ranking::by(&self.model, class_names)
    }
}

/// Beliefs are raised to this power before they are taught to the next round: what is likely becomes likelier, and a wrong label that a model has
/// half learnt is not taught on.
const SHARPNESS: f32 = 2.0;
/// More rows than this are not asked for their neighbours: networks have enough of them.
const MOST_VOTES: usize = 100_000;

/// Predicts every row by models fitted to others. `watch` is told how much of the work is done, from 0 to 1, and says whether to go on.
///
/// # Errors
/// If sizes do not fit, a label is not a class, there are fewer than two folds, or `watch` says no.
pub fn cross_fit(
    rows: &Rows,
    given: &[u32],
    classes: usize,
    settings: &CrossFitSettings,
    watch: &(impl Fn(f64) -> bool + Sync),
) -> Result<CrossFit> {
    let fold = |row: usize| (draw::mix(settings.seed, row as u64) % settings.folds.max(1) as u64) as usize;
    let folds: Vec<usize> = (0..rows.len()).map(fold).collect();
    cross_fit_in(rows, given, classes, &folds, settings, watch)
}

/// Like [`cross_fit`], with folds as given: one below `settings.folds` for each row.
///
/// # Errors
/// As there, or if folds do not fit.
pub fn cross_fit_in(
    rows: &Rows,
    given: &[u32],
    classes: usize,
    folds: &[usize],
    settings: &CrossFitSettings,
    watch: &(impl Fn(f64) -> bool + Sync),
) -> Result<CrossFit> {
    if settings.folds < 2 {
        let value = settings.folds.to_string();
        let wanted = "must be 2 or more: models are fitted to the other folds";
        return Err(Error::Range { setting: "folds", value, wanted });
    }
    if folds.len() != rows.len() || folds.iter().any(|&fold| fold >= settings.folds) {
        let problem =
            format!("{} for {} rows, each must be below {}", folds.len(), rows.len(), settings.folds);
        return Err(Error::Samples { what: "folds", problem });
    }
    if given.len() != rows.len() {
        let problem = format!("{} for {} rows", given.len(), rows.len());
        return Err(Error::Samples { what: "labels", problem });
    }
    check_labels("labels", given, classes)?;
    let scaling = Scaling::of(rows);
    let scaled = scaling.apply(rows.values);
    let rows = &Rows { values: &scaled, dim: rows.dim };
    let near = near(rows, settings.neighbours, &|| watch(0.0))?;
    let progress = Progress::new(settings, watch);
    let mut targets = Targets::of_labels(given, classes);
    let (mut done, mut doubt) = (None::<CrossFit>, None);
    for number in 0..settings.rounds.max(1) {
        let before = done.as_ref().map(|done| done.folds.as_slice());
        let round = FittingRound { rows, folds, targets: &targets, settings, progress: &progress };
        let models = round.models(before, number)?;
        let experts =
            Experts { rows, models: &models, fold_of: folds, near: near.as_deref(), targets: &targets };
        let weights = experts.weights();
        progress.check()?;
        let predictions = experts.predictions(&weights, given);
        progress.check()?;
        let model = match number {
            0 => NoiseModel::with_meaning(&predictions, Meaning::GivenLabels),
            _ => NoiseModel::resistant(&predictions),
        };
        // Beliefs hand a label on to rows near it, and from there back: only the first round has not heard of it.
        if number == 0 {
            doubt = cannot_judge(&model);
        }
        let model = model.with_doubt(doubt.clone());
        let is_last = doubt.is_some() || number + 1 >= settings.rounds;
        if !is_last {
            targets = Targets::of_rows(model.posteriors(SHARPNESS), classes);
        }
        let scaling = scaling.clone();
        done = Some(CrossFit { predictions, model, weights, folds: models, scaling });
        if is_last {
            break;
        }
    }
    done.ok_or(Error::Samples { what: "rounds", problem: "there must be one".into() })
}

/// What one round is taught.
struct FittingRound<'a> {
    rows: &'a Rows<'a>,
    folds: &'a [usize],
    targets: &'a Targets,
    settings: &'a CrossFitSettings,
    progress: &'a Progress<'a>,
}

impl FittingRound<'_> {
    /// Fits models for every fold.
    fn models(&self, before: Option<&[FoldModels]>, number: usize) -> Result<Vec<FoldModels>> {
        let Self { rows, folds, targets, settings, progress } = *self;
        let members = |is_in: &dyn Fn(usize) -> bool| -> Vec<u32> {
            (0..rows.len() as u32).filter(|&row| is_in(folds[row as usize])).collect()
        };
        let sums: Vec<Sums> = (0..settings.folds)
            .into_par_iter()
            .map(|fold| Sums::over(rows, targets, &members(&|other| other == fold)))
            .collect();
        let fitted = (0..settings.folds).into_par_iter().map(|fold| {
            let others = members(&|other| other != fold);
            let network = |which: usize| {
                let start = before.map(|before| &before[fold].networks[which]);
                let mlp = MlpSettings {
                    epochs: if start.is_some() { settings.later_epochs } else { settings.mlp.epochs },
                    ..settings.mlp
                };
                let seed = draw::mix(settings.seed, 1 << 32 | (which << 24 | number << 16 | fold) as u64);
                Mlp::fit(rows, targets, &others, &mlp, seed, start, &|| progress.step())
            };
            let networks = (0..settings.networks).into_par_iter().map(network).collect::<Result<_>>()?;
            progress.step()?;
            Ok(FoldModels { networks, gaussians: Gaussians::fit(&Sums::all_but(&sums, fold)) })
        });
        fitted.collect()
    }
}

/// How much of the work is done.
struct Progress<'a> {
    done: AtomicUsize,
    all: usize,
    watch: &'a (dyn Fn(f64) -> bool + Sync),
}

impl<'a> Progress<'a> {
    fn new(settings: &CrossFitSettings, watch: &'a (dyn Fn(f64) -> bool + Sync)) -> Self {
        let epochs = settings.mlp.epochs + settings.rounds.saturating_sub(1) * settings.later_epochs;
        let all = (epochs * settings.networks + settings.rounds.max(1)) * settings.folds;
        Self { done: AtomicUsize::new(0), all, watch }
    }

    /// Whether to go on, between steps that are not counted.
    fn check(&self) -> Result<()> {
        self.tell(self.done.load(Ordering::Relaxed))
    }

    fn tell(&self, done: usize) -> Result<()> {
        if (self.watch)(done as f64 / self.all as f64) { Ok(()) } else { Err(Error::Stopped) }
    }

    /// One more epoch of one network, or one more fold.
    fn step(&self) -> Result<()> {
        self.tell(self.done.fetch_add(1, Ordering::Relaxed) + 1)
    }
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
