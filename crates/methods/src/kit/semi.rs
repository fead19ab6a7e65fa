//! Semi-supervised learning from divided data (MixMatch, as DivideMix and its kin use it): who counts as labelled, and what
//! a mixed pool costs.
//!
//! The pool of a batch is $[x^1, x^2, u^1, u^2]$: two views of each labelled and of each unlabelled sample, mixed up together
//! ([`super::mix`]), with targets refined ($r$) or guessed ($q$) and mixed alike. With $p$ the predictions on the mixed pool,
//! $t$ its targets and $X$, $U$ its rows,
//!
//! $$ L = \frac{-1}{|X|} \sum_{i \in X} t_i \cdot \log p_i
//!    + \lambda_u \frac{1}{|U| C} \sum_{i \in U} \lVert p_i - t_i \rVert^2
//!    + \lambda_p\, \mathrm{KL}(u \,\|\, \bar p), $$
//!
//! $\bar p$ the mean of $p$ over all rows, $u$ uniform.

use super::loss::{prior_penalty, soft_cross_entropy, squared_error};
use burn::tensor::Tensor;

/// Samples divided for one network.
#[derive(Debug, Clone, PartialEq)]
pub struct Division {
    /// Those whose labels are used, ascending.
    pub labelled: Vec<u32>,
    /// Those whose labels are not, ascending.
    pub unlabelled: Vec<u32>,
    /// Whether too few labels were held to be clean, so that the likeliest were taken instead.
    pub fell_back: bool,
}

/// Divides samples by whether their labels are held to be clean; `w` says how much so, `batches` how many samples of each
/// kind a batch takes.
///
/// With fewer than two clean ones, the $\lceil N/C \rceil$ (at least 2) of largest $w$ are taken, of equals the first. A set that would end
/// in a batch of one, too little for batch norm, goes without its most doubtful sample: the labelled one of smallest $w$, the
/// unlabelled one of largest.
pub fn divide(is_clean: &[bool], w: &[f32], classes: usize, batches: [usize; 2]) -> Division {
    let numbers = |clean: bool| (0u32..).zip(is_clean).filter(move |(_, is)| **is == clean).map(|(i, _)| i);
    let (mut labelled, mut unlabelled): (Vec<u32>, Vec<u32>) =
        (numbers(true).collect(), numbers(false).collect());
    let value = |i: u32| w[i as usize];
    let fell_back = labelled.len() < 2;
    if fell_back {
        let mut order: Vec<u32> = (0..w.len() as u32).collect();
        // Stable: of equals the first.
        order.sort_by(|&a, &b| value(b).total_cmp(&value(a)));
        let taken = w.len().div_ceil(classes.max(1)).max(2).min(w.len());
        unlabelled = order.split_off(taken);
        labelled = order;
        labelled.sort_unstable();
        unlabelled.sort_unstable();
    }
    let ends_in_one = |set: &[u32], batch: usize| set.len() % batch.max(1) == 1;
    if labelled.len() > 1 && ends_in_one(&labelled, batches[0]) {
        remove(&mut labelled, |i| -value(i));
    }
    if ends_in_one(&unlabelled, batches[1]) {
        remove(&mut unlabelled, value);
    }
    Division { labelled, unlabelled, fell_back }
}

/// Removes the sample of the largest value, the last of equals.
fn remove(set: &mut Vec<u32>, value: impl Fn(u32) -> f32) {
    let largest = (0..set.len()).max_by(|&a, &b| value(set[a]).total_cmp(&value(set[b])));
    if let Some(at) = largest {
        set.remove(at);
    }
}

/// What a mixed pool costs, part by part, without weights.
#[derive(Debug, Clone)]
pub struct Cost {
    /// Cross-entropy on the labelled rows.
    pub fit: Tensor<1>,
    /// Squared error on the unlabelled rows; nothing if there are none.
    pub consistency: Option<Tensor<1>>,
    /// $\mathrm{KL}(u \,\|\, \bar p)$ over all rows.
    pub prior: Tensor<1>,
}

impl Cost {
    /// The cost of a pool whose first `labelled` rows are labelled, at least one.
    pub fn new(logits: Tensor<2>, targets: Tensor<2>, labelled: usize) -> Self {
        let [rows, _] = logits.dims();
        let part = |from: usize, length: usize| {
            (logits.clone().narrow(0, from, length), targets.clone().narrow(0, from, length))
        };
        let (x, r) = part(0, labelled);
        let consistency = (rows > labelled).then(|| {
            let (u, q) = part(labelled, rows - labelled);
            squared_error(u, q)
        });
        Self { fit: soft_cross_entropy(x, r), consistency, prior: prior_penalty(logits) }
    }

    /// $L$.
    pub fn total(&self, lambda_u: f64, lambda_p: f64) -> Tensor<1> {
        let total = self.fit.clone() + self.prior.clone() * lambda_p;
        match &self.consistency {
            Some(consistency) => total + consistency.clone() * lambda_u,
            None => total,
        }
    }
}
