//! How well predictions agree with labels.
//!
//! With n_tp the number of items of class t for which p is the most probable: top-1 accuracy sum_t n_tt / n; recall of class t
//! n_tt / sum_p n_tp; mean recall over the classes that occur. Of classes with the same probability the first is taken.

use crate::{Error, Result};
use serde::Serialize;

/// Counts, from which all measures follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evaluation {
    classes: usize,
    /// Row by true class, column by predicted class.
    confusion: Vec<u64>,
    /// Items whose label is among the five most probable classes.
    in_five: u64,
}

impl Evaluation {
    /// Nothing counted yet.
    pub fn new(classes: usize) -> Self {
        Self { classes, confusion: vec![0; classes * classes], in_five: 0 }
    }

    /// Of rows of probabilities, one for each label.
    pub fn of(classes: usize, probabilities: &[f32], labels: &[u32]) -> Result<Self> {
        let mut evaluation = Self::new(classes);
        evaluation.add(probabilities, labels)?;
        Ok(evaluation)
    }

    /// Counts more items: rows of probabilities (any scores do), one for each label.
    pub fn add(&mut self, probabilities: &[f32], labels: &[u32]) -> Result<()> {
        let refuse = |problem: String| Err(Error::Samples { what: "evaluation", problem });
        if probabilities.len() != labels.len() * self.classes {
            return refuse(format!(
                "{} probabilities for {} labels of {} classes: every item needs one per class",
                probabilities.len(),
                labels.len(),
                self.classes
            ));
        }
        if let Some(at) = labels.iter().position(|&label| label as usize >= self.classes) {
            return refuse(format!(
                "label {} of item {at} is not a class: there are {}, numbered from 0",
                labels[at], self.classes
            ));
        }
        if let Some(at) = probabilities.iter().position(|p| p.is_nan()) {
            return refuse(format!("a probability of item {} is not a number", at / self.classes));
        }
        for (row, &label) in probabilities.chunks(self.classes.max(1)).zip(labels) {
            let label = label as usize;
            // Classes that come before the label's in the order of probability, then of number.
            let before = (0..self.classes)
                .filter(|&class| row[class] > row[label] || (row[class] == row[label] && class < label));
            self.in_five += u64::from(before.take(5).count() < 5);
            let best =
                (0..self.classes).fold(0, |best, class| if row[class] > row[best] { class } else { best });
            self.confusion[label * self.classes + best] += 1;
        }
        Ok(())
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Number of items counted.
    pub fn samples(&self) -> u64 {
        self.confusion.iter().sum()
    }

    /// Items of class `truth` for which `predicted` was the most probable.
    pub fn count(&self, truth: usize, predicted: usize) -> u64 {
        self.confusion[truth * self.classes + predicted]
    }

    /// All counts: a row for every true class, a column for every predicted one.
    pub fn confusion(&self) -> &[u64] {
        &self.confusion
    }

    /// Share of the items whose most probable class is that of the label; 0 for no items.
    pub fn top_1(&self) -> f64 {
        let right = (0..self.classes).map(|class| self.count(class, class)).sum();
        share(right, self.samples()).unwrap_or(0.0)
    }

    /// Share of the items whose label is among the five most probable classes; only where there are more than five.
    pub fn top_5(&self) -> Option<f64> {
        (self.classes > 5).then(|| share(self.in_five, self.samples()).unwrap_or(0.0))
    }

    /// Items of a class.
    pub fn support(&self, class: usize) -> u64 {
        (0..self.classes).map(|predicted| self.count(class, predicted)).sum()
    }

    /// Share of the items of a class that were found, if there are any.
    pub fn recall(&self, class: usize) -> Option<f64> {
        share(self.count(class, class), self.support(class))
    }

    /// Share of the items predicted to be of a class that are, if there are any.
    pub fn precision(&self, class: usize) -> Option<f64> {
        share(self.count(class, class), (0..self.classes).map(|truth| self.count(truth, class)).sum())
    }

    /// Mean of the recalls of the classes that occur; 0 for no items.
    pub fn mean_recall(&self) -> f64 {
        let recalls: Vec<f64> = (0..self.classes).filter_map(|class| self.recall(class)).collect();
        recalls.iter().sum::<f64>() / recalls.len().max(1) as f64
    }

    /// Mistakes, the most frequent first: true class, predicted class, how often.
    pub fn mistakes(&self) -> Vec<(usize, usize, u64)> {
        let all = (0..self.classes).flat_map(|truth| (0..self.classes).map(move |guess| (truth, guess)));
        let wrong = all.filter(|(truth, guess)| truth != guess);
        let mut wrong: Vec<_> = wrong.map(|(t, p)| (t, p, self.count(t, p))).filter(|w| w.2 > 0).collect();
        wrong.sort_by_key(|&(.., count)| std::cmp::Reverse(count));
        wrong
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_those_counted_by_hand() {
        let rows = [0.7, 0.2, 0.1, 0.1, 0.8, 0.1, 0.6, 0.3, 0.1, 0.5, 0.25, 0.25];
        let evaluation = Evaluation::of(3, &rows, &[0, 1, 1, 0]).unwrap();
        assert_eq!(evaluation.confusion(), [2, 0, 0, 1, 1, 0, 0, 0, 0]);
        assert_eq!((evaluation.samples(), evaluation.top_1(), evaluation.top_5()), (4, 0.75, None));
        assert_eq!([0, 1, 2].map(|class| evaluation.recall(class)), [Some(1.0), Some(0.5), None]);
        assert_eq!(evaluation.precision(0), Some(2.0 / 3.0));
        assert_eq!(evaluation.mean_recall(), 0.75, "the class that does not occur is left out");
        assert_eq!(evaluation.mistakes(), [(1, 0, 1)]);
    }

    #[test]
    fn the_five_most_probable_classes_break_ties_by_number() {
        let rows = [[0.3, 0.2, 0.2, 0.1, 0.1, 0.1], [0.3, 0.2, 0.2, 0.1, 0.1, 0.1]].concat();
        let evaluation = Evaluation::of(6, &rows, &[4, 5]).unwrap();
        assert_eq!((evaluation.top_1(), evaluation.top_5()), (0.0, Some(0.5)));
        let even = Evaluation::of(2, &[0.5, 0.5], &[0]).unwrap();
        assert_eq!(even.top_1(), 1.0, "the first of two equal ones");
    }

    #[test]
    fn counting_in_parts_equals_counting_at_once() {
        let rows: Vec<f32> = (0..70).map(|i| ((i * 37) % 11) as f32).collect();
        let labels: Vec<u32> = (0..10).map(|i| i % 7).collect();
        let mut parts = Evaluation::new(7);
        parts.add(&rows[..21], &labels[..3]).unwrap();
        parts.add(&rows[21..], &labels[3..]).unwrap();
        assert_eq!(parts, Evaluation::of(7, &rows, &labels).unwrap());
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        for (rows, labels, part) in [
            (&[0.5, 0.5][..], &[0, 1][..], "every item needs"),
            (&[0.5, 0.5], &[2], "label 2 of item 0"),
            (&[0.5, f32::NAN], &[1], "item 0 is not a number"),
        ] {
            let error = Evaluation::of(2, rows, labels).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let none = Evaluation::new(0);
        assert_eq!((none.samples(), none.top_1(), none.mean_recall()), (0, 0.0, 0.0));
    }
}
