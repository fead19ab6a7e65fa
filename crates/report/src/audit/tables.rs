//! The tables of the page, each with its worst rows on top.

use std::cmp::Ordering;

use super::AuditReport;
use super::parts::{AnnotatorRow, Expert, SourceRow};
use crate::card::class_name;
use crate::number::{count, percent, share};
use crate::shown::{Cell, Shown};

/// Rows of a table, groups of duplicates, and outliers that are shown.
pub(super) const MOST_ROWS: usize = 30;

/// How many more there are, named as one and as several; nothing if all are shown.
pub(super) fn more(all: usize, [one, several]: [&str; 2]) -> String {
    match all.saturating_sub(MOST_ROWS) {
        0 => String::new(),
        1 => format!("1 more {one} is in audit.json."),
        rest => format!("{} more {several} are in audit.json.", count(rest as u64)),
    }
}

fn number(of: usize) -> Cell {
    Cell::number(count(of as u64))
}

/// The largest first; NaN last.
pub(super) fn falling(a: f64, b: f64) -> Ordering {
    a.is_nan().cmp(&b.is_nan()).then(b.total_cmp(&a))
}

/// The largest finite share, for the longest bar.
fn largest(shares: impl Iterator<Item = f64>) -> f64 {
    shares.filter(|share| share.is_finite()).fold(0.0, f64::max)
}

pub(super) fn classes(audit: &AuditReport) -> Option<Shown> {
    let mut rows: Vec<_> = audit.classes.iter().collect();
    rows.sort_by(|a, b| {
        falling(a.share, b.share).then(b.flagged.cmp(&a.flagged)).then(a.class.cmp(&b.class))
    });
    let has_threshold = rows.iter().any(|row| row.threshold.is_some());
    let has_why = rows.iter().any(|row| !row.why.is_empty());
    let longest = largest(rows.iter().map(|row| row.share));
    let mut head = vec!["labelled", "labels", "look wrong", "wrong, estimated"];
    head.extend(has_threshold.then_some("flagged from score"));
    head.extend(has_why.then_some("at that score"));
    let cells = rows.iter().take(MOST_ROWS).map(|row| {
        let mut cells = vec![
            Cell::words(class_name(&audit.class_names, row.class)),
            number(row.labels),
            number(row.flagged),
            Cell::number(share(row.share)).with_bar(row.share, longest),
        ];
        cells.extend(has_threshold.then(|| {
            Cell::number(row.threshold.map_or_else(|| "–".to_owned(), |score| format!("{score:.3}")))
        }));
        cells.extend(has_why.then(|| Cell::words(&row.why)));
        cells
    });
    let notes = [audit.flag_rule.clone(), more(rows.len(), ["class", "classes"])];
    Shown::from_rows(&head, cells.collect(), sentences(&notes))
}

pub(super) fn confusions(audit: &AuditReport) -> Option<Shown> {
    let mut rows: Vec<_> = audit.confusions.iter().collect();
    rows.sort_by(|a, b| {
        b.count
            .cmp(&a.count)
            .then(falling(a.share, b.share))
            .then((a.given, a.probably).cmp(&(b.given, b.probably)))
    });
    let has_distance = rows.iter().any(|row| row.tree_distance.is_some());
    let longest = rows.first().map_or(0, |row| row.count) as f64;
    let mut head = vec!["labelled", "probably", "labels", "of the given class"];
    head.extend(has_distance.then_some("tree distance"));
    let cells = rows.iter().take(MOST_ROWS).map(|row| {
        let mut cells = vec![
            Cell::words(class_name(&audit.class_names, row.given)),
            Cell::words(class_name(&audit.class_names, row.probably)),
            number(row.count).with_bar(row.count as f64, longest),
            Cell::number(share(row.share)),
        ];
        let distance = row.tree_distance.map_or_else(|| "–".to_owned(), |distance| distance.to_string());
        cells.extend(has_distance.then(|| Cell::number(distance)));
        cells
    });
    Shown::from_rows(&head, cells.collect(), more(rows.len(), ["confusion", "confusions"]))
}

pub(super) fn sources(rows: &[SourceRow]) -> Option<Shown> {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by(|a, b| falling(a.share, b.share).then(a.source.cmp(&b.source)));
    let longest = largest(rows.iter().map(|row| row.share));
    let has_interval = rows.iter().any(|row| row.interval.is_some());
    let cells = rows.iter().take(MOST_ROWS).map(|row| {
        let mut cells = vec![
            Cell::words(&row.source),
            number(row.labels),
            number(row.flagged),
            Cell::number(share(row.share)).with_bar(row.share, longest),
        ];
        let interval = row.interval.map(|ends| ends.map(share));
        let interval = interval.map_or_else(|| "–".to_owned(), |[low, high]| format!("{low} to {high}"));
        cells.extend(has_interval.then(|| Cell::number(interval)));
        cells
    });
    let mut head = vec!["source", "labels", "look wrong", "wrong, estimated"];
    head.extend(has_interval.then_some("interval"));
    Shown::from_rows(&head, cells.collect(), more(rows.len(), ["source", "sources"]))
}

pub(super) fn annotators(rows: &[AnnotatorRow]) -> Option<Shown> {
    let mut rows: Vec<_> = rows.iter().collect();
    // The least accurate first.
    rows.sort_by(|a, b| falling(-a.accuracy, -b.accuracy).then(a.name.cmp(&b.name)));
    let cells = rows.iter().take(MOST_ROWS).map(|row| {
        vec![
            Cell::words(&row.name),
            number(row.labels),
            Cell::number(percent(row.accuracy, 1)).with_bar(row.accuracy, 1.0),
            Cell::number(percent(row.agreement, 1)),
        ]
    });
    let head = ["annotator", "labels", "right, estimated", "agree with the others"];
    Shown::from_rows(&head, cells.collect(), more(rows.len(), ["annotator", "annotators"]))
}

pub(super) fn experts(rows: &[Expert]) -> Option<Shown> {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by(|a, b| falling(a.weight, b.weight));
    let longest = largest(rows.iter().map(|row| row.weight));
    let has_note = rows.iter().any(|row| !row.note.is_empty());
    let mut head = vec!["judge", "weight"];
    head.extend(has_note.then_some("what it is"));
    let cells = rows.iter().take(MOST_ROWS).map(|row| {
        let weight = Cell::number(format!("{:.2}", row.weight)).with_bar(row.weight, longest);
        let mut cells = vec![Cell::words(&row.name), weight];
        cells.extend(has_note.then(|| Cell::words(&row.note)));
        cells
    });
    Shown::from_rows(&head, cells.collect(), more(rows.len(), ["judge", "judges"]))
}

fn sentences(parts: &[String]) -> String {
    parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" ")
}
