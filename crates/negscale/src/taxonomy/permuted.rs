//! The same tree with its classes in other places: a control for what is claimed of a tree.
//!
//! With a permutation $\pi$ of the classes, class $c$ takes the place of class $\pi(c)$, so
//! $D'(a, b) = D(\pi(a), \pi(b))$. The shape stays, and so do all distances as a multiset: at any thresholds there are as many
//! related and unrelated pairs of classes as before, but other ones. What a plug-in gains on such a tree it does not owe to
//! what the tree says about classes.
//!
//! $\pi$ is drawn by Fisher and Yates from counters, again and again until $D' \ne D$: swapping two siblings would be no
//! control. Permutations with $D' = D$ are a subgroup of all; unless it is the whole, it holds at most half of them, so that
//! 64 draws miss with a probability below $2^{-64}$.

use super::Taxonomy;
use crate::pairs::uniform;
use crate::{Error, Result};

/// Draws before it is concluded that no permutation changes a distance.
const DRAWS: u64 = 64;

impl Taxonomy {
    /// The tree with its classes permuted, as drawn from `seed`: same shape, same distances as a multiset, and at least one
    /// pair of classes at another distance. The classes keep their indices. A tree in which all pairs are equally far is
    /// refused.
    pub fn permuted(&self, seed: u64) -> Result<Self> {
        let (classes, distances) = (self.classes(), self.distances());
        let changes = |order: &Vec<usize>| {
            let row = |a: usize| (0..a).any(|b| distances.get(order[a], order[b]) != distances.get(a, b));
            (0..classes).any(row)
        };
        let Some(order) = (0..DRAWS).map(|draw| permutation(classes, seed, draw)).find(changes) else {
            let problem =
                "its classes cannot be permuted: every permutation leaves all distances as they are";
            return Err(Error::Tree {
                tree: self.name.clone(),
                line: None,
                node: None,
                problem: problem.into(),
            });
        };
        let mut tree = self.clone();
        tree.name = format!("permuted:{seed}:{}", self.name);
        for (class, &place) in order.iter().enumerate() {
            let node = self.class_nodes[place];
            tree.nodes[node].class = Some(class);
            tree.nodes[node].name = self.class_name(class).to_owned();
            tree.class_nodes[class] = node;
        }
        Ok(tree)
    }
}

/// A permutation of `0..count`, each equally likely.
fn permutation(count: usize, seed: u64, draw: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        let other = (uniform(seed, draw, last as u64) as u128 * (last as u128 + 1)) >> 64;
        order.swap(last, other as usize);
    }
    order
}
