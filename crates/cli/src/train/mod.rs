//! `negscale train`: trains, shows progress, and writes a model, a list of wrong labels and a report.

pub(crate) mod screen;
mod signals;

pub(crate) use signals::Signals;

use crate::settings::Choices;
use crate::source::open_to_learn;
use anyhow::Result;
use negscale_run::{Command, Finished, RunOptions, TRAIN};
use screen::{OutputMode, Screen};
use std::path::PathBuf;
use std::time::Duration;

/// Train on data whose labels may be wrong; writes a model, a list of wrong labels and a report.
///
/// Without arguments: the built-in subset of Fashion-MNIST with half of its labels resampled. Settings come from RECIPE (a TOML file), --set
/// and the options below; later ones win. `negscale config explain` lists them all. Run the same command again to resume after a stop.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    choices: Choices,
    /// Output folder [default: a folder in `runs` named after data, noise, method and settings].
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Start over, even if the folder holds a run that could be resumed.
    #[arg(long)]
    fresh: bool,
    /// What to keep of a finished run.
    #[arg(long, value_enum, default_value_t = Keep::All)]
    keep: Keep,
    /// Least time between two checkpoints; 0: save one after every epoch.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    checkpoint_every: u64,
    /// Stop cleanly when standard input ends; so a sweep stops its runs even if it is killed.
    #[arg(long, hide = true)]
    stop_with_input: bool,
    /// Print nothing but errors.
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Print one JSON object per epoch, and a last one with the results.
    #[arg(long)]
    json: bool,
}

/// What stays of a finished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Keep {
    /// Everything: model, ledger, audit, report, events.
    All,
    /// Settings, metrics, tree and results only; nothing else is written.
    Results,
}

impl From<Keep> for negscale_run::Keep {
    fn from(keep: Keep) -> Self {
        match keep {
            Keep::All => Self::All,
            Keep::Results => Self::Results,
        }
    }
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { choices, out, fresh, keep, checkpoint_every, stop_with_input, quiet, json } = arguments;
    let layers = choices.layers()?;
    let splits = open_to_learn(&layers.data()?, quiet)?;
    let recipe = layers.resolve_for(&splits.train)?;
    let mode = OutputMode::new(quiet, json);
    let signals = Signals::listen()?;
    if stop_with_input {
        signals.listen_to_input();
    }
    let checkpoint_every = Duration::from_secs(checkpoint_every);
    let options = RunOptions { fresh, keep: keep.into(), checkpoint_every };
    let done = negscale_run::train(recipe, splits, out, options, &mut Screen::new(mode), signals.stop())?;
    print(&done, &TRAIN, mode)
}

/// Prints a finished run, in the mode that was asked for.
pub(crate) fn print(done: &Finished, command: &Command, mode: OutputMode) -> Result<()> {
    match mode {
        OutputMode::Quiet => {}
        OutputMode::Json => say!("{}", done.results),
        OutputMode::People => {
            say!("\n{}", done.words);
            let width = command.files.iter().map(|(what, _)| what.len()).max().unwrap_or(0);
            let there = command.files.iter().map(|(what, name)| (what, done.place.join(name)));
            for (what, path) in there.filter(|(_, path)| path.exists()) {
                say!("{what:<width$}  {}", path.display());
            }
        }
    }
    Ok(())
}
