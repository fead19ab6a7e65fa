//! Rows of a labels file to items: by what the file says of them, else by their order.
//!
//! | the file has | a row belongs to |
//! |---|---|
//! | `index` | the item of that number, from 0; its `path`, where there is one, must be that item's |
//! | `path` | the item at that path |
//! | ids | the item with that id, where the data has ids |
//! | none | the item of the row's own number |
//!
//! Every item needs exactly one row, and every row an item. Paths may begin differently from those of the data as it is opened now
//! (relative, absolute, moved), if all do in the same way.

use super::label_file::LabelFile;
use super::labels::Column;
use super::lines::line;
use super::side::SideColumns;
use super::words::Words;
use crate::{Error, Items, Result};
use std::collections::HashMap;

/// Labels in the order of the items.
#[derive(Debug)]
pub struct Joined {
    /// Labels.
    pub given: Column,
    /// True labels, where the file has them.
    pub truth: Option<Column>,
    /// Sources and labels by several annotators, where the file has them.
    pub side: SideColumns,
    /// What could not be checked.
    pub notes: Vec<String>,
}

/// Where items are, below the folder that all of them are in; or their ids.
struct Tails(Vec<String>);

impl Tails {
    fn of(items: &Items) -> Option<Self> {
        let mut all: Vec<String> =
            (0..items.len()).map(|index| items.origin(index)).collect::<Option<_>>()?;
        let mut shared = all.first()?.clone();
        for origin in &all {
            let same = shared.bytes().zip(origin.bytes()).take_while(|(a, b)| a == b).count();
            // A sign of a path is one byte, so what is before it is text.
            shared
                .truncate(shared.as_bytes()[..same].iter().rposition(|&b| is_cut(b)).map_or(0, |at| at + 1));
        }
        all.iter_mut().for_each(|origin| *origin = plain(&origin[shared.len()..]).to_owned());
        Some(Self(all))
    }

    fn places(&self, file: &LabelFile) -> Result<HashMap<&str, usize>> {
        let mut places = HashMap::with_capacity(self.0.len());
        for (index, tail) in self.0.iter().enumerate() {
            if let Some(before) = places.insert(tail.as_str(), index) {
                let problem = format!(
                    "items {before} and {index} of the data are both `{}`: add a column `index` that says which row belongs to which item",
                    tail.escape_debug()
                );
                return Err(Error::format(&file.path, None, problem));
            }
        }
        Ok(places)
    }
}

/// Whether it ends the name of a folder.
fn is_cut(byte: u8) -> bool {
    byte == b'/' || (cfg!(windows) && byte == b'\\')
}

/// A path without what means nothing.
fn plain(path: &str) -> &str {
    let path = path.trim();
    path.strip_prefix("./").unwrap_or(path)
}

/// A text in a message.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(80).collect();
    format!("`{}`", cut.escape_debug())
}

impl LabelFile {
    /// The labels in the order of the items.
    pub fn join(self, items: &Items) -> Result<Joined> {
        let tails = || Tails::of(items);
        self.arrange(items.len(), &tails, matches!(items, Items::Features(_)))
    }

    /// The labels in the order of so many rows that have numbers only.
    pub fn join_rows(self, rows: usize) -> Result<Joined> {
        self.arrange(rows, &|| None, false)
    }

    fn arrange(
        mut self,
        count: usize,
        tails: &dyn Fn() -> Option<Tails>,
        may_have_ids: bool,
    ) -> Result<Joined> {
        let mut notes = Vec::new();
        // The program itself leaves paths of items without any empty.
        let paths = self.paths.take().filter(|paths| paths.iter().any(|path| !path.is_empty()));
        let ids = self.ids.take();
        let without = |what: &str, how: &str| {
            format!("{}: the data has no {what} to compare with; {how}", self.path.display())
        };
        let order = match (self.index.take(), paths, ids) {
            (Some(index), paths, _) => {
                let order = self.by_index(&index, count)?;
                match (paths, tails()) {
                    (Some(paths), Some(tails)) => self.check_paths(&order, &paths, &tails)?,
                    (Some(_), None) => notes.push(without("paths", "rows are matched by `index`")),
                    (None, _) => {}
                }
                Some(order)
            }
            (None, Some(paths), _) => match tails() {
                Some(tails) => Some(self.by_path(&paths, &tails)?),
                None => {
                    notes.push(without("paths", "rows are taken in their order"));
                    None
                }
            },
            (None, None, Some(ids)) => match tails().filter(|_| may_have_ids) {
                Some(tails) => Some(self.by_id(&ids, &tails)?),
                None => {
                    self.check_rising(&ids)?;
                    notes.push(without("ids", "rows are taken in their order"));
                    None
                }
            },
            (None, None, None) => None,
        };
        let Some(order) = order else {
            self.check_count(count)?;
            return Ok(Joined { given: self.given, truth: self.truth, side: self.side, notes });
        };
        let LabelFile { given, truth, side, .. } = self;
        let truth = truth.map(|truth| truth.pick(&order));
        Ok(Joined { given: given.pick(&order), truth, side: side.pick(&order), notes })
    }

    fn wrong(&self, row: usize, problem: String) -> Error {
        Error::format(&self.path, self.lines.get(row).copied().map(line), problem)
    }

