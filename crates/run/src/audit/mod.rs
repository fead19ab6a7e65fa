//! An audit: which labels are wrong. Features are judged by cross-fitting, pictures by an encoder and cross-fitting or by a training run, and predictions that somebody has made are
//! taken as they are; all leave `audit.csv`, `corrected.csv`, `audit.json` and `report.html`.

mod account;
mod commands;
mod embeddings;
mod encoded;
mod evidence;
mod figures;
mod flags;
mod losses;
mod memory;
mod near;
mod page;
pub mod parts;
mod rows;
mod votes;
mod words;

pub use commands::review as review_command;
pub use embeddings::audit_embeddings;
pub use encoded::what_would_help;
pub use evidence::Numbers;
pub use memory::{Found, find};
pub use words::check as describe_check;

use crate::folder::{RunFolder, write};
use crate::recipe::{Judge, Layers, Recipe};
use crate::training::{Command, carry_out};
use crate::{Done, Finished, Result, RunOptions, Stop, Watch};
use account::Account;
use evidence::Evidence;
use flags::Flags;
use losses::LossHistory;
use near::Near;
use negscale_audit::crossfit::Rows;
use negscale_audit::{Cells, Finding};
use negscale_data::{Dataset, Items, Splits};
use negscale_methods::host::ItemKind;
use negscale_report::Judging;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// `negscale audit`.
pub const AUDIT: Command = Command {
    name: "audit",
    results: "audit.json",
    files: &[
        ("labels", "audit.csv"),
        ("corrected", "corrected.csv"),
        ("figures", "audit.json"),
        ("report", "report.html"),
    ],
};
/// The page of the training run, if there was one.
pub const TRAINING_PAGE: &str = "training.html";
/// Of more samples no neighbours are looked for by a network that was trained.
const MOST_ROWS: usize = 250_000;
/// What any audit starts from.
const ANY: &str = include_str!("../../recipes/audit.toml");
/// What an audit of embeddings starts from.
const EMBEDDINGS: &str = include_str!("../../recipes/audit-embeddings.toml");

/// The default settings of an audit for these items; without a kind of items, those of any audit.
pub fn defaults(items: Option<&Items>) -> Result<Layers> {
    let text = if matches!(items, Some(Items::Features(_))) { EMBEDDINGS } else { ANY };
    Ok(Layers::new().with_text("the defaults of an audit", text)?)
}

/// The default settings of an audit for features that are in memory.
pub fn defaults_in_memory() -> Result<Layers> {
    Ok(Layers::new().with_text("the defaults of an audit", EMBEDDINGS)?.over_in_memory()?)
}

/// The settings of an audit of this training data; `lay` lays what was written over what it is given. Whoever chooses something of a training wants
/// features to be judged by one.
pub fn recipe_for<E: From<crate::Error>>(
    train: &Dataset,
    lay: impl Fn(Layers) -> Result<Layers, E>,
) -> Result<Recipe, E> {
    let layers = match train.items() {
        items @ Items::Features(_) if !items.are_texts() => {
            let layers = lay(defaults(Some(items))?)?;
            match lay(Layers::new())?.choose_judge() {
                Some(Judge::Training) => {
                    layers.with_flag("--host", "audit.judge", "training").map_err(crate::Error::from)?
                }
                _ => layers,
            }
        }
        items => {
            let layers = lay(defaults(None)?)?;
            let judge = lay(Layers::new())?.choose_judge();
            match encoded::choose(&layers, judge, items)? {
                None => layers,
                Some(encoder) => {
                    let begin = Layers::new().with_text("the defaults of an audit", EMBEDDINGS);
                    let layers = lay(begin.map_err(crate::Error::from)?)?;
                    let layers = layers.with_flag("--encoder", "audit.encoder", encoder);
                    let layers = layers.map_err(crate::Error::from)?;
                    return Ok(layers.resolve(ItemKind::Features, None).map_err(crate::Error::from)?);
                }
            }
        }
    };
    Ok(layers.resolve_for(train).map_err(crate::Error::from)?)
}

/// Ranks every label of data whose labels are of unknown quality, and writes `audit.csv`, `corrected.csv`, `audit.json` and `report.html`.
/// With [`Judge::Training`] a method is trained to judge, as [`train`](crate::train()) does.
pub fn audit(
    recipe: Recipe,
    splits: Splits,
    out: Option<PathBuf>,
    options: RunOptions,
    watch: &mut dyn Watch,
    stop: &Stop,
) -> Result<Finished> {
    if recipe.judge == Judge::CrossFit || recipe.pred_probs.is_some() {
        return rows::audit(recipe, splits, out, options, watch, stop);
    }
    if splits.train.annotators().is_some() {
        let problem = "--label-columns: several annotators need rows of numbers that are judged without training, or predictions (--pred-probs); \
                       make embeddings of pictures, and leave out settings of a training such as --host";
        return Err(anyhow::anyhow!(problem).into());
    }
    let begun = Instant::now();
    carry_out(&AUDIT, recipe, splits, out, options, watch, stop, |done| of_training(done, begun, stop))
}

/// The estimated share of wrong labels of an audit's results, and the upper end of its interval.
#[must_use]
pub fn estimate(results: &serde_json::Value) -> Option<(f64, f64)> {
    let noise = &results["noise"];
    Some((noise["rate"].as_f64()?, noise["interval_95"][1].as_f64()?))
}

