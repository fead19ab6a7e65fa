//! What a network is asked to say: targets made of given labels and predictions.
//!
//! $q$ and $p$ are rows of probabilities over the classes, $\tilde y$ given labels, $e(\tilde y)$ their one-hot rows. Targets are
//! constants: whatever record of its computation a tensor brings along is dropped here. At least one row, and one tensor
//! where several are averaged.

use super::loss::one_hot;
use burn::tensor::activation::softmax;
use burn::tensor::{Tensor, TensorData};

/// The mean of several predictions.
pub fn average(predictions: &[Tensor<2>]) -> Tensor<2> {
    let predictions: Vec<Tensor<2>> = predictions.iter().map(|p| p.clone().inner()).collect();
    Tensor::stack::<3>(predictions, 0).mean_dim(0).squeeze_dim(0)
}

/// A label guessed together: the mean of the softmax of several logits.
pub fn co_guess(logits: &[Tensor<2>]) -> Tensor<2> {
    let predictions: Vec<Tensor<2>> = logits.iter().map(|z| softmax(z.clone().inner(), 1)).collect();
    average(&predictions)
}

/// $q^{1/T} / \sum_c q_c^{1/T}$ with temperature $T > 0$: below 1 sharper, 1 as it is (to the bit), above 1 flatter.
///
/// RoLR calls the exponent itself $T$: its $T = t$ is our temperature $1/t$.
pub fn sharpen(q: Tensor<2>, temperature: f64) -> Tensor<2> {
    let q = q.inner();
    if temperature == 1.0 {
        return q;
    }
    // Measured in the largest of its row, so that a low temperature cannot take all of them to zero.
    let largest = q.clone().max_dim(1);
    let raised = (q / largest).powf_scalar(1.0 / temperature);
    raised.clone() / raised.sum_dim(1)
}

/// $w_i\, e(\tilde y_i) + (1 - w_i)\, q_i$, with $w_i$ the probability that the given label is clean.
///
/// # Panics
/// If there is not one weight and one label per row, or a label is not one of the classes.
pub fn refine(clean: &[f32], given: &[u32], q: Tensor<2>) -> Tensor<2> {
    let q = q.inner();
    let [rows, classes] = q.dims();
    assert_eq!([clean.len(), given.len()], [rows, rows], "one clean probability and one label per row");
    let w = Tensor::<2>::from_data(TensorData::new(clean.to_vec(), [rows, 1]), &q.device());
    let given = one_hot(given, classes, &q.device());
    given * w.clone() + q * (1.0 - w)
}

/// $\arg\max_c p_{ic}$ where $\max_c p_{ic} > \gamma$, else the given label; of equal classes the first.
///
/// # Panics
/// If the length of `p` (row after row) is no multiple of the number of labels.
pub fn relabel(given: &[u32], p: &[f32], gamma: f32) -> Vec<u32> {
    if given.is_empty() {
        return Vec::new();
    }
    assert_eq!(p.len() % given.len(), 0, "{} probabilities for {} labels", p.len(), given.len());
    let classes = p.len() / given.len();
    let choose = |(i, &label): (usize, &u32)| {
        let (mut chosen, mut largest) = (label, gamma);
        for (c, &p) in p[i * classes..(i + 1) * classes].iter().enumerate() {
            if p > largest {
                (chosen, largest) = (c as u32, p);
            }
        }
        chosen
    };
    given.iter().enumerate().map(choose).collect()
}

/// $t \leftarrow a\, t + (1 - a)\, p$: a running mean, of which `keep` $= a$ stays.
///
/// # Panics
/// If the lengths differ.
pub fn blend(t: &mut [f32], p: &[f32], keep: f32) {
    assert_eq!(t.len(), p.len(), "as many new values as there are old ones");
    for (t, &p) in t.iter_mut().zip(p) {
        *t = keep * *t + (1.0 - keep) * p;
    }
}

/// $a^{s/E}$: what a running mean keeps at each of $E$ `epochs`, if `keep` $= a$ is meant for $s$ of them, so that a short run
/// forgets as much as the published one. A `span` of 0 leaves it as it is.
pub fn paced(keep: f64, span: usize, epochs: usize) -> f64 {
    if span == 0 { keep } else { keep.powf(span as f64 / epochs.max(1) as f64) }
}

/// Makes the row at a place $e(y)$.
///
/// # Panics
/// If there is no such row, or the label is not one of the classes.
pub fn insist(rows: &mut [f32], at: usize, label: u32, classes: usize) {
    let row = &mut rows[at * classes..(at + 1) * classes];
    row.fill(0.0);
    row[label as usize] = 1.0;
}

/// $t_y / (t_y + \max_{c \ne y} t_c)$: above one half where the label leads.
pub fn lead(row: &[f32], label: u32) -> f32 {
    let others = row.iter().enumerate().filter(|(class, _)| *class != label as usize);
    let own = row[label as usize];
    let rival = others.fold(0.0f32, |most, (_, &t)| most.max(t));
    if own > 0.0 { own / (own + rival) } else { 0.0 }
}
