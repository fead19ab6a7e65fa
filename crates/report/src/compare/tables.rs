//! The tables of a comparison.

use super::groups::{Group, Groups, short};
use super::pairs::Match;
use crate::error::Result;
use crate::outcome::unlike_pairs;
use crate::table::{Best, Cell, Column, ColumnKind, NumberFormat, Table};
use negscale_records::statistics::{CONFIDENCE, Sample};

/// Figures of a run: their name in `results.json`, what stands above them, how they are written, and which is best.
const FIGURES: [(&str, &str, NumberFormat, Option<Best>); 10] = [
    ("test_last10", "test, last 10", PERCENT, Some(Best::Largest)),
    ("test_last", "test, last", PERCENT, Some(Best::Largest)),
    ("test_best_by_validation", "test, best by validation", PERCENT, Some(Best::Largest)),
    ("test_best", "test, best (oracle)", PERCENT, Some(Best::Largest)),
    ("audit_average_precision", "wrong labels found, AP", PERCENT, Some(Best::Largest)),
    ("noise_achieved", "noise, actual", PERCENT, None),
    ("noise_estimated", "noise, estimated", PERCENT, None),
    ("labels_right_before", "labels right, before review", PERCENT, None),
    ("labels_right", "labels right, reviewed", PERCENT, None),
    ("seconds", "seconds", NumberFormat { digits: 0, percent: false }, None),
];
const PERCENT: NumberFormat = NumberFormat { digits: 2, percent: true };

/// A column for each setting in the names of groups, host and plug-in as one.
fn name_columns(groups: &Groups) -> Vec<(String, Option<String>)> {
    let others = groups.keys.iter().filter(|key| !["host", "plugin"].contains(&key.as_str()));
    std::iter::once(("method".to_owned(), None))
        .chain(others.map(|key| (short(key).to_owned(), Some(key.clone()))))
        .collect()
}

fn names(group: &Group, columns: &[(String, Option<String>)]) -> Vec<Cell> {
    let cell = |(_, key): &(String, Option<String>)| match key {
        None => Cell::text(group.method.clone()),
        Some(key) => group.settings.get(key).map_or(Cell::Empty, Cell::text),
    };
    columns.iter().map(cell).collect()
}

fn mean(sample: &Sample, form: NumberFormat) -> Cell {
    let (deviation, count) = (sample.deviation(), sample.count());
    sample.mean().map_or(Cell::Empty, |mean| Cell::Mean { mean, deviation, count, form })
}

/// Mean, deviation and number of seeds of every figure that was measured, by group.
pub(super) fn results(groups: &Groups) -> Result<Table> {
    let name_columns = name_columns(groups);
    let measured: Vec<_> = FIGURES
        .into_iter()
        .filter(|figure| groups.groups.iter().any(|group| group.sample(figure.0).count() > 0))
        .collect();
    let mut columns: Vec<Column> =
        name_columns.iter().map(|(head, _)| Column::new(head, ColumnKind::Text)).collect();
    columns.extend(measured.iter().map(|(_, head, _, best)| Column {
        head: (*head).into(),
        kind: ColumnKind::Mean,
        best: *best,
    }));
    // What is best on another task says nothing.
    let is_one_task = !groups.keys.iter().any(|key| ["data", "noise"].contains(&key.as_str()));
    if !is_one_task {
        columns.iter_mut().for_each(|column| column.best = None);
    }
    let note = "Mean ± standard deviation (number of seeds); shares in percent. Best (oracle): chosen on the test set, which is not possible in practice.";
    let mut table = Table::new("Results", columns).with_note(note);
    for group in &groups.groups {
        let figures = measured.iter().map(|(name, _, form, _)| mean(&group.sample(name), *form));
        let row = names(group, &name_columns).into_iter().chain(figures).collect();
        let uses_truth = group.runs.iter().any(|run| run.outcome.true_labels() > 0);
        if uses_truth { table.push_apart(row)? } else { table.push(row)? }
    }
    Ok(table)
}

