//! A linear classifier that learns the corrected labels and reads them back (DMLP's EAC).
//!
//! $o_i = \mathrm{softmax}(V x_i + b)$ is asked to say $y_i$, the largest of the label's numbers. Published is
//!
//! $$ L = \frac1B \sum_i -\log s_{i y_i} + \omega_c \frac1B \sum_i \sum_c s_{ic} \log s_{ic}
//!    + \omega_p\, \mathrm{KL}\big(u \,\|\, \tfrac1B \textstyle\sum_i \mathrm{softmax}(s_i)\big), \quad s_i = \mathrm{softmax}(o_i): $$
//!
//! a softmax over a softmax, and in the last term one more. It bounds what a wrong label can do, because $o$ lies between 0 and 1. Without
//! `double_softmax` the terms are the usual ones: $s_i = o_i$ and the prior on the mean of $o_i$.

use super::rows::{Moved, prior, softmax_rows, through_softmax};
use negscale_data::draw::Draw;
use negscale_nets::optim::Adam;
use negscale_product::{add_columns_with_columns, rows_with_columns};

/// Weights of the terms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReaderLoss {
    /// $\omega_c$, of the negative entropy.
    pub confidence: f64,
    /// $\omega_p$, of the uniform prior.
    pub prior: f64,
    /// Whether losses see a softmax of the softmax.
    pub double_softmax: bool,
}

impl ReaderLoss {
    /// $L$ of the scores $V x_i + b$, and its gradient with respect to them.
    pub fn cost(&self, scores: &[f64], labels: &[u32], classes: usize) -> (f64, Vec<f64>) {
        let count = labels.len().max(1) as f64;
        // What the cross-entropy takes for logits.
        let said = softmax_rows(scores, classes);
        let s = if self.double_softmax { softmax_rows(&said, classes) } else { said.clone() };
        let last = if self.double_softmax { softmax_rows(&s, classes) } else { s.clone() };
        let (balance, each) = prior(&last, classes);
        let mut value = self.prior * balance;
        let mut gradient: Vec<f64> = each.iter().map(|g| self.prior * g).collect();
        gradient = gradient.repeat(labels.len());
        if self.double_softmax {
            through_softmax(&last, &mut gradient, classes);
        }
        for (g, &p) in gradient.iter_mut().zip(&s) {
            let log = p.max(f64::MIN_POSITIVE).ln();
            value += self.confidence * p * log / count;
            *g += self.confidence * (log + 1.0) / count;
        }
        through_softmax(&s, &mut gradient, classes);
        for ((g, s), &label) in gradient.chunks_mut(classes).zip(s.chunks(classes)).zip(labels) {
            value -= s[label as usize].max(f64::MIN_POSITIVE).ln() / count;
            g.iter_mut().zip(s).for_each(|(g, s)| *g += s / count);
            g[label as usize] -= 1.0 / count;
        }
        if self.double_softmax {
            through_softmax(&said, &mut gradient, classes);
        }
        (value, gradient)
    }
}

/// The classifier.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    /// $V^T$ (d x C), then $b$.
    weights: Moved,
    dim: usize,
    classes: usize,
}

impl Reader {
    /// With the first weights of a PyTorch layer.
    pub fn new(dim: usize, classes: usize, draw: &mut Draw) -> Self {
        let bound = 1.0 / (dim as f64).sqrt();
        let weights = (0..(dim + 1) * classes).map(|_| draw.within(-bound, bound) as f32);
        Self { weights: Moved::new(weights.collect()), dim, classes }
    }

    fn scores(&self, x: &[f32]) -> Vec<f64> {
        let (matrix, bias) = self.weights.values.split_at(self.dim * self.classes);
        let mut out = vec![0.0; x.len() / self.dim * self.classes];
        rows_with_columns(x, matrix, self.dim, &mut out);
        out.iter().zip(bias.iter().cycle()).map(|(score, bias)| f64::from(score + bias)).collect()
    }

    /// $o$ of every row.
    pub fn read(&self, x: &[f32]) -> Vec<f32> {
        softmax_rows(&self.scores(x), self.classes).into_iter().map(|p| p as f32).collect()
    }

    /// One step towards these labels; gives $L$.
    pub fn learn(&mut self, x: &[f32], labels: &[u32], terms: &ReaderLoss, rule: &Adam) -> f64 {
        let (value, gradient) = terms.cost(&self.scores(x), labels, self.classes);
        let gradient: Vec<f32> = gradient.into_iter().map(|g| g as f32).collect();
        let mut all = vec![0.0; self.weights.values.len()];
        let (matrix, bias) = all.split_at_mut(self.dim * self.classes);
        add_columns_with_columns(x, &gradient, [self.dim, self.classes], matrix);
        for row in gradient.chunks(self.classes) {
            bias.iter_mut().zip(row).for_each(|(sum, g)| *sum += g);
        }
        self.weights.step(rule, |at| all[at]);
        value
    }
}
