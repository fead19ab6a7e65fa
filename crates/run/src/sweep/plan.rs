//! The runs of a sweep, each with all its settings and its folder.

use super::search::{Choice, Searches, budget_warnings};
use crate::error::bail;
use crate::recipe::{self, Arms, DataSettings, Layers, MatrixCell, Recipe, Study, expand};
use crate::{Result, folder};
use anyhow::Context;
use negscale_data::{Items, NoiseSpec, Splits, noise};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Below every recipe of a sweep: in a sweep, a comparison is a separate run.
const BENEATH: &str = "baseline = \"none\"";

/// Which runs of which recipes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunSelection {
    /// Recipes: TOML files of settings with a table `[matrix]`.
    pub recipes: Vec<PathBuf>,
    /// Settings for all runs, as `KEY=VALUE`.
    pub set: Vec<String>,
    /// Only runs with these settings, as `KEY=VALUE`; several values of one key are alternatives.
    pub only: Vec<String>,
    /// Where data is looked for first.
    pub data_dir: Option<PathBuf>,
}

/// One run.
pub struct PlannedRun {
    /// What tells it from the others.
    pub name: String,
    /// Its settings.
    pub recipe: Recipe,
    /// The same as a table.
    pub settings: Table,
    /// Where it is, or will be.
    pub place: PathBuf,
    /// Whether it learns from features.
    pub is_small: bool,
    /// Its arm, if the recipe has arms. Runs of two arms with the same settings are one run, in one place.
    pub arm: Option<String>,
    /// Whether it is run with development seeds, for a search, and no part of any comparison.
    pub is_development: bool,
}

impl PlannedRun {
    /// The name of its folder.
    #[must_use]
    pub fn folder_name(&self) -> String {
        self.place.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// A setting as text, or its arm; none where the run has no such setting.
    pub fn setting(&self, path: &str) -> Option<String> {
        if path == ARM {
            return self.arm.clone();
        }
        let mut parts = path.split('.');
        let first = self.settings.get(parts.next()?)?;
        let value = parts.try_fold(first, |value, part| value.as_table()?.get(part))?;
        Some(plain(value))
    }
}

/// A run whose settings are chosen by a search that is not over.
pub struct WaitingRun {
    /// What tells it from the others.
    pub name: String,
    /// Development runs that are not done.
    pub left: usize,
}

/// All runs, and which settings vary.
pub struct SweepPlan {
    /// The runs, development runs first, else in the order of the recipes.
    pub runs: Vec<PlannedRun>,
    /// Runs whose settings are not chosen yet.
    pub waiting: Vec<WaitingRun>,
    /// The arms of the recipe.
    pub arms: Option<Arms>,
    /// What was searched for those runs.
    pub choices: Vec<Choice>,
    /// Paths of the settings that the matrices and arms write.
    pub written: Vec<String>,
    /// Notes on how the data was read, and on the arms.
    pub notes: Vec<String>,
}

impl SweepPlan {
    /// Each run once, also if it belongs to several arms.
    pub fn distinct(&self) -> Vec<&PlannedRun> {
        let mut seen = BTreeSet::new();
        self.runs.iter().filter(|run| seen.insert(&run.place)).collect()
    }

