//! What is counted over rows, in whole numbers, so that counts of parts can be added in any order.

use super::record::Record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Scores are added up as multiples of 1 / `UNIT`.
pub const UNIT: f64 = (1u64 << 32) as f64;

/// The most rows whose scores can be added up.
pub(super) const MOST_ROWS: u64 = u32::MAX as u64;

/// Counts of a group of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GroupCounts {
    /// How many rows.
    pub rows: u64,
    /// How many of them are flagged.
    pub flagged: u64,
    /// Sum of their scores, in units of 2^-32.
    pub scores: u64,
}

impl GroupCounts {
    /// Sum of the scores: how many labels are expected to be wrong, if scores are probabilities.
    #[must_use]
    pub fn score_sum(&self) -> f64 {
        self.scores as f64 / UNIT
    }

    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.flagged += other.flagged;
        self.scores += other.scores;
    }
}

/// Counts of flagged rows with one given and one suggested class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CellCounts {
    /// How many rows, all flagged.
    pub flagged: u64,
    /// Sum of their scores, in units of 2^-32.
    pub scores: u64,
}

/// Counts over rows: all, by given class, and flagged rows by given and suggested class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Counts {
    all: GroupCounts,
    classes: Vec<GroupCounts>,
    cells: BTreeMap<(u32, u32), CellCounts>,
}

/// As it stands in a manifest: cells as [given, suggested, flagged, scores].
#[derive(Serialize, Deserialize)]
struct Written {
    all: GroupCounts,
    classes: Vec<GroupCounts>,
    cells: Vec<(u32, u32, u64, u64)>,
}

impl From<Written> for Counts {
    fn from(Written { all, classes, cells }: Written) -> Self {
        let cell = |(given, suggested, flagged, scores)| ((given, suggested), CellCounts { flagged, scores });
        Self { all, classes, cells: cells.into_iter().map(cell).collect() }
    }
}

impl From<Counts> for Written {
    fn from(Counts { all, classes, cells }: Counts) -> Self {
        let cell = |((given, suggested), CellCounts { flagged, scores })| (given, suggested, flagged, scores);
        Self { all, classes, cells: cells.into_iter().map(cell).collect() }
    }
}

impl Counts {
    /// Nothing yet, for so many classes.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        Self { classes: vec![GroupCounts::default(); classes], ..Self::default() }
    }

    /// Another row, whose classes are among those counted.
    pub(super) fn count(&mut self, record: &Record) {
        // A score from 0 to 1 times 2^32 is exact as f64.
        let scores = (f64::from(record.score.score) * UNIT) as u64;
        let one = GroupCounts { rows: 1, flagged: u64::from(record.score.flag), scores };
        self.all.add(&one);
        self.classes[record.given as usize].add(&one);
        if record.score.flag {
            let cell = self.cells.entry((record.given, record.score.suggested)).or_default();
            cell.flagged += 1;
            cell.scores += scores;
        }
    }

    /// Adds the counts of other rows with the same classes.
    pub(super) fn add(&mut self, other: &Self) {
        self.all.add(&other.all);
        self.classes.iter_mut().zip(&other.classes).for_each(|(sum, part)| sum.add(part));
        for (&place, part) in &other.cells {
            let cell = self.cells.entry(place).or_default();
            cell.flagged += part.flagged;
            cell.scores += part.scores;
        }
    }

    /// All rows.
    #[must_use]
    pub fn all(&self) -> &GroupCounts {
        &self.all
    }

    /// Rows by given class.
    #[must_use]
    pub fn classes(&self) -> &[GroupCounts] {
        &self.classes
    }

    /// Flagged rows by (given, suggested) class, only pairs that occur, in their order. Pairs of equals are doubted without a better
    /// idea.
    pub fn cells(&self) -> impl Iterator<Item = ((u32, u32), &CellCounts)> {
        self.cells.iter().map(|(&place, cell)| (place, cell))
    }

    /// Whether numbers that must agree do: a manifest may be damaged.
    pub(super) fn is_sound(&self, rows: u64, classes: usize) -> bool {
        let is_possible = |group: &GroupCounts| {
            group.rows <= rows && group.flagged <= group.rows && group.scores <= group.rows << 32
        };
        // In this order: only numbers that are small enough are added up.
        if self.classes.len() != classes
            || rows > MOST_ROWS
            || self.all.rows != rows
            || !self.classes.iter().all(is_possible)
        {
            return false;
        }
        let mut sum = (0u128, 0u128, 0u128);
        for group in &self.classes {
            sum = (
                sum.0 + u128::from(group.rows),
                sum.1 + u128::from(group.flagged),
                sum.2 + u128::from(group.scores),
            );
        }
        let all = (u128::from(self.all.rows), u128::from(self.all.flagged), u128::from(self.all.scores));
        let is_cell = |(&(given, suggested), cell): (&(u32, u32), &CellCounts)| {
            (given.max(suggested) as usize) < classes && cell.scores <= self.all.scores
        };
        let flagged: u128 = self.cells.values().map(|cell| u128::from(cell.flagged)).sum();
        sum == all && flagged == all.1 && self.cells.iter().all(is_cell)
    }
}
