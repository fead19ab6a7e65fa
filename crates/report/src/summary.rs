//! The figures a reader looks for first.

use crate::number::{count, mean, percent, plain};
use crate::record::EpochRecord;

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
    /// Whether it was chosen by looking at the truth, which nobody has in earnest.
    pub oracle: bool,
}

impl SummaryRow {
    /// An honest figure.
    pub fn new(label: impl Into<String>, figure: Figure, note: impl Into<String>) -> Self {
        Self { label: label.into(), figure, note: note.into(), oracle: false }
    }

    /// The same figure, marked as chosen by looking at the truth.
    #[must_use]
    pub fn oracle(self) -> Self {
        Self { oracle: true, ..self }
    }
}

/// The rows that follow from the records alone: test accuracy last, mean of the last 10, best by noisy validation and
/// best on test (an oracle), then the last fits, separation and noise estimate. What was never measured has no row.
#[must_use]
pub fn summarise(records: &[EpochRecord]) -> Vec<SummaryRow> {
    let tests: Vec<(u64, f64)> = records.iter().filter_map(|r| Some((r.epoch, r.test_accuracy?))).collect();
    let mut rows = Vec::new();
    if let Some(&(epoch, last)) = tests.last() {
        rows.push(SummaryRow::new("Test accuracy, last", Figure::Fraction(last), format!("epoch {epoch}")));
        let tail: Vec<f64> = tests.iter().rev().take(10).map(|t| t.1).collect();
        let over = if tail.len() == 1 { "1 epoch".to_owned() } else { format!("{} epochs", tail.len()) };
        rows.push(SummaryRow::new(
            "Test accuracy, mean of last 10",
            Figure::Fraction(mean(&tail)),
            format!("over {over}"),
        ));
    }
    let validated = records.iter().filter_map(|r| Some((r.epoch, r.validation_accuracy?, r.test_accuracy?)));
    if let Some((epoch, _, test)) = first_best(validated) {
        let note = format!("epoch {epoch}, chosen by noisy validation");
        rows.push(SummaryRow::new("Test accuracy, best by validation", Figure::Fraction(test), note));
    }
    if let Some((epoch, _, test)) = first_best(tests.iter().map(|&(epoch, test)| (epoch, test, test))) {
        let note = format!("epoch {epoch}, chosen on the test set");
        rows.push(SummaryRow::new("Test accuracy, best", Figure::Fraction(test), note).oracle());
    }
    let last = |of: fn(&EpochRecord) -> Option<f64>| records.iter().rev().find_map(of);
    let fractions = [
        ("Fit to clean labels", last(|r| r.fit_clean), "predicted as labelled"),
        ("Fit to wrong labels", last(|r| r.fit_wrong_given), "predicted as labelled: memorised"),
        ("Wrong labels seen through", last(|r| r.fit_wrong_true), "predicted as their true class"),
        ("Noise, estimated", last(|r| r.noise_estimate), "share of wrong labels"),
    ];
    let fractions = fractions
        .into_iter()
        .filter_map(|(label, value, note)| Some(SummaryRow::new(label, Figure::Fraction(value?), note)));
    rows.extend(fractions);
    if let Some(auc) = last(|r| r.separation_auc) {
        rows.push(SummaryRow::new(
            "Separation AUC",
            Figure::Number(auc),
            "right from wrong by clean probability",
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
