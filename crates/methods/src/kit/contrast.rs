//! Contrast: rows that belong together are pulled together, all others apart.
//!
//! For anchors $a_i$ and keys $k_j$ of length 1, temperature $\tau$ and positives $P(i)$,
//!
//! $$ L = \frac1R \sum_{i : P(i) \neq \emptyset} \frac{-1}{|P(i)|} \sum_{j \in P(i)}
//!    \log \frac{\exp(a_i \cdot k_j / \tau)}{\sum_l \exp(a_i \cdot k_l / \tau)}, $$
//!
//! with $R$ the number of anchors that have a positive. Anchors without any are left out; if none has one, loss and gradient
//! are 0. Through log-softmax, so that a low temperature cannot overflow.

use super::loss::cross_entropy;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Bool, Tensor, TensorData};

/// InfoNCE with chosen positives within one set: anchors and keys are the rows of `z`, and no row is its own key ($l \neq i$).
///
/// `positive[i B + j]` says whether $j \in P(i)$, $B$ the number of rows; what it says of $j = i$ is ignored. RankMatch's rank
/// term; [`nt_xent`] is the case of one positive, the other view. Make rows of length 1 with [`normalise_rows`].
///
/// # Panics
/// If there are not $B \times B$ flags.
pub fn masked_info_nce(z: Tensor<2>, positive: &[bool], temperature: f64) -> Tensor<1> {
    let [rows, _] = z.dims();
    assert_eq!(positive.len(), rows * rows, "one flag for every pair of {rows} rows");
    let is_other = |at: usize| at / rows != at % rows;
    let positive: Vec<bool> = positive.iter().enumerate().map(|(at, &flag)| flag && is_other(at)).collect();
    contrast(likeness_of_others(z, temperature), &positive)
}

/// NT-Xent, the loss of SimCLR: row $i$ of `first` and row $i$ of `second` are two views of one sample. Each of the $2B$ rows,
/// scaled to length 1 here, must find its partner $i'$ among the $2B - 1$ others:
///
/// $$ L = \frac{1}{2B} \sum_{i=1}^{2B} -\log \frac{\exp(z_i \cdot z_{i'} / \tau)}{\sum_{l \ne i} \exp(z_i \cdot z_l / \tau)}. $$
///
/// Gradients flow to both views. At least one row; a sample alone costs nothing, for its partner is the only choice.
///
/// # Panics
/// If the views are not of one shape.
pub fn nt_xent(first: Tensor<2>, second: Tensor<2>, temperature: f64) -> Tensor<1> {
    let [rows, _] = first.dims();
    assert_eq!(first.dims(), second.dims(), "two views of the same samples");
    let z = normalise_rows(Tensor::cat(vec![first, second], 0));
    let partner: Vec<u32> = (0..2 * rows).map(|i| ((i + rows) % (2 * rows)) as u32).collect();
    cross_entropy(likeness_of_others(z, temperature), &partner)
}

/// Contrast of columns: column $k$ of `first` and column $k$ of `second` belong together, whatever rows (samples) fill them, so that
/// a concept that few samples have weighs as much as one that many have (CCL). With columns $a_k$, $b_k$ scaled to length 1,
///
/// $$ L = \frac1M \sum_{k=1}^M -\log \frac{\exp(a_k \cdot b_k / \tau)}{\sum_{l=1}^M \exp(a_k \cdot b_l / \tau)}. $$
///
/// Gradients flow to both. At least one column.
pub fn column_contrast(first: Tensor<2>, second: Tensor<2>, temperature: f64) -> Tensor<1> {
    let [_, columns] = first.dims();
    let [a, b] = [first, second].map(|x| normalise_rows(x.transpose()));
    let own: Vec<u32> = (0..columns as u32).collect();
    cross_entropy(a.matmul(b.transpose()) / temperature, &own)
}

/// Flags for [`cross_info_nce`] between two views of the same samples: $P(i) = \{i\} \cup \{j : i, j \in K, c_j = c_i\}$, with $c$ their
/// classes and $K$ those that are `trusted`.
///
/// # Panics
/// If there is not one flag of trust per class.
pub fn positives_by_class(classes: &[u32], trusted: &[bool]) -> Vec<bool> {
    let rows = classes.len();
    assert_eq!(trusted.len(), rows, "one flag of trust per row");
    let is_positive =
        |(i, j): (usize, usize)| i == j || (trusted[i] && trusted[j] && classes[i] == classes[j]);
    (0..rows * rows).map(|at| is_positive((at / rows, at % rows))).collect()
}

/// $z_i \cdot z_j / \tau$, of a row with itself so small that it counts for nothing.
fn likeness_of_others(z: Tensor<2>, temperature: f64) -> Tensor<2> {
    let [rows, _] = z.dims();
    let own: Vec<bool> = (0..rows * rows).map(|at| at / rows == at % rows).collect();
    let own = Tensor::<2, Bool>::from_data(TensorData::new(own, [rows, rows]), &z.device());
    let similar = z.clone().matmul(z.transpose()) / temperature;
    // Finite, because 0 times an infinite value would be no number.
    similar.mask_fill(own, -1e30)
}

/// InfoNCE with chosen positives between two sets: row $i$ of `anchors` against all rows of `keys`, its own number among them.
///
/// `positive[i K + j]` says whether $j \in P(i)$, $K$ the number of keys. CCL contrasts two models this way.
///
/// # Panics
/// If there is not one flag for every anchor and key.
pub fn cross_info_nce(anchors: Tensor<2>, keys: Tensor<2>, positive: &[bool], temperature: f64) -> Tensor<1> {
    let pairs = anchors.dims()[0] * keys.dims()[0];
    assert_eq!(positive.len(), pairs, "one flag for every anchor and key");
    contrast(anchors.matmul(keys.transpose()) / temperature, positive)
}

/// $L$ from similarities over temperature.
fn contrast(similar: Tensor<2>, positive: &[bool]) -> Tensor<1> {
    let [anchors, keys] = similar.dims();
    let count = |row: &[bool]| row.iter().filter(|&&positive| positive).count();
    let used = positive.chunks(keys.max(1)).filter(|row| count(row) > 0).count();
    let mut weights = Vec::with_capacity(anchors * keys);
    for row in positive.chunks(keys.max(1)) {
        let each = 1.0 / (count(row) * used).max(1) as f32;
        weights.extend(row.iter().map(|&positive| if positive { each } else { 0.0 }));
    }
    let weights = Tensor::<2>::from_data(TensorData::new(weights, [anchors, keys]), &similar.device());
    // Rows first: a sum over all pairs may be long enough to be shared among threads.
    -(log_softmax(similar, 1) * weights).sum_dim(1).sum()
}

/// $x_i / \lVert x_i \rVert$; a row of zeros stays so and gets a gradient of 0.
///
/// Rows are first measured in their largest value $m_i$, a constant, so that no square over- or underflows. This changes
/// neither result nor gradient, because the length of $x_i$ does not matter to either but for the factor $1 / m_i$.
pub fn normalise_rows(x: Tensor<2>) -> Tensor<2> {
    let largest = x.clone().detach().abs().max_dim(1);
    let is_zero = largest.clone().lower_elem(f32::MIN_POSITIVE);
    // 0 for rows of zeros, where the root has no derivative: neither value nor gradient comes through.
    let kept = is_zero.clone().bool_not().float();
    let x = x * (kept / largest.mask_fill(is_zero.clone(), 1.0));
    let squares = x.clone().powi_scalar(2).sum_dim(1);
    x / squares.mask_fill(is_zero, 1.0).sqrt()
}
