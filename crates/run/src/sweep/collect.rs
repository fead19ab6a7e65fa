//! Tables over finished runs, and a table with one line per run to check them.

use super::plan::{ARM, PlannedRun, SweepPlan};
use super::state::RunState;
use super::{controls, pairs};
use crate::error::bail;
use crate::folder::write;
use crate::recipe::SEEDS;
use crate::{Result, recipe};
use negscale_atomic_file::OwnFolder;
use negscale_report::table::{Best, Cell, Column, ColumnKind, NumberFormat};
use negscale_report::{Outcome, Sample, Table, mark_true_labels, several_instructions};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Settings that cannot change a result.
const WITHOUT_EFFECT: [&str; 3] = ["data_dir", "threads", "device"];
/// What stands for a setting that a run does not have.
const NONE: &str = "-";

/// A run that is done.
pub struct Finished<'a> {
    pub run: &'a PlannedRun,
    pub outcome: Outcome,
}

impl Finished<'_> {
    /// Its values of these settings.
    pub fn values(&self, keys: &[String]) -> Vec<String> {
        values(self.run, keys)
    }

    /// The same as cells of a table; a host that was told true labels is marked.
    pub fn cells(&self, keys: &[String]) -> Vec<Cell> {
        let cell = |(key, value): (&String, String)| match key.as_str() {
            "host" => Cell::text(mark_true_labels(&value, self.outcome.true_labels())),
            "plugin" => Cell::text(&self.outcome.acting),
            _ => Cell::text(value),
        };
        keys.iter().zip(self.values(keys)).map(cell).collect()
    }
}

fn values(run: &PlannedRun, keys: &[String]) -> Vec<String> {
    keys.iter().map(|key| run.setting(key).unwrap_or_else(|| NONE.into())).collect()
}

/// Which settings make rows and columns.
pub struct Axes {
    pub rows: Vec<String>,
    pub columns: Vec<String>,
}

/// What makes the tables.
#[derive(Debug, Clone, Default)]
pub struct TableOptions {
    /// Folder for the tables as CSV, Markdown and LaTeX, for `runs.csv` with a line per run, and with arms for a drawing (SVG) of each difference.
    pub out: Option<PathBuf>,
    /// Settings that make the rows; empty: all that vary and are no columns or seeds.
    pub rows: Vec<String>,
    /// Settings that make the columns; empty: data and noise as far as they vary.
    pub columns: Vec<String>,
    /// Figures of `results.json`, tables for each; empty: `test_last10`, and with arms `test_last` too.
    pub figures: Vec<String>,
}

