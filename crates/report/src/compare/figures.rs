//! The plots of a comparison: each appears where the groups differ in what it shows.

use super::groups::{Group, Groups, short, variant};
use super::pairs::{Match, is_host_of};
use crate::plot::{
    BarGroup, Bars, Caption, Curves, Difference, Differences, Grid, Plot, Point, Positions, Series,
};
use crate::scale::Scale;
use negscale_records::statistics::CONFIDENCE;

/// What accuracies are judged by: less a matter of luck than the last or best epoch.
pub(super) const MAIN: &str = "test_last10";
/// Share of cells from which a grid is drawn.
const FILLED: f64 = 0.5;
/// More plots of one kind than this are not drawn.
pub(super) const MOST_FACETS: usize = 12;

/// A title with the part of the groups that it shows.
pub(super) fn titled(title: &str, part: &str) -> String {
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
            "Host with plug-in minus host alone, on the same seeds ({what}): the mean with its 95 % interval, and a dot for each seed."
        );
        let caption = Caption::new(title, note, "percentage points; right is better", "");
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
                "Mean of the last ten epochs, mean and standard deviation over seeds.",
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
        let note = "What remains of the plug-in's gain without one of its parts; mean of the last ten epochs, mean and standard deviation over seeds.";
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
                        "Test accuracy in percent, mean of the last ten epochs; the best is framed.",
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
                    "Mean of the last ten epochs; the band is the standard deviation over seeds.",
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
            "Mean of the last ten epochs, mean and standard deviation over seeds.",
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