/// Why the labels cannot be judged, by an audit's results.
#[must_use]
pub fn cannot_judge(results: &serde_json::Value) -> Option<&str> {
    results["noise"]["cannot_judge"].as_str()
}

/// What an audit adds to a training run.
fn of_training(done: &Done, begun: Instant, stop: &Stop) -> Result<String> {
    let Done { recipe, material, folder, summary, trained, .. } = done;
    let losses = LossHistory::of(&trained.trainer.ledger()?);
    let notes = losses.as_ref().and_then(|losses| losses.advice(recipe.train.epochs));
    let near = near_by_network(done, stop)?;
    let predictions = summary.predictions.as_ref();
    let evidence = Evidence { predictions, losses, near, ..Evidence::default() };
    let words = vec![format!("{} was trained on the labels and judged them meanwhile.", summary.name)];
    let account = Account {
        recipe,
        material,
        place: Some(folder.place()),
        audit: &summary.ranked,
        estimate: summary.estimate.as_ref(),
        tree: trained.trainer.tree(),
        evidence,
        flags: Flags::new(&summary.ranked, recipe.flag_below, summary.estimate.is_some()),
        method: summary.name.clone(),
        judging: Judging {
            words,
            seconds: Some(summary.seconds),
            exponent: summary.estimate.as_ref().map(|estimate| estimate.exponent),
            ..Judging::default()
        },
        notes: notes.into_iter().collect(),
        agreed: None,
        measures: summary.audit,
        by_means: None,
        seconds: begun.elapsed().as_secs_f64(),
        started: folder.started,
        settings: folder.settings()?,
    };
    let page = folder.file("report.html");
    if page.exists() {
        write(&folder.file(TRAINING_PAGE), &std::fs::read(&page)?)?;
    }
    write_account(&account, folder, Some(summary.seconds))
}

/// Neighbours of doubted labels by the features of the network that was trained; none of data whose features would fill the memory.
fn near_by_network(done: &Done, stop: &Stop) -> Result<BTreeMap<usize, Near>> {
    let Done { recipe, material, trained, summary, .. } = done;
    let (train, doubted) = (&material.train, near::doubted(summary.ranked.findings()));
    if doubted.is_empty() || train.len() > MOST_ROWS {
        return Ok(BTreeMap::new());
    }
    let scan = trained.trainer.model(BTreeMap::new())?.scan(train, recipe.train.threads)?;
    let rows = Rows::new(&scan.features, scan.dim)?;
    let near = near::around(&doubted, &rows, train.given(), &|| !stop.is_asked());
    stop.check()?;
    Ok(near?)
}

/// Writes the files of an audit, and gives the words for people.
fn write_account(account: &Account, folder: &RunFolder, seconds_training: Option<f64>) -> Result<String> {
    let origin = |index| account.material.train.items().origin(index);
    let (audit, classes) = (account.audit, account.classes());
    let sources = account.material.train.sources();
    let more = |finding: &Finding| {
        let numbers = account.evidence.numbers(finding, account.estimate);
        let text = |value: Option<String>| value.unwrap_or_default();
        let reasons = match finding.flag {
            true => account.reasons(finding).join("; "),
            false => String::new(),
        };
        vec![
            text(numbers.predicted.map(|(class, _)| classes[class as usize].clone())),
            text(numbers.predicted.map(|(_, p)| p.to_string())),
            text(numbers.given.map(|p| p.to_string())),
            text(numbers.near.map(|near| near[0].to_string())),
            text(numbers.near.map(|near| near[1].to_string())),
            text(numbers.near.map(|near| near[2].to_string())),
            text(numbers.confusion.map(|share| format!("{share:.6}"))),
            text(numbers.losses.last().map(|(_, loss)| loss.to_string())),
            numbers
                .losses
                .iter()
                .map(|(epoch, loss)| format!("{epoch}:{loss}"))
                .collect::<Vec<_>>()
                .join(" "),
            text(numbers.copies.map(|set| set.to_string())),
            text(account.evidence.outliers.as_ref().map(|_| numbers.is_outlier.to_string())),
            text(sources.and_then(|sources| sources.name(finding.index)).map(str::to_owned)),
            reasons,
        ]
    };
    audit.save_csv_with(folder.file("audit.csv"), origin, Cells::Guarded, (&MORE_COLUMNS, &more))?;
    audit.save_corrected(folder.file("corrected.csv"), origin)?;
    if let Some(table) = near::table(account)? {
        write(&folder.file(near::FILE), &table)?;
    }
    if let Some(tree) = account.tree {
        write(&folder.file("tree.tsv"), tree.to_tsv().as_bytes())?;
    }
    if let Some(agreed) = &account.agreed {
        agreed.save(&folder.file(votes::CONSENSUS), &account.material.train)?;
    }
    page::report(account)?.write_html(&folder.file("report.html"))?;
    let object = figures::object(account, seconds_training)?;
    let text = serde_json::to_string_pretty(&object)?;
    write(&folder.file(AUDIT.results), format!("{text}\n").as_bytes())?;
    Ok(words::describe(account))
}

/// Columns of `audit.csv` that an audit adds: the evidence.
const MORE_COLUMNS: [&str; 13] = [
    "predicted",
    "predicted_probability",
    "given_probability",
    "neighbours",
    "neighbours_given",
    "neighbours_suggested",
    "confusion_share",
    "loss",
    "losses",
    "near_copies",
    "outlier",
    "source",
    "reasons",
];
