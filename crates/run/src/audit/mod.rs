//! An audit: a training run that also writes `audit.json` (figures) and `corrected.csv` (labels to train on).

mod embeddings;
mod figures;
pub mod parts;
mod words;

pub use embeddings::audit_embeddings;
pub use words::check as describe_check;

use crate::folder::write;
use crate::recipe::{Layers, Recipe};
use crate::training::{Command, carry_out};
use crate::{Done, Finished, Result, RunOptions, Stop, Watch};
use negscale_data::{Items, Splits};
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
/// What any audit starts from.
const ANY: &str = include_str!("../../recipes/audit.toml");
/// What an audit of embeddings starts from.
const EMBEDDINGS: &str = include_str!("../../recipes/audit-embeddings.toml");

/// The default settings of an audit for these items; without a kind of items, those of any audit.
pub fn defaults(items: Option<&Items>) -> Result<Layers> {
    let text = if matches!(items, Some(Items::Features(_))) { EMBEDDINGS } else { ANY };
    Ok(Layers::new().with_text("the defaults of an audit", text)?)
}

/// Trains on data whose labels are of unknown quality and ranks every label, as [`train`](crate::train()) does, and adds `audit.json` and
/// `corrected.csv`.
pub fn audit(
    recipe: Recipe,
    splits: Splits,
    out: Option<PathBuf>,
    options: RunOptions,
    watch: &mut dyn Watch,
    stop: &Stop,
) -> Result<Finished> {
    let begun = Instant::now();
    carry_out(&AUDIT, recipe, splits, out, options, watch, stop, |done| {
        write_findings(done, begun)?;
        Ok(words::describe(done))
    })
}

/// The estimated share of wrong labels of an audit's results, and the upper end of its interval.
#[must_use]
pub fn estimate(results: &serde_json::Value) -> Option<(f64, f64)> {
    let noise = &results["noise"];
    Some((noise["rate"].as_f64()?, noise["interval_95"][1].as_f64()?))
}

/// Writes the files that an audit adds to a run's.
fn write_findings(done: &Done, begun: Instant) -> Result<()> {
    let Done { material, folder, summary, .. } = done;
    let origin = |index| material.train.items().origin(index);
    summary.ranked.save_corrected(folder.file("corrected.csv"), origin)?;
    let object = figures::object(done, begun.elapsed().as_secs_f64())?;
    let text = serde_json::to_string_pretty(&object)?;
    write(&folder.file(AUDIT.results), format!("{text}\n").as_bytes())
}
