//! `negscale train`: trains, shows progress, and leaves a model, a list of wrong labels and a report.
//!
//! A run lives in a folder of plain files. Running the same command again goes on where it stopped, to the same bits on CPUs with the
//! same instructions.

pub(crate) mod clock;
pub(crate) mod finish;
pub(crate) mod folder;
mod instructions;
pub(crate) mod screen;
mod signals;
mod table;

pub(crate) use finish::name;
pub(crate) use signals::{Signals, Stopped};

use crate::settings::Choices;
use crate::source::open_to_learn;
use crate::table::write_row;
use anyhow::{Context, Result, bail};
use finish::Summary;
use folder::Folder;
use negscale_data::{Dataset, Noise, Splits, noise};
use negscale_learn::model::Preparation;
use negscale_learn::recipe::Recipe;
use negscale_learn::trainer::{Outcome, Task, Trainer};
use negscale_report::EpochRecord;
use screen::{Look, Screen};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file of results, of every run.
pub(crate) const RESULTS: &str = "results.json";

/// Train on data whose labels may be wrong: model, wrong labels and report come out.
///
/// Without arguments: the built-in subset of Fashion-MNIST, half of its labels drawn anew. Settings come from RECIPE (a TOML file), --set
/// and the options below, later ones winning; `negscale config explain` lists them all. Run the same command again to go on after a stop.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    choices: Choices,
    /// Folder of the run; without it, one below `runs` named by data, noise, method and settings.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Begin anew, even if the folder holds a run that could go on.
    #[arg(long)]
    fresh: bool,
    /// What stays of a finished run.
    #[arg(long, value_enum, default_value_t = Keep::All)]
    keep: Keep,
    /// Save a checkpoint after the first epoch that ends this long after the last; 0: after every epoch.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    checkpoint_every: u64,
    /// End in good order when standard input does: so a sweep stops its runs, even by its own end.
    #[arg(long, hide = true)]
    stop_with_input: bool,
    /// Say nothing but errors.
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// One JSON object per epoch, and a last one with the results.
    #[arg(long)]
    json: bool,
}

/// What stays of a finished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Keep {
    /// Everything: model, ledger, audit, report, events.
    All,
    /// Settings, metrics, tree and results only; the others are not even written.
    Results,
}

/// How a run is kept.
#[derive(Clone, Copy)]
pub(crate) struct Habits {
    pub fresh: bool,
    pub keep: Keep,
    pub checkpoint_every: Duration,
    pub stop_with_input: bool,
}

/// The data of a run, ready to be learnt from.
pub(crate) struct Material {
    pub train: Dataset,
    pub splits: Splits,
    pub noise: Option<Noise>,
    pub fingerprint: String,
    pub preparation: Preparation,
}

/// What came of a run.
pub(crate) struct Trained {
    pub trainer: Trainer,
    pub records: Vec<EpochRecord>,
}

/// A command that trains: what it leaves, and what it shows at the end.
pub(crate) struct Verb {
    /// As it is written.
    pub name: &'static str,
    /// The file with its results, which `--json` prints.
    pub results: &'static str,
    /// Files that people are pointed to, and what is in them.
    pub files: &'static [(&'static str, &'static str)],
}

/// This one.
const TRAIN: Verb = Verb {
    name: "train",
    results: RESULTS,
    files: &[("report", "report.html"), ("labels", "audit.csv"), ("model", "model.safetensors")],
};

/// What is to be trained, and where.
pub(crate) struct Job {
    /// The command that asks for it.
    pub verb: &'static Verb,
    pub recipe: Recipe,
    pub splits: Splits,
    /// Folder of the run; without it, one named by what it is.
    pub out: Option<PathBuf>,
    pub habits: Habits,
    pub look: Look,
}

/// A run that is over, its files written.
pub(crate) struct Done {
    pub recipe: Recipe,
    pub material: Material,
    pub folder: Folder,
    pub trained: Trained,
    pub summary: Summary,
    pub baseline: Option<Summary>,
    pub screen: Screen,
}

/// What there is to show of a finished run, whether it was finished now or before.
pub(crate) struct Shown {
    /// The content of its file of results.
    pub results: serde_json::Value,
    /// An account for people.
    pub words: String,
    /// Where it is.
    pub place: PathBuf,
}