    /// Rows are taken in their order if there are as many as items.
    fn check_count(&self, count: usize) -> Result<()> {
        let rows = self.given.len();
        if rows == count {
            return Ok(());
        }
        let hint = match rows == count + 1 {
            true => "; if its first line is a header, add --header yes",
            false => ": every item needs one, in the order of the items or with a column `index`",
        };
        Err(Error::format(&self.path, None, format!("{rows} labels for {count} items{hint}")))
    }

    /// Rows in the order of items, if every item has one; `find` gives the item of a row, or what is wrong with it.
    fn fill(
        &self,
        count: usize,
        find: impl Fn(usize) -> Result<usize, String>,
        name: impl Fn(usize) -> String,
    ) -> Result<Vec<usize>> {
        let mut order: Vec<Option<usize>> = vec![None; count];
        for row in 0..self.given.len() {
            let item = find(row).map_err(|problem| self.wrong(row, problem))?;
            if let Some(before) = order[item].replace(row) {
                let problem = format!(
                    "a second label for {}, after that of line {}: keep one",
                    name(item),
                    self.lines.get(before).copied().unwrap_or(0)
                );
                return Err(self.wrong(row, problem));
            }
        }
        let missing: Vec<usize> = (0..count).filter(|&item| order[item].is_none()).collect();
        if let Some(&first) = missing.first() {
            let problem = format!(
                "{} of {count} items have no label in it, the first is {}: every item needs one",
                missing.len(),
                name(first)
            );
            return Err(Error::format(&self.path, None, problem));
        }
        Ok(order.into_iter().flatten().collect())
    }

    fn by_index(&self, index: &Words, count: usize) -> Result<Vec<usize>> {
        let find = |row: usize| {
            let word = &index[row];
            // A spreadsheet may have written 3 as 3.0.
            let number = word.strip_suffix(".0").unwrap_or(word).parse().ok().filter(|&item| item < count);
            number.ok_or_else(|| {
                format!(
                    "there is no item with index {}: items are counted from 0 to {}; if the column means something else, rename it",
                    shown(word),
                    count.saturating_sub(1)
                )
            })
        };
        self.fill(count, find, |item| format!("item {item}"))
    }

    fn check_paths(&self, order: &[usize], paths: &Words, tails: &Tails) -> Result<()> {
        let mut before: Option<&str> = None;
        for (item, &row) in order.iter().enumerate() {
            let path = plain(&paths[row]);
            let front = path.strip_suffix(tails.0[item].as_str());
            if front.is_none_or(|front| *before.get_or_insert(front) != front) {
                let problem = format!(
                    "index {item} is {}, but the row's path is {}: the labels belong to other data, or their columns were sorted separately",
                    shown(&tails.0[item]),
                    shown(path)
                );
                return Err(self.wrong(row, problem));
            }
        }
        Ok(())
    }

    fn by_path(&self, paths: &Words, tails: &Tails) -> Result<Vec<usize>> {
        let places = tails.places(self)?;
        let first = paths.get(0).map_or("", plain);
        let ends = first.bytes().enumerate().filter(|(_, byte)| is_cut(*byte)).map(|(at, _)| at + 1);
        let cuts = std::iter::once(0).chain(ends);
        let fronts: Vec<&str> =
            cuts.filter(|&at| places.contains_key(&first[at..])).map(|at| &first[..at]).collect();
        let item = |front: &str, path: &str| places.get(plain(path).strip_prefix(front)?).copied();
        let all = |front: &&&str| paths.iter().all(|path| item(front, path).is_some());
        let front = fronts.iter().find(all).or(fronts.first()).copied().unwrap_or("");
        let find = |row: usize| {
            item(front, &paths[row]).ok_or_else(|| {
                let like = tails.0.first().map_or(String::new(), |tail| shown(&format!("{front}{tail}")));
                format!("there is no item with the path {}; the first item's is {like}", shown(&paths[row]))
            })
        };
        self.fill(tails.0.len(), find, |item| shown(&tails.0[item]))
    }

    fn by_id(&self, ids: &Words, tails: &Tails) -> Result<Vec<usize>> {
        let places = tails.places(self)?;
        let find = |row: usize| {
            let found = places.get(plain(&ids[row])).copied();
            found.ok_or_else(|| format!("there is no item with the id {}", shown(&ids[row])))
        };
        self.fill(tails.0.len(), find, |item| format!("id {}", shown(&tails.0[item])))
    }

    /// Numbers that fall somewhere show that rows were moved; without ids of the data they cannot be moved back.
    fn check_rising(&self, ids: &Words) -> Result<()> {
        let numbers: Option<Vec<f64>> = ids.iter().map(|id| id.parse().ok()).collect();
        let falls = numbers.and_then(|numbers| numbers.windows(2).position(|pair| pair[0] >= pair[1]));
        match falls {
            None => Ok(()),
            Some(at) => {
                let problem = format!(
                    "id {} after {}: rows are not in the order of their ids, and the data has no ids to join them by; sort them into the order of \
                     the items, or, if the ids count the items from 0, call the column `index`",
                    shown(&ids[at + 1]),
                    shown(&ids[at])
                );
                Err(self.wrong(at + 1, problem))
            }
        }
    }
}
