//! Which group is the same host without its plug-in.

use super::groups::{Group, Groups};
use negscale_records::statistics::Paired;

/// A host with a plug-in, and the same without.
#[derive(Debug)]
pub(super) struct Match<'a> {
    /// What is compared.
    pub name: String,
    pub without: &'a Group,
    pub with: &'a Group,
}

impl Match<'_> {
    /// The differences of a figure by seeds.
    pub fn paired(&self, figure: &str) -> Paired {
        Paired::of(&self.without.by_seeds(figure), &self.with.by_seeds(figure))
    }

    /// How many pairs are of runs that were not made by the same instructions.
    pub fn unlike(&self) -> usize {
        let all =
            self.with.runs.iter().flat_map(|run| self.without.runs.iter().map(move |other| (run, other)));
        all.filter(|(a, b)| a.seeds() == b.seeds() && !a.outcome.is_like(&b.outcome)).count()
    }
}

/// Whether one is the other without its plug-in: they agree in every other setting that both have.
pub(super) fn is_host_of(without: &Group, with: &Group) -> bool {
    let mut shared = without.settings.iter().filter(|(key, _)| *key != "plugin");
    without.setting("plugin") == "none"
        && shared.all(|(key, value)| with.settings.get(key).is_none_or(|other| other == value))
}

/// All pairs of a host with a plug-in and without that share a seed.
pub(super) fn matches(groups: &Groups) -> Vec<Match<'_>> {
    let is_match = |without: &Group, with: &Group| {
        is_host_of(without, with)
            && with.runs.iter().any(|run| without.runs.iter().any(|other| other.seeds() == run.seeds()))
    };
    let mut found = Vec::new();
    for with in groups.groups.iter().filter(|group| group.setting("plugin") != "none") {
        let without = groups.groups.iter().filter(|group| group.setting("plugin") == "none");
        found.extend(without.filter(|without| is_match(without, with)).map(|without| Match {
            name: with.label.clone(),
            without,
            with,
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::groups::tests::run;
    use super::*;

    #[test]
    fn a_plug_in_is_compared_with_its_own_host_on_the_same_seeds() {
        let settings =
            |plugin: &str, noise: &str| format!("host = 'rolr'\nplugin = '{plugin}'\nnoise = '{noise}'");
        let weighted = format!("{}\n[negscale]\nlambda = 1.0", settings("negscale", "sym:0.5"));
        let mut runs = Vec::new();
        for seed in 1..4 {
            runs.push(run(&settings("none", "sym:0.5"), seed, 0.5 + seed as f64 / 100.0));
            runs.push(run(&settings("none", "sym:0.8"), seed, 0.3));
            runs.push(run(&weighted, seed + 1, 0.53 + seed as f64 / 100.0));
        }
        let groups = Groups::of(runs);
        let found = matches(&groups);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "rolr + negscale, sym:0.5");
        let paired = found[0].paired("test_last10");
        assert_eq!((paired.differences.count(), paired.unpaired), (2, 2));
        assert!((paired.differences.mean().unwrap() - 0.02).abs() < 1e-12);
    }
}
