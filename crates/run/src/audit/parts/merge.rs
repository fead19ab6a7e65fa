//! What all shards found, as lists, tables and figures.
//!
//! # The rate
//! Labels are flagged from the score on that flags as many of the sample as the estimate says are wrong. The rate of all rows is the share
//! that is flagged among all rows: the sample's estimate, carried over by the same scores. The interval is the sample's, times the ratio of the
//! two rates: it knows how far the estimate may be off, but not more than that.

use super::source::open_again;
use super::{MODEL, Remembered, SHARDS, Step, Tell, load, page};
use crate::audit::evidence::percent;
use crate::audit::flags::{SourceFlags, write_sources};
use crate::audit::words::shorten;
use crate::error::bail;
use crate::folder::{hardware, open_own, version, write};
use crate::{Result, Stop};
use negscale_audit::crossfit::SampleEstimate;
use negscale_audit::shards::{Compared, Counts, Shards, hash_file};
use negscale_audit::{Cells, GroupFlags};
use negscale_data::Sources;
use negscale_data::stream::RowStream;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Rows of `top.csv`.
const TOP: usize = 10_000;
/// Rows of each table that is printed.
const SHOWN: usize = 5;
/// Confusions in `audit.json`.
const CONFUSIONS: usize = 1_000;

/// What a merge leaves.
#[derive(Debug)]
pub struct Merged {
    /// Where its files are.
    pub place: PathBuf,
    /// `audit.json`.
    pub results: Value,
    /// The same in a few words.
    pub words: String,
    /// What a person should know, a sentence each.
    pub notes: Vec<String>,
}

/// Files of a merge, and what they are.
pub const FILES: [(&str, &str); 5] = [
    ("labels", "audit.csv"),
    ("worst", "top.csv"),
    ("corrected", "corrected.csv"),
    ("figures", "audit.json"),
    ("report", "report.html"),
];

/// Merges the shards of a folder. Rows are opened only where they have ids, true labels or sources: where they were, or where `data` says.
///
/// # Errors
/// If shards are missing, damaged or do not belong to the models, or a file cannot be written.
pub fn merge(out: &Path, data: Option<&Path>, tell: Tell, stop: &Stop) -> Result<Merged> {
    let begun = Instant::now();
    let model = load(out)?;
    let remembered = Remembered::of(&model)?;
    let about = model.about();
    let folder = out.join(SHARDS);
    if !folder.exists() {
        bail!(
            "{}: no shard was scored yet; score them: negscale audit score {} --shard 1/1",
            folder.display(),
            out.display()
        );
    }
    let shards = Shards::open(&folder)?;
    let hash = hash_file(&out.join(MODEL))?;
    if shards.manifests().iter().any(|manifest| manifest.made_by.model != hash) {
        bail!(
            "{}: shards were scored by other models than {MODEL} holds; score them again",
            folder.display()
        );
    }
    let stream = remembered.is_looked_at.then(|| open_again(&remembered, data)).transpose()?;
    let path_of = |row: u64| stream.as_ref()?.id(row).map(str::to_owned);
    let own = open_own(out)?;
    own.claim(FILES.map(|(_, name)| name))?;
    own.remove_parts()?;
    stop.check()?;
    tell(Step::Merge, 0.0);
    let names = &about.classes;
    let (all, rest) = rayon::join(
        || shards.save_rows(&out.join("audit.csv"), names, path_of, Cells::Guarded),
        || -> Result<_> {
            shards.save_top(&out.join("top.csv"), TOP, names, path_of, Cells::Guarded)?;
            Ok(shards.save_corrected(&out.join("corrected.csv"), names, path_of)?)
        },
    );
    all?;
    let changed = rest?;
    tell(Step::Merge, 0.9);
    let counts = shards.counts();
    let (rate, interval) = overall(counts, &about.estimate);
    let truth = stream.as_ref().and_then(RowStream::truth).map(|truth| shards.compare(truth)).transpose()?;
    let can_judge = about.estimate.cannot_judge.is_none();
    let sources = stream.as_ref().and_then(RowStream::sources).filter(|_| can_judge);
    let sources =
        sources.map(|sources| by_source(&shards, sources, rate, interval)).transpose()?.unwrap_or_default();
    let confusions = confusions(counts);
    let classes = names.iter().zip(counts.classes()).map(|(name, group)| {
        json!({
            "class": name,
            "given": group.rows,
            "flagged": group.flagged,
            "wrong_given": share(group.flagged, group.rows),
        })
    });
    let listed = confusions.iter().take(CONFUSIONS).map(|&(given, probably, count)| {
        json!({ "given": names[given], "probably": names[probably], "count": count })
    });
    let results = json!({
        "data": remembered.name,
        "samples": counts.all().rows,
        "flagged": counts.all().flagged,
        "changed": changed,
        "noise": {
            "rate": rate,
            "interval_95": interval,
            "cannot_judge": about.estimate.cannot_judge,
            "classes": classes.collect::<Vec<Value>>(),
            "confusions": listed.collect::<Vec<Value>>(),
        },
        "sources": sources.iter().map(SourceFlags::figures).collect::<Vec<Value>>(),
        "truth": truth.map(|truth| compared(&truth, rate, interval, can_judge)).transpose()?,
        "fitted_to": about.estimate,
        "shards": shards.manifests().len(),
        "seconds": begun.elapsed().as_secs_f64(),
        "method": "parts",
        "settings": about.settings,
        "version": version(),
        "hardware": hardware(),
        "out": out.display().to_string(),
    });
    let found = Found {
        counts,
        estimate: &about.estimate,
        names,
        rate,
        interval,
        confusions: &confusions,
        changed,
        truth,
        sources: &sources,
    };
    page::write(&found, &shards, &remembered, about.cut_off, path_of, &out.join("report.html"))?;
    let text = serde_json::to_string_pretty(&results)?;
    write(&out.join("audit.json"), format!("{text}\n").as_bytes())?;
    tell(Step::Merge, 1.0);
    let words = words(&found);
    Ok(Merged { place: out.to_owned(), results, words, notes: shards.notes().to_vec() })
}

