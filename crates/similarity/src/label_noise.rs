//! What labels alone say about a class tree: are wrong labels those of related classes, and how often are pairs what their given
//! labels call them? No features are needed.
//!
//! Let $n_{gy}$ be the number of samples given as $g$ and truly of class $y$, counted or estimated.
//!
//! **Are the errors semantic?** A wrong label is related, neutral or unrelated by the distance of $g$ and $y$. By chance it would be
//! drawn from the given labels of the other classes: with $q_g$ the share of given labels $g$, a wrong label of a sample of class $y$ has relation $R$ with probability
//! $$ e_R(y) = \sum_{g \ne y,\ D(g, y) \in R} q_g \Big/ \sum_{g \ne y} q_g. $$
//! With $w$ wrong labels, a share $\bar x$ of which has relation $R$, and $\bar e$ the mean of $e_R$ over the wrong labels' true classes, the ratio is
//! $\bar x / \bar e$. Which samples are wrong is taken as it is: a class that is often mistaken counts as often here and there. The interval is Wilson's for $\bar x$,
//! divided by $\bar e$; as samples of different classes have different chances, it is rather too wide than too narrow. It knows of sampling errors only:
//! where the $n_{gy}$ are estimated, not of the errors in them.
//!
//! **Precision of the pair sets.** Of the pairs of samples whose given labels have relation $R$, the share whose true labels have it: with
//! $A_R$ the $C \times C$ matrix of zeros and ones that says which classes have it,
//! $$ \frac{\langle n, A_R\, n\, A_R \rangle}{\sum_{gh} A_R(g, h)\, n_g\, n_h}, \qquad n_g = \sum_y n_{gy}, $$
//! exactly over all pairs in $O(C^3)$. Pairs of a sample with itself, which are of the same class by either label, are taken out. Beside it stands what chance
//! would give: the share of all pairs that truly have the relation. Unrelated pairs are many, so for them even random labels are often right.

use crate::labels::relations;
use crate::{ByRelation, Error, Labels, Result};
use negscale::Taxonomy;
use negscale::taxonomy::Thresholds;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Fewer wrong labels than this tell nothing about their relations.
pub const FEWEST_WRONG: f64 = 30.0;
/// From this ratio to chance on, estimated errors are said to follow the tree; below its inverse, to run against it.
const CLEAR_RATIO: f64 = 1.25;
/// Quantile 0.975 of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Wrong labels of one relation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ErrorShare {
    /// Share of the wrong labels.
    pub share: f64,
    /// The share that chance would give.
    pub chance: f64,
    /// The one by the other.
    pub ratio: f64,
    /// 95 % interval of the ratio.
    pub interval: [f64; 2],
}

/// Pairs of samples that given labels call by one relation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairPrecision {
    /// Number of unordered pairs; estimated counts are rounded.
    pub pairs: u64,
    /// Share of them that truly have the relation.
    pub precision: f64,
    /// Share of all pairs that truly have it.
    pub chance: f64,
}

/// What labels alone say about a class tree.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LabelNoise {
    /// Whether numbers were estimated rather than counted.
    pub is_estimated: bool,
    /// Number of wrong labels.
    pub wrong: f64,
    /// Wrong labels by the relation of the given class to the true one, never `same`; absent where chance would give none.
    pub errors: ByRelation<ErrorShare>,
    /// Pairs of samples by the relation of their given labels; absent where there are none.
    pub pairs: ByRelation<PairPrecision>,
}

impl LabelNoise {
    /// By true labels, where they are known.
    pub fn of(labels: &Labels) -> Option<Self> {
        let classes = labels.classes();
        let mut counts = vec![0.0; classes * classes];
        for (&given, &truth) in labels.given().iter().zip(labels.truth()?) {
            counts[given as usize * classes + truth as usize] += 1.0;
        }
        Some(Self::new(&counts, labels.relations(), classes, false))
    }

    /// By estimated numbers, C x C: a row for every given class, a column for every true one.
    pub fn estimated(counts: &[f64], tree: &Taxonomy, thresholds: Thresholds) -> Result<Self> {
        let classes = tree.classes();
        if counts.len() != classes * classes || counts.iter().any(|n| !n.is_finite() || *n < 0.0) {
            let got = format!("there are {} numbers, of which some may be negative or NaN", counts.len());
            return Err(Error::size(
                "joint counts of labels",
                got,
                format!("{classes} x {classes} counts are needed"),
            ));
        }
        Ok(Self::new(counts, &relations(tree, thresholds), classes, true))
    }

    fn new(counts: &[f64], relations: &[u8], classes: usize, is_estimated: bool) -> Self {
        let (wrong, errors) = errors(counts, relations, classes);
        Self { is_estimated, wrong, errors, pairs: pairs(counts, relations, classes) }
    }

