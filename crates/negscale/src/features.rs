//! From features to cosines and back.
//!
//! With unit vectors $x_i = f_i/\lVert f_i\rVert$ and $g_i$ row $i$ of $2\Gamma X$ the gradient is
//! $\partial/\partial f_i = (g_i - (g_i^\top x_i)\,x_i)/\lVert f_i\rVert$. Since $g_i^\top x_i = 2\sum_j \Gamma_{ij} G_{ij}$, all of it is
//! one product with the features as they are:
//!
//! $$\frac{\partial}{\partial F} = 2MF, \qquad M_{ij} = \frac{\Gamma_{ij}}{\lVert f_i\rVert\,\lVert f_j\rVert} -
//! [i = j]\,\frac{\sum_k \Gamma_{ik} G_{ik}}{\lVert f_i\rVert^2},$$
//!
//! and likewise $G$ is $FF^\top$ divided by lengths, which are on its own diagonal. Unit vectors are made only where they are
//! needed: centred or rectified features, products in feature space, lengths whose squares leave the range of numbers.

use crate::Real;
use crate::product::{View, gram, product};
use crate::real::dot;
use crate::rows::for_rows;
use crate::threads::Threads;

/// What is kept between the way there and the way back, and from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct FeatureBuffers<T> {
    pub(crate) unit: Vec<T>,
    /// Lengths of the features, or one over them.
    length: Vec<T>,
    pub(crate) gram: Vec<T>,
    pub(crate) gradient: Vec<T>,
    pub(crate) centre: Vec<T>,
}

impl<T: Real> FeatureBuffers<T> {
    /// Cosines of raw features, as they are in memory. False if some length is 0, not finite, or near an end of the range of
    /// numbers.
    pub(crate) fn find_cosines(&mut self, threads: Threads, features: &[T], b: usize) -> bool {
        self.centre.clear();
        self.gram.resize(b * b, T::ZERO);
        // The gradient's place is free until the way back.
        gram(threads, &mut self.gram, features, b, &mut self.gradient);
        self.length.clear();
        for square in self.gram.iter().step_by(b + 1) {
            let length = square.wide().sqrt();
            if !is_safe::<T>(length) {
                return false;
            }
            self.length.push(T::of(1.0 / length));
        }
        let shorten = &self.length[..];
        let mut rows = vec![(); b];
        for_rows(threads, &mut self.gram, &mut rows, b, |i, row, ()| {
            let own = shorten[i];
            // The factors first: whoever is i and whoever is j, the cosine is the same.
            row.iter_mut().zip(shorten).for_each(|(g, &other)| *g = *g * (own * other));
        });
        true
    }

    /// The gradient of the raw features after [`find_cosines`](Self::find_cosines), from $\Gamma$, which is overwritten.
    pub(crate) fn pull_back(&mut self, threads: Threads, features: &[T], dim: usize, gamma: &mut [T]) {
        let Self { gram, gradient, length: shorten, .. } = self;
        let b = shorten.len();
        let shorten = &shorten[..];
        let mut rows = vec![(); b];
        for_rows(threads, gamma, &mut rows, b, |i, row, ()| {
            let (own, along) = (shorten[i], dot(row, &gram[i * b..][..b]));
            row.iter_mut().zip(shorten).for_each(|(gamma, &other)| *gamma = *gamma * (own * other));
            row[i] = row[i] - T::of(along) * own * own;
        });
        gradient.resize(b * dim, T::ZERO);
        product(threads, gradient, T::of(2.0), View::new(gamma, b, b), View::new(features, b, dim));
    }

    /// Unit vectors of the centred and, if so asked, rectified features, and their lengths; returns how many are zero vectors.
    pub(crate) fn normalise(
        &mut self,
        threads: Threads,
        features: &[T],
        b: usize,
        dim: usize,
        rectify: bool,
    ) -> usize {
        self.unit.resize(b * dim, T::ZERO);
        self.length.clear();
        self.length.resize(b, T::ZERO);
        let centre = &self.centre;
        for_rows(threads, &mut self.unit, &mut self.length, dim, |i, x, length| {
            x.copy_from_slice(&features[i * dim..][..dim]);
            x.iter_mut().zip(centre).for_each(|(x, &m)| *x = *x - m);
            if rectify {
                x.iter_mut().for_each(|x| *x = x.larger(T::ZERO));
            }
            *length = shorten(x);
        });
        self.length.iter().filter(|length| **length == T::ZERO).count()
    }

    /// Turns the gradient of the unit vectors into that of the features, in place.
    pub(crate) fn through_normalisation(&mut self, threads: Threads, dim: usize, rectify: bool) {
        let unit = &self.unit;
        for_rows(threads, &mut self.gradient, &mut self.length, dim, |i, g, length| {
            let x = &unit[i * dim..][..dim];
            // A zero vector has no direction: it gets no gradient.
            let stretch = if *length == T::ZERO { T::ZERO } else { T::ONE / *length };
            let along = T::of(dot(g, x));
            g.iter_mut().zip(x).for_each(|(g, &x)| *g = (*g - along * x) * stretch);
            if rectify {
                // What was not above 0 is 0 here, and stays so for any small change.
                g.iter_mut().zip(x).filter(|(_, x)| **x == T::ZERO).for_each(|(g, _)| *g = T::ZERO);
            }
        });
    }
}

/// Makes a vector a unit vector, unless it is zero; returns its length.
fn shorten<T: Real>(x: &mut [T]) -> T {
    let mut length = dot(x, x).sqrt();
    let mut unit = 1.0;
    // Squares near the end of the range of numbers: divide by the largest entry first.
    if !is_safe::<T>(length) {
        let largest = x.iter().fold(T::ZERO, |m, &v| m.larger(v).larger(-v));
        if largest == T::ZERO {
            return T::ZERO;
        }
        x.iter_mut().for_each(|v| *v = *v / largest);
        (length, unit) = (dot(x, x).sqrt(), largest.wide());
    }
    let shorten = T::of(1.0 / length);
    x.iter_mut().for_each(|v| *v = *v * shorten);
    T::of(length * unit)
}

/// Whether squares of such a length are far from the ends of the range of numbers.
fn is_safe<T: Real>(length: f64) -> bool {
    length > T::SAFE.recip() && length < T::SAFE
}