    /// The runs that are compared.
    pub fn compared(&self) -> impl Iterator<Item = &PlannedRun> {
        self.runs.iter().filter(|run| !run.is_development)
    }
}

/// What arms are called among settings.
pub const ARM: &str = "arm";

/// A value without quotes.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Data that was opened, and its fingerprint.
struct Opened {
    settings: DataSettings,
    splits: Splits,
    fingerprint: String,
}

/// The runs of the recipes; opens the data to know them by their content.
pub fn plan(which: &RunSelection, below: &Path) -> Result<SweepPlan> {
    let only = Only::parse(&which.only)?;
    let mut planner = Planner { below, recipe: PathBuf::new(), opened: Vec::new(), tables: Vec::new() };
    let (mut runs, mut waiting, mut searches) = (Vec::new(), Vec::new(), None);
    let (mut places, mut written) = (BTreeSet::new(), Vec::<String>::new());
    let data_dir = which
        .data_dir
        .as_ref()
        .map(|folder| folder.to_str().context("--data-dir: the path is not UTF-8; rename it"));
    let data_dir = data_dir.transpose()?;
    for path in &which.recipes {
        planner.recipe.clone_from(path);
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let beneath = Layers::new().with_text("the defaults of a sweep", BENEATH)?;
        let Study { cells, arms } = expand(beneath, &path.display().to_string(), &text)?;
        if arms.is_some() && which.recipes.len() > 1 {
            bail!("{}: a recipe with [arms] is a comparison of its own; give it alone", path.display());
        }
        let over = |layers: Layers| {
            let layers = layers.with_sets(&which.set)?;
            match data_dir {
                Some(folder) => layers.with_flag("--data-dir", "data_dir", folder),
                None => Ok(layers),
            }
        };
        let cells = cells.into_iter().map(|cell| cell.with_layers(over)).collect::<Result<Vec<_>, _>>()?;
        let Some(arms) = arms else {
            for cell in &cells {
                let run = planner.run(cell, None, false)?;
                if only.admits(&run) && places.insert((None, run.place.clone())) {
                    written.extend(cell.written().iter().map(|(path, _)| path.clone()));
                    runs.push(run);
                }
            }
            continue;
        };
        let searches = searches.insert(Searches::new(arms, cells)?);
        for at in 0..searches.cells.len() {
            for arm in searches.arms.arms.clone() {
                let (cell, left) = searches.cell(at, &arm, &mut planner)?;
                let run = planner.run(&cell, Some(&arm.name), false)?;
                if !only.admits(&run) {
                    continue;
                }
                searches.need(at, &arm, &mut planner)?;
                written.extend(cell.written().iter().map(|(path, _)| path.clone()));
                match left {
                    0 if places.insert((run.arm.clone(), run.place.clone())) => runs.push(run),
                    0 => {}
                    left => waiting.push(WaitingRun { name: searches.name_of(at, &arm)?, left }),
                }
            }
        }
    }
    if runs.is_empty() && waiting.is_empty() {
        bail!("--only {}: no run has these settings", which.only.join(","));
    }
    let mut seen = BTreeSet::new();
    written.retain(|path| seen.insert(path.clone()));
    let mut notes: Vec<String> = planner.opened.into_iter().flat_map(|data| data.splits.notes).collect();
    let Some(searches) = searches else {
        return Ok(SweepPlan { runs, waiting, arms: None, choices: Vec::new(), written, notes });
    };
    notes.extend(budget_warnings(&searches.arms));
    let (arms, choices, mut all) = searches.end();
    all.extend(runs);
    Ok(SweepPlan { runs: all, waiting, arms: Some(arms), choices, written, notes })
}

/// Makes runs of cells; remembers the data.
pub struct Planner<'a> {
    below: &'a Path,
    /// The recipe at hand, for errors.
    recipe: PathBuf,
    opened: Vec<Opened>,
    tables: Vec<(DataSettings, String)>,
}

impl Planner<'_> {
    /// The run of a cell.
    pub fn run(&mut self, cell: &MatrixCell, arm: Option<&str>, is_development: bool) -> Result<PlannedRun> {
        let recipe = self.recipe.display().to_string();
        let context = || format!("{recipe}, run {}", cell.name());
        let layers = cell.layers();
        let at = open(&layers.data().with_context(context)?, &mut self.opened).with_context(context)?;
        let data: &Opened = &self.opened[at];
        let recipe = layers.resolve_for(&data.splits.train).with_context(context)?;
        let settings: Table = recipe
            .to_toml()
            .parse()
            .context("the resolved settings cannot be read back; this is a defect, please report it")?;
        let hash = content(&recipe, data, &mut self.tables);
        let place = self.below.join(format!("{}-{hash}", folder::title(&recipe)));
        let is_small = matches!(data.splits.train.items(), Items::Features(_));
        let (name, arm) = (cell.name().to_owned(), arm.map(str::to_owned));
        Ok(PlannedRun { name, recipe, settings, place, is_small, arm, is_development })
    }
}