impl Shown {
    /// Prints it, in the look that was asked for.
    pub fn print(&self, verb: &Verb, look: Look) -> Result<()> {
        match look {
            Look::Quiet => {}
            Look::Json => say!("{}", self.results),
            Look::People => {
                say!("\n{}", self.words);
                let width = verb.files.iter().map(|(what, _)| what.len()).max().unwrap_or(0);
                let there = verb.files.iter().map(|(what, name)| (what, self.place.join(name)));
                for (what, path) in there.filter(|(_, path)| path.exists()) {
                    say!("{what:<width$}  {}", path.display());
                }
            }
        }
        Ok(())
    }
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let layers = arguments.choices.layers()?;
    let splits = open_to_learn(&layers.data()?, arguments.quiet)?;
    let recipe = layers.resolve_for(&splits.train)?;
    let look = match (arguments.quiet, arguments.json) {
        (true, _) => Look::Quiet,
        (_, true) => Look::Json,
        _ => Look::People,
    };
    let Arguments { out, fresh, keep, checkpoint_every, stop_with_input, .. } = arguments;
    let checkpoint_every = Duration::from_secs(checkpoint_every);
    let habits = Habits { fresh, keep, checkpoint_every, stop_with_input };
    let shown = carry_out(Job { verb: &TRAIN, recipe, splits, out, habits, look }, |done| {
        Ok(table::render(&done.summary, done.baseline.as_ref()))
    })?;
    shown.print(&TRAIN, look)
}

/// Trains to the end, unless that was done before. `describe` writes what the command adds to a run's files, and gives the
/// account for people.
pub(crate) fn carry_out(job: Job, describe: impl FnOnce(&Done) -> Result<String> + Send) -> Result<Shown> {
    let Job { verb, recipe, splits, out, habits, look } = job;
    let place = out.unwrap_or_else(|| folder::default_place(&recipe));
    folder::keep_apart(&place, &recipe.data.own_files())?;
    let preparation = Preparation::measure(&splits.train, recipe.data.side.map(|side| (side, side)))?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(recipe.train.threads).build();
    let pool = pool.context("cannot start threads")?;
    // Inside the pool: then a parallel step wakes the other threads only.
    pool.install(|| {
        let material = prepare(&recipe, splits, preparation)?;
        // Before there is a folder: a plug-in that could do nothing is refused.
        let coverage = recipe.pair_coverage(material.train.classes())?;
        let folder = Folder::open(verb.name, &place, &recipe, &material, habits.fresh)?;
        let screen = Screen::new(look);
        screen.open(&recipe, coverage.as_ref(), &material, &folder);
        let words = match finished_before(verb, &folder, habits.keep)? {
            Some(words) => {
                screen.complete(recipe.train.epochs);
                words
            }
            None => {
                let done = train_all(recipe, material, folder, habits, screen)?;
                done.screen.clear();
                let words = describe(&done)?;
                done.folder.finish(&words)?;
                if habits.keep == Keep::Results {
                    done.folder.slim()?;
                }
                words
            }
        };
        Ok(Shown { results: read_results(&place, verb)?, words, place })
    })
}

