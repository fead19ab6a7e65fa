//! `negscale audit fit`, `score` and `merge`, and `negscale audit --memory`: an audit of rows that do not fit into memory.

use crate::audit::TooMany;
use crate::audit::tell_next;
use crate::settings::Choices;
use crate::source::Own;
use crate::train::Signals;
use crate::train::screen::OutputMode;
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use negscale_run::audit::parts::{self, FILES, FitOptions, Merged, ShardNumber, Step, Work};
use negscale_run::audit::{describe_check, estimate};
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// A part of an audit of rows that do not fit into memory.
#[derive(clap::Subcommand)]
pub enum Part {
    Fit(Box<Fit>),
    Score(Score),
    Merge(Merge),
}

/// How much is printed.
#[derive(clap::Args)]
struct Output {
    /// Print nothing but errors.
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Print one JSON object on one line, and nothing else.
    #[arg(long)]
    json: bool,
}

impl Output {
    fn mode(&self) -> OutputMode {
        OutputMode::new(self.quiet, self.json)
    }
}

/// First part: fit models to a sample of the rows, and write them into a folder.
///
/// DATA is an .npy or .parquet file, or a folder of such files in the order of their names. Rows are read when they are needed.
#[derive(clap::Args)]
pub struct Fit {
    /// Rows to audit: .npy or .parquet, a file or a folder of them.
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// Folder for models, scores and results.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Memory that all parts may take, such as 1GiB; half of it is for the sample.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<u64>,
    /// Rows that models are fitted to [default: as many as fit into half of --memory, at most 200000].
    #[arg(long, value_name = "ROWS")]
    sample: Option<u64>,
    /// Random seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Start over, even if the folder holds scores of other models.
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    own: Own,
    #[command(flatten)]
    output: Output,
}

/// Second part: score one of N shards of the rows. Shards can be scored one after another or at once, here or on other machines.
#[derive(clap::Args)]
pub struct Score {
    /// Folder of the models.
    #[arg(value_name = "FOLDER")]
    out: PathBuf,
    /// Which of how many shards, such as 2/8.
    #[arg(long, value_name = "K/N")]
    shard: ShardNumber,
    /// Where the rows are, if not where they were for the fit.
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// Third part: put the shards together: audit.csv, top.csv, corrected.csv, audit.json and report.html.
#[derive(clap::Args)]
pub struct Merge {
    /// Folder of models and shards.
    #[arg(value_name = "FOLDER")]
    out: PathBuf,
    /// Where the rows are, if not where they were for the fit; only looked at for ids.
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// A number of bytes such as 512MiB or 1.5GB.
pub fn bytes(text: &str) -> Result<u64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1u64,
        "kib" | "k" => 1 << 10,
        "mib" | "m" => 1 << 20,
        "gib" | "g" => 1 << 30,
        "tib" | "t" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err("it must be a number of bytes, such as 512MiB or 2GB".into()),
    };
    let number: f64 = number.parse().map_err(|_| "it must be a number of bytes, such as 512MiB or 2GB")?;
    let all = number * factor as f64;
    if (1.0..1e18).contains(&all) { Ok(all as u64) } else { Err("it must be from 1 byte to 10^18".into()) }
}

/// A bar on a terminal, nothing elsewhere.
struct Screen(ProgressBar);

