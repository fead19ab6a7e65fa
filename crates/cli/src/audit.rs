//! `negscale audit`: which labels are wrong, in one command.
//!
//! Features are judged by cross-fitting, pictures by an encoder and cross-fitting, or by a training run in a folder of the same kind as `negscale train`'s. Exit code 1 is a finding: more wrong labels than `--check` allows.

use crate::audit_cluster;
use crate::audit_parts::{self, Part};
use crate::cluster::Cluster;
use crate::settings::{Choices, as_text};
use crate::source::open_to_learn;
use crate::train::screen::{OutputMode, Screen};
use crate::train::{Signals, print};
use anyhow::{Context, Result, bail};
use negscale_run::audit::{self, AUDIT, defaults};
use negscale_run::recipe::Layers;
use negscale_run::{Finished, RunOptions};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Find wrong labels: rank all labels by models that never saw them, suggest corrections and estimate how many are wrong.
///
/// DATA is a known dataset or a path to your own data (as for --data), or a recipe (.toml). The output folder holds audit.csv (every
/// label, most suspicious first), corrected.csv (labels to train on), audit.json (figures) and report.html. Run the same command again
/// to resume after a stop. Exit codes: 0 success, 1 more wrong labels than --check allows, 2 error.
#[derive(clap::Args)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true, after_help = EXAMPLES, mut_arg("recipe", |data| data
    .index(1)
    .value_name("DATA")
    .help("Data to audit: a known dataset or a path; or a recipe (a TOML file of settings)")
    .long_help("Data to audit: a known dataset or a path; or a recipe (a TOML file of settings)")))]
pub struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    choices: Choices,
    /// Audit the built-in subset of Fashion-MNIST with half of its labels resampled, to see what an audit is like; takes minutes.
    #[arg(long, conflicts_with_all = ["recipe", "data"])]
    demo: bool,
    /// Output folder [default: a folder in `runs` named after data, noise, method and settings].
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Start over, even if the folder holds an audit that could be resumed.
    #[arg(long)]
    fresh: bool,
    /// Exit with 1 if the estimated share of wrong labels is above this (0.05: five in a hundred). The estimate itself decides, not
    /// its interval.
    #[arg(long, value_name = "MAX", value_parser = share)]
    check: Option<f64>,
    /// Predictions that you have: a file of N x C probabilities (.npy, .csv, .parquet) by models that did not train on the sample they predict.
    /// Then nothing is trained.
    #[arg(long, value_name = "FILE")]
    pred_probs: Option<PathBuf>,
    /// How pictures are judged: by what an encoder such as efficientnet-lite0 sees in them, or by training on their pixels (none)
    /// [default: the encoder, if `negscale data get efficientnet-lite0` has fetched it; for texts minilm].
    #[arg(long, value_name = "NAME|none")]
    encoder: Option<String>,
    /// Look for near-copies and outliers among more than 20,000 rows, too.
    #[arg(long)]
    neighbours: bool,
    /// Audit rows of numbers (.npy or .parquet) in parts that take no more memory than this, such as 1GiB; needs --out.
    #[arg(long, value_name = "BYTES", value_parser = audit_parts::bytes, conflicts_with_all = ["demo", "label_columns"])]
    memory: Option<u64>,
    #[command(flatten)]
    cluster: Cluster,
    /// Print nothing but errors.
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Print the content of audit.json on one line, and nothing else.
    #[arg(long)]
    json: bool,
}

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  negscale audit images/                                 folders of images, one per class
  negscale audit table.csv --label-column kind           a table of numbers with a column of labels
  negscale audit embeddings.npy --labels labels.csv      embeddings, and a file of labels
  negscale audit table.csv --label-column kind --pred-probs p.npy   predictions that you have
  negscale audit reviews.csv --text-column text --label-column kind     texts (after `negscale data get minilm`)
  negscale audit table.csv --label-columns ann,bob,cy    labels by several annotators
  negscale audit images/ --check 0.05 --quiet            for pipelines: exit 1 if more than 5 % seem to be wrong
  negscale audit big.npy --labels labels.npy --memory 1GiB --out A      rows that do not fit into memory
  negscale audit big.npy --labels labels.npy --on slurm --workers 8 --out A   the same on a cluster
  negscale audit --demo                                  built-in data with synthetic noise";

