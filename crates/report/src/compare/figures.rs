//! The plots of a comparison: each appears where the groups differ in what it shows.

use std::collections::BTreeSet;

use super::groups::{Group, Groups, point_of, short, variant};
use super::pairs::{Match, is_host_of};
use crate::aggregate::{CONFIDENCE, Sample};
use crate::plot::{
    BarGroup, Bars, Caption, Curves, Difference, Differences, Grid, Plot, Point, Positions, Rule, Series,
};
use crate::record::EpochRecord;
use crate::scale::Scale;

/// What accuracies are judged by: less a matter of luck than the last or best epoch.
pub(super) const MAIN: &str = "test_last10";
/// More series than this are spread over several plots.
const MOST_SERIES: usize = 6;
/// More categories than this are not readable.
const MOST_CATEGORIES: usize = 10;
/// Share of cells from which a grid is drawn.
const FILLED: f64 = 0.5;
/// More plots of one kind than this are not drawn.
const MOST_FACETS: usize = 12;

/// A title with the part of the groups that it shows.
fn titled(title: &str, part: &str) -> String {
    if part.is_empty() { title.to_owned() } else { format!("{title}: {part}") }
}

/// What a plug-in adds to its host.
pub(super) fn differences(matches: &[Match]) -> Vec<Plot> {
    let kinds = [
        (MAIN, "What the plug-in adds: test accuracy", "mean of the last ten epochs"),
        (
            "audit_average_precision",
            "What the plug-in adds: wrong labels found",
            "average precision of the audit",
        ),
    ];
    let draw = |(figure, title, what): (&str, &str, &str)| {
        let row = |found: &Match| {
            let sample = found.paired(figure).differences;
            let mean = sample.mean()?;
            let (low, high) = sample.interval(CONFIDENCE).unwrap_or((mean, mean));
            Some(Difference {
                name: found.name.clone(),
                mean: Point::between(mean, low, high),
                pairs: sample.values().to_vec(),
            })
        };
        let note = format!(
            "Host with plug-in minus host alone, seed by seed ({what}): the mean with its 95 % interval, and a dot for each seed."
        );
        let caption = Caption::new(title, note, "percentage points, to the right is better", "");
        Differences { caption, scale: Scale::Points, rows: matches.iter().filter_map(row).collect() }.draw()
    };
    kinds.into_iter().filter_map(draw).collect()
}

/// Accuracy of the methods by noise, where both differ.
pub(super) fn by_noise(groups: &Groups) -> Vec<Plot> {
    if !groups.keys.iter().any(|key| key == "noise") {
        return Vec::new();
    }
    let facets = Groups::facets(&groups.groups, |g| groups.name_without(g, &["host", "plugin", "noise"]));
    let draw = |(part, members): (String, Vec<&Group>)| {
        let noises = Groups::facets(members.iter().copied(), |g| g.setting("noise").to_owned());
        let methods = Groups::facets(members, |g| g.method.clone());
        let bar = |(name, members): &(String, Vec<&Group>)| BarGroup {
            name: name.clone(),
            points: noises.iter().map(|(noise, _)| find(members, "noise", noise)?.point(MAIN)).collect(),
        };
        let bars = Bars {
            caption: Caption::new(
                titled("Test accuracy by noise", &part),
                "Mean of the last ten epochs, mean and deviation over seeds.",
                "noise",
                "test accuracy",
            ),
            scale: Scale::Percent,
            categories: noises.iter().map(|noise| noise.0.clone()).collect(),
            groups: methods.iter().map(bar).collect(),
            rules: Vec::new(),
        };
        (noises.len() > 1).then(|| bars.draw()).flatten()
    };
    facets.into_iter().take(MOST_FACETS).filter_map(draw).collect()
}

fn find<'a>(members: &[&'a Group], key: &str, value: &str) -> Option<&'a Group> {
    members.iter().find(|group| group.setting(key) == value).copied()
}

