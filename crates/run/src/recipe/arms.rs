//! `[arms]`: what a claim is compared with, in every cell of `[matrix]`; `[search]`: how arms are tuned.
//!
//! ```toml
//! [arms]
//! host = { plugin = "none" }
//! tuned-host = { like = "host", search = { "optimiser.weight_decay" = [5e-4, 0.01], "optimiser.lr" = [0.01, 0.02] } }
//! plugin = { plugin = "negscale", search = { "negscale.lambda" = [1, 100], "negscale.mu" = [1, 1000] } }
//! permuted = { like = "plugin", search = "plugin", tree = "permuted:{seed}" }
//!
//! [search]
//! seeds = [101, 102]
//! ```
//!
//! An arm is a table of settings over those of a cell. `like` takes all of an arm above it first, its search included;
//! `{seed}` in a text is the run's seed. An arm with a grid, `search = { ... }`, is tuned: every point of the grid is run with the
//! development seeds, and the one with the largest mean of `figure` is used with the seeds of the matrix; `search = "ARM"` takes
//! what is chosen for that arm. `tried` says how many runs were spent elsewhere to find the values of an arm without a grid.
//! `claim` names the arm that all others are controls of (default: `plugin`).

use super::layers::{Layers, wrong};
use super::matrix::{MatrixCell, checked, flatten, plain, said};
use negscale_methods::{Error, Result};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Settings by which runs of a comparison are paired.
pub const SEEDS: [&str; 2] = ["seed", "noise_seed"];
/// What `{seed}` is replaced by where only the words are checked.
const ANY_SEED: u64 = 0;
/// The default of the settings.
const DEFAULT_SEED: u64 = 1;

/// Settings by their paths, in the order of the file.
pub type SettingList = Vec<(String, Value)>;

/// The arms of a comparison.
#[derive(Debug, Clone)]
pub struct Arms {
    /// The arm that is claimed to be better.
    pub claim: String,
    /// All arms, in the order of the file.
    pub arms: Vec<Arm>,
    /// How those with a grid are tuned.
    pub search: Search,
    place: String,
}

/// One arm.
#[derive(Debug, Clone, Default)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// Its settings, as written.
    pub settings: SettingList,
    /// The points of its grid; empty if it is not tuned.
    pub grid: Vec<SettingList>,
    /// The arm whose choice it takes.
    pub follows: Option<String>,
    /// Runs that were spent elsewhere to find its values.
    pub tried: Option<u64>,
}

/// How arms are tuned.
#[derive(Debug, Clone)]
pub struct Search {
    /// Seeds of the development runs, each with a noise seed.
    pub seeds: Vec<SettingList>,
    /// What is to be largest.
    pub figure: String,
    /// Settings by whose values choices are made apart; `None`: all of a cell.
    pub per: Option<Vec<String>>,
}

impl Arms {
    pub(super) fn read(
        arms: Option<Value>,
        search: Option<Value>,
        common: &Layers,
        place: &str,
        order: &BTreeMap<String, usize>,
    ) -> Result<Option<Self>> {
        let Some(arms) = arms else {
            let problem = "[search] tunes arms, and there is no [arms]; add one, or remove it";
            return if search.is_some() { Err(wrong(format!("in {place}"), problem)) } else { Ok(None) };
        };
        let Value::Table(mut arms) = arms else {
            return Err(wrong(format!("in {place}"), "`arms` must be a table: write [arms]"));
        };
        let claim = match arms.remove("claim") {
            None => None,
            Some(Value::String(name)) => Some(name),
            Some(_) => return Err(wrong(format!("in {place}, [arms] `claim`"), "it must name an arm")),
        };
        let at = |key: &str| order.get(key).copied().unwrap_or(usize::MAX);
        let mut tables: Vec<(String, Value)> = arms.into_iter().collect();
        tables.sort_by_key(|(name, _)| at(name));
        let mut all: Vec<Arm> = Vec::new();
        for (name, value) in tables {
            let reader = Reader { place: format!("{place}, [arms] `{name}`"), common, order };
            all.push(reader.arm(name, value, &all)?);
        }
        let names: Vec<&str> = all.iter().map(|arm| arm.name.as_str()).collect();
        let claim = claim.unwrap_or_else(|| "plugin".into());
        if all.len() < 2 || !names.contains(&claim.as_str()) {
            let problem = format!(
                "the arm that is claimed to be better is `{claim}`, and at least one other is needed to compare it with; there are: {}. \
                 Write claim = \"NAME\" if it has another name",
                names.join(", ")
            );
            return Err(wrong(format!("in {place}, [arms]"), problem));
        }
        let search = Search::read(search, common, place, all.iter().any(|arm| !arm.grid.is_empty()))?;
        Ok(Some(Self { claim, arms: all, search, place: place.into() }))
    }

    /// An arm by its name.
    pub fn get(&self, name: &str) -> Option<&Arm> {
        self.arms.iter().find(|arm| arm.name == name)
    }

