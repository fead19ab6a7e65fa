//! A table on a page, every cell already a text.

use crate::table::{ColumnKind, Table};

/// A longer table has the rest of its rows folded away.
const MOST_OPEN: usize = 12;
/// Rows that are open then.
const OPEN: usize = 10;

pub(crate) struct Shown {
    pub note: String,
    /// Words, and whether they are to the left.
    pub head: Vec<(String, bool)>,
    pub rows: Vec<Vec<Cell>>,
}

#[derive(Default)]
pub(crate) struct Cell {
    pub text: String,
    pub is_best: bool,
    pub is_words: bool,
    /// Percent of a bar before the text.
    pub bar: Option<u32>,
}

impl Cell {
    /// Words, to the left.
    pub fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_words: true, ..Self::default() }
    }

    /// A number, to the right.
    pub fn number(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The same after a bar that is filled as far as `part` of the `whole` goes.
    pub fn with_bar(self, part: f64, whole: f64) -> Self {
        // The cast makes NaN an empty bar.
        Self { bar: Some((part / whole * 100.0).clamp(0.0, 100.0).round() as u32), ..self }
    }
}

impl Shown {
    pub fn of(table: &Table) -> Self {
        let is_words: Vec<bool> =
            table.columns().iter().map(|column| column.kind == ColumnKind::Text).collect();
        let row = |cells: Vec<(String, bool)>| {
            let cells = cells.into_iter().zip(&is_words);
            cells
                .map(|((text, is_best), words)| Cell { text, is_best, is_words: *words, bar: None })
                .collect()
        };
        Self {
            note: table.note.clone(),
            head: table.columns().iter().map(|c| c.head.clone()).zip(is_words.iter().copied()).collect(),
            rows: table.shown().into_iter().map(row).collect(),
        }
    }

    /// A table whose columns stand as their cells do; `None` without rows.
    pub fn from_rows(head: &[&str], rows: Vec<Vec<Cell>>, note: String) -> Option<Self> {
        let sides: Vec<bool> = rows.first()?.iter().map(|cell| cell.is_words).collect();
        let head = head.iter().map(|words| (*words).to_owned()).zip(sides).collect();
        Some(Self { note, head, rows })
    }

    /// The first rows, and the others to unfold if there are many.
    pub fn folded(mut self) -> (Self, Option<Self>) {
        if self.rows.len() <= MOST_OPEN {
            return (self, None);
        }
        let rest = Self { note: String::new(), head: self.head.clone(), rows: self.rows.split_off(OPEN) };
        (self, Some(rest))
    }
}