/// Bars of the variants of the plug-in, where there are at least three.
pub(super) fn ablations(groups: &Groups) -> Vec<Plot> {
    let mut variants: Vec<&str> = groups.groups.iter().map(|g| g.setting("plugin")).collect();
    variants.sort_unstable_by_key(|plugin| (variant(plugin), *plugin));
    variants.dedup();
    if variants.len() < 3 {
        return Vec::new();
    }
    let mut parts = Groups::facets(&groups.groups, |g| groups.name_without(g, &["plugin"]));
    // The host alone has none of the plug-in's settings, and so belongs to every part that it agrees with.
    for (_, members) in parts.iter_mut().filter(|(_, members)| find(members, "plugin", "none").is_none()) {
        let host = groups.groups.iter().find(|host| members.iter().all(|member| is_host_of(host, member)));
        members.extend(host);
    }
    parts.retain(|(_, members)| members.len() > 2);
    let draw = |(number, parts): (usize, &[(String, Vec<&Group>)])| {
        let bar = |(name, members): &(String, Vec<&Group>)| BarGroup {
            name: if name.is_empty() { "test accuracy".to_owned() } else { name.clone() },
            points: variants.iter().map(|plugin| find(members, "plugin", plugin)?.point(MAIN)).collect(),
        };
        let title = if number == 0 { "Ablation".to_owned() } else { format!("Ablation ({})", number + 1) };
        let note = "What is left of the plug-in's gain without one of its parts; mean of the last ten epochs, mean and deviation over seeds.";
        let bars = Bars {
            caption: Caption::new(title, note, "plug-in", "test accuracy"),
            scale: Scale::Percent,
            categories: variants.iter().map(|plugin| (*plugin).to_owned()).collect(),
            groups: parts.iter().map(bar).collect(),
            rules: Vec::new(),
        };
        bars.draw()
    };
    parts.chunks(3).take(MOST_FACETS).enumerate().filter_map(draw).collect()
}

