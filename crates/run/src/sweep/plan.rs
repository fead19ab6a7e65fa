//! The runs of a sweep, each with all its settings and its folder.

use crate::error::bail;
use crate::recipe::{self, DataSettings, Layers, Recipe, expand};
use crate::{Result, folder};
use anyhow::Context;
use negscale_data::{Items, NoiseSpec, Splits, noise};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Below every recipe of a sweep: in a sweep, a comparison is a separate run.
const BENEATH: &str = "baseline = \"none\"";

/// Which runs of which recipes.
#[derive(Debug, Clone, Default)]
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
}

impl PlannedRun {
    /// A setting as text; none where the run has no such setting.
    pub fn setting(&self, path: &str) -> Option<String> {
        let mut parts = path.split('.');
        let first = self.settings.get(parts.next()?)?;
        let value = parts.try_fold(first, |value, part| value.as_table()?.get(part))?;
        Some(plain(value))
    }
}

/// All runs, and which settings vary.
pub struct SweepPlan {
    /// The runs, in the order of the recipes, each once.
    pub runs: Vec<PlannedRun>,
    /// Paths of the settings that the matrices write.
    pub written: Vec<String>,
    /// Notes on how the data was read.
    pub notes: Vec<String>,
}

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
    let (mut opened, mut runs, mut written) =
        (Vec::<Opened>::new(), Vec::<PlannedRun>::new(), Vec::<String>::new());
    let (mut places, mut tables) = (BTreeSet::new(), Vec::new());
    for path in &which.recipes {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let beneath = Layers::new().with_text("the defaults of a sweep", BENEATH)?;
        for cell in expand(beneath, &path.display().to_string(), &text)? {
            let context = || format!("{}, run {}", path.display(), cell.name());
            let mut layers = cell.layers().clone().with_sets(&which.set)?;
            if let Some(folder) = &which.data_dir {
                let folder = folder.to_str().context("--data-dir: the path is not UTF-8; rename it")?;
                layers = layers.with_flag("--data-dir", "data_dir", folder)?;
            }
            let at = open(&layers.data().with_context(context)?, &mut opened).with_context(context)?;
            let data: &Opened = &opened[at];
            let recipe = layers.resolve_for(&data.splits.train).with_context(context)?;
            let settings: Table = recipe
                .to_toml()
                .parse()
                .context("the resolved settings cannot be read back; this is a defect, please report it")?;
            let hash = content(&recipe, data, &mut tables);
            let place = below.join(format!("{}-{hash}", folder::title(&recipe)));
            let is_small = matches!(data.splits.train.items(), Items::Features(_));
            let run = PlannedRun { name: cell.name().to_owned(), recipe, settings, place, is_small };
            if only.admits(&run) && places.insert(run.place.clone()) {
                written.extend(cell.written().keys().cloned());
                runs.push(run);
            }
        }
    }
    if runs.is_empty() {
        bail!("--only {}: no run has these settings", which.only.join(","));
    }
    let mut seen = BTreeSet::new();
    written.retain(|path| seen.insert(path.clone()));
    let notes = opened.into_iter().flat_map(|data| data.splits.notes).collect();
    Ok(SweepPlan { runs, written, notes })
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
            if !known.contains(key) {
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
