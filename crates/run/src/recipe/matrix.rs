//! `[matrix]`: many runs from one recipe, so that no file is copied per run.
//!
//! ```toml
//! epochs = 8                                      # outside: common to all runs
//!
//! [matrix]
//! data = [{ data = "cifar10" }, { data = "cifar100", epochs = 12 }]       # settings that go together
//! method = [{ host = "rolr", plugin = "none" }, { host = "rolr", plugin = "negscale" }]
//! "negscale.lambda" = [0.1, 1]                    # one setting
//! seed = [1, 2, 3]
//! exclude = [{ plugin = "none", "negscale.lambda" = 1 }]
//! include = [{ data = "cifar10", host = "cross-entropy", plugin = "none", seed = 1 }]
//! ```
//!
//! Each key is an axis: the path of a setting with its values, or any name whose entries are tables of settings. Every
//! combination is a [`MatrixCell`], the last axis running fastest, in the order of the file; `exclude` drops those that have all of an
//! entry's settings (as written, in the matrix or outside it), `include` adds single ones. A cell lies over the common
//! recipe; what it says is checked like any recipe, and errors name file, axis and entry.

use super::arms::Arms;
use super::layers::{Entries, Layers, wrong};
use super::written::{insert, parse};
use negscale_methods::Result;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// More combinations than anybody runs; a slip would otherwise fill the memory.
const MOST: usize = 100_000;

/// The runs that a recipe describes.
#[derive(Debug, Clone)]
pub struct Study {
    /// The combinations of `[matrix]`, in order; without `[matrix]` a single one.
    pub cells: Vec<MatrixCell>,
    /// Arms that each of them has, if there is `[arms]`.
    pub arms: Option<Arms>,
}

/// One combination: a run's settings.
#[derive(Debug, Clone)]
pub struct MatrixCell {
    pub(super) name: String,
    pub(super) settings: Vec<(String, Value)>,
    pub(super) layers: Layers,
}

impl MatrixCell {
    /// What tells it from the others, such as `host=rolr, seed=2`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The settings that the matrix gives it, by their paths, in the order of the file.
    pub fn written(&self) -> &[(String, Value)] {
        &self.settings
    }

    /// All its settings: the common ones with its own over them.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// The same with more layers.
    pub fn with_layers(self, more: impl FnOnce(Layers) -> Result<Layers>) -> Result<Self> {
        Ok(Self { layers: more(self.layers)?, ..self })
    }
}

/// An entry of an axis: settings with the place they stand at.
struct Entry {
    settings: Vec<(String, Value)>,
    entries: Entries,
}

/// The runs of a recipe over `beneath`. `place` is what errors call it.
pub fn expand(beneath: Layers, place: &str, text: &str) -> Result<Study> {
    let mut table = parse(place, text)?;
    let [matrix, arms, search] = ["matrix", "arms", "search"].map(|name| table.remove(name));
    let common = beneath.with_table(place, table)?;
    let arms = Arms::read(arms, search, &common, place, &order_of(text, "arms"))?;
    Ok(Study { cells: cells_of(matrix, &common, place, text)?, arms })
}

fn cells_of(matrix: Option<Value>, common: &Layers, place: &str, text: &str) -> Result<Vec<MatrixCell>> {
    let mut matrix = match matrix {
        None => Table::new(),
        Some(Value::Table(matrix)) => matrix,
        Some(_) => return Err(wrong(format!("in {place}"), "`matrix` must be a table: write [matrix]")),
    };
    let excluded = list(&mut matrix, "exclude", common, place)?;
    let included = list(&mut matrix, "include", common, place)?;
    let mut axes = flatten(matrix);
    let order = order_of(text, "matrix");
    axes.sort_by_key(|(path, _)| order.get(path).copied().unwrap_or(usize::MAX));
    let axes: Vec<(String, Vec<Entry>)> = axes
        .into_iter()
        .map(|(name, value)| Ok((name.clone(), entries_of(&name, value, common, place)?)))
        .collect::<Result<_>>()?;
    let count = axes.iter().try_fold(1usize, |count, (_, entries)| count.checked_mul(entries.len()));
    let count = count.filter(|&count| count <= MOST).ok_or_else(|| {
        let problem = format!("it has more than {MOST} combinations; split it into several recipes");
        wrong(format!("in {place}, [matrix]"), problem)
    })?;
    let mut cells = Vec::new();
    if !axes.is_empty() || included.is_empty() {
        for number in 0..count {
            cells.push(combine(common, &pick(&axes, number), place)?);
        }
    }
    for (number, entry) in excluded.iter().enumerate() {
        let at = format!("in {place}, [matrix] `exclude`, entry {}", number + 1);
        let before = cells.len();
        cells.retain(|cell| !has_all(cell, &entry.entries));
        if cells.len() == before {
            let problem = "it excludes no combination; name settings and values exactly as the matrix does";
            return Err(wrong(at, problem));
        }
    }
    for entry in &included {
        cells.push(combine(common, &[("include", entry)], place)?);
    }
    Ok(cells)
}

