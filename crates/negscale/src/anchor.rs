//! The anchor of class means: dissimilarity invariance as a loss. Not in the paper.
//!
//! With fixed features and balanced classes, symmetric noise moves every class mean towards the common one by the same share, so the
//! cosines of *centred* class means do not change at all (the book's page on invariance has the proof). What moves them later is
//! memorisation. So they are remembered when warm-up ends, and the unrelated ones are held there:
//!
//! $$m_c \leftarrow \beta m_c + (1 - \beta)\,\frac{\sum_{i:\,y_i = c} v_i f_i}{\sum_{i:\,y_i = c} v_i}, \qquad
//! u_c = \frac{m_c - \bar m}{\lVert m_c - \bar m\rVert}, \qquad
//! L_{anchor} = \frac1N \sum_{a < b \text{ unrelated}} (u_a^\top u_b - k_{ab})^2.$$
//!
//! Here $f_i$ are raw features, $y_i$ the labels that decide the pair sets, $v_i$ the probability that label $i$ is right (1 where it is not
//! known), $\beta$ `anchor_momentum`, $\bar m$ the mean of the class means, $N$ the number of unrelated pairs of classes, and $k_{ab}$ the
//! remembered $u_a^\top u_b$. The gradient flows through the batch's share of $m_c$ alone. A class that was absent when the means were
//! remembered has no anchor.

use crate::pairs::ClassRelations;
use crate::taxonomy::Relation;
use crate::{Error, Real, Result};
use serde::{Deserialize, Serialize};

/// Running class means, and the cosines that they had when they were remembered. Part of a training run's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassAnchor {
    dim: usize,
    means: Vec<f64>,
    known: Vec<bool>,
    remembered: Vec<f64>,
}

impl ClassAnchor {
    /// Remembers the class means of all samples: features N x `dim`, a label below `classes` for each, and if `clean` is given the
    /// probability that the label is right.
    pub fn remember<T: Real>(
        features: &[T],
        dim: usize,
        labels: &[usize],
        clean: Option<&[T]>,
        classes: usize,
    ) -> Result<Self> {
        let need = labels.len() * dim;
        if features.len() != need || clean.is_some_and(|clean| clean.len() != labels.len()) {
            let why = format!("{} labels times dimension {dim}, with a probability each", labels.len());
            return Err(Error::Size { what: "features of the anchor", got: features.len(), need, why });
        }
        if let Some(sample) = labels.iter().position(|&label| label >= classes) {
            let (label, last) = (labels[sample], classes.saturating_sub(1));
            return Err(Error::Label { sample, label, tree: "anchor".into(), classes, last });
        }
        let mut means = vec![0.0; classes * dim];
        let shares = add_to_means(features, dim, labels, clean, &mut means, |_| 0.0);
        let known: Vec<bool> = shares.iter().map(|&share| share > 0.0).collect();
        let mut anchor = Self { dim, means, known, remembered: Vec::new() };
        anchor.remembered = anchor.cosines();
        Ok(anchor)
    }

    /// Cosines of the centred class means as they are now, C x C; 0 for classes without a mean.
    pub fn cosines(&self) -> Vec<f64> {
        let directions = self.directions().0;
        let row = |c: usize| &directions[c * self.dim..][..self.dim];
        let c = self.known.len();
        (0..c * c).map(|at| inner(row(at / c), row(at % c))).collect()
    }

    /// Cosines as they were remembered, C x C.
    pub fn remembered(&self) -> &[f64] {
        &self.remembered
    }

    /// Size of the features.
    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// Unit vectors of the centred class means, and their lengths; zeros for classes without one.
    fn directions(&self) -> (Vec<f64>, Vec<f64>) {
        let Self { dim, means, known, .. } = self;
        let count = known.iter().filter(|known| **known).count().max(1) as f64;
        let mut centre = vec![0.0; *dim];
        for (mean, _) in means.chunks(*dim).zip(known).filter(|(_, known)| **known) {
            centre.iter_mut().zip(mean).for_each(|(centre, m)| *centre += m / count);
        }
        let mut directions = means.clone();
        let lengths = directions.chunks_mut(*dim).zip(known).map(|(row, known)| {
            row.iter_mut().zip(&centre).for_each(|(m, centre)| *m -= centre);
            let length = inner(row, row).sqrt();
            let stretch = if *known && length > 0.0 { 1.0 / length } else { 0.0 };
            row.iter_mut().for_each(|m| *m *= stretch);
            length
        });
        let lengths = lengths.collect();
        (directions, lengths)
    }