/// What there is to tell.
pub struct Found<'a> {
    pub counts: &'a Counts,
    pub estimate: &'a SampleEstimate,
    pub names: &'a [String],
    pub rate: f64,
    pub interval: [f64; 2],
    /// Given class, probable class, labels; most frequent first.
    pub confusions: &'a [(usize, usize, u64)],
    pub changed: u64,
    /// How good it is, where true labels are known.
    pub truth: Option<Compared>,
    /// Where labels come from, if a column says so.
    pub sources: &'a [SourceFlags<'a>],
}

/// `truth` of `audit.json`.
fn compared(truth: &Compared, rate: f64, [low, high]: [f64; 2], can_judge: bool) -> Result<Value> {
    let mut figures = serde_json::to_value(truth)?;
    figures["rate_error"] = can_judge.then_some(rate - truth.noise).into();
    figures["interval_holds"] = can_judge.then_some((low..=high).contains(&truth.noise)).into();
    Ok(figures)
}

/// Flags by source, in the order in which sources first occur.
fn by_source<'a>(
    shards: &Shards,
    sources: &'a Sources,
    rate: f64,
    interval: [f64; 2],
) -> Result<Vec<SourceFlags<'a>>> {
    let found = shards.by_group(sources.names().len(), sources.of_items())?;
    let of_source = |(name, (labels, flagged)): (&'a String, (u64, u64))| {
        let flags = GroupFlags { labels: labels as usize, flagged: flagged as usize, least: None };
        SourceFlags { name, flags, interval: Some(flags.interval(rate, interval)) }
    };
    Ok(sources.names().iter().zip(found).map(of_source).collect())
}

pub fn share(part: u64, all: u64) -> f64 {
    if all > 0 { part as f64 / all as f64 } else { 0.0 }
}

/// The share of wrong labels among all rows, and its interval.
fn overall(counts: &Counts, sample: &SampleEstimate) -> (f64, [f64; 2]) {
    if sample.cannot_judge.is_some() {
        return (0.0, [0.0, 1.0]);
    }
    let rate = share(counts.all().flagged, counts.all().rows);
    let ratio = if sample.rate > 0.0 { rate / sample.rate } else { 1.0 };
    let [low, high] = sample.interval.map(|end| (end * ratio).clamp(0.0, 1.0));
    (rate, [low.min(rate), high.max(rate)])
}

fn confusions(counts: &Counts) -> Vec<(usize, usize, u64)> {
    let cells =
        counts.cells().map(|((given, suggested), cell)| (given as usize, suggested as usize, cell.flagged));
    let mut found: Vec<(usize, usize, u64)> = cells.collect();
    // Cells come in the order of classes, which equals keep.
    found.sort_by_key(|&(_, _, count)| std::cmp::Reverse(count));
    found
}

fn words(found: &Found) -> String {
    let Found { counts, estimate, names, rate, interval: [low, high], confusions, changed, truth, sources } =
        found;
    let all = counts.all();
    let mut text = format!("{} of {} labels are flagged, {changed} corrected\n", all.flagged, all.rows);
    if let Some(why) = &estimate.cannot_judge {
        let _ = writeln!(text, "the labels cannot be judged: {why}");
        return text;
    }
    let _ = writeln!(
        text,
        "estimated share of wrong labels: {} ({} to {}), by models of {} rows",
        percent(*rate),
        percent(*low),
        percent(*high),
        estimate.rows
    );
    let wrong = |class: usize| share(counts.classes()[class].flagged, counts.classes()[class].rows);
    let mut worst: Vec<usize> = (0..names.len()).filter(|&class| counts.classes()[class].rows > 0).collect();
    worst.sort_by(|&a, &b| wrong(b).total_cmp(&wrong(a)));
    let _ = writeln!(text, "\n{:<28}{:>12}{:>12}", "labelled", "samples", "wrong");
    for &class in worst.iter().take(SHOWN) {
        let rows = counts.classes()[class].rows;
        let _ = writeln!(text, "{:<28}{rows:>12}{:>12}", shorten(&names[class]), percent(wrong(class)));
    }
    if !confusions.is_empty() {
        let _ = writeln!(text, "\n{:<28}{:<28}{:>12}", "probably", "labelled", "samples");
    }
    for &(given, probably, count) in confusions.iter().take(SHOWN) {
        let _ = writeln!(text, "{:<28}{:<28}{count:>12}", shorten(&names[probably]), shorten(&names[given]));
    }
    text += &write_sources(sources);
    text += &truth
        .as_ref()
        .map_or(String::new(), |truth| format!("\n{}", crate::audit::words::known(&truth_rows(truth))));
    text
}

/// What is told of a comparison with the truth.
pub fn truth_rows(truth: &Compared) -> [(&'static str, Option<f64>); 5] {
    [
        ("share of wrong labels", Some(truth.noise)),
        ("average precision", truth.average_precision),
        ("flags that are correct", truth.flag_precision),
        ("wrong labels flagged", truth.flag_recall),
        ("true class suggested", truth.suggestion_accuracy),
    ]
}
