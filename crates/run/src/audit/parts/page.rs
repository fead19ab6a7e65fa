//! `report.html` of an audit in parts.

use super::Remembered;
use super::merge::{Found, share, truth_rows};
use crate::audit::commands;
use crate::audit::flags::SourceFlags;
use crate::folder::{hardware, version};
use crate::{Result, clock};
use negscale_audit::shards::Shards;
use negscale_report::{
    AuditReport, ClassRow, ConfusionRow, Correction, Estimate, Figure, Judging, NextStep, SummaryRow,
    WorstLabel,
};
use std::path::Path;

/// Labels that are shown.
const WORST: usize = 100;

/// Writes the page.
pub fn write(
    found: &Found,
    shards: &Shards,
    remembered: &Remembered,
    cut_off: Option<f64>,
    path_of: impl Fn(u64) -> Option<String>,
    to: &Path,
) -> Result<()> {
    let Found { counts, estimate, names, rate, interval, confusions, changed, truth, sources } = found;
    let class = |(class, group): (usize, &negscale_audit::shards::GroupCounts)| ClassRow {
        class,
        labels: group.rows as usize,
        flagged: group.flagged as usize,
        share: share(group.flagged, group.rows),
        threshold: cut_off,
        ..ClassRow::default()
    };
    let confusion = |&(given, probably, count): &(usize, usize, u64)| ConfusionRow {
        given,
        probably,
        count: count as usize,
        share: share(count, counts.classes()[given].rows),
        tree_distance: None,
    };
    let top = shards.top(WORST)?;
    let worst = top.iter().filter(|row| row.score.flag).map(|row| WorstLabel {
        index: row.row as usize,
        path: path_of(row.row),
        given: row.given as usize,
        suggested: row.score.suggested as usize,
        score: row.score.score.into(),
        suggested_probability: row.score.suggested_probability.into(),
        ..WorstLabel::default()
    });
    let flag_rule = cut_off.map_or_else(String::new, |score| {
        format!(
            "A label is flagged if its score is at least {score:.4}: from there on, as many labels of the sample are flagged as are \
             estimated to be wrong."
        )
    });
    let judging = Judging {
        words: vec![format!(
            "Models were fitted to a sample of {} of {} rows; every row was judged by models that did not see its label. The share of \
             wrong labels is that of flagged ones among all rows, its interval that of the sample.",
            estimate.rows, remembered.rows
        )],
        ..Judging::default()
    };
    let report = AuditReport {
        title: format!("Audit of {}", remembered.name),
        when: clock::date(clock::now()),
        samples: counts.all().rows as usize,
        flagged: counts.all().flagged as usize,
        estimate: estimate.cannot_judge.is_none().then_some(Estimate { rate: *rate, interval: *interval }),
        cannot_judge: estimate.cannot_judge.clone(),
        notes: shards.notes().to_vec(),
        class_names: names.to_vec(),
        classes: counts.classes().iter().enumerate().map(class).collect(),
        flag_rule,
        confusions: confusions.iter().map(confusion).collect(),
        sources: sources.iter().map(SourceFlags::row).collect(),
        worst: worst.collect(),
        correction: Some(Correction {
            file: "corrected.csv".into(),
            changed: *changed as usize,
            ..Correction::default()
        }),
        measures: truth
            .iter()
            .flat_map(truth_rows)
            .filter_map(|(name, value)| {
                let mut label = name.to_owned();
                label[..1].make_ascii_uppercase();
                Some(SummaryRow::new(label, Figure::Fraction(value?), "by the known truth"))
            })
            .collect(),
        next: next_steps(remembered, interval[1], to.parent().filter(|_| counts.all().flagged > 0)),
        judging: Some(judging),
        hardware: hardware(),
        version: version(),
        ..AuditReport::default()
    };
    Ok(report.write_html(to)?)
}

fn next_steps(remembered: &Remembered, most: f64, review: Option<&Path>) -> Vec<NextStep> {
    let step = |words: &str, command: String| NextStep { words: words.into(), command };
    let (data, own) = (remembered.data.display().to_string(), &remembered.options);
    let mut steps = vec![step("Look at the flagged labels, worst first.", "top.csv".into())];
    let review = review.map(commands::review);
    steps.extend(review.map(|review| step("Look through them in the browser, and decide.", review)));
    steps.extend([
        step("Train on the corrected labels.", commands::train(&data, own, "corrected.csv")),
        step(
            "Make it a check of your pipeline.",
            commands::check(&data, own, " --memory 1GiB --out FOLDER", most),
        ),
    ]);
    steps
}
