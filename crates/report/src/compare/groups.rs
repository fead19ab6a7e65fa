//! Runs that differ by their seeds only form a group; groups are named by what tells them apart.
//!
//! Often one setting follows another (a method's own learning rate), so not all that differs is worth a name: going through
//! the settings in a fixed order, a setting becomes part of the names only if it tells groups apart that the words among
//! those before it do not. Numbers do not count there: two weights that were changed together are both named.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use toml::{Table, Value};

use crate::outcome::{Outcome, mark_true_labels};
use crate::plot::Point;
use negscale_records::EpochRecord;
use negscale_records::statistics::Sample;

/// Settings that do not change what is trained, or only by chance.
const IGNORED: [&str; 9] =
    ["seed", "noise_seed", "data_dir", "threads", "device", "baseline", "similarity", "probe", "probe_steps"];
/// Settings that are named first, in this order.
const FIRST: [&str; 6] = ["host", "plugin", "data", "noise", "net", "epochs"];
/// Plug-ins in the order of ablations.
const VARIANTS: [&str; 5] = ["none", "no-snop", "no-dcsa", "random-pairs", "negscale"];

/// A finished run.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub outcome: Outcome,
    pub records: Vec<EpochRecord>,
    /// `analysis.json`, if there is one.
    pub analysis: Option<Json>,
}

impl Run {
    /// What pairs it with a run of another group.
    pub fn seeds(&self) -> (u64, u64) {
        (self.outcome.seed, self.outcome.noise_seed)
    }
}

/// Runs that differ by their seeds only.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub runs: Vec<Run>,
    /// All settings by their paths, except those that do not matter.
    pub settings: BTreeMap<String, String>,
    /// Host and plug-in.
    pub method: String,
    /// What tells it apart from the others, or the method if nothing does.
    pub label: String,
}

impl Group {
    pub fn setting(&self, key: &str) -> &str {
        self.settings.get(key).map_or("", String::as_str)
    }

    /// The figure of that name over all runs that have it.
    pub fn sample(&self, figure: &str) -> Sample {
        self.runs.iter().filter_map(|run| run.outcome.figures.get(figure).copied()).collect()
    }

    /// Its mean and deviation.
    pub fn point(&self, figure: &str) -> Option<Point> {
        point_of(&self.sample(figure))
    }

    /// The figure by seeds.
    pub fn by_seeds(&self, figure: &str) -> BTreeMap<(u64, u64), f64> {
        let of = |run: &Run| Some((run.seeds(), *run.outcome.figures.get(figure)?));
        self.runs.iter().filter_map(of).collect()
    }
}

/// Mean and deviation.
pub(super) fn point_of(sample: &Sample) -> Option<Point> {
    Some(Point::spread(sample.mean()?, sample.deviation().unwrap_or(0.0)))
}

/// Groups, and the settings that tell them apart.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    pub groups: Vec<Group>,
    /// Settings in the names, the most important first.
    pub keys: Vec<String>,
    /// All settings that differ.
    pub differing: Vec<String>,
}

