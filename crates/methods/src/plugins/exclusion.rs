//! What exclusion goes by in a run: how far errors follow the class tree, and how likely each label is wrong by an unrelated class.
//!
//! From the ledger at the start of an epoch, with $w_i$ the probability that label $\tilde y_i$ is right, $p_i$ what is predicted, $u_i$ the part of it on classes unrelated
//! to $\tilde y_i$ and $o_i = 1 - p_{i \tilde y_i}$:
//!
//! - $\rho$, how many times as frequent unrelated classes are among wrong labels as chance has it ([`RelationRates`]); the term counts
//!   by $\max(0, 1 - \rho)$, not at all where errors ignore the tree;
//! - $e_y = (\sum_{i: \tilde y_i = y} (1 - w_i) u_i / o_i + k e) / (n_y + k)$, the share of labels $y$ that are wrong by an unrelated class, drawn towards that of all
//!   labels, $e$, as if $k = 10$ more samples had it;
//! - $e_i = \min(\frac12, \max(u_i, e_{\tilde y_i}))$.

use super::Look;
use crate::kit::posterior::RelationRates;
use negscale::taxonomy::Relation;
use serde::{Deserialize, Serialize};

/// Name of $\rho$ in an epoch's record.
pub(super) const UNRELATED: &str = "wrong labels unrelated, times chance, by predictions";

/// $k$.
const PSEUDO_COUNT: f64 = 10.0;

/// What the term goes by in an epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Exclusion {
    /// $\rho$.
    pub unrelated: f64,
    /// Factor on the term.
    pub strength: f64,
    /// $e_i$; saved apart, as an array.
    #[serde(skip)]
    pub errors: Vec<f32>,
}

impl Exclusion {
    /// Of a training set; `relations` is C x C.
    pub fn of(relations: &[Relation], look: &Look) -> Self {
        let classes = relations.len().isqrt();
        let RelationRates { unrelated, .. } =
            RelationRates::of(look.believed, &look.clean, look.given, relations);
        let rows = || look.believed.chunks(classes).zip(look.given);
        let outside = |(row, &given): (&[f32], &u32)| -> f64 {
            let relation = &relations[given as usize * classes..][..classes];
            let both = row.iter().zip(relation);
            both.filter(|(_, r)| **r == Relation::Unrelated).map(|(p, _)| f64::from(*p)).sum()
        };
        let wrong = rows().zip(&look.clean).map(|((row, given), &clean)| {
            let other = 1.0 - f64::from(row[*given as usize]);
            let share = if other > 0.0 { (outside((row, given)) / other).min(1.0) } else { 0.0 };
            (1.0 - f64::from(clean)) * share
        });
        let wrong: Vec<f64> = wrong.collect();
        let all = wrong.iter().sum::<f64>() / wrong.len().max(1) as f64;
        let mut sums = vec![(PSEUDO_COUNT * all, PSEUDO_COUNT); classes];
        for (&given, wrong) in look.given.iter().zip(&wrong) {
            let (sum, count) = &mut sums[given as usize];
            (*sum, *count) = (*sum + wrong, *count + 1.0);
        }
        let errors = rows().map(|(row, given)| {
            let (sum, count) = sums[*given as usize];
            outside((row, given)).max(sum / count).min(0.5) as f32
        });
        Self { unrelated, strength: (1.0 - unrelated).max(0.0), errors: errors.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Relation::{Related as R, Same as S, Unrelated as U};

    /// Classes 0 and 1 are related, as are 2 and 3.
    const RELATIONS: [Relation; 16] = [S, R, U, U, R, S, U, U, U, U, S, R, U, U, R, S];

    fn found(given: &[u32], believed: &[f32], clean: Vec<f32>) -> Exclusion {
        Exclusion::of(&RELATIONS, &Look { epoch: 1, given, clean, believed, scans: Vec::new() })
    }

    #[test]
    fn errors_within_groups_give_full_strength_and_errors_at_random_none() {
        let given: Vec<u32> = (0..400).map(|i| i % 4).collect();
        let rows = |belief: fn(u32, u32) -> f32| -> Vec<f32> {
            given.iter().flat_map(|&y| (0..4).map(move |c| belief(y, c))).collect()
        };
        let within = rows(|y, c| if c == y ^ 1 { 1.0 } else { 0.0 });
        let found_within = found(&given, &within, vec![0.0; 400]);
        assert!(found_within.strength > 0.9 && found_within.errors.iter().all(|e| *e < 0.01));
        let anywhere = rows(|y, c| if c == y { 0.0 } else { 1.0 / 3.0 });
        let found_anywhere = found(&given, &anywhere, vec![0.0; 400]);
        assert!(found_anywhere.strength < 1e-6 && found_anywhere.errors.iter().all(|e| *e == 0.5));
    }

    #[test]
    fn a_class_that_hides_unrelated_samples_says_less_than_others() {
        // Half of the labels 0 hide class 2; all others are right, and predicted so.
        let given: Vec<u32> = (0..4000).map(|i| i % 4).collect();
        let is_wrong = |i: usize| i.is_multiple_of(8);
        let mut believed = vec![0.0; 16_000];
        (0..4000).for_each(|i| believed[4 * i + if is_wrong(i) { 2 } else { given[i] as usize }] = 1.0);
        let clean = (0..4000).map(|i| if is_wrong(i) { 0.0 } else { 1.0 }).collect();
        let found = found(&given, &believed, clean);
        // Of 1,000 labels 0 half are wrong by an unrelated class; 1 of 8 of all labels.
        let of_0 = (500.0 + 10.0 / 8.0) / 1010.0;
        assert!((f64::from(found.errors[4]) - of_0).abs() < 1e-6, "{}", found.errors[4]);
        assert_eq!(found.errors[0], 0.5, "believed to be of an unrelated class");
        assert!(found.errors[1] < 0.01);
    }
}
