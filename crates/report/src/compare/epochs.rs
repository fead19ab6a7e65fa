//! Curves of all groups by epoch, side by side.

use std::collections::BTreeSet;

use super::figures::{MOST_FACETS, titled};
use super::groups::{Group, Groups, point_of};
use crate::plot::{Caption, Curves, Plot, Positions, Series};
use crate::scale::Scale;
use negscale_records::EpochRecord;
use negscale_records::statistics::Sample;

/// More series than this are spread over several plots.
const MOST_SERIES: usize = 6;

type Measured = fn(&EpochRecord) -> Option<f64>;

/// What is drawn by epoch: title, note, name of the axis, scale, and whether also where groups are many.
const BY_EPOCH: [(&str, &str, &str, Scale, Measured, bool); 6] = [
    (
        "Test accuracy by epoch",
        "Mean over seeds; the band is the standard deviation.",
        "test accuracy",
        Scale::Percent,
        |r| r.test_accuracy,
        true,
    ),
    (
        "Memorisation by epoch",
        "Share of wrong labels that the network predicts as given.",
        "wrong labels memorised",
        Scale::Percent,
        |r| r.fit_wrong_given,
        true,
    ),
    (
        "Recovered labels by epoch",
        "Share of wrong labels for which the network predicts the true class.",
        "wrong labels recovered",
        Scale::Percent,
        |r| r.fit_wrong_true,
        false,
    ),
    (
        "Separation of right and wrong labels by epoch",
        "Area under the ROC curve of the clean probability.",
        "separation AUC",
        Scale::Plain,
        |r| r.separation_auc,
        false,
    ),
    (
        "Selection precision by epoch",
        "Of the labels selected as clean, the share that is right.",
        "precision",
        Scale::Percent,
        |r| r.selection_precision,
        false,
    ),
    (
        "Selection recall by epoch",
        "Of the right labels, the share selected as clean.",
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
