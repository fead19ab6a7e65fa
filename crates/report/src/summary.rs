//! The figures a reader looks for first.

use crate::number::{count, mean, percent, plain};
use negscale_records::EpochRecord;

/// Label of the row with the estimated share of wrong labels.
pub const NOISE_ESTIMATED: &str = "Noise, estimated";

/// A figure in the unit it is read in.
#[derive(Debug, Clone, PartialEq)]
pub enum Figure {
    /// A fraction, shown as a percentage.
    Fraction(f64),
    /// A number without unit.
    Number(f64),
    /// How many.
    Count(u64),
}

impl Figure {
    pub(crate) fn text(&self) -> String {
        match *self {
            Self::Fraction(value) => percent(value, 2),
            Self::Number(value) => plain(value),
            Self::Count(value) => count(value),
        }
    }
}

/// One figure of the summary.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryRow {
    /// What it is.
    pub label: String,
    /// The figure.
    pub figure: Figure,
    /// A few words below it; may be empty.
    pub note: String,
    /// Whether it was chosen by looking at the truth, which nobody has in practice.
    pub oracle: bool,
}

impl SummaryRow {
    /// A figure that could be had without knowing the truth.
    pub fn new(label: impl Into<String>, figure: Figure, note: impl Into<String>) -> Self {
        Self { label: label.into(), figure, note: note.into(), oracle: false }
    }

    /// The same figure, marked as chosen by looking at the truth.
    #[must_use]
    pub fn oracle(self) -> Self {
        Self { oracle: true, ..self }
    }
}

/// A figure as the page shows it.
pub(crate) struct Tile<'a> {
    pub label: &'a str,
    pub value: String,
    pub note: &'a str,
    pub oracle: bool,
}

impl<'a> Tile<'a> {
    pub fn all(rows: &'a [SummaryRow]) -> Vec<Self> {
        let tile = |row: &'a SummaryRow| Self {
            label: &row.label,
            value: row.figure.text(),
            note: &row.note,
            oracle: row.oracle,
        };
        rows.iter().map(tile).collect()
    }
}

/// Test accuracies of a run, as they are published: each only if there was a test set.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TestAccuracy {
    /// Epoch and accuracy of the last one.
    pub last: Option<(u64, f64)>,
    /// Mean of the last ten, or of as many as there are, and how many.
    pub last_10: Option<(usize, f64)>,
    /// Epoch that is best on held-out samples with labels as given, and its accuracy on the test set.
    pub best_by_validation: Option<(u64, f64)>,
    /// Epoch that is best on the test set: an oracle.
    pub best: Option<(u64, f64)>,
}

impl TestAccuracy {
    /// From the records of a run.
    #[must_use]
    pub fn of(records: &[EpochRecord]) -> Self {
        let tests: Vec<(u64, f64)> =
            records.iter().filter_map(|r| Some((r.epoch, r.test_accuracy?))).collect();
        let tail: Vec<f64> = tests.iter().rev().take(10).map(|t| t.1).collect();
        let validated =
            records.iter().filter_map(|r| Some((r.epoch, r.validation_accuracy?, r.test_accuracy?)));
        let without_key = |(epoch, _, test)| (epoch, test);
        Self {
            last: tests.last().copied(),
            last_10: (!tail.is_empty()).then(|| (tail.len(), mean(&tail))),
            best_by_validation: first_best(validated).map(without_key),
            best: first_best(tests.iter().map(|&(epoch, test)| (epoch, test, test))).map(without_key),
        }
    }
}

/// The rows that follow from the records alone: test accuracy last, mean of the last 10, best by noisy validation and
/// best on test (an oracle), then the last fits, separation and noise estimate. What was never measured has no row.
#[must_use]
pub fn summarise(records: &[EpochRecord]) -> Vec<SummaryRow> {
    let mut rows = Vec::new();
    let mut row = |label: &str, value: f64, note: String| {
        rows.push(SummaryRow::new(label, Figure::Fraction(value), note));
    };
    let tests = TestAccuracy::of(records);
    if let Some((epoch, test)) = tests.last {
        row("Test accuracy, last", test, format!("epoch {epoch}"));
    }
    if let Some((count, test)) = tests.last_10 {
        let over = if count == 1 { "1 epoch".to_owned() } else { format!("{count} epochs") };
        row("Test accuracy, mean of last 10", test, format!("over {over}"));
    }
    if let Some((epoch, test)) = tests.best_by_validation {
        row("Test accuracy, best by validation", test, format!("epoch {epoch}, chosen by noisy validation"));
    }
    if let Some((epoch, test)) = tests.best {
        let note = format!("epoch {epoch}, chosen on the test set");
        rows.push(SummaryRow::new("Test accuracy, best", Figure::Fraction(test), note).oracle());
    }
    let last = |of: fn(&EpochRecord) -> Option<f64>| records.iter().rev().find_map(of);
    let fractions = [
        ("Clean labels learnt", last(|r| r.fit_clean), "predicted as labelled"),
        ("Wrong labels memorised", last(|r| r.fit_wrong_given), "predicted as labelled"),
        ("Wrong labels recovered", last(|r| r.fit_wrong_true), "predicted as their true class"),
        (NOISE_ESTIMATED, last(|r| r.noise_estimate), "share of wrong labels"),
    ];
    let fractions = fractions
        .into_iter()
        .filter_map(|(label, value, note)| Some(SummaryRow::new(label, Figure::Fraction(value?), note)));
    rows.extend(fractions);
    if let Some(auc) = last(|r| r.separation_auc) {
        rows.push(SummaryRow::new(
            "Separation AUC",
            Figure::Number(auc),
            "right against wrong labels, by clean probability",
        ));
    }
    rows
}

/// The first triple whose middle value is the largest; NaN never is.
fn first_best(of: impl Iterator<Item = (u64, f64, f64)>) -> Option<(u64, f64, f64)> {
    of.filter(|t| !t.1.is_nan()).reduce(|best, next| if next.1 > best.1 { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(epoch: u64, test: f64, validation: f64) -> EpochRecord {
        let mut record = EpochRecord::new(epoch, 1.0, 0.1);
        record.test_accuracy = Some(test);
        record.validation_accuracy = Some(validation);
        record
    }

    #[test]
    fn the_best_by_validation_is_the_test_accuracy_of_that_epoch_and_the_earliest_of_equals() {
        let rows = summarise(&[
            record(0, 0.5, 0.4),
            record(1, 0.7, 0.6),
            record(2, 0.9, 0.6),
            record(3, 0.8, f64::NAN),
        ]);
        let figures: Vec<_> = rows.iter().map(|r| (r.figure.text(), r.oracle)).collect();
        let wanted = [("80.00 %", false), ("72.50 %", false), ("70.00 %", false), ("90.00 %", true)];
        assert_eq!(figures, wanted.map(|(text, oracle)| (text.to_owned(), oracle)));
    }

    #[test]
    fn the_mean_is_over_the_last_ten_only() {
        let records: Vec<_> = (0..20).map(|e| record(e, if e < 10 { 0.0 } else { 0.5 }, 0.1)).collect();
        assert_eq!(summarise(&records)[1].figure, Figure::Fraction(0.5));
    }

    #[test]
    fn nothing_measured_gives_no_rows() {
        assert!(summarise(&[]).is_empty());
        assert!(summarise(&[EpochRecord::new(0, 1.0, 0.1)]).is_empty());
    }
}