    /// Whether the errors are semantic, in one sentence.
    pub fn verdict(&self) -> String {
        if self.wrong < FEWEST_WRONG {
            return format!("Too few wrong labels to say ({:.0}).", self.wrong);
        }
        let Some(ErrorShare { ratio, interval: [low, high], .. }) = self.errors.related else {
            return "Chance would never give a related class, so nothing can be said.".to_owned();
        };
        let interval = format!("95 % interval {low:.2} to {high:.2}");
        // Beliefs take some overlap of related classes for noise.
        let clear = if self.is_estimated { CLEAR_RATIO } else { 1.0 };
        if low > clear {
            format!(
                "Wrong labels are {ratio:.1} times as often related classes as chance would have it ({interval}): the errors follow the tree."
            )
        } else if high < 1.0 / clear {
            format!(
                "Wrong labels are less often related classes than chance would have it, {ratio:.2} times ({interval}): the errors run against the tree."
            )
        } else {
            format!(
                "Wrong labels are related classes about as often as chance would have it ({ratio:.2} times, {interval}): the errors do not follow the tree."
            )
        }
    }
}

/// Number of wrong labels, and their relations.
fn errors(counts: &[f64], relations: &[u8], classes: usize) -> (f64, ByRelation<ErrorShare>) {
    let given: Vec<f64> = counts.chunks(classes.max(1)).map(|row| row.iter().sum()).collect();
    let (mut found, mut mean, mut wrong) = ([0.0; 4], [0.0; 4], 0.0);
    for y in 0..classes {
        let (mut chance, mut of_class, mut all) = ([0.0; 4], 0.0, 0.0);
        for g in (0..classes).filter(|&g| g != y) {
            let relation = usize::from(relations[g * classes + y]);
            chance[relation] += given[g];
            found[relation] += counts[g * classes + y];
            of_class += counts[g * classes + y];
            all += given[g];
        }
        if of_class > 0.0 {
            wrong += of_class;
            mean.iter_mut().zip(chance).for_each(|(mean, chance)| *mean += of_class * chance / all);
        }
    }
    let share = |relation: usize| {
        let chance = mean[relation] / wrong;
        (wrong > 0.0 && chance > 0.0).then(|| {
            let share = found[relation] / wrong;
            let interval = wilson(share, wrong).map(|share| share / chance);
            ErrorShare { share, chance, ratio: share / chance, interval }
        })
    };
    (wrong, ByRelation::of(share))
}

/// Wilson's interval of a share of so many.
fn wilson(share: f64, count: f64) -> [f64; 2] {
    let part = Z * Z / count;
    let reach = Z * (share * (1.0 - share) / count + part / (4.0 * count)).sqrt();
    [-reach, reach].map(|reach| ((share + part / 2.0 + reach) / (1.0 + part)).clamp(0.0, 1.0))
}

/// Precision of pairs.
fn pairs(counts: &[f64], relations: &[u8], classes: usize) -> ByRelation<PairPrecision> {
    let row = |class: usize| &counts[class * classes..][..classes];
    let relation = |a: usize, b: usize| usize::from(relations[a * classes + b]);
    let given: Vec<f64> = (0..classes).map(|g| row(g).iter().sum()).collect();
    let truth: Vec<f64> = (0..classes).map(|y| (0..classes).map(|g| row(g)[y]).sum()).collect();
    let samples: f64 = given.iter().sum();
    // Ordered pairs whose first sample is given as g: called so, called so and truly so, truly so.
    let of_class = |g: usize| {
        let (mut called, mut right, mut true_pairs) = ([0.0; 4], [0.0; 4], [0.0; 4]);
        // For every relation, how many of each true class are called so beside g.
        let mut beside = vec![0.0; 4 * classes];
        for other in 0..classes {
            called[relation(g, other)] += given[g] * given[other];
            true_pairs[relation(g, other)] += truth[g] * truth[other];
            let sums = &mut beside[relation(g, other) * classes..][..classes];
            sums.iter_mut().zip(row(other)).for_each(|(sum, n)| *sum += n);
        }
        for (y, n) in row(g).iter().enumerate().filter(|(_, n)| **n > 0.0) {
            for z in 0..classes {
                let relation = relation(y, z);
                right[relation] += n * beside[relation * classes + z];
            }
        }
        [called, right, true_pairs]
    };
    let parts: Vec<[[f64; 4]; 3]> = (0..classes).into_par_iter().map(of_class).collect();
    ByRelation::of(|relation| {
        let sum = |which: usize| parts.iter().map(|part| part[which][relation]).sum::<f64>();
        // A sample with itself is no pair.
        let own = if relation == 0 { samples } else { 0.0 };
        let [called, right, true_pairs] = [0, 1, 2].map(|which| sum(which) - own);
        (called > 0.0).then(|| PairPrecision {
            pairs: (called / 2.0).round() as u64,
            precision: right / called,
            chance: true_pairs / (samples * (samples - 1.0)),
        })
    })
}
