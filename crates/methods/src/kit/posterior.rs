//! What the class tree says of wrong labels, and guesses that listen to it.
//!
//! With $w_i$ the probability that label $\tilde y_i$ is clean and $p_i$ what is predicted, $b_{ic} = (1 - w_i)\, p_{ic}$ for $c \ne \tilde y_i$ is how much sample
//! $i$ counts as one of class $c$ under a wrong label. Classes $c$ and $y$ stand in relation $r(c, y)$; $\pi_y$ is the share of label $y$. Of each relation
//!
//! - $O_r = \sum_i \sum_{c \ne \tilde y_i,\ r(c, \tilde y_i) = r} b_{ic}$ wrong labels are found,
//! - $E_r = \sum_i \sum_{c \ne \tilde y_i} b_{ic} \sum_{y \ne c,\ r(c, y) = r} \pi_y / (1 - \pi_c)$ would be found if wrong labels ignored the tree,
//!
//! and $\rho_r = (O_r + k) / (E_r + k)$ with $k = 10$ is how many times as frequent it is as chance has it. $\sum_r O_r = \sum_r E_r$. A guess $q_i$ becomes
//! $q'_{ic} \propto q_{ic}\, \rho_{r(c, \tilde y_i)}$, where $\tilde y_i$ itself keeps weight 1.
//!
//! More: docs/book/src/tree-posterior.md.

use burn::tensor::{Tensor, TensorData};
use negscale::taxonomy::Relation;

/// $k$: so many wrong labels of each relation, as frequent as by chance, are added to what is found.
const PSEUDO_COUNT: f64 = 10.0;

/// $\rho$: how many times as frequent as by chance wrong labels are that stand in a relation to the class they hide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelationRates {
    /// Of related classes.
    pub related: f64,
    /// Of classes that are neither.
    pub neutral: f64,
    /// Of unrelated classes.
    pub unrelated: f64,
}

impl RelationRates {
    /// $\rho$ from predictions (N x C), clean probabilities and given labels; samples of which nothing is held (NaN) are left out. `relations` is
    /// C x C, row by row.
    ///
    /// # Panics
    /// If the lengths do not fit each other, or a label is not one of the classes.
    pub fn of(predictions: &[f32], clean: &[f32], given: &[u32], relations: &[Relation]) -> Self {
        let classes = relations.len().isqrt();
        assert_eq!(clean.len(), given.len(), "one clean probability per label");
        assert_eq!(predictions.len(), given.len() * classes, "a row of predictions per label");
        let mut share = vec![0.0; classes];
        given.iter().for_each(|&label| share[label as usize] += 1.0 / given.len() as f64);
        let (mut found, mut mass) = ([0.0; 3], vec![0.0; classes]);
        let rows = predictions.chunks(classes.max(1)).zip(clean).zip(given);
        for ((row, &w), &label) in rows.filter(|((_, w), _)| !w.is_nan()) {
            let label = label as usize;
            for (class, &p) in row.iter().enumerate() {
                if let Some(place) = place(relations[label * classes + class]) {
                    let belief = (1.0 - f64::from(w)) * f64::from(p);
                    found[place] += belief;
                    mass[class] += belief;
                }
            }
        }
        let mut expected = [0.0; 3];
        for (class, mass) in mass.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
            for (label, share_of_label) in share.iter().enumerate() {
                if let Some(place) = place(relations[label * classes + class]) {
                    expected[place] += mass * share_of_label / (1.0 - share[class]);
                }
            }
        }
        let rate = |place: usize| (found[place] + PSEUDO_COUNT) / (expected[place] + PSEUDO_COUNT);
        Self { related: rate(0), neutral: rate(1), unrelated: rate(2) }
    }

    /// Weights of guesses, C x C: the row of a given label has a weight for each class.
    pub fn guess_weights(&self, relations: &[Relation]) -> Vec<f32> {
        let weight = |relation: &Relation| match relation {
            Relation::Same => 1.0,
            Relation::Related => self.related as f32,
            Relation::Neutral => self.neutral as f32,
            Relation::Unrelated => self.unrelated as f32,
        };
        relations.iter().map(weight).collect()
    }
}

fn place(relation: Relation) -> Option<usize> {
    match relation {
        Relation::Same => None,
        Relation::Related => Some(0),
        Relation::Neutral => Some(1),
        Relation::Unrelated => Some(2),
    }
}

/// $q'_{ic} \propto q_{ic}\, W_{\tilde y_i c}$ with weights $W$ (C x C); without weights $q$ itself, to the bit.
///
/// # Panics
/// If there is not one label per row, or a label has no row of weights.
pub fn weigh_guesses(q: Tensor<2>, given: &[u32], weights: Option<&[f32]>) -> Tensor<2> {
    let Some(weights) = weights else { return q };
    let q = q.inner();
    let [rows, classes] = q.dims();
    assert_eq!(given.len(), rows, "one label per row");
    let row = |&label: &u32| weights[label as usize * classes..][..classes].iter().copied();
    let weights = TensorData::new(given.iter().flat_map(row).collect::<Vec<f32>>(), [rows, classes]);
    let weighed = q.clone() * Tensor::from_data(weights, &q.device());
    weighed.clone() / weighed.sum_dim(1)
}