/// The entries that make the combination of this number; the last axis runs fastest.
fn pick(axes: &[(String, Vec<Entry>)], number: usize) -> Vec<(&str, &Entry)> {
    let mut rest = number;
    let mut chosen: Vec<(&str, &Entry)> = Vec::new();
    for (name, entries) in axes.iter().rev() {
        chosen.push((name, &entries[rest % entries.len()]));
        rest /= entries.len();
    }
    chosen.reverse();
    chosen
}

fn combine(common: &Layers, chosen: &[(&str, &Entry)], place: &str) -> Result<MatrixCell> {
    let (mut settings, mut all) = (Vec::new(), Entries::new());
    let mut axis_of: BTreeMap<&str, &str> = BTreeMap::new();
    for (axis, entry) in chosen {
        for (path, value) in &entry.settings {
            if let Some(other) = axis_of.insert(path, axis) {
                let problem = format!("both `{other}` and `{axis}` set `{path}`; only one of them may");
                return Err(wrong(format!("in {place}, [matrix]"), problem));
            }
            settings.push((path.clone(), value.clone()));
        }
        all.extend(entry.entries.clone());
    }
    let name = if settings.is_empty() { "the only run".into() } else { said(&settings) };
    Ok(MatrixCell { name, settings, layers: common.clone().with_entries(all) })
}

/// Settings in a line, such as `host=rolr, seed=2`.
pub(super) fn said(settings: &[(String, Value)]) -> String {
    let all: Vec<String> = settings.iter().map(|(path, value)| format!("{path}={}", plain(value))).collect();
    all.join(", ")
}

/// Settings, checked as any recipe is.
pub(super) fn checked(settings: &[(String, Value)], common: &Layers, place: &str) -> Result<Entries> {
    let mut nested = Table::new();
    for (path, value) in settings {
        insert(&mut nested, path, value.clone());
    }
    common.checked(nested, place)
}

/// Takes a list of tables out of the matrix.
fn list(matrix: &mut Table, name: &str, common: &Layers, place: &str) -> Result<Vec<Entry>> {
    let Some(value) = matrix.remove(name) else { return Ok(Vec::new()) };
    let items = match value {
        Value::Array(items) if items.iter().all(Value::is_table) => items,
        _ => {
            let problem =
                format!("`{name}` must be a list of tables, such as [{{ host = \"rolr\", seed = 1 }}]");
            return Err(wrong(format!("in {place}, [matrix]"), problem));
        }
    };
    entries_of(name, Value::Array(items), common, place)
}

fn entries_of(axis: &str, value: Value, common: &Layers, place: &str) -> Result<Vec<Entry>> {
    let at = format!("in {place}, [matrix] `{axis}`");
    let Value::Array(items) = value else {
        return Err(wrong(
            at,
            "it must be a list of values or of tables of settings; a setting common to all runs belongs outside [matrix]",
        ));
    };
    if items.is_empty() {
        return Err(wrong(at, "the list is empty, so there would be no run; add values or remove the key"));
    }
    let mut entries = Vec::new();
    for (number, item) in items.into_iter().enumerate() {
        let settings = match item {
            Value::Table(table) => flatten(table),
            value => vec![(axis.to_owned(), value)],
        };
        let place = format!("{place}, [matrix] `{axis}`, entry {}", number + 1);
        if settings.is_empty() {
            return Err(wrong(format!("in {place}"), "it has no settings"));
        }
        entries.push(Entry { entries: checked(&settings, common, &place)?, settings });
    }
    Ok(entries)
}

/// Whether a cell has all of these settings.
fn has_all(cell: &MatrixCell, wanted: &Entries) -> bool {
    wanted
        .iter()
        .all(|(path, entry)| cell.layers.get(path).is_some_and(|there| is_same(&there.value, &entry.value)))
}

/// `1` and `1.0` are the same.
fn is_same(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
    a == b || matches!((number(a), number(b)), (Some(a), Some(b)) if a == b)
}

/// A value without quotes.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Tables inside tables as paths.
pub(super) fn flatten(table: Table) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                all.extend(flatten(inner).into_iter().map(|(path, value)| (format!("{key}.{path}"), value)));
            }
            value => all.push((key, value)),
        }
    }
    all
}

/// Where in the text each key of a table stands: parsed tables are in the order of the alphabet.
fn order_of(text: &str, table: &str) -> BTreeMap<String, usize> {
    fn walk(table: &DeTable<'_>, inside: &str, order: &mut BTreeMap<String, usize>) {
        for (key, value) in table {
            let path = format!("{inside}{}", key.get_ref());
            if let DeValue::Table(inner) = value.get_ref() {
                walk(inner, &format!("{path}."), order);
            }
            order.insert(path, key.span().start);
        }
    }
    let mut order = BTreeMap::new();
    if let Ok(all) = DeTable::parse(text)
        && let Some(DeValue::Table(inner)) = all.get_ref().get(table).map(|value| value.get_ref())
    {
        walk(inner, "", &mut order);
    }
    order
}
