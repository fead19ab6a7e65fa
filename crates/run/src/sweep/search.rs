//! Searches of arms: every point of a grid on development seeds, and which one is used.
//!
//! With $x_{p,s}$ the figure of point $p$ on development seed $s$ (and cell, where one choice serves several), the point with the
//! largest mean over $s$ is chosen, the first of the grid among equals. The choice follows from the folders of the development
//! runs alone, so that a search can be stopped, resumed and extended as any sweep; `chosen.toml` records it.

use super::plan::{PlannedRun, Planner, SweepPlan, plain};
use super::state::RunState;
use crate::Result;
use crate::error::bail;
use crate::folder::write;
use crate::recipe::{Arm, Arms, MatrixCell, SEEDS, SettingList};
use negscale_atomic_file::OwnFolder;
use negscale_report::Outcome;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The search of an arm in a cell, or in cells that share a choice.
pub struct Choice {
    /// The arm.
    pub arm: String,
    /// The cell, such as `noise=sym:0.8`; empty if there is one only.
    pub group: String,
    /// Every point of the grid with its mean figure, once all its runs are done.
    pub points: Vec<(SettingList, Option<f64>)>,
    /// How many development runs it takes, and how many of them are not done.
    pub runs: (usize, usize),
}

impl Choice {
    /// The point that is used, with its mean figure; none until all development runs are done.
    pub fn chosen(&self) -> Option<(&SettingList, f64)> {
        let all: Option<Vec<_>> = self.points.iter().map(|(point, mean)| Some((point, (*mean)?))).collect();
        all?.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}

/// The searches of a recipe, each made when a run asks for it.
pub struct Searches {
    pub arms: Arms,
    pub cells: Vec<MatrixCell>,
    /// In the order in which they were asked for.
    made: Vec<Made>,
}

/// A search with its development runs.
struct Made {
    choice: Choice,
    runs: Vec<PlannedRun>,
    is_needed: bool,
}

impl Searches {
    /// Refuses development seeds that the matrix has too.
    pub fn new(arms: Arms, cells: Vec<MatrixCell>) -> Result<Self> {
        for path in SEEDS {
            let seeds_of = |list: &[(String, Value)]| {
                list.iter().find(|(own, _)| own == path).map(|(_, seed)| plain(seed))
            };
            let of_matrix: BTreeSet<String> =
                cells.iter().filter_map(|cell| seeds_of(cell.written())).collect();
            let mut of_search = arms.search.seeds.iter().filter_map(|seeds| seeds_of(seeds));
            if let Some(common) = of_search.find(|seed| of_matrix.contains(seed)) {
                bail!(
                    "[search] `seeds`: {path} {common} is one of the matrix too; what is chosen on a seed looks too good on it, so use others"
                );
            }
        }
        Ok(Self { arms, cells, made: Vec::new() })
    }

    /// A cell in an arm, and how many development runs must end before its settings are known; until then they are those of the
    /// first point.
    pub fn cell(&mut self, at: usize, arm: &Arm, planner: &mut Planner<'_>) -> Result<(MatrixCell, usize)> {
        let Some(made) = self.made_for(at, arm, planner)? else {
            return Ok((self.arms.cell(&self.cells[at], arm, &Vec::new(), None)?, 0));
        };
        let choice = &self.made[made].choice;
        let point = choice.chosen().map_or(&choice.points[0].0, |(point, _)| point);
        Ok((self.arms.cell(&self.cells[at], arm, point, None)?, choice.runs.1))
    }

    /// What a run is called before its settings are chosen.
    pub fn name_of(&self, at: usize, arm: &Arm) -> Result<String> {
        Ok(self.arms.cell(&self.cells[at], arm, &Vec::new(), None)?.name().to_owned())
    }

    /// The choice for this arm of a cell is needed.
    pub fn need(&mut self, at: usize, arm: &Arm, planner: &mut Planner<'_>) -> Result<()> {
        if let Some(made) = self.made_for(at, arm, planner)? {
            self.made[made].is_needed = true;
        }
        Ok(())
    }

    /// The number of the search that decides the settings of an arm in a cell, if one does.
    fn made_for(&mut self, at: usize, arm: &Arm, planner: &mut Planner<'_>) -> Result<Option<usize>> {
        let Some(searched) = self.arms.searched(arm) else { return Ok(None) };
        let group = self.arms.group(&self.cells[at]);
        let is_it = |made: &Made| made.choice.arm == searched.name && made.choice.group == group;
        if let Some(number) = self.made.iter().position(is_it) {
            return Ok(Some(number));
        }
        let made = self.search(searched, group, planner)?;
        self.made.push(made);
        Ok(Some(self.made.len() - 1))
    }

