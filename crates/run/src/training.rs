//! A run from data to files: trains, resumes, and writes model, wrong labels, report and results to a folder.
//!
//! Calling the same run again resumes where it stopped, to the same bits on CPUs with the same instructions; a finished run is only
//! read.

use crate::csv_rows::write_row;
use crate::error::bail;
use crate::folder::{self, RunFolder};
use crate::recipe::Recipe;
use crate::summary::Summary;
use crate::{Material, Result, Stop, Watch, instructions, products, table};
use anyhow::Context;
use negscale_data::Splits;
use negscale_methods::trainer::{EpochEnd, Trainer};
use negscale_nets::model::Preparation;
use negscale_records::EpochRecord;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file of results of every run.
pub const RESULTS: &str = "results.json";

/// How many times as long as it takes to write all events is between two times.
const EVENTS: u32 = 20;

/// What to keep of a finished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// Everything: model, ledger, audit, report, events.
    #[default]
    All,
    /// Settings, metrics, tree and results only; nothing else is written.
    Results,
}

/// How a run is kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunOptions {
    /// Start over, even if the folder holds a run that could be resumed.
    pub fresh: bool,
    /// What to keep when it is finished.
    pub keep: Keep,
    /// Least time between two checkpoints; zero: save one after every epoch.
    pub checkpoint_every: Duration,
}

/// The outcome of training.
pub struct Trained {
    /// The trainer, at its end.
    pub trainer: Trainer,
    /// A record of every epoch.
    pub records: Vec<EpochRecord>,
}

/// A command that trains: which files it writes, and which of them users are pointed to.
#[derive(Debug)]
pub struct Command {
    /// As it is written.
    pub name: &'static str,
    /// The file with its results.
    pub results: &'static str,
    /// Files that people are pointed to, and what is in them.
    pub files: &'static [(&'static str, &'static str)],
}

/// `negscale train`.
pub const TRAIN: Command = Command {
    name: "train",
    results: RESULTS,
    files: &[("report", "report.html"), ("labels", "audit.csv"), ("model", "model.safetensors")],
};

/// A run that is over, its files written.
pub struct Done {
    /// Its settings.
    pub recipe: Recipe,
    /// Its data.
    pub material: Material,
    /// Where it is.
    pub folder: RunFolder,
    /// The trainer and its records.
    pub trained: Trained,
    /// Its results.
    pub summary: Summary,
    /// Those of the baseline, if one was trained.
    pub baseline: Option<Summary>,
}

/// What there is to show of a finished run, whether it was finished now or before.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The content of its file of results.
    pub results: serde_json::Value,
    /// A summary for people.
    pub words: String,
    /// Where it is.
    pub place: PathBuf,
}

/// Trains with these settings on this data, and writes everything to a folder: `out`, or one in `runs` named after what the run
/// is.
///
/// `watch` is called with what happens (`&mut ()` for no callbacks), and `stop` ends the run cleanly.
///
/// # Errors
/// Settings or data that do not fit, a folder that holds something else, a full disk; [`Error::Stopped`](crate::Error::Stopped) after a stop.
pub fn train(
    recipe: Recipe,
    splits: Splits,
    out: Option<PathBuf>,
    options: RunOptions,
    watch: &mut dyn Watch,
    stop: &Stop,
) -> Result<Finished> {
    carry_out(&TRAIN, recipe, splits, out, options, watch, stop, |done| {
        Ok(table::render(&done.summary, done.baseline.as_ref()))
    })
}

/// Trains to the end, unless that was done before. `describe` writes what the command adds to a run's files, and gives the
/// account for people.
#[allow(clippy::too_many_arguments)]
pub(crate) fn carry_out(
    command: &'static Command,
    recipe: Recipe,
    splits: Splits,
    out: Option<PathBuf>,
    options: RunOptions,
    watch: &mut dyn Watch,
    stop: &Stop,
    describe: impl FnOnce(&Done) -> Result<String> + Send,
) -> Result<Finished> {
    let place = out.unwrap_or_else(|| folder::default_place(&recipe));
    folder::keep_apart(&place, &recipe.data.own_files())?;
    let preparation = Preparation::measure(&splits.train, recipe.data.side.map(|side| (side, side)))?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(recipe.train.threads).build();
    let pool = pool.context("cannot start threads")?;
    // Inside the pool: then a parallel step wakes the other threads only.
    pool.install(|| {
        let material = Material::prepare(&recipe, splits, preparation)?;
        // Before there is a folder: a plug-in that could do nothing is refused.
        let coverage = recipe.pair_coverage(material.train.classes())?;
        let folder = RunFolder::open(command.name, &place, &recipe, &material, options.fresh)?;
        watch.open(&recipe, coverage.as_ref(), &material, &folder);
        let words = match finished_before(command, &folder, options.keep)? {
            Some(words) => {
                watch.complete(recipe.train.epochs);
                words
            }
            None => {
                let done = train_all(recipe, material, folder, options, watch, stop)?;
                watch.clear();
                let words = describe(&done)?;
                done.folder.finish(&words)?;
                if options.keep == Keep::Results {
                    done.folder.slim()?;
                }
                words
            }
        };
        Ok(Finished { results: read_results(&place, command)?, words, place })
    })
}

/// What was printed when the run was finished, if it is.
fn finished_before(command: &Command, folder: &RunFolder, keep: Keep) -> Result<Option<String>> {
    let products = if keep == Keep::All { &folder::PRODUCTS[..] } else { &[] };
    let words = folder.finished(command.results, products)?;
    if words.is_some() {
        // It may have been stopped between its last file and this.
        folder.remove_checkpoints()?;
        if keep == Keep::Results {
            folder.slim()?;
        }
    }
    Ok(words)
}