/// Host with plug-in minus host alone; nothing if there are no pairs.
pub(super) fn differences(groups: &Groups, matches: &[Match]) -> Result<Option<Table>> {
    if matches.is_empty() {
        return Ok(None);
    }
    let figures: Vec<_> = FIGURES
        .into_iter()
        .take(5)
        .filter(|figure| matches.iter().any(|found| found.paired(figure.0).differences.count() > 0))
        .collect();
    let name_columns = name_columns(groups);
    let mut columns: Vec<Column> =
        name_columns.iter().map(|(head, _)| Column::new(head, ColumnKind::Text)).collect();
    columns.extend(figures.iter().map(|(_, head, ..)| Column::new(*head, ColumnKind::Interval)));
    let note = "Host with plug-in minus host alone, on the same seeds: mean difference in percentage points, 95 % interval (number of pairs).";
    let unlike: usize = matches.iter().map(Match::unlike).sum();
    let note = if unlike == 0 { note.to_owned() } else { format!("{note} {}", unlike_pairs(unlike)) };
    let mut table = Table::new("What the plug-in adds", columns).with_note(note);
    for found in matches {
        let figures = figures.iter().map(|(name, _, form, _)| {
            let sample = found.paired(name).differences;
            let (ends, count) = (sample.interval(CONFIDENCE), sample.count());
            sample.mean().map_or(Cell::Empty, |value| Cell::Interval { value, ends, count, form: *form })
        });
        table.push(names(found.with, &name_columns).into_iter().chain(figures).collect())?;
    }
    Ok(Some(table))
}

/// Every run with its seeds and figures.
pub(super) fn runs(groups: &Groups) -> Result<Table> {
    let name_columns = name_columns(groups);
    let all = || groups.groups.iter().flat_map(|group| group.runs.iter().map(move |run| (group, run)));
    let measured: Vec<_> =
        FIGURES.into_iter().filter(|f| all().any(|(_, run)| run.outcome.figures.contains_key(f.0))).collect();
    let mut columns: Vec<Column> =
        name_columns.iter().map(|(head, _)| Column::new(head, ColumnKind::Text)).collect();
    columns.extend(["seed", "noise seed"].map(|head| Column::new(head, ColumnKind::Number)));
    columns.extend(measured.iter().map(|(_, head, ..)| Column::new(*head, ColumnKind::Number)));
    columns.push(Column::new("folder", ColumnKind::Text));
    let mut table = Table::new("Runs", columns);
    for (group, run) in all() {
        let mut row = names(group, &name_columns);
        let seeds = [run.outcome.seed, run.outcome.noise_seed];
        row.extend(seeds.map(|seed| Cell::Number(seed as f64, NumberFormat::plain(0))));
        let figure = |(name, _, form, _): &(&str, &str, NumberFormat, Option<Best>)| {
            run.outcome.figures.get(*name).map_or(Cell::Empty, |value| Cell::Number(*value, *form))
        };
        row.extend(measured.iter().map(figure));
        row.push(Cell::text(run.outcome.folder.display().to_string()));
        table.push(row)?;
    }
    Ok(table)
}

/// All settings that differ, by group.
pub(super) fn settings(groups: &Groups) -> Result<Option<Table>> {
    if groups.differing.is_empty() {
        return Ok(None);
    }
    let mut columns = vec![Column::new("setting", ColumnKind::Text)];
    columns.extend(groups.groups.iter().map(|group| Column::new(group.label.clone(), ColumnKind::Text)));
    let mut table = Table::new("Settings that differ", columns);
    for key in &groups.differing {
        let values =
            groups.groups.iter().map(|group| group.settings.get(key).map_or(Cell::Empty, Cell::text));
        table.push(std::iter::once(Cell::text(key)).chain(values).collect())?;
    }
    Ok(Some(table))
}
