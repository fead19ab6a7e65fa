//! `negscale audit`: which labels are wrong, in one command.
//!
//! Trains as `negscale train` does, in a folder of the same kind, and leaves in it beside the usual files `audit.json` and
//! `corrected.csv`. Exit code 1 is a finding: more wrong labels than `--check` allows.

mod summary;
mod words;

use crate::settings::Choices;
use crate::source::open_to_learn;
use crate::train::folder::write;
use crate::train::screen::Look;
use crate::train::{Done, Habits, Job, Keep, Verb, carry_out, finish};
use anyhow::{Context, Result, bail};
use negscale_data::Items;
use negscale_learn::recipe::Layers;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// This command.
const AUDIT: Verb = Verb {
    name: "audit",
    results: "audit.json",
    files: &[
        ("labels", "audit.csv"),
        ("corrected", "corrected.csv"),
        ("figures", "audit.json"),
        ("report", "report.html"),
    ],
};
/// What any audit begins with.
const ANY: &str = include_str!("../../../../recipes/audit.toml");
/// What an audit of embeddings begins with.
const EMBEDDINGS: &str = include_str!("../../../../recipes/audit-embeddings.toml");

/// Find wrong labels in data: trains robustly, ranks every label, suggests corrections and estimates how many are wrong.
///
/// DATA is a known name or a path of your own data (as for --data), or a recipe (.toml). The folder of the audit holds audit.csv (every
/// label, most suspicious first), corrected.csv (labels to train on), audit.json (figures) and report.html. Run the same command again
/// to go on after a stop. Exit codes: 0 fine, 1 more wrong labels than --check allows, 2 an error.
#[derive(clap::Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES, mut_arg("recipe", |data| data
    .value_name("DATA")
    .help("Data to audit: a known name or a path; or a recipe, a TOML file of settings")
    .long_help("Data to audit: a known name or a path; or a recipe, a TOML file of settings")))]
pub struct Arguments {
    #[command(flatten)]
    choices: Choices,
    /// Audit the built-in subset of Fashion-MNIST, half of its labels drawn anew, to see what an audit is like; takes minutes.
    #[arg(long, conflicts_with_all = ["recipe", "data"])]
    demo: bool,
    /// Folder of the audit; without it, one below `runs` named by data, noise, method and settings.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Begin anew, even if the folder holds an audit that could go on.
    #[arg(long)]
    fresh: bool,
    /// Exit with 1 if the estimated share of wrong labels is above this (0.05: five in a hundred). The estimate itself decides, not its
    /// interval.
    #[arg(long, value_name = "MAX", value_parser = share)]
    check: Option<f64>,
    /// Say nothing but errors.
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Print the content of audit.json on one line, and nothing else.
    #[arg(long)]
    json: bool,
}

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  negscale audit pictures/                               folders of pictures, one a class
  negscale audit table.csv --label-column kind           a table of numbers with a column of labels
  negscale audit embeddings.npy --labels labels.csv      embeddings, and a file of labels
  negscale audit pictures/ --check 0.05 --quiet          for pipelines: exit 1 if more than 5 % seem to be wrong
  negscale audit --demo                                  built-in data with invented noise";

/// More wrong labels than are allowed.
#[derive(Debug, thiserror::Error)]
#[error("check failed: an estimated {:.2} % of the labels are wrong, more than {:.2} %", 100.0 * .0, 100.0 * .1)]
pub struct TooMany(f64, f64);

fn share(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "it must be a number from 0 to 1".to_owned())?;
    if (0.0..=1.0).contains(&number) { Ok(number) } else { Err("it must be from 0 to 1".into()) }
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let begun = Instant::now();
    let Arguments { mut choices, demo, out, fresh, check, quiet, json } = arguments;
    if !demo && !choices.name_data() {
        bail!(
            "no data to audit: name it, as in `negscale audit path/to/data`, or see a demonstration with --demo"
        );
    }
    if let Some(what) = choices.recipe.take_if(|what| what.extension() != Some(OsStr::new("toml"))) {
        if choices.data.is_some() {
            bail!("two kinds of data: {} and --data; leave one out", what.display());
        }
        let what = what.into_os_string().into_string();
        choices.data = Some(what.ok().context("the path of the data is not UTF-8; rename it")?);
    }
    let below = |text| Layers::new().with_text("audit's defaults", text);
    let layers = choices.layers_over(below(ANY)?)?;
    let splits = open_to_learn(&layers.data()?, quiet)?;
    let layers = match splits.train.items() {
        Items::Features(_) => choices.layers_over(below(EMBEDDINGS)?)?,
        Items::Images(_) => layers,
    };
    let recipe = layers.resolve_for(&splits.train)?;
    let (look, progress) = match (quiet, json) {
        (true, _) => (Look::Quiet, Look::Quiet),
        (_, true) => (Look::Json, Look::Quiet),
        _ => (Look::People, Look::People),
    };
    let habits = Habits { fresh, keep: Keep::All, checkpoint_every: Duration::ZERO, stop_with_input: false };
    let mut shown = carry_out(Job { verb: &AUDIT, recipe, splits, out, habits, look: progress }, |done| {
        write_findings(done, begun)?;
        Ok(words::describe(done))
    })?;
    let Some(most) = check else { return shown.print(&AUDIT, look) };
    let Some((rate, high)) = estimate(&shown.results) else {
        bail!("there is no estimate to check: no prediction was recorded");
    };
    shown.results["check"] = serde_json::json!({ "most": most, "passed": rate <= most });
    shown.words.push_str(&words::judge(most, rate, high));
    shown.print(&AUDIT, look)?;
    if rate > most { Err(TooMany(rate, most).into()) } else { Ok(()) }
}

/// The estimated share of wrong labels in `audit.json`, and the upper end of its interval.
fn estimate(figures: &serde_json::Value) -> Option<(f64, f64)> {
    let noise = &figures["noise"];
    Some((noise["rate"].as_f64()?, noise["interval_95"][1].as_f64()?))
}

/// Writes what an audit leaves beside a run's files.
fn write_findings(done: &Done, begun: Instant) -> Result<()> {
    let Done { material, folder, summary, .. } = done;
    let ranked = &summary.ranked;
    ranked.save_corrected(folder.file("corrected.csv"), |index| finish::origin(&material.train, index))?;
    let object = summary::object(done, begun.elapsed().as_secs_f64())?;
    let text = serde_json::to_string_pretty(&object)?;
    write(&folder.file(AUDIT.results), format!("{text}\n").as_bytes())
}