/// Where in `opened` the data is; noise and tree do not matter here.
fn open(settings: &DataSettings, opened: &mut Vec<Opened>) -> Result<usize> {
    let settings =
        DataSettings { noise: NoiseSpec::None, noise_seed: 0, tree: String::new(), ..settings.clone() };
    if let Some(at) = opened.iter().position(|other| other.settings == settings) {
        return Ok(at);
    }
    let splits = settings.open()?;
    let mut fingerprint = splits.train.fingerprint()?;
    for test in [&splits.test, &splits.second_test].into_iter().flatten() {
        fingerprint += &test.fingerprint()?;
    }
    opened.push(Opened { settings, splits, fingerprint });
    Ok(opened.len() - 1)
}

/// Hash of all that decides a result. Noise that is drawn follows from its settings and the data; that from a table has a
/// hash of its own.
fn content(recipe: &Recipe, data: &Opened, tables: &mut Vec<(DataSettings, String)>) -> String {
    let is_table = matches!(recipe.data.noise, NoiseSpec::CifarN(_) | NoiseSpec::File(_));
    let known = tables.iter().find(|(settings, _)| *settings == recipe.data).map(|(_, hash)| hash.clone());
    let noise = match known {
        _ if !is_table => String::new(),
        Some(hash) => hash,
        None => {
            let context = recipe.data.noise_context();
            let applied =
                noise::apply(&recipe.data.noise, &data.splits.train, recipe.data.noise_seed, &context);
            // What is wrong with it, the run itself will say.
            let hash = applied.map_or_else(|_| "unreadable".into(), |noise| noise.hash);
            tables.push((recipe.data.clone(), hash.clone()));
            hash
        }
    };
    let settings = recipe.fingerprint();
    let words = [settings.as_str(), &data.fingerprint, &noise, env!("CARGO_PKG_VERSION")];
    Sha256::digest(words.join("\n")).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// `--only`: alternatives by key.
struct Only(Vec<(String, Vec<String>)>);

impl Only {
    fn parse(pairs: &[String]) -> Result<Self> {
        let known: BTreeSet<String> = recipe::keys().iter().map(recipe::Key::path).collect();
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for pair in pairs {
            let Some((key, value)) = pair.split_once('=') else {
                bail!("--only {pair}: `=` is missing; write KEY=VALUE, such as host=rolr");
            };
            let (key, value) = (key.trim(), value.trim().to_owned());
            if key != ARM && !known.contains(key) {
                recipe::find(key).with_context(|| format!("--only {pair}"))?;
                bail!("--only {pair}: write the key with its table, such as negscale.lambda=1");
            }
            // A noise has several spellings; runs have the full one.
            let value = match value.parse::<NoiseSpec>() {
                Ok(noise) if key == "noise" => noise.to_string(),
                _ => value,
            };
            match all.iter_mut().find(|(other, _)| other == key) {
                Some((_, values)) => values.push(value),
                None => all.push((key.to_owned(), vec![value])),
            }
        }
        Ok(Self(all))
    }

    fn admits(&self, run: &PlannedRun) -> bool {
        self.0.iter().all(|(key, values)| {
            let found = run.setting(key);
            let is_same = |value: &String| match &found {
                Some(found) => {
                    let numbers = (found.parse::<f64>(), value.parse::<f64>());
                    found == value || matches!(numbers, (Ok(a), Ok(b)) if a == b)
                }
                None => value == "-",
            };
            values.iter().any(is_same)
        })
    }
}
