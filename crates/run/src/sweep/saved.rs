//! The plan of a sweep in a file: made once, where the data is at hand; workers anywhere read it, and open only what they run.
//!
//! A JSON object per line: how the plan was made, then its runs. Once the searches of a plan are over, whoever ends the last of them
//! makes the plan anew, with the runs that waited for their choice.

use super::plan::{PlannedRun, RunSelection, SweepPlan, plan};
use crate::error::bail;
use crate::folder::write;
use crate::recipe::Layers;
use crate::{Result, clock};
use anyhow::Context;
use negscale_atomic_file::OwnFolder;
use negscale_methods::host::ItemKind;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Its name in the folder of the sweep.
const PLAN: &str = "plan.jsonl";
/// What the first line says it is.
const KIND: &str = "negscale sweep plan";

/// The first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Head {
    kind: String,
    version: String,
    /// The folder that relative paths begin in.
    folder: PathBuf,
    selection: RunSelection,
    /// Parent folder of the runs' folders.
    below: PathBuf,
    round: String,
    waiting: usize,
}

/// A run.
#[derive(Serialize, Deserialize)]
struct Line {
    name: String,
    place: String,
    arm: Option<String>,
    is_development: bool,
    is_small: bool,
    settings: String,
}

/// A plan that was written.
pub struct SavedPlan {
    path: PathBuf,
    head: Head,
    /// Its runs, each once, searches first.
    pub runs: Vec<PlannedRun>,
}

impl SavedPlan {
    /// Writes a plan that was made of this selection, into the folder of its sweep.
    pub fn of(planned: &SweepPlan, selection: RunSelection, below: &Path) -> Result<Self> {
        let full = |path: &PathBuf| std::path::absolute(path);
        let here = std::env::current_dir().context("cannot tell the current folder")?;
        let below = full(&below.to_owned())?;
        let place =
            Self::folder_of(selection.recipes.first().map_or(Path::new(""), PathBuf::as_path), &below);
        let selection = RunSelection {
            recipes: selection.recipes.iter().map(full).collect::<std::io::Result<_>>()?,
            data_dir: selection.data_dir.as_ref().map(full).transpose()?,
            ..selection
        };
        let head = Head {
            kind: KIND.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            folder: here,
            selection,
            below,
            round: format!("{}-{}", clock::now(), std::process::id()),
            waiting: planned.waiting.len(),
        };
        // Held while it is written only: workers come and go.
        let path = OwnFolder::share(&place)?.file(PLAN)?;
        write_plan(&path, &head, planned)?;
        Self::read(&path)
    }

    /// Reads a plan.
    pub fn read(path: &Path) -> Result<Self> {
        let path = &std::path::absolute(path)?;
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut lines = text.lines();
        let head = lines.next().and_then(|line| serde_json::from_str::<Head>(line).ok());
        let Some(head) = head.filter(|head| head.kind == KIND) else {
            bail!("{} is not the plan of a sweep; `negscale sweep plan` writes one", path.display());
        };
        if head.version != env!("CARGO_PKG_VERSION") {
            bail!(
                "{} was made by version {}, and this is {}: plan again, and run it with one version",
                path.display(),
                head.version,
                env!("CARGO_PKG_VERSION")
            );
        }
        let runs = lines.enumerate().map(|(i, line)| {
            let line: Line = serde_json::from_str(line)
                .with_context(|| format!("{}, line {}: not a run; plan again", path.display(), i + 2))?;
            line.run(path, &head.below)
        });
        let runs = runs.collect::<Result<Vec<_>>>()?;
        Ok(Self { path: path.clone(), head, runs })
    }

    /// Whether a file is a plan by its name, rather than a recipe.
    #[must_use]
    pub fn is_plan(path: &Path) -> bool {
        path.extension().is_some_and(|end| end == "jsonl")
    }

    /// The folder of the sweep of a recipe: `sweep-RECIPE` below that of the runs.
    #[must_use]
    pub fn folder_of(recipe: &Path, below: &Path) -> PathBuf {
        below.join(format!("sweep-{}", recipe.file_stem().unwrap_or_default().to_string_lossy()))
    }

    /// The file of the plan in the folder of a sweep.
    #[must_use]
    pub fn path_in(folder: &Path) -> PathBuf {
        folder.join(PLAN)
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the sweep.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// Parent folder of the runs' folders.
    #[must_use]
    pub fn below(&self) -> &Path {
        &self.head.below
    }

    /// Which runs it is of.
    #[must_use]
    pub fn selection(&self) -> &RunSelection {
        &self.head.selection
    }

    /// The folder that relative paths in settings begin in.
    #[must_use]
    pub fn begins_in(&self) -> &Path {
        &self.head.folder
    }

    /// What this call of the sweep is known by: what failed in it is not tried again in it.
    #[must_use]
    pub fn round(&self) -> &str {
        &self.head.round
    }

    /// Runs whose settings are not chosen yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.head.waiting
    }

    /// Makes the plan anew, now that searches are over; says how it came out. Works from the folder that paths begin in.
    pub fn renew(&self) -> Result<SweepPlan> {
        let planned = plan(&self.head.selection, &self.head.below)?;
        let head = Head { waiting: planned.waiting.len(), ..self.head.clone() };
        write_plan(&self.path, &head, &planned)?;
        Ok(planned)
    }
}

fn write_plan(path: &Path, head: &Head, planned: &SweepPlan) -> Result<()> {
    let mut text = serde_json::to_string(head)? + "\n";
    for run in planned.distinct() {
        let line = Line {
            name: run.name.clone(),
            place: run.folder_name(),
            arm: run.arm.clone(),
            is_development: run.is_development,
            is_small: run.is_small,
            settings: run.recipe.to_toml(),
        };
        text += &serde_json::to_string(&line)?;
        text.push('\n');
    }
    write(path, text.as_bytes())
}

impl Line {
    fn run(self, path: &Path, below: &Path) -> Result<PlannedRun> {
        let Self { name, place, arm, is_development, is_small, settings } = self;
        let context = || format!("{}, run {name}", path.display());
        let kind = if is_small { ItemKind::Features } else { ItemKind::Images };
        let layers = Layers::new().with_text(&context(), &settings)?;
        let recipe = layers.resolve(kind, None).with_context(context)?;
        if recipe.to_toml() != settings {
            bail!("{}: its settings read back differently; plan again", context());
        }
        let settings = settings.parse().with_context(context)?;
        Ok(PlannedRun { place: below.join(place), name, recipe, settings, is_small, arm, is_development })
    }
}
