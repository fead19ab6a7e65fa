//! Labels corrected through a closed-form classifier (DMLP's IPC).
//!
//! A linear classifier fitted to the labels $Y_b$ of a block, $W = A X_b^T Y_b$ with $A = (X_b^T X_b + \rho I)^{-1}$, is judged by samples
//! $X_v$ whose true labels $y_v$ are known:
//!
//! $$ L = \frac1{|v|} \sum_{i \in v} -\log \mathrm{softmax}(x_i W)_{y_i} + \lVert X_v W - e(y_v) \rVert^2
//!    + \mathrm{KL}\big(u \,\|\, \tfrac1{|b|} \textstyle\sum_{i \in b} \mathrm{softmax}(x_i W)\big). $$
//!
//! With $G_v$, $G_b$ the gradients with respect to $X_v W$ and $X_b W$,
//! $\partial L / \partial Y_b = X_b A (X_v^T G_v + X_b^T G_b)$. Labels are free real numbers.

use super::ridge::inverse_moment;
use super::rows::{prior, softmax_rows, through_softmax};
use crate::Result;
use negscale_product::{add_columns_with_columns, rows_with_columns};

/// A block of samples with the inverse of its moment.
#[derive(Debug, Clone)]
pub struct Block<'a> {
    x: &'a [f32],
    inverse: Vec<f32>,
    dim: usize,
}

/// Samples whose true labels are known.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// Features, row after row.
    pub x: &'a [f32],
    /// True labels.
    pub labels: &'a [u32],
}

impl<'a> Block<'a> {
    /// A block of rows of `dim` values; `ridge` as in [`inverse_moment`].
    pub fn new(x: &'a [f32], dim: usize, ridge: f64) -> Result<Self> {
        Ok(Self { x, inverse: inverse_moment(x, dim, ridge)?, dim })
    }

    /// $A X^T Y$ for targets of `classes` columns.
    pub fn fit(&self, y: &[f32], classes: usize) -> Vec<f32> {
        let mut moment = vec![0.0; self.dim * classes];
        add_columns_with_columns(self.x, y, [self.dim, classes], &mut moment);
        self.solve(&moment)
    }

    /// $A M$.
    fn solve(&self, moment: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; moment.len()];
        rows_with_columns(&self.inverse, moment, self.dim, &mut out);
        out
    }

    /// $L$ and its gradient with respect to the labels $Y$ of the block.
    pub fn cost(&self, y: &[f32], judged: Judged, classes: usize) -> (f64, Vec<f32>) {
        let (dim, w) = (self.dim, self.fit(y, classes));
        let scores = |x: &[f32]| {
            let mut out = vec![0.0; x.len() / dim * classes];
            rows_with_columns(x, &w, dim, &mut out);
            out.into_iter().map(f64::from).collect::<Vec<f64>>()
        };
        let (fit, judged_gradient) = misfit(&scores(judged.x), judged.labels, classes);
        let p = softmax_rows(&scores(self.x), classes);
        let (balance, each) = prior(&p, classes);
        let mut own = each.repeat(p.len() / classes);
        through_softmax(&p, &mut own, classes);
        let narrow = |g: Vec<f64>| g.into_iter().map(|g| g as f32).collect::<Vec<f32>>();
        let mut moment = vec![0.0; dim * classes];
        add_columns_with_columns(judged.x, &narrow(judged_gradient), [dim, classes], &mut moment);
        add_columns_with_columns(self.x, &narrow(own), [dim, classes], &mut moment);
        let mut gradient = vec![0.0; y.len()];
        rows_with_columns(self.x, &self.solve(&moment), dim, &mut gradient);
        (fit + balance, gradient)
    }
}

/// Mean cross-entropy and summed squared error of scores, and the gradient.
fn misfit(scores: &[f64], labels: &[u32], classes: usize) -> (f64, Vec<f64>) {
    let mut gradient = softmax_rows(scores, classes);
    let (mut value, count) = (0.0, labels.len().max(1) as f64);
    for ((row, s), &label) in gradient.chunks_mut(classes).zip(scores.chunks(classes)).zip(labels) {
        value -= row[label as usize].max(f64::MIN_POSITIVE).ln() / count;
        for (class, (g, s)) in row.iter_mut().zip(s).enumerate() {
            let wanted = f64::from(u8::from(class == label as usize));
            value += (s - wanted).powi(2);
            *g = (*g - wanted) / count + 2.0 * (s - wanted);
        }
    }
    (value, gradient)
}