impl Screen {
    fn new(mode: OutputMode) -> Self {
        let bar = if mode == OutputMode::People && std::io::stderr().is_terminal() {
            ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr())
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:30.cyan/blue} {elapsed}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    fn show(&self, step: Step, share: f64) {
        self.0.set_prefix(match step {
            Step::Read => "reading the sample".to_owned(),
            Step::Fit => "fitting models".to_owned(),
            Step::Score(shard) => format!("scoring shard {shard}"),
            Step::Merge => "writing lists".to_owned(),
        });
        self.0.set_position((1000.0 * share) as u64);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Runs a part.
pub fn run(part: Part) -> Result<()> {
    match part {
        Part::Fit(arguments) => fit(*arguments),
        Part::Score(arguments) => score(&arguments),
        Part::Merge(Merge { out, data, output }) => {
            let (mode, signals) = (output.mode(), Signals::listen()?);
            let screen = Screen::new(mode);
            let merged =
                parts::merge(&out, data.as_deref(), &|step, share| screen.show(step, share), signals.stop())?;
            drop(screen);
            print(&merged, mode)
        }
    }
}

fn fit(arguments: Fit) -> Result<()> {
    let Fit { data, out, memory, sample, seed, fresh, own, output } = arguments;
    let (mode, signals) = (output.mode(), Signals::listen()?);
    let options = FitOptions { memory, sample, seed, fresh };
    let screen = Screen::new(mode);
    let fitted = parts::fit(
        &data,
        &own.options(),
        &options,
        &out,
        &|step, share| screen.show(step, share),
        signals.stop(),
    )?;
    drop(screen);
    let (about, rows) = (fitted.model.about(), fitted.stream.rows());
    match mode {
        OutputMode::Quiet => {}
        OutputMode::Json => say!(
            "{}",
            json!({ "rows": rows, "sample": about.estimate, "flagged_from": about.cut_off, "kept": fitted.is_kept })
        ),
        OutputMode::People => {
            fitted.stream.notes().iter().for_each(|note| eprintln!("note: {note}"));
            let kept = if fitted.is_kept { ", as before" } else { "" };
            say!("models of {} of {rows} rows are in {}{kept}", about.estimate.rows, out.display());
            match &about.estimate.cannot_judge {
                Some(why) => say!("the labels cannot be judged: {why}"),
                None => say!(
                    "estimated share of wrong labels in the sample: {:.1} %",
                    100.0 * about.estimate.rate
                ),
            }
            say!("next: negscale audit score {} --shard K/N, for every K", out.display());
        }
    }
    Ok(())
}

fn score(arguments: &Score) -> Result<()> {
    let Score { out, shard, data, output } = arguments;
    let (mode, signals) = (output.mode(), Signals::listen()?);
    let screen = Screen::new(mode);
    let tell = |step, share| screen.show(step, share);
    let done = parts::score(out, data.as_deref(), *shard, &tell, signals.stop())?;
    drop(screen);
    let counts = done.manifest.counts.all();
    let is_kept = done.work == Work::Kept;
    match mode {
        OutputMode::Quiet => {}
        OutputMode::Json => {
            let numbers = (shard.number(), shard.of());
            say!(
                "{}",
                json!({ "shard": numbers.0, "of": numbers.1, "rows": counts.rows, "flagged": counts.flagged, "kept": is_kept })
            );
        }
        OutputMode::People => {
            let kept = if is_kept { ", as before" } else { "" };
            say!("shard {shard}: {} of {} labels are flagged{kept}", counts.flagged, counts.rows);
        }
    }
    Ok(())
}

/// Refuses what belongs to training a network; `flag` is what asked for an audit in parts.
pub fn check_rows_only(flag: &str, choices: &Choices) -> Result<()> {
    let Choices { recipe, set, noise, host, plugin, net, epochs, device, .. } = choices;
    let texts = [noise, host, plugin, net, device];
    if recipe.is_some() || !set.is_empty() || texts.iter().any(|text| text.is_some()) || epochs.is_some() {
        bail!(
            "{flag} audits rows of numbers without training a network: recipes, --set, --noise, --host, --plugin, --net, --epochs and \
             --device mean nothing to it; leave them out"
        );
    }
    Ok(())
}

/// All parts one after another.
pub fn whole(
    choices: &Choices,
    memory: u64,
    out: Option<&Path>,
    fresh: bool,
    check: Option<f64>,
    mode: OutputMode,
) -> Result<()> {
    check_rows_only("--memory", choices)?;
    let Choices { data, own, .. } = choices;
    let data =
        data.as_deref().context("--memory needs data: an .npy or .parquet file, or a folder of them")?;
    let out = out.context("--memory needs a folder for models, scores and results: name it with --out")?;
    let options =
        FitOptions { memory: Some(memory), sample: None, seed: choices.seed.map_or(1, u64::from), fresh };
    let signals = Signals::listen()?;
    let screen = Screen::new(mode);
    let tell = |step, share| screen.show(step, share);
    let mut merged = parts::whole(Path::new(data), &own.options(), &options, out, &tell, signals.stop())?;
    drop(screen);
    let found = check.and_then(|most| Some((most, estimate(&merged.results)?)));
    if let Some((most, (rate, high))) = found {
        merged.results["check"] = json!({ "most": most, "passed": rate <= most });
        merged.words.push_str(&describe_check(most, rate, high));
    }
    print(&merged, mode)?;
    match found {
        Some((most, (rate, _))) if rate > most => Err(TooMany(rate, most).into()),
        _ => Ok(()),
    }
}

fn print(merged: &Merged, mode: OutputMode) -> Result<()> {
    match mode {
        OutputMode::Quiet => {}
        OutputMode::Json => say!("{}", merged.results),
        OutputMode::People => {
            merged.notes.iter().for_each(|note| eprintln!("note: {note}"));
            say!("{}", merged.words);
            for (what, name) in FILES {
                say!("{what:<9}  {}", merged.place.join(name).display());
            }
        }
    }
    tell_next(&merged.place, &merged.results, mode)
}
