//! How well the rankings of labels find wrong ones, side by side.

use super::figures::{MOST_FACETS, titled};
use super::groups::{Group, Groups, point_of};
use crate::plot::{Caption, Curves, Plot, Positions, Series};
use crate::scale::Scale;
use negscale_records::statistics::Sample;

/// Precision by recall of every group, a plot for each dataset and noise.
pub(super) fn recall(groups: &Groups) -> Vec<Plot> {
    let facets = Groups::facets(&groups.groups, |g| groups.name_without(g, &["host", "plugin"]));
    let draw = |(part, members): (String, Vec<&Group>)| {
        let longest =
            members.iter().flat_map(|g| &g.runs).map(|run| run.outcome.audit_precision.len()).max()?;
        let precision = |group: &Group, at: usize| {
            let runs = group.runs.iter().filter_map(|run| run.outcome.audit_precision.get(at).copied());
            point_of(&runs.collect::<Sample>())
        };
        let series = |group: &&Group| Series {
            name: group.method.clone(),
            points: (0..longest).map(|at| precision(group, at)).collect(),
        };
        let share = |at: usize| 100.0 * (at + 1) as f64 / longest as f64;
        let note = "Going down the list of suspicious labels until this share of all wrong ones is found: the share of \
                    the listed labels that is wrong. Mean over seeds; the band is the standard deviation.";
        Curves {
            caption: Caption::new(titled("Wrong labels found", &part), note, "found, %", "precision"),
            scale: Scale::Percent,
            positions: Positions::Numbers((0..longest).map(share).collect()),
            series: members.iter().map(series).collect(),
        }
        .draw()
    };
    // Where there are several groups, one alone has nothing beside it.
    let least = groups.groups.len().min(2);
    facets.into_iter().filter(|f| f.1.len() >= least).take(MOST_FACETS).filter_map(draw).collect()
}