    fn search(&self, arm: &Arm, group: String, planner: &mut Planner<'_>) -> Result<Made> {
        let (mut points, mut runs, mut left) = (Vec::new(), Vec::new(), 0);
        for point in &arm.grid {
            let (mut values, mut seen) = (Vec::new(), BTreeSet::new());
            for cell in self.cells.iter().filter(|cell| self.arms.group(cell) == group) {
                for seeds in &self.arms.search.seeds {
                    let cell = self.arms.cell(cell, arm, point, Some(seeds))?;
                    let run = planner.run(&cell, Some(&arm.name), true)?;
                    // Cells that differ in their seeds alone have the same development runs.
                    if seen.insert(run.place.clone()) {
                        values.push(self.figure(&run)?);
                        runs.push(run);
                    }
                }
            }
            let known: Vec<f64> = values.iter().copied().flatten().collect();
            left += values.len() - known.len();
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            points.push((point.clone(), (known.len() == values.len()).then_some(mean)));
        }
        let choice = Choice { arm: arm.name.clone(), group, points, runs: (runs.len(), left) };
        Ok(Made { choice, runs, is_needed: false })
    }

    /// What a development run is judged by, if it is done.
    fn figure(&self, run: &PlannedRun) -> Result<Option<f64>> {
        let name = &self.arms.search.figure;
        if name.starts_with("validation") && run.recipe.train.validation == 0.0 {
            bail!(
                "[search]: the runs hold out no samples, so there is no `{name}` to choose by; set `validation` above 0, or write \
                 figure = \"test_last10\" in [search], which chooses on the test set of the development seeds"
            );
        }
        let RunState::Done(outcome) = RunState::of(run) else { return Ok(None) };
        // What diverged is never the best.
        let value = Outcome::figure(&outcome, name)?;
        Ok(Some(if value.is_finite() { value } else { f64::NEG_INFINITY }))
    }

    /// The arms, the choices that are needed, and their development runs.
    pub fn end(self) -> (Arms, Vec<Choice>, Vec<PlannedRun>) {
        let (mut choices, mut runs) = (Vec::new(), Vec::new());
        for made in self.made.into_iter().filter(|made| made.is_needed) {
            choices.push(made.choice);
            runs.extend(made.runs);
        }
        (self.arms, choices, runs)
    }
}

/// What to say where arms were not tuned alike.
pub fn budget_warnings(arms: &Arms) -> Vec<String> {
    let Some(claim) = arms.get(&arms.claim) else { return Vec::new() };
    let budget = arms.budget(claim);
    let tuned = |arm: &&Arm| arm.name != claim.name && arm.follows.is_none() && arms.budget(arm) > 0;
    let others: Vec<&Arm> = arms.arms.iter().filter(tuned).collect();
    let name = &claim.name;
    if others.is_empty() && budget > 0 {
        return vec![format!(
            "Warning: `{name}` is tuned ({budget} runs), and no arm that it is compared with is."
        )];
    }
    let unlike = others.iter().filter(|arm| arms.budget(arm) != budget);
    let words = |arm: &&Arm| {
        let (other, theirs) = (&arm.name, arms.budget(arm));
        format!(
            "Warning: unequal search budgets, `{name}` {budget} and `{other}` {theirs} runs; the larger one has an advantage."
        )
    };
    unlike.map(words).collect()
}

/// Writes what was chosen to `chosen.toml` in a folder of its own beside the runs, named after the recipe; nothing if nothing is
/// searched or a search is not over.
pub fn record(plan: &SweepPlan, recipe: &Path, below: &Path) -> Result<Option<PathBuf>> {
    let Some(arms) = plan.arms.as_ref().filter(|_| !plan.choices.is_empty() && plan.waiting.is_empty())
    else {
        return Ok(None);
    };
    let table = |settings: &SettingList| settings.iter().cloned().collect::<Table>();
    let choices = plan.choices.iter().map(|choice| {
        let point = |(settings, mean): &(SettingList, Option<f64>)| {
            Value::Table(Table::from_iter([
                ("mean".to_owned(), mean.map_or(Value::String("unknown".into()), Value::Float)),
                ("settings".to_owned(), Value::Table(table(settings))),
            ]))
        };
        let chosen = choice.chosen().map(|(settings, _)| table(settings)).unwrap_or_default();
        Value::Table(Table::from_iter([
            ("arm".to_owned(), choice.arm.clone().into()),
            ("cell".to_owned(), choice.group.clone().into()),
            ("chosen".to_owned(), chosen.into()),
            ("tried".to_owned(), choice.points.iter().map(point).collect::<Vec<_>>().into()),
        ]))
    });
    let seeds = arms.search.seeds.iter().map(|seeds| Value::Table(table(seeds))).collect::<Vec<_>>();
    let all = Table::from_iter([
        ("figure".to_owned(), Value::from(arms.search.figure.clone())),
        ("seeds".to_owned(), seeds.into()),
        ("choice".to_owned(), choices.collect::<Vec<_>>().into()),
    ]);
    let stem = recipe.file_stem().unwrap_or_default().to_string_lossy();
    let own = OwnFolder::share(below.join(format!("search-{stem}")))?;
    let path = own.file("chosen.toml")?;
    let head = "# What the searches chose, the figure's mean over the development seeds beside every point. A record: it is not read.\n";
    write(&path, format!("{head}{all}").as_bytes())?;
    Ok(Some(path))
}
