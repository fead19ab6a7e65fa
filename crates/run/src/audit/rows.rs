//! An audit without training: of features by models that are fitted to others, or of predictions that somebody has made.

use super::account::Account;
use super::encoded::Encoded;
use super::evidence::Evidence;
use super::flags::Flags;
use super::near::{self, NEAR, Near};
use super::votes::{Agreed, CONSENSUS, Votes};
use super::{AUDIT, write_account};
use crate::clock;
use crate::folder::{self, RunFolder};
use crate::recipe::Recipe;
use crate::training::read_results;
use crate::{Error, Finished, Material, Result, RunOptions, Stop, Watch};
use anyhow::Context;
use negscale::Taxonomy;
use negscale::taxonomy::class_means;
use negscale_audit::crossfit::{CrossFit, CrossFitSettings, Rows, cross_fit};
use negscale_audit::neighbours::{
    CopySettings, NeighbourSettings, OutlierSettings, copies, copies_across, nearest_while, outliers,
};
use negscale_audit::{NoiseModel, Predictions, Ranking, rate_by_means};
use negscale_data::own::predictions::{self, Expected};
use negscale_data::{Dataset, Items, Splits};
use negscale_methods::trainer::Tree;
use negscale_nets::model::Preparation;
use negscale_report::{Expert, Judging};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Up to this many rows, near-copies and outliers are looked for without being asked to.
const NEAR_UP_TO: usize = 20_000;
/// Files that a finished audit of this kind has.
const PRODUCTS: [&str; 3] = ["audit.csv", "corrected.csv", "report.html"];

/// What was judged.
enum Judged {
    Fit(Box<CrossFit>),
    Given(Box<NoiseModel>),
}

/// Audits features, or given predictions, and writes everything to a folder.
pub(super) fn audit(
    recipe: Recipe,
    splits: Splits,
    out: Option<PathBuf>,
    options: RunOptions,
    watch: &mut dyn Watch,
    stop: &Stop,
) -> Result<Finished> {
    let begun = Instant::now();
    let place = out.unwrap_or_else(|| folder::default_place(&recipe));
    within(&recipe, splits, Some(&place), |material| {
        let given = match &recipe.pred_probs {
            Some(path) => Some(predictions_of(path, &material.train)?),
            None => None,
        };
        let given = add_predictions(material, given.as_deref())?;
        let votes = Votes::of(&recipe, &material.train)?;
        let folder = RunFolder::open(AUDIT.name, &place, &recipe, material, options.fresh)?;
        watch.open(&recipe, None, material, &folder);
        let needed: Vec<&str> = PRODUCTS.into_iter().chain(votes.as_ref().map(|_| CONSENSUS)).collect();
        let words = match folder.finished(AUDIT.results, &needed)? {
            Some(words) => {
                watch.complete(recipe.train.epochs);
                words
            }
            None => {
                let write = |account: &Account| write_account(account, &folder, None);
                let words =
                    judge(&recipe, material, Some(&folder), (given, votes), watch, stop, begun, write)?;
                folder.finish(&words)?;
                words
            }
        };
        Ok(Finished { results: read_results(&place, &AUDIT)?, words, place: place.clone() })
    })
}

/// Audits features, or predictions that are in memory, and hands on what was found; with `out` the same is written to a folder, also where an
/// audit was finished there before.
pub(super) fn find<T: Send>(
    recipe: &Recipe,
    splits: Splits,
    given: Option<&[f32]>,
    out: Option<(&Path, RunOptions)>,
    watch: &mut dyn Watch,
    stop: &Stop,
    take: impl FnOnce(&Account) -> Result<T> + Send,
) -> Result<T> {
    let begun = Instant::now();
    within(recipe, splits, out.map(|(place, _)| place), |material| {
        let read = match (given, &recipe.pred_probs) {
            (None, Some(path)) => Some(predictions_of(path, &material.train)?),
            _ => None,
        };
        let given = add_predictions(material, given.or(read.as_deref()))?;
        let votes = Votes::of(recipe, &material.train)?;
        let Some((place, options)) = out else {
            return judge(recipe, material, None, (given, votes), watch, stop, begun, take);
        };
        let folder = RunFolder::open(AUDIT.name, place, recipe, material, options.fresh)?;
        watch.open(recipe, None, material, &folder);
        let write_and_take = |account: &Account| {
            let words = write_account(account, &folder, None)?;
            folder.finish(&words)?;
            take(account)
        };
        judge(recipe, material, Some(&folder), (given, votes), watch, stop, begun, write_and_take)
    })
}

