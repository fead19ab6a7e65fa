//! Similarity of pairs of samples, where runs were analysed: the paper's Figures 1 to 3.

use super::figures::titled;
use super::groups::{Group, Groups, point_of};
use crate::plot::{BarGroup, Bars, Caption, Grid, Plot, ReferenceLine};
use crate::scale::Scale;
use negscale_records::statistics::Sample;

/// More categories than this are not readable.
const MOST_CATEGORIES: usize = 10;

/// More classes than this leave no room for a number in every cell.
const MOST_CLASSES: usize = 12;
/// More groups than this are not drawn class by class.
const MOST_GRIDS: usize = 4;

/// Kinds of pairs in `analysis.json`: title, note, and where their values are.
const PAIRS: [(&str, &str, &str); 4] = [
    (
        "Similarity of all pairs",
        "All pairs of samples, by how their true classes are related.",
        "known/truth",
    ),
    (
        "Similarity of clean-clean pairs",
        "Pairs of samples whose labels are both right.",
        "known/by_truth/clean_clean",
    ),
    (
        "Similarity of clean-noisy pairs",
        "Pairs of a sample whose label is right and one whose label is wrong.",
        "known/by_truth/clean_noisy",
    ),
    (
        "Similarity of cross-noise pairs",
        "Pairs of a right label and a wrong one of the same class.",
        "known/cross_noise",
    ),
];
const RELATIONS: [(&str, &str); 2] =
    [("related", "related (small pLCA)"), ("unrelated", "unrelated (large pLCA)")];

/// Similarity of related and unrelated pairs by group, beside that of a clean run, where runs were analysed.
pub(super) fn similarity(groups: &Groups) -> Vec<Plot> {
    let analysed: Vec<&Group> =
        groups.groups.iter().filter(|group| group.runs.iter().any(|run| run.analysis.is_some())).collect();
    let read = |group: &Group, whose: &str, kind: &str, relation: &str| -> Sample {
        let place = format!("/{whose}/similarity/{kind}/{relation}/normalised");
        group.runs.iter().filter_map(|run| run.analysis.as_ref()?.pointer(&place)?.as_f64()).collect()
    };
    // By method, where there is more than one and noise differs.
    let has_noise = groups.keys.iter().any(|key| key == "noise");
    let parts = if has_noise {
        let parts = Groups::facets(analysed, |group| group.method.clone());
        let left_out: &[&str] = if parts.len() > 1 { &["host", "plugin"] } else { &[] };
        let named = |group: &&Group| groups.name_without(group, left_out);
        parts
            .into_iter()
            .map(|(part, members)| (part, members.iter().map(named).collect(), members))
            .collect()
    } else {
        vec![(String::new(), analysed.iter().map(|group| group.label.clone()).collect::<Vec<_>>(), analysed)]
    };
    let parts: Vec<_> = parts.into_iter().filter(|part| part.2.len() <= MOST_CATEGORIES).collect();
    let is_one = parts.len() == 1;
    let draw =
        |(title, note, kind): (&str, &str, &str), part: &str, names: &[String], analysed: &[&Group]| {
            let bar = |(relation, name): (&str, &str)| BarGroup {
                name: name.to_owned(),
                points: analysed.iter().map(|group| point_of(&read(group, "run", kind, relation))).collect(),
            };
            let rule = |(number, (relation, name)): (usize, (&str, &str))| {
                let values = analysed.iter().flat_map(|g| read(g, "clean", kind, relation).values().to_vec());
                Some(ReferenceLine {
                    name: format!("{name}, clean run"),
                    value: values.collect::<Sample>().mean()?,
                    group: number,
                })
            };
            let bars = Bars {
                caption: Caption::new(
                    titled(title, if is_one { "" } else { part }),
                    format!("{note} Mean of (1 + cosine) / 2."),
                    "",
                    "normalised similarity",
                ),
                scale: Scale::Plain,
                categories: names.to_vec(),
                groups: RELATIONS.into_iter().map(bar).collect(),
                rules: RELATIONS.into_iter().enumerate().filter_map(rule).collect(),
            };
            bars.draw()
        };
    let kinds = PAIRS.into_iter().flat_map(|kind| parts.iter().map(move |part| (kind, part)));
    kinds.filter_map(|(kind, (part, names, members))| draw(kind, part, names, members)).collect()
}

/// What noise changed, class by class: mean cosine of two classes, minus that of the clean run.
pub(super) fn by_class(groups: &Groups) -> Vec<Plot> {
    let drawn = groups.groups.iter().filter_map(|group| {
        let analyses: Vec<_> = group.runs.iter().filter_map(|run| run.analysis.as_ref()).collect();
        let names = analyses.first()?.pointer("/target/classes")?.as_array()?;
        let names: Vec<String> = names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
        if names.len() > MOST_CLASSES {
            return None;
        }
        let change = |a: usize, b: usize| -> Sample {
            let of = |analysis: &serde_json::Value, whose: &str| {
                analysis.pointer(&format!("/{whose}/class_means/{a}/{b}"))?.as_f64()
            };
            analyses
                .iter()
                .filter_map(|analysis| Some(of(analysis, "run")? - of(analysis, "clean")?))
                .collect()
        };
        // Rows run up, and the first class is to be on top.
        let (rows, classes) = (names.iter().rev().cloned().collect(), names.len());
        let cells = (0..classes).rev().flat_map(|a| (0..classes).map(move |b| (a, b)));
        let cells: Vec<_> = cells.map(|(a, b)| point_of(&change(a, b))).collect();
        let note =
            "Mean cosine of the features of two true classes in this run, minus that in the clean run.";
        let caption = Caption::new(titled("What noise changed, class by class", &group.label), note, "", "");
        Grid { caption, scale: Scale::Plain, columns: names, rows, cells }.draw()
    });
    drawn.take(MOST_GRIDS).collect()
}
