//! Which item each row of predictions belongs to.
//!
//! By a column `index` (items counted from 0); else by ids, where the items have some or the ids count the items from 0; else by its own
//! number. Every item needs exactly one row.

use super::Expected;
use super::names::Names;
use crate::Result;
use std::collections::HashMap;

/// Columns that say which item a row belongs to.
#[derive(Debug, Default)]
pub(super) struct Keys {
    index: Option<(usize, Vec<String>)>,
    ids: Option<(usize, Vec<String>)>,
}

/// The row where something is wrong, if it is one, and what.
type Problem = (Option<usize>, String);

impl Keys {
    /// No words yet of these columns.
    pub fn new(names: &Names) -> Self {
        let column = |place: Option<usize>| place.map(|at| (at, Vec::new()));
        Self { index: column(names.index), ids: column(names.id) }
    }

    fn columns(&mut self) -> impl Iterator<Item = &mut (usize, Vec<String>)> {
        [&mut self.index, &mut self.ids].into_iter().flatten()
    }

    /// Another row, of which `word` gives the word in a column.
    pub fn push(&mut self, word: impl Fn(usize) -> String) {
        self.columns().for_each(|(at, words)| words.push(word(*at)));
    }

    /// All rows, of which `words` gives the words in a column.
    pub fn fill(&mut self, words: impl Fn(usize) -> Result<Vec<String>>) -> Result<()> {
        for (at, column) in self.columns() {
            *column = words(*at)?;
        }
        Ok(())
    }

    /// For every item its row; `None` where rows are in the order of the items. `place` names a row.
    pub fn order(
        &self,
        count: usize,
        expected: Expected,
        place: impl Fn(usize) -> String,
    ) -> Result<Option<Vec<usize>>, Problem> {
        let items = expected.rows.or(expected.ids.map(<[String]>::len)).unwrap_or(count);
        if let Some((_, index)) = &self.index {
            let find = |row: usize| {
                number(&index[row]).filter(|&item| item < items).ok_or_else(|| {
                    format!(
                        "there is no item with index {}: items are counted from 0 to {}; if the column means something else, rename it",
                        shown(&index[row]),
                        items.saturating_sub(1)
                    )
                })
            };
            return fill(items, count, find, |item| format!("item {item}"), place).map(Some);
        }
        if let (Some((_, ids)), Some(known)) = (&self.ids, expected.ids) {
            let places: HashMap<&str, usize> =
                known.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
            if places.len() == known.len() {
                let find = |row: usize| {
                    let found = places.get(ids[row].as_str()).copied();
                    found.ok_or_else(|| {
                        format!(
                            "there is no item with the id {}: the predictions belong to other data, or ids are written in another way; a column `index` (items counted from 0) joins without ids",
                            shown(&ids[row])
                        )
                    })
                };
                return fill(items, count, find, |item| format!("id {}", shown(&known[item])), place)
                    .map(Some);
            }
        }
        if count != items {
            return Err((
                None,
                format!(
                    "{count} rows for {items} items: every item needs one, in the order of the items or with a column `index` that counts them from 0"
                ),
            ));
        }
        let Some((_, ids)) = &self.ids else { return Ok(None) };
        let Some(numbers) = ids.iter().map(|id| number(id)).collect::<Option<Vec<usize>>>() else {
            return Ok(None);
        };
        let find = |row: usize| Some(numbers[row]).filter(|&item| item < items).ok_or_else(String::new);
        if let Ok(order) = fill(items, count, find, |item| item.to_string(), place) {
            return Ok(Some(order));
        }
        match numbers.windows(2).position(|two| two[0] >= two[1]) {
            None => Ok(None),
            Some(at) => Err((
                Some(at + 1),
                format!(
                    "id {} after {}: rows are not in the order of their ids, and there are no ids of the data to join them by; sort them into the order of the items, or add a column `index` that counts the items from 0",
                    shown(&ids[at + 1]),
                    shown(&ids[at])
                ),
            )),
        }
    }
}

/// A whole number; a spreadsheet may have written 3 as 3.0.
fn number(word: &str) -> Option<usize> {
    word.strip_suffix(".0").unwrap_or(word).parse().ok()
}

/// A text in a message.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(80).collect();
    format!("`{}`", cut.escape_debug())
}

/// For every item its row, if each has one; `find` gives the item of a row, or what is wrong with it.
fn fill(
    items: usize,
    rows: usize,
    find: impl Fn(usize) -> Result<usize, String>,
    name: impl Fn(usize) -> String,
    place: impl Fn(usize) -> String,
) -> Result<Vec<usize>, Problem> {
    let mut order: Vec<Option<usize>> = vec![None; items];
    for row in 0..rows {
        let item = find(row).map_err(|problem| (Some(row), problem))?;
        if let Some(before) = order[item].replace(row) {
            let problem = format!("a second row for {}, after {}: keep one", name(item), place(before));
            return Err((Some(row), problem));
        }
    }
    if let Some(first) = order.iter().position(Option::is_none) {
        let missing = order.iter().filter(|row| row.is_none()).count();
        let problem = format!(
            "{missing} of {items} items have no row in it, the first is {}: every item needs one",
            name(first)
        );
        return Err((None, problem));
    }
    Ok(order.into_iter().flatten().collect())
}