/// Prepares data and does something with it, on as many threads as the recipe says.
fn within<T: Send>(
    recipe: &Recipe,
    splits: Splits,
    place: Option<&Path>,
    work: impl FnOnce(&mut Material) -> Result<T> + Send,
) -> Result<T> {
    if let Some(place) = place {
        let mut inputs = recipe.data.own_files();
        inputs.extend(recipe.pred_probs.clone());
        folder::keep_apart(place, &inputs)?;
    }
    let preparation = Preparation::measure(&splits.train, recipe.data.side.map(|side| (side, side)))?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(recipe.train.threads).build();
    pool.context("cannot start threads")?
        .install(|| work(&mut Material::prepare(recipe, splits, preparation)?))
}

/// Predictions that were made before: they are then part of what the data is.
fn add_predictions(material: &mut Material, values: Option<&[f32]>) -> Result<Option<Predictions>> {
    let Some(values) = values else { return Ok(None) };
    let hash = Sha256::digest(bytes_of(values));
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    material.fingerprint = format!("{}\n{hash}", material.fingerprint);
    let train = &material.train;
    Ok(Some(Predictions::new(values, train.given(), train.classes().len())?))
}

#[allow(clippy::too_many_arguments)]
fn judge<T>(
    recipe: &Recipe,
    material: &Material,
    folder: Option<&RunFolder>,
    (given, votes): (Option<Predictions>, Option<Votes>),
    watch: &mut dyn Watch,
    stop: &Stop,
    begun: Instant,
    take: impl FnOnce(&Account) -> Result<T>,
) -> Result<T> {
    let train = &material.train;
    let encoded = Encoded::open(recipe, train, folder, watch)?;
    let features = features(train, encoded.as_ref(), watch, stop)?;
    let judged = match given {
        Some(predictions) => Judged::Given(Box::new(NoiseModel::fit(&predictions))),
        None => {
            let (values, dim) = features.as_ref().context("only features can be judged without training")?;
            Judged::Fit(Box::new(fit(recipe, train, values, *dim, watch, stop)?))
        }
    };
    let ranking = match &judged {
        Judged::Fit(fit) => fit.ranking(train.classes())?,
        Judged::Given(model) => Ranking::by(model, train.classes())?,
    };
    stop.check()?;
    let mut notes = Vec::new();
    let tree = tree(recipe, train, features.as_ref(), &mut notes)?;
    let mut ranking = ranking;
    if let Some(tree) = &tree {
        ranking.audit = ranking.audit.with_distances(|given, suggested| tree.distance(given, suggested));
    }
    let beliefs = match &judged {
        Judged::Fit(fit) => fit.model.beliefs(),
        Judged::Given(model) => model.beliefs(),
    };
    let mut evidence = Evidence { predictions: Some(beliefs), ..Evidence::default() };
    // Models that cannot judge have no say.
    let voice = Some(beliefs).filter(|_| ranking.estimate.cannot_judge.is_none());
    let agreed = votes.map(|votes| votes.agree(train, voice)).transpose()?;
    if let Some((values, dim)) = &features {
        let rows = Rows::new(values, *dim)?;
        let test = material.splits.test.as_ref().filter(|_| recipe.neighbours || rows.len() <= NEAR_UP_TO);
        let test = test.map(|test| self::features(test, encoded.as_ref(), watch, stop));
        let test = test.transpose()?.flatten();
        look_around(&mut evidence, &rows, &ranking, (material, test), recipe.neighbours, &mut notes, stop)?;
    }
    watch.clear();
    stop.check()?;
    let by_means = match (&judged, &features) {
        (Judged::Fit(fit), Some((values, dim))) => rate_by_means(&Rows::new(values, *dim)?, &fit.model),
        _ => None,
    };
    let (method, mut judging) = describe(&judged, begun);
    judging.words.extend(encoded.as_ref().map(Encoded::story));
    judging.words.extend(agreed.as_ref().map(Agreed::story));
    let measures = train.truth().map(|truth| ranking.audit.measure(truth)).transpose()?;
    let account = Account {
        recipe,
        material,
        place: folder.map(RunFolder::place),
        audit: &ranking.audit,
        estimate: Some(&ranking.estimate),
        tree: tree.as_ref(),
        evidence,
        flags: Flags::new(&ranking.audit, None, true),
        method,
        judging,
        notes,
        agreed,
        measures,
        by_means,
        seconds: begun.elapsed().as_secs_f64(),
        started: folder.map_or_else(clock::now, |folder| folder.started),
        settings: folder.map_or_else(|| Ok(recipe.to_toml()), RunFolder::settings)?,
    };
    take(&account)
}