/// More wrong labels than allowed.
#[derive(Debug, thiserror::Error)]
#[error("check failed: an estimated {:.2} % of the labels are wrong, more than {:.2} %", 100.0 * .0, 100.0 * .1)]
pub struct TooMany(pub f64, pub f64);

fn share(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "it must be a number from 0 to 1".to_owned())?;
    if (0.0..=1.0).contains(&number) { Ok(number) } else { Err("it must be from 0 to 1".into()) }
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments {
        mut choices,
        demo,
        out,
        fresh,
        check,
        pred_probs,
        encoder,
        neighbours,
        memory,
        cluster,
        quiet,
        json,
        part,
    } = arguments;
    if let Some(part) = part {
        return audit_parts::run(part);
    }
    if !demo && !choices.name_data() {
        bail!("no data to audit: name it, as in `negscale audit path/to/data`, or try --demo");
    }
    if let Some(what) = choices.recipe.take_if(|what| what.extension() != Some(OsStr::new("toml"))) {
        if choices.data.is_some() {
            bail!("data is given twice, as {} and with --data; leave one out", what.display());
        }
        let what = what.into_os_string().into_string();
        choices.data = Some(what.ok().context("the path of the data is not UTF-8; rename it")?);
    }
    if cluster.on.is_some() {
        if check.is_some() || pred_probs.is_some() || neighbours || demo {
            bail!(
                "--on audits rows in parts: --check, --pred-probs, --neighbours and --demo mean nothing to it; leave them out"
            );
        }
        audit_parts::check_rows_only("--on", &choices)?;
        return audit_cluster::submit(&choices, memory, out.as_deref(), fresh, &cluster);
    }
    cluster.check_local()?;
    if let Some(memory) = memory {
        let mode = OutputMode::new(quiet, json);
        return audit_parts::whole(&choices, memory, out.as_deref(), fresh, check, mode);
    }
    // What only an audit knows, over everything else.
    let with_flags = |mut layers: Layers| -> Result<Layers> {
        if let Some(path) = &pred_probs {
            layers = layers.with_flag("--pred-probs", "audit.pred_probs", as_text("--pred-probs", path)?)?;
        }
        if let Some(name) = &encoder {
            layers = layers.with_flag("--encoder", "audit.encoder", name.as_str())?;
        }
        Ok(if neighbours { layers.with_flag("--neighbours", "audit.neighbours", true)? } else { layers })
    };
    let layers = with_flags(choices.layers_over(defaults(None)?)?)?;
    let splits = open_to_learn(&layers.data()?, quiet)?;
    let recipe = audit::recipe_for(&splits.train, |layers| with_flags(choices.layers_over(layers)?))?;
    if !quiet
        && let Some(help) =
            audit::what_would_help(&recipe, &with_flags(choices.layers_over(Layers::new())?)?, &splits.train)
    {
        eprintln!("note: {help}");
    }
    let mode = OutputMode::new(quiet, json);
    let progress = if mode == OutputMode::People { mode } else { OutputMode::Quiet };
    let options = RunOptions { fresh, ..RunOptions::default() };
    let signals = Signals::listen()?;
    let mut screen = Screen::new(progress);
    let mut done = audit::audit(recipe, splits, out, options, &mut screen, signals.stop())?;
    let Some(most) = check else { return tell(&done, mode) };
    if let Some(why) = audit::cannot_judge(&done.results).map(str::to_owned) {
        tell(&done, mode)?;
        bail!("--check: the labels cannot be judged: {why}");
    }
    let Some((rate, high)) = audit::estimate(&done.results) else {
        bail!(
            "--check: there is no estimate to check, because no prediction was recorded; train for more epochs"
        );
    };
    done.results["check"] = serde_json::json!({ "most": most, "passed": rate <= most });
    done.words.push_str(&audit::describe_check(most, rate, high));
    tell(&done, mode)?;
    if rate > most { Err(TooMany(rate, most).into()) } else { Ok(()) }
}

fn tell(done: &Finished, mode: OutputMode) -> Result<()> {
    print(done, &AUDIT, mode)?;
    tell_next(&done.place, &done.results, mode)
}

/// Points people to the review of what was flagged, if anything was.
pub fn tell_next(place: &Path, results: &serde_json::Value, mode: OutputMode) -> Result<()> {
    if mode == OutputMode::People && results["flagged"].as_u64().is_some_and(|flagged| flagged > 0) {
        say!("next       {}", audit::review_command(place));
    }
    Ok(())
}
