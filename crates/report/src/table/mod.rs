//! A table of figures that people read and programs check: aligned text, CSV, GitHub Markdown and LaTeX from one source.
//!
//! Text, Markdown and LaTeX round to the digits asked for; CSV has every number with as many digits as it takes to read it
//! back unchanged, and in its own unit (a fraction stays one), a mean, its deviation and its count in columns of their own.
//! Names come from data and files that may be somebody else's: each form escapes what has a meaning in it.

mod formats;

use crate::error::{Error, Result};
use std::collections::BTreeSet;

/// A table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// What it shows; may be empty.
    pub title: String,
    /// A line below it; may be empty.
    pub note: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// Rows that are not compared with the others, by number.
    apart: BTreeSet<usize>,
}

/// What a column holds: decides its side and its columns in CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Words, to the left.
    Text,
    /// One number.
    Number,
    /// A mean: in CSV its mean, deviation (`sd`) and count (`n`).
    Mean,
    /// A value with an interval: in CSV the value, `low`, `high` and the count (`n`).
    Interval,
}

/// Which value of a column is the best one, to be emphasised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Best {
    /// The largest.
    Largest,
    /// The smallest.
    Smallest,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// What stands on top.
    pub head: String,
    /// What it holds.
    pub kind: ColumnKind,
    /// What to emphasise; `None` for nothing.
    pub best: Option<Best>,
}

impl Column {
    /// A column without emphasis.
    pub fn new(head: impl Into<String>, kind: ColumnKind) -> Self {
        Self { head: head.into(), kind, best: None }
    }

    /// The same, with its best value emphasised.
    #[must_use]
    pub fn best(self, best: Best) -> Self {
        Self { best: Some(best), ..self }
    }
}

/// How a number is written for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberFormat {
    /// Digits after the point.
    pub digits: usize,
    /// Whether a fraction is shown in percent, without the sign: that belongs into the title or head.
    pub percent: bool,
}

impl NumberFormat {
    /// As it is, with so many digits after the point.
    #[must_use]
    pub fn plain(digits: usize) -> Self {
        Self { digits, percent: false }
    }

    /// A fraction in percent.
    #[must_use]
    pub fn percent(digits: usize) -> Self {
        Self { digits, percent: true }
    }

    /// The number for people, if it is one.
    fn write(self, value: f64) -> Option<String> {
        let scaled = if self.percent { 100.0 * value } else { value };
        let text = format!("{scaled:.*}", self.digits);
        // A minus sign in front of nothing but zeros says nothing.
        let is_zero = text.starts_with('-') && text.chars().all(|c| matches!(c, '-' | '0' | '.'));
        scaled.is_finite().then(|| if is_zero { text[1..].to_owned() } else { text })
    }
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing was measured.
    Empty,
    /// Words.
    Text(String),
    /// A number.
    Number(f64, NumberFormat),
    /// A mean over `count` values, with their standard deviation if there are at least two.
    Mean {
        /// The mean.
        mean: f64,
        /// The deviation.
        deviation: Option<f64>,
        /// Number of values.
        count: usize,
        /// How it is written.
        form: NumberFormat,
    },
    /// A value from `count` others, with an interval if there is one.
    Interval {
        /// The value.
        value: f64,
        /// Lower and upper end.
        ends: Option<(f64, f64)>,
        /// Number of values it is from.
        count: usize,
        /// How it is written.
        form: NumberFormat,
    },
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The number that decides which cell is best.
    fn value(&self) -> Option<f64> {
        let value = match *self {
            Self::Empty | Self::Text(_) => return None,
            Self::Number(value, _) | Self::Mean { mean: value, .. } | Self::Interval { value, .. } => value,
        };
        value.is_finite().then_some(value)
    }
}

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { title: title.into(), note: String::new(), columns, rows: Vec::new(), apart: BTreeSet::new() }
    }

    /// The same with a line below it.
    #[must_use]
    pub fn with_note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// There are not as many cells as columns.
    pub fn push(&mut self, row: Vec<Cell>) -> Result<()> {
        if row.len() != self.columns.len() {
            let columns = self.columns.len();
            return Err(Error::Row { table: self.title.clone(), columns, given: row.len() });
        }
        self.rows.push(row);
        Ok(())
    }

    /// Adds a row that is not to be compared with the others: it is never the best.
    ///
    /// # Errors
    /// There are not as many cells as columns.
    pub fn push_apart(&mut self, row: Vec<Cell>) -> Result<()> {
        self.push(row)?;
        self.apart.insert(self.rows.len() - 1);
        Ok(())
    }

    /// Its columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Its rows, each with as many cells as there are columns.
    #[must_use]
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// The best value of a column, if it is to be emphasised and there are two to choose from.
    fn best(&self, column: usize) -> Option<f64> {
        let compared = self.rows.iter().enumerate().filter(|(number, _)| !self.apart.contains(number));
        let values: Vec<f64> = compared.filter_map(|(_, row)| row[column].value()).collect();
        let best = match self.columns[column].best? {
            Best::Largest => values.iter().copied().reduce(f64::max)?,
            Best::Smallest => values.iter().copied().reduce(f64::min)?,
        };
        (values.len() > 1).then_some(best)
    }

    /// All cells with whether each is the best of its column.
    fn marked(&self) -> impl Iterator<Item = Vec<(&Cell, bool)>> {
        let best: Vec<Option<f64>> = (0..self.columns.len()).map(|column| self.best(column)).collect();
        self.rows.iter().enumerate().map(move |(number, row)| {
            let is_compared = !self.apart.contains(&number);
            let mark = |(cell, best): (_, &Option<f64>)| {
                (cell, is_compared && best.is_some() && Cell::value(cell) == *best)
            };
            row.iter().zip(&best).map(mark).collect()
        })
    }
}

#[cfg(test)]
mod tests;