/// What was printed when the run was finished, if it is.
fn finished_before(verb: &Verb, folder: &Folder, keep: Keep) -> Result<Option<String>> {
    let products = if keep == Keep::All { &folder::PRODUCTS[..] } else { &[] };
    let words = folder.finished(verb.results, products)?;
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
fn read_results(place: &Path, verb: &Verb) -> Result<serde_json::Value> {
    let path = place.join(verb.results);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut results: serde_json::Value = serde_json::from_str(&text)
        .with_context(|| format!("{} is damaged; --fresh trains the run again", path.display()))?;
    results["out"] = place.display().to_string().into();
    Ok(results)
}

/// Lays the noise over the data and fingerprints it.
pub(crate) fn prepare(recipe: &Recipe, splits: Splits, preparation: Preparation) -> Result<Material> {
    let fingerprint = splits.train.fingerprint()?;
    let is_noisy = recipe.data.noise != negscale_data::NoiseSpec::None;
    let noise = is_noisy.then(|| {
        let context = recipe.data.noise_context();
        noise::apply(&recipe.data.noise, &splits.train, recipe.data.noise_seed, &context)
    });
    let mut noise = noise.transpose()?;
    let mut train = match &noise {
        Some(noise) => splits.train.with_noise(noise.labels.clone())?,
        None => splits.train.clone(),
    };
    // After the noise: tables of it have a line for every sample.
    if let Some(samples) = recipe.data.samples {
        train = train.sample(samples)?;
        if let (Some(noise), Some(achieved)) = (&mut noise, finish::noise_rate(&train)) {
            noise.achieved = achieved;
        }
    }
    Ok(Material { train, splits, noise, fingerprint, preparation })
}

fn train_all(
    recipe: Recipe,
    material: Material,
    folder: Folder,
    habits: Habits,
    mut screen: Screen,
) -> Result<Done> {
    let keep = habits.keep;
    let signals = Signals::listen()?;
    if habits.stop_with_input {
        signals.listen_to_input();
    }
    write_left_out(&folder, &material.splits)?;
    let trained = train(&recipe, &material, &folder, habits, &mut screen, &signals)?;
    let summary = finish::write_all(&folder, &recipe, &material, &trained, keep)?;
    let baseline = match recipe.of_baseline() {
        Some(baseline) => {
            let place = folder.file(folder::BASELINE);
            let within = Folder::open(folder.verb, &place, &baseline, &material, false)?;
            screen.begin_baseline(&baseline);
            let trained = train(&baseline, &material, &within, habits, &mut screen, &signals)?;
            let summary = finish::write_all(&within, &baseline, &material, &trained, keep)?;
            if keep == Keep::Results {
                within.slim()?;
            }
            Some(summary)
        }
        None => None,
    };
    if baseline.is_some() {
        if keep == Keep::All {
            finish::write_report(&folder, &material, &trained, &summary, baseline.as_ref())?;
        }
        finish::write_results(&folder, &summary, baseline.as_ref())?;
    }
    Ok(Done { recipe, material, folder, trained, summary, baseline, screen })
}

/// Lists the items that were left out because they cannot be read.
fn write_left_out(folder: &Folder, splits: &Splits) -> Result<()> {
    if splits.left_out.is_empty() {
        return Ok(());
    }
    let mut table = csv::Writer::from_writer(Vec::new());
    write_row(&mut table, ["path", "reason"])?;
    for failure in &splits.left_out {
        write_row(&mut table, [&failure.place(), &failure.reason])?;
    }
    let bytes = table.into_inner().context("cannot list what was left out")?;
    folder::write(&folder.file("skipped.csv"), &bytes)
}

/// Trains one run to its end, or to where it is told to stop.
fn train(
    recipe: &Recipe,
    material: &Material,
    folder: &Folder,
    habits: Habits,
    screen: &mut Screen,
    signals: &Signals,
) -> Result<Trained> {
    let task = Task {
        train: material.train.clone(),
        test: material.splits.test.clone(),
        second_test: material.splits.second_test.clone(),
        preparation: material.preparation.clone(),
        tree: recipe.data.tree_for(material.train.classes())?,
        noise: recipe.data.noise.clone(),
    };
    let make = || Ok(Trainer::new(task.clone(), recipe.train.clone())?);
    let (mut trainer, mut notes) = folder.restore(make)?;
    if !trainer.is_finished() {
        notes.extend(instructions::enter(&folder.file("settings.toml"), trainer.batches_done() > 0)?);
    }
    notes.iter().for_each(|note| screen.note(note));
    let (mut journal, mut records) = folder.journal(trainer.epochs_done())?;
    trainer.set_stop_flag(signals.flag());
    screen.begin(&trainer, &records);
    let mut is_told = screen.pairs(&trainer);
    let mut saved = Instant::now();
    while !trainer.is_finished() {
        match trainer.epoch(|progress| screen.batch(&progress))? {
            Outcome::Finished(record) => {
                folder.keep(journal.append(&record), &trainer)?;
                // A run that goes on from an older checkpoint writes the records since then again, the same ones.
                let is_due = match trainer.is_finished() {
                    true => habits.keep == Keep::All,
                    false => saved.elapsed() >= habits.checkpoint_every || signals.is_asked(),
                };
                if is_due {
                    folder.keep(folder.save(&trainer), &trainer)?;
                    saved = Instant::now();
                }
                records.push(*record);
                if habits.keep == Keep::All {
                    folder.keep(folder.write_events(&records), &trainer)?;
                }
                screen.epoch(&records)?;
                // A tree that is learnt grows with the first epoch.
                is_told = is_told || screen.pairs(&trainer);
            }
            Outcome::Stopped => folder.keep(folder.save(&trainer), &trainer)?,
        }
        if !trainer.is_finished() {
            signals.check()?;
        }
    }
    if records.len() != recipe.train.epochs {
        bail!(
            "{}: {} records for {} epochs; start again with --fresh",
            folder.place().display(),
            records.len(),
            recipe.train.epochs
        );
    }
    Ok(Trained { trainer, records })
}