    /// The arm whose grid decides the values of this one, if any does.
    pub fn searched<'a>(&'a self, arm: &'a Arm) -> Option<&'a Arm> {
        let searched = arm.follows.as_deref().and_then(|name| self.get(name)).unwrap_or(arm);
        (!searched.grid.is_empty()).then_some(searched)
    }

    /// How many runs were spent to find the values of an arm in a cell.
    pub fn budget(&self, arm: &Arm) -> u64 {
        let own = |arm: &Arm| (arm.grid.len() * self.search.seeds.len()) as u64;
        self.searched(arm).map_or_else(|| arm.tried.unwrap_or(0), own)
    }

    /// A cell in an arm, at a point of its grid; with other seeds, if they are given.
    pub fn cell(
        &self,
        cell: &MatrixCell,
        arm: &Arm,
        point: &SettingList,
        seeds: Option<&SettingList>,
    ) -> Result<MatrixCell> {
        let place = format!("{}, [arms] `{}`", self.place, arm.name);
        let mut settings = cell.settings.clone();
        let mut layers = cell.layers.clone();
        if let Some(seeds) = seeds {
            settings.retain(|(path, _)| !SEEDS.contains(&path.as_str()));
            settings.extend(seeds.iter().cloned());
            layers = layers.clone().with_entries(checked(
                seeds,
                &layers,
                &format!("{}, [search] `seeds`", self.place),
            )?);
        }
        let own: SettingList = arm.settings.iter().chain(point).cloned().collect();
        if let Some((path, _)) = own.iter().find(|(path, _)| settings.iter().any(|(other, _)| other == path))
        {
            let problem = format!("both [matrix] and this arm set `{path}`; only one of them may");
            return Err(wrong(format!("in {place}"), problem));
        }
        let seed = layers.whole("seed").unwrap_or(DEFAULT_SEED);
        let own = with_seed(&own, seed);
        let entries = checked(&own, &layers, &place)?;
        let before = if settings.is_empty() { String::new() } else { format!("{}, ", said(&settings)) };
        let after = if point.is_empty() { String::new() } else { format!(", {}", said(point)) };
        let name = format!("{before}arm={}{after}", arm.name);
        settings.extend(own);
        Ok(MatrixCell { name, settings, layers: layers.with_entries(entries) })
    }

    /// What choices are made apart by: the values of `per`, or all that a cell has beside its seeds.
    pub fn group(&self, cell: &MatrixCell) -> String {
        let Some(per) = &self.search.per else {
            let others = cell.settings.iter().filter(|(path, _)| !SEEDS.contains(&path.as_str()));
            return said(&others.cloned().collect::<Vec<_>>());
        };
        let value =
            |path: &String| cell.layers.get(path).map_or("default".into(), |entry| plain(&entry.value));
        per.iter().map(|path| format!("{path}={}", value(path))).collect::<Vec<_>>().join(", ")
    }
}

/// Texts with `{seed}` filled in.
fn with_seed(settings: &SettingList, seed: u64) -> SettingList {
    let fill = |value: &Value| match value {
        Value::String(text) => Value::String(text.replace("{seed}", &seed.to_string())),
        other => other.clone(),
    };
    settings.iter().map(|(path, value)| (path.clone(), fill(value))).collect()
}

/// Reads an arm.
struct Reader<'a> {
    place: String,
    common: &'a Layers,
    order: &'a BTreeMap<String, usize>,
}

