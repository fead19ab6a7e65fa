//! What the plug-in adds: each host with it against the same host alone, on the same seeds.
//!
//! A pair are two runs whose settings, seeds included, differ in nothing but the plug-in and its settings. Both means are over
//! the pairs alone, so that a seed that only one of them has favours neither.

use super::collect::{Axes, Finished, form, mean, once, settings};
use crate::Result;
use negscale_records::statistics::CONFIDENCE;
use negscale_report::table::{Cell, Column, ColumnKind, NumberFormat};
use negscale_report::{Outcome, Paired, Sample, Table, unlike_pairs};
use std::collections::{BTreeMap, BTreeSet};

/// Settings, without seeds, by their paths.
type Host = BTreeMap<String, String>;
/// Values by training seed and noise seed.
pub type BySeed = BTreeMap<(u64, u64), f64>;

/// The host of a run, without its plug-in. A baseline beside it is no part of it.
fn host_of(run: &Finished<'_>) -> Host {
    let baseline = run.run.recipe.baseline.as_deref().filter(|name| *name != run.outcome.host);
    settings(&run.run.settings, &["plugin", "negscale", "baseline", baseline.unwrap_or("baseline")])
}

/// The table of gains, if there is a run with a plug-in.
pub fn table(done: &[Finished<'_>], axes: &Axes, figure: &str) -> Result<Option<Table>> {
    let seeds = |run: &Finished<'_>| (run.outcome.seed, run.outcome.noise_seed);
    let value = |run: &Finished<'_>| Some((seeds(run), *run.outcome.figures.get(figure)?));
    let mut alone: BTreeMap<Host, BySeed> = BTreeMap::new();
    let mut partners: BTreeMap<(Host, (u64, u64)), &Outcome> = BTreeMap::new();
    for run in done.iter().filter(|run| run.outcome.plugin == "none") {
        alone.entry(host_of(run)).or_default().extend(value(run));
        partners.insert((host_of(run), seeds(run)), &run.outcome);
    }
    let attached: Vec<(Host, &Finished<'_>)> = done
        .iter()
        .filter(|run| run.outcome.plugin != "none")
        .map(|run| (settings(&run.run.settings, &[]), run))
        .collect();
    let groups = once(attached.iter().map(|(all, _)| all));
    if groups.is_empty() {
        return Ok(None);
    }
    let (form, unit, _) = form(figure);
    let keys: Vec<String> = axes.columns.iter().chain(&axes.rows).cloned().collect();
    let mut heads: Vec<Column> = keys.iter().map(|key| Column::new(key, ColumnKind::Text)).collect();
    heads.push(Column::new("alone", ColumnKind::Mean));
    heads.push(Column::new("with plug-in", ColumnKind::Mean));
    heads.push(Column::new("difference", ColumnKind::Interval));
    heads.push(Column::new("interval is", ColumnKind::Text));
    let confidence = 100.0 * CONFIDENCE;
    let title = format!(
        "Gain of the plug-in in {figure}{unit}: mean ± standard deviation (number of pairs), and the difference with its {confidence:.0} % interval"
    );
    let mut table = Table::new(title, heads);
    let (mut lonely, mut unpaired, mut unlike, mut idle) = (0, 0, 0, BTreeSet::new());
    for group in groups {
        let runs: Vec<&Finished<'_>> =
            attached.iter().filter(|(all, _)| all == group).map(|(_, run)| *run).collect();
        let ours: BySeed = runs.iter().filter_map(|run| value(run)).collect();
        let host = host_of(runs[0]);
        let Some(theirs) = alone.get(&host) else {
            lonely += 1;
            continue;
        };
        let Paired { differences, .. } = Paired::of(theirs, &ours);
        let is_unlike = |run: &&&Finished<'_>| {
            let partner = partners.get(&(host.clone(), seeds(run)));
            partner.is_some_and(|partner| !partner.is_like(&run.outcome))
        };
        unlike += runs.iter().filter(is_unlike).count();
        unpaired += ours.keys().filter(|seeds| !theirs.contains_key(seeds)).count();
        // The host alone is the partner of several settings of the plug-in.
        idle.extend(
            theirs.keys().filter(|seeds| !ours.contains_key(seeds)).map(|seeds| (host.clone(), *seeds)),
        );
        let mut row: Vec<Cell> = runs[0].cells(&keys);
        row.push(mean(&common(theirs, &ours), form));
        row.push(mean(&common(&ours, theirs), form));
        row.push(difference(&differences, form));
        let words = match differences.interval(CONFIDENCE) {
            None => "too few pairs",
            Some((low, _)) if low > 0.0 => "above 0",
            Some((_, high)) if high < 0.0 => "below 0",
            Some(_) => "around 0",
        };
        row.push(Cell::text(words));
        table.push(row)?;
    }
    let mut notes = vec!["Student's t interval over pairs that differ only in the plug-in.".to_owned()];
    let unpaired = unpaired + idle.len();
    if unpaired > 0 {
        notes.push(format!("Runs left out because no partner with the same seeds is done yet: {unpaired}."));
    }
    if lonely > 0 {
        notes.push(format!("Settings with a plug-in for which no run of the host alone is done: {lonely}."));
    }
    if unlike > 0 {
        notes.push(unlike_pairs(unlike));
    }
    table.note = notes.join(" ");
    Ok(Some(table))
}

/// The values that have a partner.
pub fn common(of: &BySeed, other: &BySeed) -> Sample {
    let both =
        of.iter().filter(|(seed, value)| (**value + other.get(*seed).unwrap_or(&f64::NAN)).is_finite());
    both.map(|(_, value)| *value).collect()
}

/// A cell with a mean difference and its interval.
pub fn difference(differences: &Sample, form: NumberFormat) -> Cell {
    match differences.mean() {
        Some(value) => {
            Cell::Interval { value, ends: differences.interval(CONFIDENCE), count: differences.count(), form }
        }
        None => Cell::Empty,
    }
}
