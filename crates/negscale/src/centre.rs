//! The running, class-balanced mean of features: what [`Centre::ClassBalanced`](crate::Centre) subtracts.
//!
//! Per class $c$ a running mean $m_c \leftarrow \beta m_c + (1 - \beta)\,\bar f_c$ over the batches that hold the class (the
//! first such batch sets it); the centre is the mean of $m_c$ over the classes seen so far, so that a frequent class
//! weighs no more than a rare one. It is a constant of the gradient.

use crate::Real;
use serde::{Deserialize, Serialize};

/// Running class means. Part of a training run's state: save it with a checkpoint, hand it back on resume.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClassMeans {
    dim: usize,
    means: Vec<f64>,
    seen: Vec<bool>,
    #[serde(skip)]
    batch: Vec<f64>,
    #[serde(skip)]
    counts: Vec<usize>,
}

impl ClassMeans {
    /// Takes a batch in and writes the new centre to `centre`.
    pub(crate) fn update<T: Real>(
        &mut self,
        features: &[T],
        labels: &[usize],
        classes: usize,
        momentum: f64,
        centre: &mut Vec<T>,
    ) {
        let dim = features.len() / labels.len().max(1);
        if self.dim != dim || self.seen.len() != classes {
            *self =
                Self { dim, means: vec![0.0; classes * dim], seen: vec![false; classes], ..Self::default() };
        }
        self.batch.clear();
        self.batch.resize(classes * dim, 0.0);
        self.counts.clear();
        self.counts.resize(classes, 0);
        for (&label, f) in labels.iter().zip(features.chunks(dim.max(1))) {
            self.counts[label] += 1;
            for (sum, x) in self.batch[label * dim..].iter_mut().zip(f) {
                *sum += x.wide();
            }
        }
        for c in (0..classes).filter(|&c| self.counts[c] > 0) {
            let keep = if self.seen[c] { momentum } else { 0.0 };
            let share = (1.0 - keep) / self.counts[c] as f64;
            for at in c * dim..(c + 1) * dim {
                self.means[at] = keep * self.means[at] + share * self.batch[at];
            }
            self.seen[c] = true;
        }
        let known = self.seen.iter().filter(|&&s| s).count().max(1) as f64;
        centre.clear();
        centre.extend((0..dim).map(|k| {
            let seen = (0..classes).filter(|&c| self.seen[c]);
            T::of(seen.map(|c| self.means[c * dim + k]).sum::<f64>() / known)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequent_class_weighs_no_more_than_a_rare_one() {
        let (mut means, mut centre) = (ClassMeans::default(), Vec::new());
        let features = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 3.0];
        means.update(&features, &[0, 0, 0, 1], 4, 0.9, &mut centre);
        assert_eq!(centre, [0.5, 1.5]);
    }

    #[test]
    fn a_class_keeps_its_share_of_the_past_and_absent_classes_stay() {
        let (mut means, mut centre) = (ClassMeans::default(), Vec::new());
        means.update(&[1.0, 5.0], &[0, 1], 2, 0.75, &mut centre);
        means.update(&[3.0, 3.0], &[0, 0], 2, 0.75, &mut centre);
        assert_eq!(centre, [(0.75 * 1.0 + 0.25 * 3.0 + 5.0) / 2.0]);
    }

    #[test]
    fn the_state_survives_saving() {
        let (mut means, mut centre) = (ClassMeans::default(), Vec::new());
        means.update(&[1.0, 5.0], &[0, 1], 3, 0.5, &mut centre);
        let text = serde_json::to_string(&means).unwrap();
        let mut back: ClassMeans = serde_json::from_str(&text).unwrap();
        let mut other = Vec::new();
        means.update(&[2.0, 2.0], &[0, 2], 3, 0.5, &mut centre);
        back.update(&[2.0, 2.0], &[0, 2], 3, 0.5, &mut other);
        assert_eq!(centre, other);
    }
}