/// A grid over two numeric settings, or a curve over one, where the groups differ in just these.
pub(super) fn sensitivity(groups: &Groups) -> Vec<Plot> {
    let numeric = groups.numeric();
    let value = |group: &Group, key: &str| group.settings.get(key).cloned();
    match numeric.as_slice() {
        [(x, columns), (y, rows)] => {
            let members = groups.groups.iter().filter(|g| value(g, x).is_some() && value(g, y).is_some());
            let facets = Groups::facets(members, |g| groups.name_without(g, &[x, y]));
            let facets: Vec<_> = facets.into_iter().filter(|facet| facet.1.len() > 1).collect();
            let most = facets.iter().map(|facet| facet.1.len()).max().unwrap_or(0);
            if (most as f64) < FILLED * (columns.len() * rows.len()) as f64 {
                return some_pairs(x, y, &facets).into_iter().collect();
            }
            let draw = |(part, members): (String, Vec<&Group>)| {
                let at = |row: &String, column: &String| {
                    members.iter().find(|g| g.setting(x) == column && g.setting(y) == row)?.point(MAIN)
                };
                let cells = rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)));
                let grid = Grid {
                    caption: Caption::new(
                        titled("Sensitivity", &part),
                        "Test accuracy in percent, mean of the last ten epochs; the largest is framed.",
                        short(x),
                        short(y),
                    ),
                    scale: Scale::Percent,
                    columns: columns.clone(),
                    rows: rows.clone(),
                    cells: cells.map(|(row, column)| at(row, column)).collect(),
                };
                grid.draw()
            };
            facets.into_iter().take(MOST_FACETS).filter_map(draw).collect()
        }
        [(x, values)] => {
            let members = groups.groups.iter().filter(|g| value(g, x).is_some());
            let parts = Groups::facets(members, |g| groups.name_without(g, &[x]));
            let one = |(name, members): (String, Vec<&Group>)| Series {
                name: if name.is_empty() { "test accuracy".to_owned() } else { name },
                points: values.iter().map(|value| find(&members, x, value)?.point(MAIN)).collect(),
            };
            let numbers: Vec<f64> = values.iter().filter_map(|value| value.parse().ok()).collect();
            let (least, most) =
                (numbers.first().copied().unwrap_or(0.0), numbers.last().copied().unwrap_or(0.0));
            let is_wide = least > 0.0 && most / least >= 20.0;
            let curves = Curves {
                caption: Caption::new(
                    format!("Sensitivity to {}", short(x)),
                    "Mean of the last ten epochs; the band is the deviation over seeds.",
                    short(x),
                    "test accuracy",
                ),
                scale: Scale::Percent,
                positions: if is_wide { Positions::Powers(numbers) } else { Positions::Numbers(numbers) },
                series: parts.into_iter().map(one).collect(),
            };
            curves.draw().into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Accuracy for the pairs of two settings that were tried, where they are too few for a grid.
fn some_pairs(x: &str, y: &str, facets: &[(String, Vec<&Group>)]) -> Option<Plot> {
    let pair = |group: &Group| format!("{}, {}", group.setting(x), group.setting(y));
    let mut pairs: Vec<String> = Vec::new();
    for group in facets.iter().flat_map(|facet| &facet.1) {
        if !pairs.contains(&pair(group)) {
            pairs.push(pair(group));
        }
    }
    let bar = |(name, members): &(String, Vec<&Group>)| BarGroup {
        name: if name.is_empty() { "test accuracy".to_owned() } else { name.clone() },
        points: pairs.iter().map(|wanted| members.iter().find(|g| pair(g) == *wanted)?.point(MAIN)).collect(),
    };
    let bars = Bars {
        caption: Caption::new(
            "Sensitivity",
            "Mean of the last ten epochs, mean and deviation over seeds.",
            format!("{}, {}", short(x), short(y)),
            "test accuracy",
        ),
        scale: Scale::Percent,
        categories: pairs.clone(),
        groups: facets.iter().map(bar).collect(),
        rules: Vec::new(),
    };
    bars.draw()
}

type Measured = fn(&EpochRecord) -> Option<f64>;

/// What is drawn by epoch: title, note, name of the axis, scale, and whether also where groups are many.
const BY_EPOCH: [(&str, &str, &str, Scale, Measured, bool); 6] = [
    (
        "Test accuracy by epoch",
        "Mean over seeds; the band is the deviation.",
        "test accuracy",
        Scale::Percent,
        |r| r.test_accuracy,
        true,
    ),
    (
        "Memorisation by epoch",
        "Share of wrong labels that the network predicts as given: learnt by heart.",
        "wrong labels memorised",
        Scale::Percent,
        |r| r.fit_wrong_given,
        true,
    ),
    (
        "Seen through by epoch",
        "Share of wrong labels for which the network predicts the true class.",
        "wrong labels seen through",
        Scale::Percent,
        |r| r.fit_wrong_true,
        false,
    ),
    (
        "Right from wrong by epoch",
        "Area under the curve of the clean probability.",
        "separation AUC",
        Scale::Plain,
        |r| r.separation_auc,
        false,
    ),
    (
        "Selection precision by epoch",
        "Of the labels held to be clean, the share that is right.",
        "precision",
        Scale::Percent,
        |r| r.selection_precision,
        false,
    ),
    (
        "Selection recall by epoch",
        "Of the right labels, the share held to be clean.",
        "recall",
        Scale::Percent,
        |r| r.selection_recall,
        false,
    ),
];

/// Curves of all groups side by side.
pub(super) fn by_epoch(groups: &Groups) -> Vec<Plot> {
    let is_many = groups.groups.len() > MOST_SERIES;
    let numeric = groups.numeric();
    // What numeric settings do is the matter of other plots, where their number would be too much here.
    let left_out: Vec<&str> =
        ["host", "plugin"].into_iter().chain(numeric.iter().map(|(key, _)| *key)).collect();
    let mut plots = Vec::new();
    for (title, note, axis, scale, get, is_main) in BY_EPOCH {
        if is_many && !is_main {
            continue;
        }
        let facets = if is_many {
            Groups::facets(&groups.groups, |g| groups.name_without(g, &left_out))
        } else {
            vec![(String::new(), groups.groups.iter().collect())]
        };
        for (part, members) in facets.into_iter().filter(|f| f.1.len() <= 2 * MOST_SERIES).take(MOST_FACETS) {
            let name = |group: &Group| {
                if is_many && numeric.is_empty() { group.method.clone() } else { group.label.clone() }
            };
            let epochs: BTreeSet<u64> =
                members.iter().flat_map(|g| &g.runs).flat_map(|run| &run.records).map(|r| r.epoch).collect();
            let mean = |group: &Group, epoch: u64| {
                let records =
                    group.runs.iter().filter_map(|run| run.records.iter().find(|r| r.epoch == epoch));
                point_of(&records.filter_map(get).collect::<Sample>())
            };
            let one = |group: &&Group| Series {
                name: name(group),
                points: epochs.iter().map(|epoch| mean(group, *epoch)).collect(),
            };
            let curves = Curves {
                caption: Caption::new(titled(title, &part), note, "epoch", axis),
                scale,
                positions: Positions::Numbers(epochs.iter().map(|epoch| *epoch as f64).collect()),
                series: members.iter().map(one).collect(),
            };
            plots.extend(curves.draw());
        }
    }
    plots
}

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
        "Pairs of a right label and a wrong one that says the same.",
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
                Some(Rule {
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
