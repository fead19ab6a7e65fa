//! A value for every kind of pair: by the relation of its classes, and by whether its labels are right.
//!
//! The paper divides pairs $(i, j)$ with given labels $\tilde y$ and true labels $y$ into
//!
//! | category | condition | Figures 2 and 3 |
//! |---|---|---|
//! | clean-clean | $y_i = \tilde y_i$, $y_j = \tilde y_j$ | (a) |
//! | clean-noisy | $y_i = \tilde y_i$, $y_j \ne \tilde y_j$ | (b) |
//! | cross-noise | $y_i = \tilde y_i = \tilde y_j \ne y_j$ | (c) |
//!
//! and each into "Small pLCA" (related) and "Large pLCA" (unrelated). It defines related and unrelated by given labels, but a
//! cross-noise pair has equal given labels, so there the split can only be by true ones, $D(y_i, y_j)$. For clean-clean
//! pairs both are the same. For clean-noisy pairs the paper does not say, so both readings are here: [`Known::by_truth`], one
//! reading for all three figures, and [`Known::by_given`]. Cross-noise pairs are the clean-noisy pairs of the same given class.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Names of the relations, in the order of [`ByRelation::list`].
pub const RELATIONS: [&str; 4] = ["same", "related", "neutral", "unrelated"];

/// The paper's "normalised similarity", taken to be $(1 + \cos)/2$.
pub fn normalised(cosine: f64) -> f64 {
    (1.0 + cosine) / 2.0
}

/// Similarity over a set of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Number of unordered pairs.
    pub pairs: u64,
    /// Mean cosine.
    pub mean: f64,
    /// Standard deviation of the cosine over the pairs; below 1e-7 it cannot be told from 0.
    pub std: f64,
    /// Mean of (1 + cosine)/2.
    pub normalised: f64,
    /// Standard deviation of (1 + cosine)/2.
    pub normalised_std: f64,
}

/// A mean over a set of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// Number of unordered pairs.
    pub pairs: u64,
    /// Mean.
    pub mean: f64,
}

/// A value for every relation of two classes; absent where there are no such pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ByRelation<T> {
    /// The same class.
    pub same: Option<T>,
    /// $0 < D \le \eta_{\min}$: "Small pLCA", $P_{sim}$.
    pub related: Option<T>,
    /// $\eta_{\min} < D \le \eta_{\max}$.
    pub neutral: Option<T>,
    /// $D > \eta_{\max}$: "Large pLCA", $P_{neg}$.
    pub unrelated: Option<T>,
}

/// A value for every relation, by whether labels are right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Categories<T> {
    /// Both labels are right.
    pub clean_clean: ByRelation<T>,
    /// One label is right, one wrong.
    pub clean_noisy: ByRelation<T>,
    /// Both are wrong (not in the paper; with the others, all pairs).
    pub noisy_noisy: ByRelation<T>,
}

/// What can be told where the truth is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Known<T> {
    /// All pairs, their relation by true labels.
    pub truth: ByRelation<T>,
    /// The categories, the relation by true labels.
    pub by_truth: Categories<T>,
    /// The categories, the relation by given labels.
    pub by_given: Categories<T>,
    /// One label is right and the other, wrong, says the same; the relation by true labels, so never `same`.
    pub cross_noise: ByRelation<T>,
}

/// A value for every kind of pair.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pairs<T> {
    /// All pairs, their relation by given labels.
    pub given: ByRelation<T>,
    /// More, where the truth is known.
    pub known: Option<Known<T>>,
}

impl<T> ByRelation<T> {
    /// From a function of the relation's place in [`RELATIONS`].
    pub fn of(mut make: impl FnMut(usize) -> Option<T>) -> Self {
        Self { same: make(0), related: make(1), neutral: make(2), unrelated: make(3) }
    }

    /// In the order of [`RELATIONS`].
    pub fn list(&self) -> [Option<&T>; 4] {
        [self.same.as_ref(), self.related.as_ref(), self.neutral.as_ref(), self.unrelated.as_ref()]
    }

    fn zip<U, V>(&self, other: &ByRelation<U>, make: &mut impl FnMut(&T, &U) -> Option<V>) -> ByRelation<V> {
        let (a, b) = (self.list(), other.list());
        ByRelation::of(|at| make(a[at]?, b[at]?))
    }
}

impl<T> Categories<T> {
    fn zip<U, V>(&self, other: &Categories<U>, make: &mut impl FnMut(&T, &U) -> Option<V>) -> Categories<V> {
        Categories {
            clean_clean: self.clean_clean.zip(&other.clean_clean, make),
            clean_noisy: self.clean_noisy.zip(&other.clean_noisy, make),
            noisy_noisy: self.noisy_noisy.zip(&other.noisy_noisy, make),
        }
    }
}

impl<T> Pairs<T> {
    /// A value from two, for every kind of pair that both have.
    pub fn zip<U, V>(&self, other: &Pairs<U>, mut make: impl FnMut(&T, &U) -> Option<V>) -> Pairs<V> {
        let make = &mut make;
        let known = self.known.as_ref().zip(other.known.as_ref()).map(|(a, b)| Known {
            truth: a.truth.zip(&b.truth, make),
            by_truth: a.by_truth.zip(&b.by_truth, make),
            by_given: a.by_given.zip(&b.by_given, make),
            cross_noise: a.cross_noise.zip(&b.cross_noise, make),
        });
        Pairs { given: self.given.zip(&other.given, make), known }
    }

    /// Another value for every kind of pair.
    pub fn map<V>(&self, mut make: impl FnMut(&T) -> Option<V>) -> Pairs<V> {
        self.zip(self, |value, _| make(value))
    }
}

/// Number of pairs and `K` sums over them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sums<const K: usize> {
    pub pairs: u64,
    pub sums: [f64; K],
}

impl<const K: usize> Default for Sums<K> {
    fn default() -> Self {
        Self { pairs: 0, sums: [0.0; K] }
    }
}

impl<const K: usize> AddAssign for Sums<K> {
    fn add_assign(&mut self, other: Self) {
        self.pairs += other.pairs;
        self.sums.iter_mut().zip(other.sums).for_each(|(a, b)| *a += b);
    }
}
