//! `negscale audit`: which labels are wrong, in one command.
//!
//! Trains as `negscale train` does, in a folder of the same kind, and leaves in it beside the usual files `audit.json` and
//! `corrected.csv`. Exit code 1 is a finding: more wrong labels than `--check` allows.

mod summary;
mod words;

use crate::settings::Choices;
use crate::source::tell_all;
use crate::train::folder::write;
use crate::train::screen::Look;
use crate::train::{Done, Habits, Job, Keep, carry_out, finish};
use anyhow::{Context, Result, bail};
use negscale_data::Items;
use negscale_learn::recipe::Layers;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

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
#[command(mut_arg("recipe", |data| data
    .value_name("DATA")
    .help("Data to audit: a known name or a path; or a recipe, a TOML file of settings")
    .long_help("Data to audit: a known name or a path; or a recipe, a TOML file of settings")))]
pub struct Arguments {
    #[command(flatten)]
    choices: Choices,
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
    let Arguments { mut choices, out, fresh, check, quiet, json } = arguments;
    if let Some(what) = choices.recipe.take_if(|what| what.extension() != Some(OsStr::new("toml"))) {
        if choices.data.is_some() {
            bail!("two kinds of data: {} and --data; leave one out", what.display());
        }
        let what = what.into_os_string().into_string();
        choices.data = Some(what.ok().context("the path of the data is not UTF-8; rename it")?);
    }
    let below = |text| Layers::new().with_text("audit's defaults", text);
    let layers = choices.layers_over(below(ANY)?)?;
    let splits = layers.data()?.open()?;
    if !quiet {
        tell_all(&splits);
    }
    let layers = match splits.train.items() {
        Items::Features(_) => choices.layers_over(below(EMBEDDINGS)?)?,
        Items::Images(_) => layers,
    };
    let recipe = layers.resolve_for(&splits.train)?;
    let look = if quiet || json { Look::Quiet } else { Look::People };
    let habits = Habits { fresh, keep: Keep::All, checkpoint_every: Duration::ZERO, stop_with_input: false };
    let (rate, shown) = carry_out(Job { verb: "audit", recipe, splits, out, habits, look }, |done| {
        finish_audit(&done, begun, check)
    })?;
    match (quiet, json) {
        (true, _) => {}
        (_, true) => say!("{}", shown.json),
        _ => say_part!("{}", shown.words),
    }
    match (check, rate) {
        (Some(most), Some(rate)) if rate > most => Err(TooMany(rate, most).into()),
        (Some(_), None) => bail!("there is no estimate to check: no prediction was recorded"),
        _ => Ok(()),
    }
}

/// What is printed at the end.
struct Shown {
    json: String,
    words: String,
}

/// Writes what an audit leaves beside a run's files.
fn finish_audit(done: &Done, begun: Instant, check: Option<f64>) -> Result<(Option<f64>, Shown)> {
    let Done { material, folder, summary, screen, .. } = done;
    screen.clear();
    let ranked = &summary.ranked;
    ranked.save_corrected(folder.file("corrected.csv"), |index| finish::origin(&material.train, index))?;
    let mut object = summary::object(done, begun.elapsed().as_secs_f64())?;
    let rate = summary.estimate.as_ref().map(|estimate| estimate.rate);
    if let (Some(most), Some(map)) = (check, object.as_object_mut()) {
        let passed = rate.map(|rate| rate <= most);
        map.insert("check".into(), serde_json::json!({ "most": most, "passed": passed }));
    }
    let text = serde_json::to_string_pretty(&object)?;
    write(&folder.file("audit.json"), format!("{text}\n").as_bytes())?;
    Ok((rate, Shown { json: object.to_string(), words: words::describe(done, check) }))
}
