//! Which class is taken for which: a shaded table for a few classes, the most frequent mix-ups for many.

use crate::error::{Error, Result};
use crate::number::{count, percent};

/// With more classes than this a table can no longer be read.
pub(crate) const MOST_COLUMNS: usize = 30;
/// How many mix-ups are listed instead.
const MOST_PAIRS: usize = 30;

/// Counts of one class (row) by another (column).
#[derive(Debug, Clone)]
pub struct CountMatrix {
    classes: usize,
    counts: Vec<u64>,
}

impl CountMatrix {
    /// Takes the counts row by row.
    ///
    /// # Errors
    /// There are not `classes` x `classes` counts.
    pub fn checked(classes: usize, counts: Vec<u64>) -> Result<Self> {
        if classes.checked_mul(classes) != Some(counts.len()) {
            return Err(Error::Matrix { classes, given: counts.len() });
        }
        Ok(Self { classes, counts })
    }

    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }
}

pub(crate) struct MatrixView {
    pub rows: &'static str,
    pub columns: &'static str,
    pub names: Vec<String>,
    pub table: Vec<Vec<Cell>>,
    pub pairs: Vec<Pair>,
    pub note: String,
}

impl MatrixView {
    /// Name of a row, for the template.
    pub fn name(&self, row: &usize) -> &str {
        self.names.get(*row).map_or("", String::as_str)
    }
}

pub(crate) struct Cell {
    pub text: String,
    /// Percent of the strongest shade.
    pub shade: u32,
    pub diagonal: bool,
    pub title: String,
}

impl Cell {
    /// Whether black is read better than white on dark paper; the two colours differ in lightness.
    pub fn is_deep(&self) -> bool {
        self.shade >= if self.diagonal { 60 } else { 64 }
    }

    /// Whether white is read better than black on light paper.
    pub fn is_deeper(&self) -> bool {
        self.shade >= if self.diagonal { 88 } else { 98 }
    }
}

pub(crate) struct Pair {
    pub row: String,
    pub column: String,
    pub count: String,
    pub share: String,
    /// Percent of the longest bar.
    pub length: u32,
}

/// Lays the matrix out; `None` if it has no counts.
pub(crate) fn lay_out(
    matrix: &CountMatrix,
    names: impl Fn(usize) -> String,
    rows: &'static str,
    columns: &'static str,
) -> Option<MatrixView> {
    let n = matrix.classes;
    let sums: Vec<u64> = matrix.counts.chunks(n.max(1)).map(|row| add(row.iter())).collect();
    let total = add(sums.iter());
    if total == 0 {
        return None;
    }
    let share = |row: usize, column: usize| {
        if sums[row] == 0 { 0.0 } else { matrix.counts[row * n + column] as f64 / sums[row] as f64 }
    };
    let straight = add((0..n).map(|c| &matrix.counts[c * n + c]));
    let agree = percent(straight as f64 / total as f64, 2);
    let mut view = MatrixView {
        rows,
        columns,
        names: Vec::new(),
        table: Vec::new(),
        pairs: Vec::new(),
        note: format!(
            "The {rows} and the {columns} class agree for {} of {} ({agree})",
            count(straight),
            count(total)
        ),
    };
    if n <= MOST_COLUMNS {
        view.names = (0..n).map(names).collect();
        for row in 0..n {
            let cell = |column: usize| {
                let (counted, share) = (matrix.counts[row * n + column], share(row, column));
                Cell {
                    text: if counted == 0 { "·".to_owned() } else { counted.to_string() },
                    // The root shows rare mix-ups too.
                    shade: (share.sqrt() * 100.0).round() as u32,
                    diagonal: row == column,
                    title: format!(
                        "{rows} {}, {columns} {}: {} ({} of the row)",
                        view.names[row],
                        view.names[column],
                        count(counted),
                        percent(share, 1)
                    ),
                }
            };
            view.table.push((0..n).map(cell).collect());
        }
        return Some(view);
    }
    let mut cells: Vec<usize> = (0..n * n).filter(|at| at / n != at % n && matrix.counts[*at] > 0).collect();
    // The order of equals is that of the classes, so that the page is the same every time.
    cells.sort_by_key(|at| (std::cmp::Reverse(matrix.counts[*at]), *at));
    let largest = cells.first().map_or(1, |at| matrix.counts[*at]);
    view.pairs = cells
        .iter()
        .take(MOST_PAIRS)
        .map(|&at| Pair {
            row: names(at / n),
            column: names(at % n),
            count: count(matrix.counts[at]),
            share: percent(share(at / n, at % n), 1),
            length: (matrix.counts[at] as f64 / largest as f64 * 100.0).round() as u32,
        })
        .collect();
    Some(view)
}

/// Absurd counts stop at the largest number instead of wrapping round.
fn add<'a>(counts: impl Iterator<Item = &'a u64>) -> u64 {
    counts.fold(0, |sum: u64, count| sum.saturating_add(*count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(classes: usize, counts: Vec<u64>) -> Option<MatrixView> {
        lay_out(&CountMatrix::checked(classes, counts).unwrap(), |c| format!("c{c}"), "true", "predicted")
    }

    #[test]
    fn a_small_matrix_is_a_table_with_all_its_counts() {
        let view = view(2, vec![3, 1, 0, 0]).unwrap();
        let texts: Vec<_> = view.table.iter().flatten().map(|c| c.text.as_str()).collect();
        assert_eq!(texts, ["3", "1", "·", "·"]);
        assert_eq!(view.table[0][1].shade, 50);
        assert_eq!(view.table[0][1].title, "true c0, predicted c1: 1 (25.0 % of the row)");
        assert!(view.note.contains("3 of 4 (75.00 %)"));
    }

    #[test]
    fn a_large_matrix_becomes_its_most_frequent_mix_ups() {
        let mut counts = vec![0; 1_000_000];
        for class in 0..1000 {
            counts[class * 1000 + class] = 90;
            counts[class * 1000 + (class + 1) % 1000] = 1 + (class % 7) as u64;
        }
        counts[42 * 1000 + 7] = 50;
        let view = view(1000, counts).unwrap();
        assert!(view.table.is_empty());
        assert_eq!(view.pairs.len(), MOST_PAIRS);
        assert_eq!((view.pairs[0].row.as_str(), view.pairs[0].column.as_str()), ("c42", "c7"));
        assert_eq!(view.pairs[1].row, "c6");
    }

    #[test]
    fn sizes_that_do_not_fit_are_an_error_and_nothing_counted_is_no_matrix() {
        assert!(CountMatrix::checked(2, vec![1, 2, 3]).is_err());
        assert!(CountMatrix::checked(usize::MAX, vec![]).is_err());
        assert!(view(0, vec![]).is_none());
        assert!(view(2, vec![0; 4]).is_none());
        assert!(view(2, vec![u64::MAX; 4]).is_some());
        assert_eq!(view(1, vec![5]).unwrap().table[0][0].shade, 100);
    }
}