    /// Takes a batch in. Returns the loss and adds `scale` times its gradient to `gradient`.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a batch is, how it counts, and where the gradient goes"
    )]
    pub(crate) fn pull<T: Real>(
        &mut self,
        relations: &ClassRelations,
        features: &[T],
        labels: &[usize],
        clean: Option<&[T]>,
        momentum: f64,
        scale: f64,
        gradient: &mut [T],
    ) -> f64 {
        let dim = self.dim;
        let known = &self.known;
        let keep = |class: usize| if known[class] { momentum } else { 1.0 };
        // Share of a unit of clean probability in the mean of its class.
        let shares = add_to_means(features, dim, labels, clean, &mut self.means, keep);
        let (directions, lengths) = self.directions();
        let classes = self.known.len();
        let row = |c: usize| &directions[c * dim..][..dim];
        let pairs = || {
            let all = (0..classes).flat_map(|a| (a + 1..classes).map(move |b| (a, b)));
            all.filter(|&(a, b)| self.known[a] && self.known[b] && relations.of(a, b) == Relation::Unrelated)
        };
        let count = pairs().count();
        if count == 0 {
            return 0.0;
        }
        let per_pair = 1.0 / count as f64;
        let mut slopes = vec![0.0; classes * dim];
        let mut value = 0.0;
        for (a, b) in pairs() {
            let off = inner(row(a), row(b)) - self.remembered[a * classes + b];
            value += off * off * per_pair;
            for (from, to) in [(a, b), (b, a)] {
                let slope = 2.0 * off * per_pair;
                slopes[to * dim..][..dim].iter_mut().zip(row(from)).for_each(|(s, u)| *s += slope * u);
            }
        }
        // Through the normalisation, then through the centring.
        let known_classes = self.known.iter().filter(|known| **known).count() as f64;
        let mut common = vec![0.0; dim];
        for (c, slope) in slopes.chunks_mut(dim).enumerate() {
            let along = inner(slope, row(c));
            let stretch = if lengths[c] > 0.0 && self.known[c] { 1.0 / lengths[c] } else { 0.0 };
            slope.iter_mut().zip(row(c)).for_each(|(s, u)| *s = (*s - along * u) * stretch);
            common.iter_mut().zip(&*slope).for_each(|(common, s)| *common += s / known_classes);
        }
        for (i, (&label, g)) in labels.iter().zip(gradient.chunks_mut(dim)).enumerate() {
            let part = scale * shares[label] * clean.map_or(1.0, |clean| clean[i].wide());
            if self.known[label] && part > 0.0 {
                let slope = &slopes[label * dim..][..dim];
                let of_row = slope.iter().zip(&common).map(|(s, common)| part * (s - common));
                g.iter_mut().zip(of_row).for_each(|(g, s)| *g += T::of(s));
            }
        }
        value
    }
}

/// Moves the means of the classes that have samples with weight, keeping the share `keep(class)` of the old ones; returns for each class what a
/// weight of 1 counts for in its mean, 0 for classes without any.
fn add_to_means<T: Real>(
    features: &[T],
    dim: usize,
    labels: &[usize],
    clean: Option<&[T]>,
    means: &mut [f64],
    keep: impl Fn(usize) -> f64,
) -> Vec<f64> {
    let classes = means.len() / dim.max(1);
    let weight = |i: usize| clean.map_or(1.0, |clean| clean[i].wide());
    let mut shares = vec![0.0; classes];
    labels.iter().enumerate().for_each(|(i, &label)| shares[label] += weight(i));
    for (class, share) in shares.iter_mut().enumerate().filter(|(_, sum)| **sum > 0.0) {
        let keep = keep(class);
        *share = (1.0 - keep) / *share;
        means[class * dim..][..dim].iter_mut().for_each(|m| *m *= keep);
    }
    for (i, (&label, f)) in labels.iter().zip(features.chunks(dim.max(1))).enumerate() {
        let part = shares[label] * weight(i);
        means[label * dim..][..dim].iter_mut().zip(f).for_each(|(m, f)| *m += part * f.wide());
    }
    shares
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
