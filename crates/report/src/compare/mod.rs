//! Several runs side by side: one page, tables and plots.
//!
//! Runs that differ by their seeds only form a group, with mean, standard deviation and number of seeds. A host with a
//! plug-in is compared with the same host without, seed by seed. Further plots appear where the groups differ in what they
//! show: by noise, by variant of the plug-in (ablation), by one or two numeric settings (sensitivity), and similarity where
//! runs were analysed (`analysis.json`).

mod epochs;
mod figures;
mod groups;
mod page;
mod pairs;
mod recall;
mod similarity;
mod tables;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use negscale_atomic_file::{OwnFolder, write_bytes};

use crate::error::{Error, Result};
use crate::outcome::{Outcome, several_instructions};
use crate::plot::Plot;
use crate::table::Table;
use groups::{Groups, Run};

/// Several finished runs.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    groups: Groups,
    notes: Vec<String>,
}

impl Comparison {
    /// Reads the folders of runs. A folder that is no run itself but has runs in it stands for all of these. Runs that are
    /// not finished, and runs named twice, are left out with a note.
    ///
    /// # Errors
    /// A folder is no run and has none in it, a file is damaged, or no finished run is left.
    pub fn read(folders: &[PathBuf]) -> Result<Self> {
        let mut notes = Vec::new();
        let mut runs: Vec<Run> = Vec::new();
        let mut places: Vec<PathBuf> = Vec::new();
        for folder in folders {
            places.extend(runs_in(folder)?);
        }
        let mut seen: BTreeMap<PathBuf, ()> = BTreeMap::new();
        for folder in &places {
            let real = folder.canonicalize().map_err(|error| Error::io(folder, error))?;
            if seen.insert(real, ()).is_some() {
                notes.push(format!("{} was given twice and is counted once.", folder.display()));
                continue;
            }
            match Outcome::read(folder) {
                Ok(outcome) => runs.push(read_run(folder, outcome, &mut notes)?),
                Err(error @ Error::Unfinished { .. }) => notes.push(format!("Left out: {error}.")),
                Err(error) => return Err(error),
            }
        }
        if runs.is_empty() {
            return Err(Error::NoFinishedRun { count: places.len(), notes: notes.join(" ") });
        }
        let outcomes: Vec<&Outcome> = runs.iter().map(|run| &run.outcome).collect();
        notes.extend(several_instructions(&outcomes));
        let mut comparison = Self { groups: Groups::of(runs), notes };
        comparison.drop_repeats();
        Ok(comparison)
    }

    /// Keeps one of several runs with the same settings and seeds, since repeats would count as more seeds.
    fn drop_repeats(&mut self) {
        for group in &mut self.groups.groups {
            let mut kept: Vec<Run> = Vec::new();
            for run in std::mem::take(&mut group.runs) {
                match kept.iter().find(|other| other.seeds() == run.seeds()) {
                    Some(other) => self.notes.push(format!(
                        "Left out: {} has the same settings and seeds as {}.",
                        run.outcome.folder.display(),
                        other.outcome.folder.display()
                    )),
                    None => kept.push(run),
                }
            }
            group.runs = kept;
        }
    }

    /// What was left out and why, and what else a reader must know.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The tables, each with a name for its files: `results`, `differences` (where there are pairs), `runs`.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn tables(&self) -> Result<Vec<(&'static str, Table)>> {
        let matches = pairs::matches(&self.groups);
        let differences = tables::differences(&self.groups, &matches)?.map(|table| ("differences", table));
        let results = ("results", tables::results(&self.groups)?);
        Ok([Some(results), differences, Some(("runs", tables::runs(&self.groups)?))]
            .into_iter()
            .flatten()
            .collect())
    }

    /// The plots, the most important first.
    #[must_use]
    pub fn plots(&self) -> Vec<Plot> {
        self.sections().into_iter().flat_map(|(_, plots)| plots).collect()
    }

    fn sections(&self) -> Vec<(&'static str, Vec<Plot>)> {
        let groups = &self.groups;
        let sections = vec![
            ("What the plug-in adds", figures::differences(&pairs::matches(groups))),
            ("Ablation and sensitivity", [figures::ablations(groups), figures::sensitivity(groups)].concat()),
            ("Noise", figures::by_noise(groups)),
            ("Similarity", [similarity::similarity(groups), similarity::by_class(groups)].concat()),
            ("Wrong labels", recall::recall(groups)),
            ("Training", epochs::by_epoch(groups)),
        ];
        sections.into_iter().filter(|(_, plots)| !plots.is_empty()).collect()
    }

    /// Writes the page, and beside it a folder `NAME-tables` with the tables as CSV, Markdown and LaTeX; gives what was
    /// written.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn write(&self, page: &Path) -> Result<Vec<PathBuf>> {
        put(page, &self.to_html()?)?;
        let folder = beside(page, "tables")?;
        for (name, table) in self.tables()? {
            let forms = [("csv", table.to_csv()), ("md", table.to_markdown()), ("tex", table.to_latex())];
            for (ending, text) in forms {
                put(&folder.file(&format!("{name}.{ending}")).map_err(Error::Folder)?, &text)?;
            }
        }
        Ok(vec![page.to_owned(), folder.place().to_owned()])
    }

    /// Writes every plot as an SVG file into a folder `NAME-plots` beside the page, and gives that folder.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn write_plots(&self, page: &Path) -> Result<PathBuf> {
        let folder = beside(page, "plots")?;
        for plot in self.plots() {
            let name: String = plot.id().trim_start_matches("plot-").chars().take(80).collect();
            plot.write_svg(&folder.file(&format!("{name}.svg")).map_err(Error::Folder)?)?;
        }
        Ok(folder.place().to_owned())
    }
}

fn put(path: &Path, text: &str) -> Result<()> {
    write_bytes(path, text.as_bytes()).map_err(|error| Error::io(path, error))
}

/// A folder beside the page, named after it.
fn beside(page: &Path, what: &str) -> Result<OwnFolder> {
    let stem = page.file_stem().unwrap_or_default().to_string_lossy();
    OwnFolder::open(page.with_file_name(format!("{stem}-{what}"))).map_err(Error::Folder)
}

/// The folder itself if it is a run, else the runs directly in it.
fn runs_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_run = |folder: &Path| folder.join("settings.toml").is_file();
    if is_run(folder) {
        return Ok(vec![folder.to_owned()]);
    }
    let none = || Error::NoRun { folder: folder.to_owned() };
    let entries = std::fs::read_dir(folder).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => none(),
        _ => Error::io(folder, error),
    })?;
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| Error::io(folder, error))?.path();
        if is_run(&path) {
            found.push(path);
        }
    }
    found.sort_unstable();
    if found.is_empty() { Err(none()) } else { Ok(found) }
}

/// Records and analysis of a finished run. An analysis that cannot be read costs its plots, not the page.
fn read_run(folder: &Path, outcome: Outcome, notes: &mut Vec<String>) -> Result<Run> {
    let records = outcome.records()?;
    let path = folder.join("analysis.json");
    let analysis = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::io(&path, error)),
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| {
                notes.push(format!(
                    "{} is damaged ({error}): run `negscale analyse` on it again to see its similarity.",
                    path.display()
                ));
            })
            .ok(),
    };
    Ok(Run { outcome, records, analysis })
}