/// Tables over the runs that are done: means, and gains of the plug-in on the same seeds. Written to `out` if that is named.
pub fn tables(plan: &SweepPlan, options: &TableOptions) -> Result<Vec<Table>> {
    let states: Vec<RunState> = plan.runs.iter().map(RunState::of).collect();
    let done: Vec<Finished<'_>> = plan
        .runs
        .iter()
        .zip(&states)
        .filter(|(run, _)| !run.is_development)
        .filter_map(|(run, state)| match state {
            RunState::Done(outcome) => Some(Finished { run, outcome: (**outcome).clone() }),
            _ => None,
        })
        .collect();
    if done.is_empty() {
        let below =
            plan.runs.first().and_then(|run| run.place.parent()).map(|place| place.display().to_string());
        bail!(
            "none of the {} runs below {} is done; start with `negscale sweep run`",
            plan.compared().count() + plan.waiting.len(),
            below.unwrap_or_default()
        );
    }
    let axes = Axes::choose(plan, &options.rows, &options.columns)?;
    // Tables may stand beside files of the user's own, which are not replaced.
    let out = options.out.as_ref().map(OwnFolder::share).transpose()?;
    if let Some(out) = &out {
        write(&out.file("runs.csv")?, lines(plan, &states)?.to_csv().as_bytes())?;
    }
    let by_default: &[&str] =
        if plan.arms.is_some() { &["test_last10", "test_last"] } else { &["test_last10"] };
    let figures = match options.figures.as_slice() {
        [] => by_default.iter().map(|&figure| figure.to_owned()).collect(),
        figures => figures.to_vec(),
    };
    let mut all = Vec::new();
    if let Some(table) = controls::searches(plan)? {
        all.push((table, "search".to_owned()));
    }
    for figure in &figures {
        if done.iter().all(|run| !run.outcome.figures.contains_key(figure)) {
            done[0].outcome.figure(figure)?;
        }
        let note = note(plan, &done, &axes);
        let paired = match &plan.arms {
            Some(arms) => {
                let tests = controls::Tests::of(&done, &axes, figure, arms);
                if let Some(out) = &out {
                    for (control, plot) in tests.plots() {
                        let name = format!("{}-{}.svg", safe(figure), safe(&control));
                        write(&out.file(&name)?, plot.to_svg().as_bytes())?;
                    }
                }
                Some(tests.table()?)
            }
            None => pairs::table(&done, &axes, figure)?,
        };
        all.push((grid(&done, &axes, figure, &note)?, safe(figure)));
        all.extend(paired.map(|table| (table, format!("{}-paired", safe(figure)))));
    }
    if let Some(out) = &out {
        all.iter().try_for_each(|(table, name)| save(table, out, name))?;
    }
    Ok(all.into_iter().map(|(table, _)| table).collect())
}

