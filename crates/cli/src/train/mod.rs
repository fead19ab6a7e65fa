//! `negscale train`: trains, shows progress, and leaves a model, a list of wrong labels and a report.
//!
//! A run lives in a folder of plain files. Running the same command again goes on where it stopped, to the same bits on CPUs with the
//! same instructions.

pub(crate) mod clock;
pub(crate) mod finish;
pub(crate) mod folder;
mod instructions;
pub(crate) mod screen;
mod table;

pub(crate) use finish::name;

use crate::settings::Choices;
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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

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
    /// Everything: model, ledger, audit, report, events, checkpoints.
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

/// A signal that ended the run in good order.
#[derive(Debug, thiserror::Error)]
#[error("stopped by signal {0}; run the same command again to go on")]
pub struct Stopped(pub usize);

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

/// What is to be trained, and where.
pub(crate) struct Job {
    /// The verb that asks for it, as it is written.
    pub verb: &'static str,
    pub recipe: Recipe,
    pub splits: Splits,
    /// Folder of the run; without it, one named by what it is.
    pub out: Option<PathBuf>,
    pub habits: Habits,
    pub look: Look,
}

/// A run that is over, all its files written.
pub(crate) struct Done {
    pub recipe: Recipe,
    pub material: Material,
    pub folder: Folder,
    pub trained: Trained,
    pub summary: Summary,
    pub baseline: Option<Summary>,
    pub screen: Screen,
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let layers = arguments.choices.layers()?;
    let splits = layers.data()?.open()?;
    let recipe = layers.resolve_for(&splits.train)?;
    let look = match (arguments.quiet, arguments.json) {
        (true, _) => Look::Quiet,
        (_, true) => Look::Json,
        _ => Look::People,
    };
    let Arguments { out, fresh, keep, checkpoint_every, stop_with_input, .. } = arguments;
    let checkpoint_every = Duration::from_secs(checkpoint_every);
    let habits = Habits { fresh, keep, checkpoint_every, stop_with_input };
    carry_out(Job { verb: "train", recipe, splits, out, habits, look }, |done| {
        done.screen.close(&done.summary, done.baseline.as_ref(), &done.folder)
    })
}

/// Trains to the end and hands over what came of it, inside the pool of threads that it was made in.
pub(crate) fn carry_out<T: Send>(job: Job, then: impl FnOnce(Done) -> Result<T> + Send) -> Result<T> {
    let Job { verb, recipe, splits, out, habits, look } = job;
    let preparation = Preparation::measure(&splits.train, recipe.data.side.map(|side| (side, side)))?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(recipe.train.threads).build();
    let pool = pool.context("cannot start threads")?;
    // Inside the pool: then a parallel step wakes the other threads only.
    pool.install(|| {
        let material = prepare(&recipe, splits, preparation)?;
        let place = out.unwrap_or_else(|| folder::default_place(&recipe));
        then(train_all(verb, recipe, material, &place, habits, Screen::new(look))?)
    })
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
    verb: &'static str,
    recipe: Recipe,
    material: Material,
    place: &Path,
    habits: Habits,
    mut screen: Screen,
) -> Result<Done> {
    let Habits { fresh, keep, .. } = habits;
    let signals = Signals::listen()?;
    if habits.stop_with_input {
        signals.listen_to_input();
    }
    // Before there is a folder: a plug-in that could do nothing is refused.
    let reach = recipe.reach(material.train.classes())?;
    let folder = Folder::open(verb, place, &recipe, &material, fresh)?;
    screen.open(&recipe, reach.as_ref(), &material, &folder);
    let trained = train(&recipe, &material, &folder, habits, &mut screen, &signals)?;
    let summary = finish::write_all(&folder, &recipe, &material, &trained, keep)?;
    let baseline = match recipe.of_baseline() {
        Some(baseline) => {
            let within = Folder::open(verb, &place.join("baseline"), &baseline, &material, fresh)?;
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
    if keep == Keep::Results {
        folder.slim()?;
    }
    Ok(Done { recipe, material, folder, trained, summary, baseline, screen })
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
    trainer.set_stop_flag(signals.asked.clone());
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

/// SIGINT and SIGTERM ask for an end in good order; a second one ends at once.
pub(crate) struct Signals {
    number: Arc<AtomicUsize>,
    asked: Arc<AtomicBool>,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        let (number, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let refused = "cannot listen to signals";
            let code = 128 + signal;
            signal_hook::flag::register_conditional_shutdown(signal, code, asked.clone()).context(refused)?;
            signal_hook::flag::register_usize(signal, number.clone(), signal as usize).context(refused)?;
            signal_hook::flag::register(signal, asked.clone()).context(refused)?;
        }
        Ok(Self { number, asked })
    }

    /// The end of standard input asks for an end in good order as well, as SIGTERM does.
    fn listen_to_input(&self) {
        let (number, asked) = (self.number.clone(), self.asked.clone());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            number.store(signal_hook::consts::SIGTERM as usize, Relaxed);
            asked.store(true, Relaxed);
        });
    }

    /// Whether there was one.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// The error that tells of the signal, if there was one.
    pub(crate) fn check(&self) -> Result<()> {
        match self.number.load(Relaxed) {
            0 => Ok(()),
            number => Err(Stopped(number).into()),
        }
    }
}
