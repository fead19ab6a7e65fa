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
mod file;
mod frozen;
mod gaussians;
mod mlp;
mod model;
mod pool;
mod scaling;
mod targets;

pub use frozen::FrozenAudit;
pub use mlp::MlpSettings;
pub use model::{AboutModel, AuditModel, SampleEstimate};
pub use targets::Targets;

use crate::estimate::cannot_judge;
use crate::neighbours::{NeighbourSettings, nearest};
use crate::noise_model::{Meaning, NoiseModel};
use crate::{Error, Predictions, Ranking, Result};
use gaussians::{Gaussians, Sums};
use mlp::Mlp;
use rayon::prelude::*;
use scaling::Scaling;
use std::sync::atomic::{AtomicUsize, Ordering};

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

    /// Rows that are known to be whole and finite.
    pub(crate) fn whole(values: &'a [f32], dim: usize) -> Self {
        Self { values, dim }
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

    /// All numbers, row after row.
    pub(crate) fn values(&self) -> &'a [f32] {
        self.values
    }

    pub(crate) fn row(&self, row: usize) -> &'a [f32] {
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
/// Rows up to which all pairs are looked at for neighbours; beyond, most neighbours are enough.
const EXACT_VOTES: usize = 10_000;
const RECALL: f64 = 0.9;
/// Rows that are predicted at a time.
const CHUNK: usize = 1024;

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
    if let Some(at) = given.iter().position(|&label| label as usize >= classes) {
        let problem = format!("label {} of row {at} is not a class: there are {classes}", given[at]);
        return Err(Error::Samples { what: "labels", problem });
    }
    let scaling = Scaling::of(rows);
    let scaled = scaling.apply(rows.values);
    let rows = &Rows { values: &scaled, dim: rows.dim };
    let near = near(rows, settings.neighbours)?;
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
        let predictions = experts.predictions(&weights, given);
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

/// Several predictions for each row.
struct Experts<'a> {
    rows: &'a Rows<'a>,
    models: &'a [FoldModels],
    fold_of: &'a [usize],
    near: Option<&'a [Weighted]>,
    targets: &'a Targets,
}

impl Experts<'_> {
    /// Logarithms of what each expert says of some rows, all of one fold: an array of rows x C each.
    fn ask(&self, fold: usize, members: &[u32]) -> Vec<Vec<f32>> {
        let mut said = self.models[fold].ask(self.rows, members, self.targets.classes());
        if let Some(near) = self.near {
            said.push(votes(near, members, self.targets));
        }
        said
    }

    /// Members of each fold among the rows of a step, in pieces.
    fn pieces(&self, every: usize) -> Vec<(usize, Vec<u32>)> {
        let mut by_fold = vec![Vec::new(); self.models.len()];
        (0..self.rows.len()).step_by(every).for_each(|row| by_fold[self.fold_of[row]].push(row as u32));
        let cut = |(fold, members): (usize, Vec<u32>)| {
            members.chunks(CHUNK).map(|piece| (fold, piece.to_vec())).collect::<Vec<_>>()
        };
        by_fold.into_iter().enumerate().flat_map(cut).collect()
    }

    /// Weights that make the targets of rows likeliest; of many rows, a part.
    fn weights(&self) -> Vec<f64> {
        let pieces = self.pieces(self.rows.len().div_ceil(pool::MOST_ROWS).max(1));
        let said: Vec<Vec<Vec<f32>>> =
            pieces.par_iter().map(|(fold, members)| self.ask(*fold, members)).collect();
        let count = said.first().map_or(0, Vec::len);
        let all: Vec<Vec<f32>> = (0..count)
            .map(|expert| said.iter().flat_map(|said| said[expert].iter().copied()).collect())
            .collect();
        let members: Vec<u32> = pieces.into_iter().flat_map(|(_, members)| members).collect();
        let views: Vec<&[f32]> = all.iter().map(Vec::as_slice).collect();
        pool::weights(&views, self.targets, &members)
    }

    fn predictions(&self, weights: &[f64], given: &[u32]) -> Predictions {
        let classes = self.targets.classes();
        let mut predictions = Predictions::empty(given, classes);
        let pieces = self.pieces(1);
        // So many at a time, that all that is said of them fits into little memory.
        for pieces in pieces.chunks(4 * rayon::current_num_threads()) {
            let pooled: Vec<Vec<f32>> = pieces
                .par_iter()
                .map(|(fold, members)| {
                    let said = self.ask(*fold, members);
                    let views: Vec<&[f32]> = said.iter().map(Vec::as_slice).collect();
                    let mut pooled = vec![0.0; members.len() * classes];
                    for (row, out) in pooled.chunks_exact_mut(classes).enumerate() {
                        pool::pooled(&views, weights, row * classes..(row + 1) * classes, out);
                    }
                    pooled
                })
                .collect();
            for ((_, members), pooled) in pieces.iter().zip(pooled) {
                for (&member, row) in members.iter().zip(pooled.chunks_exact(classes)) {
                    predictions.set(member as usize, row);
                }
            }
        }
        predictions
    }
}

/// Other rows, and how much each counts.
type Weighted = Vec<(u32, f32)>;

/// For each row others that are near, nearest first, and how much each counts: $\exp(-(d/m)^2)$ with $m$ the median of its distances.
fn near(rows: &Rows, count: usize) -> Result<Option<Vec<Weighted>>> {
    if count == 0 || rows.len() < 2 {
        return Ok(None);
    }
    let near = nearest(
        rows,
        &NeighbourSettings { count, exact_up_to: EXACT_VOTES, recall: RECALL, ..NeighbourSettings::default() },
    )?;
    let weighted = |row| {
        let distances = near.distances(row);
        let scale = distances.get(distances.len() / 2).map_or(1.0, |median| median.max(1e-9));
        near.of(row).map(|(other, distance)| (other, (-(distance / scale).powi(2)).exp())).collect()
    };
    Ok(Some((0..rows.len()).map(weighted).collect()))
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

    /// One more epoch of one network, or one more fold.
    fn step(&self) -> Result<()> {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if (self.watch)(done as f64 / self.all as f64) { Ok(()) } else { Err(Error::Stopped) }
    }
}

/// Logarithms of weighted votes of near rows, each voting as it is taught; half a vote is spread over all classes.
fn votes(near: &[Weighted], members: &[u32], targets: &Targets) -> Vec<f32> {
    let classes = targets.classes();
    let mut all = vec![0.5 / classes as f32; members.len() * classes];
    for (row, &member) in all.chunks_exact_mut(classes).zip(members) {
        for &(other, weight) in &near[member as usize] {
            targets.row(other as usize).iter().for_each(|&(class, t)| row[class as usize] += weight * t);
        }
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|v| *v = (*v / sum).ln());
    }
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