/// How many runs the table is from, and what they have in common that a reader must know.
fn note(plan: &SweepPlan, done: &[Finished<'_>], axes: &Axes) -> String {
    let count = plan.compared().count() + plan.waiting.len();
    let mut notes = vec![format!("{} of {count} runs are done.", done.len())];
    for key in ["data", "noise"].map(str::to_owned) {
        if !axes.rows.contains(&key) && !axes.columns.contains(&key) {
            notes.push(format!("{key} = {}.", done[0].values(std::slice::from_ref(&key)).concat()));
        }
    }
    let versions = once(done.iter().map(|run| run.outcome.version.as_str()));
    if versions.len() > 1 {
        notes.push(format!(
            "These runs were made by several versions of the program: {}.",
            versions.join(", ")
        ));
    }
    let outcomes: Vec<&Outcome> = done.iter().map(|run| &run.outcome).collect();
    notes.extend(several_instructions(&outcomes));
    notes.join(" ")
}

fn safe(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect()
}

fn save(table: &Table, out: &OwnFolder, name: &str) -> Result<()> {
    for (end, text) in [("csv", table.to_csv()), ("md", table.to_markdown()), ("tex", table.to_latex())] {
        write(&out.file(&format!("{name}.{end}"))?, text.as_bytes())?;
    }
    Ok(())
}

impl Axes {
    /// As asked for, else data and noise beside one another and all else that varies below one another. Runs that differ in
    /// more than seeds never fall into one cell.
    fn choose(plan: &SweepPlan, rows: &[String], columns: &[String]) -> Result<Self> {
        for key in rows.iter().chain(columns).filter(|key| *key != ARM || plan.arms.is_none()) {
            let found = recipe::find(key)?;
            if !found.iter().any(|known| known.path() == *key) {
                bail!("`{key}` is not a single setting; write it with its table, such as negscale.lambda");
            }
        }
        let varies =
            |key: &&str| plan.compared().map(|run| run.setting(key)).collect::<BTreeSet<_>>().len() > 1;
        let by_default = |keys: &[&str]| keys.iter().copied().filter(varies).map(str::to_owned).collect();
        let is_free = rows.is_empty();
        let mut axes = Self {
            rows: match &plan.arms {
                _ if !is_free => rows.to_vec(),
                Some(_) => ["host", ARM].map(str::to_owned).into(),
                None => ["host", "plugin"].map(str::to_owned).into(),
            },
            columns: if columns.is_empty() { by_default(&["data", "noise"]) } else { columns.to_vec() },
        };
        axes.columns.retain(|key| !axes.rows.contains(key) || !columns.is_empty());
        axes.rows.retain(|key| !axes.columns.contains(key));
        while let Some(key) = axes.mixed(plan) {
            if !is_free {
                bail!(
                    "runs that differ in `{key}` would be averaged in one cell; add it to --rows, or select with --only"
                );
            }
            axes.rows.push(key);
        }
        Ok(axes)
    }

    /// A setting, other than seeds, in which two runs of one cell differ; one of the matrix rather than another.
    fn mixed(&self, plan: &SweepPlan) -> Option<String> {
        let mut first: BTreeMap<(Vec<String>, Vec<String>), BTreeMap<String, String>> = BTreeMap::new();
        // What an arm sets may follow the seed (a permuted tree) or the cell (what was searched).
        let of_arms = |path: &str| {
            let arms = plan.arms.iter().flat_map(|arms| &arms.arms);
            arms.flat_map(|arm| arm.settings.iter().chain(arm.grid.iter().flatten()))
                .any(|(own, _)| own == path)
        };
        for run in plan.compared() {
            let at = (values(run, &self.rows), values(run, &self.columns));
            let ours = settings(&run.settings, &[]);
            let Some(theirs) = first.get(&at) else {
                first.insert(at, ours);
                continue;
            };
            let differs = |key: &&String| !of_arms(key) && ours.get(*key) != theirs.get(*key);
            let others = ours.keys().chain(theirs.keys());
            if let Some(key) =
                plan.written.iter().filter(|key| !SEEDS.contains(&key.as_str())).chain(others).find(differs)
            {
                return Some(key.clone());
            }
        }
        None
    }
}

/// All settings that can change a result, by their paths, seeds and those below `without` left out.
pub fn settings(table: &toml::Table, without: &[&str]) -> BTreeMap<String, String> {
    fn walk(table: &toml::Table, inside: &str, all: &mut BTreeMap<String, String>) {
        for (key, value) in table {
            match value {
                toml::Value::Table(inner) => walk(inner, &format!("{inside}{key}."), all),
                value => drop(all.insert(format!("{inside}{key}"), value.to_string())),
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(table, "", &mut all);
    all.retain(|path, _| {
        let top = path.split('.').next().unwrap_or_default();
        !without.contains(&top) && !SEEDS.contains(&path.as_str()) && !WITHOUT_EFFECT.contains(&path.as_str())
    });
    all
}

/// How a figure is shown, and what is best.
pub fn form(figure: &str) -> (NumberFormat, &'static str, Option<Best>) {
    let is_fraction = ["test_", "fit_", "noise_", "audit_"].iter().any(|begin| figure.starts_with(begin));
    let best = (figure.starts_with("test_") || figure.starts_with("audit_")).then_some(Best::Largest);
    let digits = if figure.starts_with("similarity") { 3 } else { 2 };
    if is_fraction {
        (NumberFormat::percent(2), " in %", best)
    } else {
        (NumberFormat::plain(digits), "", best)
    }
}

/// A cell with mean, deviation and count.
pub fn mean(sample: &Sample, form: NumberFormat) -> Cell {
    match sample.mean() {
        Some(mean) => Cell::Mean { mean, deviation: sample.deviation(), count: sample.count(), form },
        None => Cell::Empty,
    }
}

/// Each value once, in order.
pub fn once<T: Ord + Clone>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    all.into_iter().filter(|item| seen.insert(item.clone())).collect()
}

fn grid(done: &[Finished<'_>], axes: &Axes, figure: &str, note: &str) -> Result<Table> {
    let (form, unit, best) = form(figure);
    let rows = once(done.iter().map(|run| run.values(&axes.rows)));
    let columns = once(done.iter().map(|run| run.values(&axes.columns)));
    let mut heads: Vec<Column> = axes.rows.iter().map(|key| Column::new(key, ColumnKind::Text)).collect();
    for column in &columns {
        let head = if column.is_empty() { figure.to_owned() } else { column.join(", ") };
        heads.push(Column { best, ..Column::new(head, ColumnKind::Mean) });
    }
    let title = format!("{figure}{unit}: mean ± standard deviation (number of runs)");
    let mut table = Table::new(title, heads).with_note(note);
    for row in &rows {
        let first = done.iter().find(|run| run.values(&axes.rows) == *row);
        let mut cells: Vec<Cell> = first.map(|run| run.cells(&axes.rows)).unwrap_or_default();
        for column in &columns {
            let here = done
                .iter()
                .filter(|run| run.values(&axes.rows) == *row && run.values(&axes.columns) == *column);
            let sample: Sample = here.filter_map(|run| run.outcome.figures.get(figure).copied()).collect();
            cells.push(mean(&sample, form));
        }
        let uses_truth = first.is_some_and(|run| run.outcome.true_labels() > 0);
        if uses_truth { table.push_apart(cells)? } else { table.push(cells)? }
    }
    Ok(table)
}

/// Every run in a line.
fn lines(plan: &SweepPlan, states: &[RunState]) -> Result<Table> {
    let always =
        ["data", "noise", "noise_seed", "seed", "host", "plugin", "net", "epochs"].map(str::to_owned);
    let arms = plan.arms.iter().map(|_| ARM.to_owned());
    let keys = once(arms.chain(always).chain(plan.written.iter().cloned()));
    let outcomes: Vec<Option<&Outcome>> = states
        .iter()
        .map(|state| if let RunState::Done(outcome) = state { Some(&**outcome) } else { None })
        .collect();
    let figures = outcomes.iter().flatten().flat_map(|outcome| outcome.figures.keys());
    // `epochs` is a setting too.
    let figures: BTreeSet<&String> = figures.filter(|figure| !keys.contains(figure)).collect();
    let of_arms: &[&str] = if plan.arms.is_some() { &["development"] } else { &[] };
    let heads = ["run", "state"].iter().chain(of_arms).map(|head| Column::new(*head, ColumnKind::Text));
    let mut heads: Vec<Column> = heads.collect();
    heads.extend(keys.iter().map(|key| Column::new(key, ColumnKind::Text)));
    heads.push(Column::new("noise_laid_over", ColumnKind::Number));
    heads.push(Column::new("noise_convention", ColumnKind::Text));
    heads.extend(figures.iter().map(|figure| Column::new(*figure, ColumnKind::Number)));
    heads.extend(["hardware", "instructions", "version"].map(|head| Column::new(head, ColumnKind::Text)));
    let mut table = Table::new("runs", heads);
    let exact =
        |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::Number(value, NumberFormat::plain(6)));
    for ((run, state), outcome) in plan.runs.iter().zip(states).zip(outcomes) {
        let mut row = vec![Cell::text(run.folder_name()), Cell::text(state.word())];
        row.extend(of_arms.iter().map(|_| Cell::text(if run.is_development { "yes" } else { "no" })));
        row.extend(keys.iter().map(|key| run.setting(key).map_or(Cell::Empty, Cell::Text)));
        row.push(exact(outcome.and_then(|outcome| outcome.noise_achieved)));
        let said = |text: Option<&String>| text.map_or(Cell::Empty, Cell::text);
        row.push(said(outcome.and_then(|outcome| outcome.noise_convention.as_ref())));
        row.extend(figures.iter().map(|figure| exact(outcome.and_then(|o| o.figures.get(*figure).copied()))));
        row.push(said(outcome.map(|outcome| &outcome.hardware)));
        row.push(said(outcome.and_then(|outcome| outcome.instructions.as_ref())));
        row.push(said(outcome.map(|outcome| &outcome.version)));
        table.push(row)?;
    }
    Ok(table)
}
