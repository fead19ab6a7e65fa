//! Exclusion: what a label says a sample is *not*. Not in the paper; it acts on logits.
//!
//! Wrong labels are mostly those of related classes, so a label is far more often right about the classes that a sample does not
//! belong to than about the one it does. With $U(y)$ the classes unrelated to $y$, $p = \mathrm{softmax}(z)$ and
//! $A_i = 1 - \sum_{c \in U(\tilde y_i)} p_{ic}$:
//!
//! $$L_{excl} = -\frac1B \sum_i \log\bigl((1 - e_i)\,A_i + e_i\,(1 - A_i)\bigr), \qquad
//! \frac{\partial L_i}{\partial z_{ic}} = -\frac{(1 - 2e_i)\,p_{ic}\,([c \notin U] - A_i)}{(1 - e_i)A_i + e_i(1 - A_i)}.$$
//!
//! $e_i$, at most a half, is the probability that label $i$ is wrong by an unrelated class: such an error is expected instead of learnt, and
//! at a half the label says nothing. Nor does one with no unrelated class. Computed in f64.

use crate::Real;
use crate::pairs::ClassRelations;
use crate::taxonomy::Relation;

/// The loss, and `scale` times its gradient into `gradient`, B x C.
pub(crate) fn exclude<T: Real>(
    relations: &ClassRelations,
    logits: &[T],
    labels: &[usize],
    errors: &[T],
    scale: f64,
    gradient: &mut [T],
) -> f64 {
    let classes = relations.classes;
    let per_sample = 1.0 / labels.len().max(1) as f64;
    let mut sum = 0.0;
    let rows = logits.chunks(classes).zip(gradient.chunks_mut(classes));
    for ((&label, error), (logits, gradient)) in labels.iter().zip(errors).zip(rows) {
        let error = error.wide();
        let admitted = |c: usize| relations.of(label, c) != Relation::Unrelated;
        let largest = logits.iter().fold(f64::NEG_INFINITY, |m, z| m.max(z.wide()));
        let exps: Vec<f64> = logits.iter().map(|z| (z.wide() - largest).exp()).collect();
        let all: f64 = exps.iter().sum();
        let kept: f64 = exps.iter().enumerate().filter(|(c, _)| admitted(*c)).map(|(_, e)| e).sum();
        // Logits far apart: the sum would vanish, but not the loss.
        let share = (kept / all).max(f64::MIN_POSITIVE);
        let seen = (1.0 - error) * share + error * (1.0 - share);
        sum -= seen.ln();
        let factor = -scale * per_sample * (1.0 - 2.0 * error) / seen;
        for (c, (g, e)) in gradient.iter_mut().zip(&exps).enumerate() {
            let inside = if admitted(c) { 1.0 } else { 0.0 };
            *g = T::of(factor * e / all * (inside - share));
        }
    }
    sum * per_sample
}