impl Reader<'_> {
    fn wrong(&self, problem: impl Into<String>) -> Error {
        wrong(format!("in {}", self.place), problem)
    }

    fn arm(&self, name: String, value: Value, above: &[Arm]) -> Result<Arm> {
        let Value::Table(mut table) = value else {
            return Err(self.wrong("it must be a table of settings, such as { plugin = \"none\" }"));
        };
        let named = |value: &Value, what: &str| {
            let found = value.as_str().and_then(|name| above.iter().find(|arm| arm.name == name));
            let names: Vec<&str> = above.iter().map(|arm| arm.name.as_str()).collect();
            found.ok_or_else(|| {
                self.wrong(format!("`{what}` must name an arm above it; these are: {}", names.join(", ")))
            })
        };
        let mut arm = match table.remove("like") {
            Some(like) => named(&like, "like")?.clone(),
            None => Arm::default(),
        };
        arm.name.clone_from(&name);
        if let Some(tried) = table.remove("tried") {
            let count = tried.as_integer().and_then(|count| u64::try_from(count).ok());
            arm.tried =
                Some(count.ok_or_else(|| self.wrong("`tried` must be a number of runs, 0 or larger"))?);
        }
        match table.remove("search") {
            None => {}
            Some(Value::Table(grid)) => (arm.grid, arm.follows) = (self.grid(&name, grid)?, None),
            Some(other) => {
                let searched = named(&other, "search = \"ARM\"")?;
                if searched.grid.is_empty() {
                    return Err(self.wrong(format!("`search`: arm `{}` has no grid", searched.name)));
                }
                (arm.grid, arm.follows) = (Vec::new(), Some(searched.name.clone()));
            }
        }
        for (path, value) in self.sorted(&name, flatten(table)) {
            arm.settings.retain(|(other, _)| *other != path);
            arm.settings.push((path, value));
        }
        let searched = above.iter().find(|other| arm.follows.as_deref() == Some(&other.name)).unwrap_or(&arm);
        let points: Vec<&SettingList> = searched.grid.iter().collect();
        let searched = points.first().into_iter().flat_map(|point| point.iter());
        for (path, _) in arm.settings.iter().chain(searched.clone()) {
            if SEEDS.contains(&path.as_str()) {
                return Err(
                    self.wrong(format!("`{path}` belongs into [matrix]: arms are compared on equal seeds"))
                );
            }
        }
        if let Some((path, _)) =
            searched.into_iter().find(|(path, _)| arm.settings.iter().any(|(own, _)| own == path))
        {
            return Err(self.wrong(format!("`{path}` has a value and is searched; only one of them may be")));
        }
        for settings in points.into_iter().chain([&arm.settings]) {
            checked(&with_seed(settings, ANY_SEED), self.common, &self.place)?;
        }
        Ok(arm)
    }

    /// In the order of the file.
    fn sorted(&self, inside: &str, mut settings: SettingList) -> SettingList {
        settings.sort_by_key(|(path, _)| {
            self.order.get(&format!("{inside}.{path}")).copied().unwrap_or(usize::MAX)
        });
        settings
    }

    /// All points of a grid, the last key changing fastest.
    fn grid(&self, name: &str, table: Table) -> Result<Vec<SettingList>> {
        let mut points = vec![SettingList::new()];
        for (path, values) in self.sorted(&format!("{name}.search"), flatten(table)) {
            let Some(values) = values.as_array().filter(|values| !values.is_empty()) else {
                return Err(
                    self.wrong(format!("`search`, `{path}`: it must be a list of values, at least one"))
                );
            };
            let longer = |point: &SettingList, value: &Value| {
                point.iter().cloned().chain([(path.clone(), value.clone())]).collect()
            };
            points = points
                .iter()
                .flat_map(|point| values.iter().map(move |value| longer(point, value)))
                .collect();
        }
        if points[0].is_empty() {
            return Err(self.wrong("`search` has no settings; name some with their values, or remove it"));
        }
        Ok(points)
    }
}

impl Search {
    fn read(table: Option<Value>, common: &Layers, place: &str, is_needed: bool) -> Result<Self> {
        let wrong = |problem: &str| wrong(format!("in {place}, [search]"), problem);
        let mut table = match table {
            None => Table::new(),
            Some(Value::Table(table)) => table,
            Some(_) => return Err(wrong("it must be a table")),
        };
        const SEED_WORDS: &str = "`seeds` must be a list of whole numbers, each seed and noise seed of a development run, or of tables \
            such as { seed = 101, noise_seed = 101 }";
        let seeds = match table.remove("seeds") {
            Some(Value::Array(seeds)) => seeds,
            Some(_) => return Err(wrong(SEED_WORDS)),
            None => Vec::new(),
        };
        let seeds: Vec<SettingList> = seeds
            .into_iter()
            .map(|seed| match seed {
                Value::Integer(_) => Ok(SEEDS.map(|path| (path.to_owned(), seed.clone())).into()),
                Value::Table(table)
                    if table.len() == 2 && SEEDS.iter().all(|path| table.contains_key(*path)) =>
                {
                    Ok(flatten(table))
                }
                _ => Err(wrong(SEED_WORDS)),
            })
            .collect::<Result<_>>()?;
        for seed in &seeds {
            checked(seed, common, &format!("{place}, [search] `seeds`"))?;
        }
        if is_needed && seeds.is_empty() {
            return Err(wrong(
                "an arm is tuned, so development seeds are needed, other than those of the matrix: seeds = [101, 102]",
            ));
        }
        let figure = match table.remove("figure") {
            None => "validation_last10".to_owned(),
            Some(Value::String(figure)) => figure,
            Some(_) => return Err(wrong("`figure` must be the name of a figure, such as \"test_last10\"")),
        };
        let per = match table.remove("per") {
            None => None,
            Some(value) => {
                let paths =
                    value.as_array().map(|paths| paths.iter().map(|path| path.as_str().map(str::to_owned)));
                let paths: Option<Vec<String>> = paths.and_then(Iterator::collect);
                let paths = paths
                    .ok_or_else(|| wrong("`per` must be a list of settings, such as [\"data\", \"host\"]"))?;
                for path in &paths {
                    if !super::find(path)?.iter().any(|key| key.path() == *path)
                        || SEEDS.contains(&path.as_str())
                    {
                        return Err(wrong(&format!(
                            "`per`: `{path}` is not a single setting other than seeds"
                        )));
                    }
                }
                Some(paths)
            }
        };
        if let Some(key) = table.keys().next() {
            return Err(wrong(&format!("there is no key `{key}`; there are seeds, figure and per")));
        }
        Ok(Self { seeds, figure, per })
    }
}