/// Predictions from a file, a row for every sample.
fn predictions_of(path: &Path, train: &Dataset) -> Result<Vec<f32>> {
    let ids: Option<Vec<String>> = (0..train.len()).map(|index| train.items().origin(index)).collect();
    let expected = Expected { rows: Some(train.len()), classes: Some(train.classes()), ids: ids.as_deref() };
    Ok(predictions::read(path, expected)?.values)
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// All rows of features, and their length; none if rows are without numbers, as where there are predictions alone.
fn features(
    train: &Dataset,
    encoded: Option<&Encoded>,
    watch: &mut dyn Watch,
    stop: &Stop,
) -> Result<Option<(Vec<f32>, usize)>> {
    let store = match (train.items(), encoded) {
        (items, Some(encoded)) => return encoded.rows(items, watch, stop).map(Some),
        (Items::Features(store), None) => store,
        (Items::Images(_), None) => return Ok(None),
    };
    let dim = store.dim();
    if dim == 0 {
        return Ok(None);
    }
    let mut values = vec![0.0; store.len() * dim];
    for (index, row) in values.chunks_exact_mut(dim).enumerate() {
        store.read(index, row)?;
    }
    Ok(Some((values, dim)))
}

fn fit(
    recipe: &Recipe,
    train: &Dataset,
    values: &[f32],
    dim: usize,
    watch: &mut dyn Watch,
    stop: &Stop,
) -> Result<CrossFit> {
    let rows = Rows::new(values, dim)?;
    let settings = CrossFitSettings::new(train.len(), train.classes().len(), recipe.train.seed);
    let watch = std::sync::Mutex::new(watch);
    let progress = |done: f64| {
        if let Ok(mut watch) = watch.lock() {
            watch.progress(done);
        }
        !stop.is_asked()
    };
    let fit = cross_fit(&rows, train.given(), train.classes().len(), &settings, &progress);
    fit.map_err(|error| if_asked(error, stop))
}

/// Who was told to stop says by what.
fn if_asked(error: negscale_audit::Error, stop: &Stop) -> Error {
    match (error, stop.check()) {
        (negscale_audit::Error::Stopped, Err(stopped)) => stopped,
        (error, _) => Error::from(error),
    }
}

/// The class tree: the one that was given or fits the names, or one learnt from the means of classes.
fn tree(
    recipe: &Recipe,
    train: &Dataset,
    features: Option<&(Vec<f32>, usize)>,
    notes: &mut Vec<String>,
) -> Result<Option<Taxonomy>> {
    Ok(match (recipe.data.tree_for(train.classes())?, features) {
        (Tree::Given(tree), _) => Some(tree),
        (Tree::Learnt(settings), Some((values, dim))) if train.classes().len() > 2 && *dim > 0 => {
            let labels: Vec<usize> = train.given().iter().map(|&label| label as usize).collect();
            let means = class_means(train.classes(), values, *dim, &labels);
            match means.and_then(|means| Taxonomy::learnt(train.classes(), &means, &settings)) {
                Ok(tree) => Some(tree),
                Err(error) => {
                    notes.push(format!(
                        "no class tree could be learnt, so distances between classes and whether errors are semantic are left out: {error}"
                    ));
                    None
                }
            }
        }
        _ => None,
    })
}

/// Neighbours of flagged rows, near-copies and outliers.
fn look_around(
    evidence: &mut Evidence,
    rows: &Rows,
    ranking: &Ranking,
    (material, test): (&Material, Option<(Vec<f32>, usize)>),
    is_asked: bool,
    notes: &mut Vec<String>,
    stop: &Stop,
) -> Result<()> {
    let (train, dim) = (&material.train, rows.dim());
    let go_on = || !stop.is_asked();
    let stopped = |error| if_asked(error, stop);
    let flagged = near::doubted(ranking.audit.findings());
    if is_asked || rows.len() <= NEAR_UP_TO {
        if rows.len() < 3 {
            return Ok(());
        }
        let settings = NeighbourSettings { count: NEAR, ..NeighbourSettings::default() };
        let near = nearest_while(rows, &settings, &go_on).map_err(stopped)?;
        evidence.near = flagged.iter().map(|&row| (row, Near::of(&near, row, row, train.given()))).collect();
        evidence.copies = Some(copies(rows, &near, &CopySettings::default())?);
        evidence.outliers = Some(outliers(&near, &OutlierSettings::default())?);
        if let Some((others, _)) = test.filter(|(others, width)| *width == dim && !others.is_empty()) {
            let others = Rows::new(&others, dim)?;
            let search = NeighbourSettings::default();
            let copies = copies_across(rows, &others, &search, &CopySettings::default())?;
            let both =
                copies.across(rows.len()).into_iter().map(|set| copies.sets()[set as usize].rows.clone());
            evidence.across = both.collect();
        }
    } else {
        evidence.near = near::around(&flagged, rows, train.given(), &go_on).map_err(stopped)?;
        notes.push(format!(
            "near-copies and outliers were not looked for among {} rows; --neighbours (in Python neighbours=True) looks for them",
            rows.len()
        ));
    }
    Ok(())
}

fn describe(judged: &Judged, begun: Instant) -> (String, Judging) {
    let seconds = Some(begun.elapsed().as_secs_f64());
    match judged {
        Judged::Fit(fit) => {
            let names = ["networks", "Gaussians", "nearest neighbours"];
            let notes = [
                "one hidden layer, trained on the other folds",
                "one covariance for all classes, fitted to the other folds",
                "votes of the other rows",
            ];
            let experts = fit
                .weights
                .iter()
                .zip(names.into_iter().zip(notes))
                .map(|(&weight, (name, note))| Expert { name: name.into(), weight, note: note.into() });
            let words = vec![
                "Every label was judged by models that did not see it (cross-fitting), pooled with weights that make held-out labels likeliest."
                    .to_owned(),
            ];
            let exponent = Some(f64::from(fit.model.exponent()));
            ("cross-fit".into(), Judging { words, experts: experts.collect(), exponent, seconds })
        }
        Judged::Given(model) => {
            let meaning = match model.meaning() {
                negscale_audit::Meaning::GivenLabels => "given labels, wrong ones included",
                negscale_audit::Meaning::TrueLabels => "true labels: they resist the noise",
            };
            let words =
                vec![format!("The predictions came with the data; they are taken for those of {meaning}.")];
            let exponent = Some(f64::from(model.exponent()));
            ("given predictions".into(), Judging { words, experts: Vec::new(), exponent, seconds })
        }
    }
}
