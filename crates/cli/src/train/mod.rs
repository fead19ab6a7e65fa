//! `negscale train`: trains, shows progress, and leaves a model, a list of wrong labels and a report.

pub(crate) mod screen;
mod signals;

pub(crate) use signals::Signals;

use crate::settings::Choices;
use crate::source::open_to_learn;
use anyhow::Result;
use negscale_run::{Command, Finished, RunOptions, TRAIN};
use screen::{Look, Screen};
use std::path::PathBuf;
use std::time::Duration;

/// Train on data whose labels may be wrong: model, wrong labels and report come out.
///
/// Without arguments: the built-in subset of Fashion-MNIST, half of its labels resampled. Settings come from RECIPE (a TOML file), --set
/// and the options below, later ones winning; `negscale config explain` lists them all. Run the same command again to resume after a stop.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    choices: Choices,
    /// Folder of the run; without it, one below `runs` named by data, noise, method and settings.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Start over, even if the folder holds a run that could be resumed.
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
    let look = Look::new(quiet, json);
    let signals = Signals::listen()?;
    if stop_with_input {
        signals.listen_to_input();
    }
    let checkpoint_every = Duration::from_secs(checkpoint_every);
    let options = RunOptions { fresh, keep: keep.into(), checkpoint_every };
    let done = negscale_run::train(recipe, splits, out, options, &mut Screen::new(look), signals.stop())?;
    print(&done, &TRAIN, look)
}

/// Prints a finished run, in the look that was asked for.
pub(crate) fn print(done: &Finished, command: &Command, look: Look) -> Result<()> {
    match look {
        Look::Quiet => {}
        Look::Json => say!("{}", done.results),
        Look::People => {
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