impl Groups {
    pub fn of(runs: Vec<Run>) -> Self {
        let mut by_settings: BTreeMap<BTreeMap<String, String>, Vec<Run>> = BTreeMap::new();
        for run in runs {
            by_settings.entry(flatten(&run.outcome.settings)).or_default().push(run);
        }
        let mut groups: Vec<Group> = by_settings
            .into_iter()
            .map(|(settings, mut runs)| {
                runs.sort_by_key(Run::seeds);
                let method = runs[0].outcome.method();
                Group { runs, settings, label: method.clone(), method }
            })
            .collect();
        let (keys, differing) = tell_apart(&groups);
        let others: Vec<&String> =
            keys.iter().filter(|key| !["host", "plugin"].contains(&key.as_str())).collect();
        groups.sort_by(|a, b| {
            let by_rest = others.iter().map(|key| by_number(a.setting(key), b.setting(key)));
            let by_method = [
                a.setting("host").cmp(b.setting("host")),
                variant(a.setting("plugin")).cmp(&variant(b.setting("plugin"))),
                a.method.cmp(&b.method),
            ];
            by_rest.chain(by_method).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
        let mut named = Self { groups, keys, differing };
        let labels: Vec<String> = named.groups.iter().map(|group| named.name_without(group, &[])).collect();
        for (group, label) in named.groups.iter_mut().zip(labels).filter(|(_, label)| !label.is_empty()) {
            group.label = label;
        }
        named
    }

    /// Settings in the names that are numbers wherever they are set, with their values in order.
    pub fn numeric(&self) -> Vec<(&str, Vec<String>)> {
        let values = |key: &str| {
            let mut values: Vec<String> =
                self.groups.iter().filter_map(|g| g.settings.get(key).cloned()).collect();
            values.sort_by(|a, b| by_number(a, b));
            values.dedup();
            values
        };
        let keys = self.keys.iter().map(|key| (key.as_str(), values(key)));
        keys.filter(|(_, values)| values.len() > 1 && values.iter().all(|v| v.parse::<f64>().is_ok()))
            .collect()
    }

    /// Groups by what `part` says of them, in their order.
    pub fn facets<'a>(
        groups: impl IntoIterator<Item = &'a Group>,
        part: impl Fn(&Group) -> String,
    ) -> Vec<(String, Vec<&'a Group>)> {
        let mut facets: Vec<(String, Vec<&Group>)> = Vec::new();
        for group in groups {
            let name = part(group);
            match facets.iter_mut().find(|facet| facet.0 == name) {
                Some(facet) => facet.1.push(group),
                None => facets.push((name, vec![group])),
            }
        }
        facets
    }

    /// The name of a group without some settings.
    pub fn name_without(&self, group: &Group, left_out: &[&str]) -> String {
        let mut words = Vec::new();
        let has = |key: &str| self.keys.iter().any(|k| k == key);
        if (has("host") || has("plugin")) && !left_out.contains(&"host") {
            let without_plugin = left_out.contains(&"plugin") || group.setting("plugin") == "none";
            let true_labels = group.runs.first().map_or(0, |run| run.outcome.true_labels());
            let host = || mark_true_labels(group.setting("host"), true_labels);
            words.push(if without_plugin { host() } else { group.method.clone() });
        }
        for key in &self.keys {
            if ["host", "plugin"].contains(&key.as_str()) || left_out.contains(&key.as_str()) {
                continue;
            }
            if let Some(value) = group.settings.get(key) {
                let is_plain = ["data", "noise", "net"].contains(&key.as_str());
                words.push(if is_plain { value.clone() } else { format!("{} {value}", short(key)) });
            }
        }
        words.join(", ")
    }
}

/// The last part of a setting's path.
pub(super) fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Place of a plug-in among the ablations.
pub(super) fn variant(plugin: &str) -> usize {
    VARIANTS.iter().position(|known| *known == plugin).unwrap_or(VARIANTS.len())
}

/// Numbers by their size, before words by their letters.
fn by_number(a: &str, b: &str) -> Ordering {
    if a.is_empty() || b.is_empty() {
        // What is not set comes first.
        return b.is_empty().cmp(&a.is_empty());
    }
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => x.total_cmp(&y),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

/// All settings by their paths, except those that do not matter.
fn flatten(settings: &Table) -> BTreeMap<String, String> {
    let mut flat = BTreeMap::new();
    let mut open: Vec<(String, &Table)> = vec![(String::new(), settings)];
    while let Some((place, table)) = open.pop() {
        for (key, value) in table {
            let path = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
            match value {
                Value::Table(inner) => open.push((path, inner)),
                _ if IGNORED.contains(&path.as_str()) => {}
                Value::String(text) => drop(flat.insert(path, text.clone())),
                other => drop(flat.insert(path, other.to_string())),
            }
        }
    }
    flat
}

/// The settings that tell the groups apart, and all that differ.
fn tell_apart(groups: &[Group]) -> (Vec<String>, Vec<String>) {
    let all: BTreeSet<&String> = groups.iter().flat_map(|group| group.settings.keys()).collect();
    let first = groups.first();
    let differs = |key: &str| {
        groups.iter().any(|group| Some(group.settings.get(key)) != first.map(|f| f.settings.get(key)))
    };
    let mut differing: Vec<String> = all.into_iter().filter(|key| differs(key)).cloned().collect();
    differing.sort_by_key(|key| FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len()));
    let is_number = |key: &String| {
        groups.iter().filter_map(|g| g.settings.get(key)).all(|value| value.parse::<f64>().is_ok())
    };
    let value = |group: &Group, key: &String| group.settings.get(key).cloned();
    let mut keys: Vec<String> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    for key in &differing {
        let is_split = groups.iter().enumerate().any(|(at, a)| {
            let agree = |b: &Group| words.iter().all(|known| value(a, known) == value(b, known));
            groups[at + 1..].iter().any(|b| value(a, key) != value(b, key) && agree(b))
        });
        if is_split {
            keys.push(key.clone());
            if !is_number(key) {
                words.push(key.clone());
            }
        }
    }
    (keys, differing)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A run with some settings, its seed, and an accuracy.
    pub fn run(settings: &str, seed: u64, accuracy: f64) -> Run {
        let mut settings: Table = settings.parse().unwrap();
        settings.insert("seed".into(), Value::Integer(seed as i64));
        let text = |key: &str| settings.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let outcome = Outcome {
            folder: format!("runs/{seed}").into(),
            host: text("host"),
            plugin: text("plugin"),
            acting: text("plugin"),
            net: text("net"),
            data: text("data"),
            noise: text("noise"),
            noise_seed: 0,
            seed,
            epochs: 2,
            noise_achieved: Some(0.45),
            noise_convention: None,
            figures: BTreeMap::from([
                ("test_last10".to_owned(), accuracy),
                ("test_last".to_owned(), accuracy),
                ("seconds".to_owned(), 12.0),
            ]),
            baseline: BTreeMap::new(),
            audit_precision: Vec::new(),
            version: "0.1.0".into(),
            hardware: "a machine".into(),
            instructions: None,
            started: None,
            settings,
        };
        let record = |epoch: u64| {
            let mut record = EpochRecord::new(epoch, 1.0, 0.1);
            record.test_accuracy = Some(accuracy);
            record.fit_wrong_given = Some(0.1 * epoch as f64);
            record
        };
        Run { outcome, records: (0..2).map(record).collect(), analysis: None }
    }

    fn labels(groups: &Groups) -> Vec<String> {
        groups.groups.iter().map(|group| group.label.clone()).collect()
    }

    #[test]
    fn runs_that_differ_by_seed_and_threads_only_are_one_group() {
        let settings =
            |threads: u32| format!("host = 'rolr'\nplugin = 'none'\nnoise = 'sym:0.5'\nthreads = {threads}");
        let groups = Groups::of(vec![run(&settings(1), 2, 0.5), run(&settings(2), 1, 0.7)]);
        assert_eq!(labels(&groups), ["rolr"]);
        assert_eq!(groups.groups[0].point("test_last10").unwrap().value, 0.6);
        assert_eq!(groups.groups[0].runs[0].outcome.seed, 1);
        assert!(groups.keys.is_empty());
    }

    #[test]
    fn names_hold_what_tells_groups_apart_and_no_more() {
        let settings = |host: &str, lr: f64, noise: &str| {
            format!("host = '{host}'\nplugin = 'none'\nnoise = '{noise}'\n[optimiser]\nlr = {lr}")
        };
        let runs = [("rolr", 0.1), ("anne", 0.02)].into_iter().flat_map(|(host, lr)| {
            ["sym:0.8", "sym:0.5"].map(|noise| run(&settings(host, lr, noise), 1, 0.5))
        });
        let groups = Groups::of(runs.collect());
        assert_eq!(labels(&groups), ["anne, sym:0.5", "rolr, sym:0.5", "anne, sym:0.8", "rolr, sym:0.8"]);
        assert_eq!(groups.keys, ["host", "noise"]);
        assert_eq!(groups.differing, ["host", "noise", "optimiser.lr"]);
    }

    #[test]
    fn numbers_are_sorted_by_size() {
        let settings =
            |lambda: f64| format!("host = 'rolr'\nplugin = 'negscale'\n[negscale]\nlambda = {lambda:?}");
        let groups = Groups::of([10.0, 2.0, 0.5].into_iter().map(|l| run(&settings(l), 1, 0.5)).collect());
        assert_eq!(labels(&groups), ["lambda 0.5", "lambda 2.0", "lambda 10.0"]);
        assert_eq!(
            groups.numeric(),
            [("negscale.lambda", vec!["0.5".to_owned(), "2.0".into(), "10.0".into()])]
        );
    }
}