/// The file of results, which knows where it is now.
pub(crate) fn read_results(place: &Path, command: &Command) -> Result<serde_json::Value> {
    let path = place.join(command.results);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut results: serde_json::Value = serde_json::from_str(&text)
        .with_context(|| format!("{} is damaged; train the run again with --fresh", path.display()))?;
    results["out"] = place.display().to_string().into();
    Ok(results)
}

fn train_all(
    recipe: Recipe,
    material: Material,
    folder: RunFolder,
    options: RunOptions,
    watch: &mut dyn Watch,
    stop: &Stop,
) -> Result<Done> {
    let keep = options.keep;
    write_left_out(&folder, &material.splits)?;
    let trained = train_one(&recipe, &material, &folder, options, watch, stop)?;
    let summary = products::write_all(&folder, &recipe, &material, &trained, keep)?;
    let baseline = match recipe.of_baseline() {
        Some(baseline) => {
            let place = folder.file(folder::BASELINE);
            let within = RunFolder::open(folder.verb, &place, &baseline, &material, false)?;
            watch.begin_baseline(&baseline);
            let trained = train_one(&baseline, &material, &within, options, watch, stop)?;
            let summary = products::write_all(&within, &baseline, &material, &trained, keep)?;
            if keep == Keep::Results {
                within.slim()?;
            }
            Some(summary)
        }
        None => None,
    };
    if baseline.is_some() {
        if keep == Keep::All {
            products::write_report(&folder, &material, &trained, &summary, baseline.as_ref())?;
        }
        products::write_results(&folder, &summary, baseline.as_ref())?;
    }
    Ok(Done { recipe, material, folder, trained, summary, baseline })
}

/// Lists the items that were skipped because they cannot be read.
fn write_left_out(folder: &RunFolder, splits: &Splits) -> Result<()> {
    if splits.left_out.is_empty() {
        return Ok(());
    }
    let mut table = csv::Writer::from_writer(Vec::new());
    write_row(&mut table, ["path", "reason"])?;
    for failure in &splits.left_out {
        write_row(&mut table, [&failure.place(), &failure.reason])?;
    }
    let bytes = table.into_inner().context("cannot list the skipped items")?;
    folder::write(&folder.file("skipped.csv"), &bytes)
}

/// Reports which pairs the plug-in finds, if that is known by now; returns whether it is.
fn tell_pairs(watch: &mut dyn Watch, trainer: &Trainer) -> bool {
    trainer.pair_coverage().inspect(|coverage| watch.pairs(coverage)).is_some()
}

/// Trains one run to its end, or to where it is told to stop.
fn train_one(
    recipe: &Recipe,
    material: &Material,
    folder: &RunFolder,
    options: RunOptions,
    watch: &mut dyn Watch,
    stop: &Stop,
) -> Result<Trained> {
    let task = material.task(recipe)?;
    let make = || Ok(Trainer::new(task.clone(), recipe.train.clone())?);
    let (mut trainer, mut notes) = folder.restore(make)?;
    if !trainer.is_finished() {
        let has_begun = trainer.batches_done() > 0;
        notes.extend(instructions::enter(&folder.file("settings.toml"), &recipe.train.device, has_begun)?);
    }
    notes.iter().for_each(|note| watch.note(note));
    let (mut journal, mut records) = folder.journal(trainer.epochs_done())?;
    trainer.set_stop_flag(stop.flag());
    watch.begin(&trainer, &records);
    let mut are_pairs_known = tell_pairs(watch, &trainer);
    let mut saved = Instant::now();
    let (mut shown, mut cost) = (Instant::now(), Duration::ZERO);
    while !trainer.is_finished() {
        match trainer.epoch(|progress| watch.batch(&progress))? {
            EpochEnd::Finished(record) => {
                folder.keep(journal.append(&record), &trainer)?;
                // A run that goes on from an older checkpoint writes the records since then again, the same ones.
                let is_due = match trainer.is_finished() {
                    true => options.keep == Keep::All,
                    false => saved.elapsed() >= options.checkpoint_every || stop.is_asked(),
                };
                if is_due {
                    folder.keep(folder.save(&trainer), &trainer)?;
                    saved = Instant::now();
                }
                records.push(*record);
                // All records are written each time, so in long runs not after every epoch.
                let is_time = stop.is_asked() || shown.elapsed() >= EVENTS * cost;
                if options.keep == Keep::All && is_time && !trainer.is_finished() {
                    let begun = Instant::now();
                    folder.keep(folder.write_events(&records), &trainer)?;
                    (shown, cost) = (Instant::now(), begun.elapsed());
                }
                watch.epoch(&records)?;
                // A tree that is learnt grows with the first epoch.
                are_pairs_known = are_pairs_known || tell_pairs(watch, &trainer);
            }
            EpochEnd::Stopped => folder.keep(folder.save(&trainer), &trainer)?,
        }
        if !trainer.is_finished() {
            stop.check()?;
        }
    }
    // Also of a run that was killed between its last checkpoint and this.
    if options.keep == Keep::All {
        folder.keep(folder.write_events(&records), &trainer)?;
    }
    if records.len() != recipe.train.epochs {
        bail!(
            "{}: {} records for {} epochs; start over with --fresh",
            folder.place().display(),
            records.len(),
            recipe.train.epochs
        );
    }
    Ok(Trained { trainer, records })
}
