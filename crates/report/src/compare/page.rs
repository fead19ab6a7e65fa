//! The page of a comparison.

use std::collections::BTreeSet;

use askama::Template;

use super::{Comparison, tables};
use crate::error::Result;
use crate::number::duration;
use crate::plot::Plot;
use crate::shown::Shown;

#[derive(Template)]
#[template(path = "comparison.html")]
struct Page<'a> {
    title: String,
    facts: Vec<String>,
    notes: &'a [String],
    results: Shown,
    differences: Option<Shown>,
    runs: Shown,
    settings: Option<Shown>,
    sections: Vec<(&'static str, Vec<Plot>)>,
}

impl Comparison {
    /// The page as one HTML text that needs no network and no script.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn to_html(&self) -> Result<String> {
        let groups = &self.groups.groups;
        let runs = || groups.iter().flat_map(|group| &group.runs);
        let unique = |of: fn(&super::Run) -> &str| -> Vec<&str> {
            runs().map(of).collect::<BTreeSet<_>>().into_iter().collect()
        };
        let methods = groups.iter().map(|group| group.method.as_str()).collect::<BTreeSet<_>>();
        let data = unique(|run| &run.outcome.data);
        let several = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        let what = match methods.iter().collect::<Vec<_>>().as_slice() {
            [only] => (*only).to_string(),
            many => format!("{} methods", many.len()),
        };
        let place = if data.len() == 1 { data[0].to_owned() } else { format!("{} datasets", data.len()) };
        let seconds: f64 = runs().filter_map(|run| run.outcome.figures.get("seconds")).sum();
        let seeds = runs().map(super::Run::seeds).collect::<BTreeSet<_>>().len();
        let mut facts = vec![
            several(runs().count(), "run"),
            several(groups.len(), "group"),
            several(seeds, "seed"),
            format!("{} of training", duration(seconds)),
        ];
        facts.extend(unique(|run| &run.outcome.hardware).into_iter().take(3).map(str::to_owned));
        let versions = unique(|run| &run.outcome.version);
        facts.extend(versions.into_iter().take(3).map(|version| format!("negscale {version}")));
        let matches = super::pairs::matches(&self.groups);
        let page = Page {
            title: format!("{what} on {place}"),
            facts,
            notes: &self.notes,
            results: Shown::of(&tables::results(&self.groups)?),
            differences: tables::differences(&self.groups, &matches)?.as_ref().map(Shown::of),
            runs: Shown::of(&tables::runs(&self.groups)?),
            settings: tables::settings(&self.groups)?.as_ref().map(Shown::of),
            sections: self.sections(),
        };
        Ok(page.render()?)
    }
}
