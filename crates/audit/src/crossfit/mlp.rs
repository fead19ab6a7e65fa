//! A network with one hidden layer on rows of numbers, trained by Adam on soft targets.
//!
//! $$ h = \max(0, x W_1 + b_1), \qquad z = h W_2 + b_2, \qquad p = \operatorname{softmax}(z), \qquad
//!    \ell = -\sum_c t_c \log p_c. $$
//!
//! The rate falls along half a cosine. Everything happens on the calling thread: whoever trains several networks shares them among
//! threads, and no bit depends on how many there are.

use super::targets::Targets;
use super::{Rows, draw};
use crate::Result;
use negscale_product::{add_columns_with_columns, rows_with_columns, rows_with_rows};

/// How a network is trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MlpSettings {
    /// Units of the hidden layer.
    pub hidden: usize,
    /// Passes over the rows.
    pub epochs: usize,
    /// Rows of a step.
    pub batch: usize,
    /// Adam's rate at the start.
    pub rate: f32,
    /// Share of the weights that a step at rate 1 takes off.
    pub decay: f32,
}

const MOMENT: f32 = 0.9;
const SQUARE: f32 = 0.999;

/// A trained network.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    pub(super) dim: usize,
    pub(super) hidden: usize,
    pub(super) classes: usize,
    /// $W_1, b_1, W_2, b_2$.
    pub(super) weights: [Vec<f32>; 4],
}

/// Work space of a step.
struct Step {
    x: Vec<f32>,
    h: Vec<f32>,
    z: Vec<f32>,
    dh: Vec<f32>,
    gradients: [Vec<f32>; 4],
}

impl Mlp {
    /// Trains on some of the rows, going on from a network or from a new one.
    pub fn fit(
        rows: &Rows,
        targets: &Targets,
        members: &[u32],
        settings: &MlpSettings,
        seed: u64,
        start: Option<&Self>,
        after_epoch: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let fresh = || Self::start(rows.dim(), settings.hidden, targets.classes(), seed);
        let mut network = start.cloned().unwrap_or_else(fresh);
        let sizes = network.weights.each_ref().map(Vec::len);
        let mut moments = [sizes.map(|n| vec![0.0f32; n]), sizes.map(|n| vec![0.0f32; n])];
        let batch = settings.batch.clamp(1, members.len().max(1));
        let mut step = Step {
            x: Vec::new(),
            h: Vec::new(),
            z: Vec::new(),
            dh: Vec::new(),
            gradients: sizes.map(|n| vec![0.0; n]),
        };
        let mut order = members.to_vec();
        let steps = (settings.epochs * members.len().div_ceil(batch)).max(1);
        let mut taken = 0usize;
        for epoch in 0..settings.epochs {
            let key = draw::mix(seed, epoch as u64 + 1);
            order.sort_unstable_by_key(|&row| (draw::mix(key, u64::from(row)), row));
            for rows_of_step in order.chunks(batch) {
                network.gradient(rows, targets, rows_of_step, &mut step);
                let cosine = 0.5 * (1.0 + (std::f32::consts::PI * taken as f32 / steps as f32).cos());
                taken += 1;
                network.update(&step.gradients, &mut moments, taken, settings.rate * cosine, settings.decay);
            }
            after_epoch()?;
        }
        Ok(network)
    }

    fn start(dim: usize, hidden: usize, classes: usize, seed: u64) -> Self {
        let draw = |purpose: u64, count: usize, deviation: f32| -> Vec<f32> {
            (0..count)
                .map(|at| deviation * draw::normal(draw::mix(seed, purpose << 40 | at as u64)))
                .collect()
        };
        let first = draw(1 << 20, dim * hidden, (2.0 / dim.max(1) as f32).sqrt());
        let second = draw(2 << 20, hidden * classes, 0.1 * (2.0 / hidden.max(1) as f32).sqrt());
        Self { dim, hidden, classes, weights: [first, vec![0.0; hidden], second, vec![0.0; classes]] }
    }

    /// Hidden units and logits of the rows in `x`.
    fn forward(&self, x: &[f32], h: &mut Vec<f32>, z: &mut Vec<f32>) {
        let count = x.len() / self.dim;
        let [w1, b1, w2, b2] = &self.weights;
        h.resize(count * self.hidden, 0.0);
        rows_with_columns(x, w1, self.dim, h);
        for row in h.chunks_exact_mut(self.hidden) {
            row.iter_mut().zip(b1).for_each(|(h, b)| *h = (*h + b).max(0.0));
        }
        z.resize(count * self.classes, 0.0);
        rows_with_columns(h, w2, self.hidden, z);
        for row in z.chunks_exact_mut(self.classes) {
            row.iter_mut().zip(b2).for_each(|(z, b)| *z += b);
        }
    }

    /// The gradient of the mean loss of some rows.
    fn gradient(&self, rows: &Rows, targets: &Targets, members: &[u32], step: &mut Step) {
        let Step { x, h, z, dh, gradients } = step;
        rows.gather(members, x);
        self.forward(x, h, z);
        let share = 1.0 / members.len() as f32;
        for (row, &member) in z.chunks_exact_mut(self.classes).zip(members) {
            super::softmax(row);
            for &(class, probability) in targets.row(member as usize) {
                row[class as usize] -= probability;
            }
            row.iter_mut().for_each(|d| *d *= share);
        }
        gradients.iter_mut().for_each(|gradient| gradient.fill(0.0));
        let [g1, gb1, g2, gb2] = gradients;
        add_columns_with_columns(h, z, [self.hidden, self.classes], g2);
        add_rows(z, gb2);
        dh.resize(h.len(), 0.0);
        rows_with_rows(z, &self.weights[2], self.classes, dh);
        dh.iter_mut().zip(h.iter()).for_each(|(d, &h)| *d = if h > 0.0 { *d } else { 0.0 });
        add_columns_with_columns(x, dh, [self.dim, self.hidden], g1);
        add_rows(dh, gb1);
    }

    fn update(
        &mut self,
        gradients: &[Vec<f32>; 4],
        moments: &mut [[Vec<f32>; 4]; 2],
        taken: usize,
        rate: f32,
        decay: f32,
    ) {
        let power = i32::try_from(taken).unwrap_or(i32::MAX);
        let (first, second) = (1.0 - MOMENT.powi(power), 1.0 - SQUARE.powi(power));
        let [means, squares] = moments;
        for which in 0..4 {
            let keep = if which % 2 == 0 { 1.0 - rate * decay } else { 1.0 };
            let state = means[which].iter_mut().zip(squares[which].iter_mut());
            for ((w, &g), (m, v)) in self.weights[which].iter_mut().zip(&gradients[which]).zip(state) {
                *m = MOMENT * *m + (1.0 - MOMENT) * g;
                *v = SQUARE * *v + (1.0 - SQUARE) * g * g;
                *w = *w * keep - rate * (*m / first) / ((*v / second).sqrt() + 1e-8);
            }
        }
    }

    /// Logarithms of the probabilities of some rows: a row of C for each.
    pub fn log_probabilities(&self, rows: &Rows, members: &[u32], out: &mut [f32]) {
        let (mut x, mut h, mut z) = (Vec::new(), Vec::new(), Vec::new());
        for (members, out) in members.chunks(1024).zip(out.chunks_mut(1024 * self.classes)) {
            rows.gather(members, &mut x);
            self.forward(&x, &mut h, &mut z);
            z.chunks_exact_mut(self.classes).for_each(super::log_softmax);
            out.copy_from_slice(&z);
        }
    }
}

fn add_rows(rows: &[f32], sums: &mut [f32]) {
    for row in rows.chunks_exact(sums.len()) {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loss of the formula, in f64.
    fn loss(network: &Mlp, x: &[f32], targets: &Targets) -> f64 {
        let [w1, b1, w2, b2] = &network.weights;
        let (d, u, c) = (network.dim, network.hidden, network.classes);
        let rows = x.chunks(d).enumerate().map(|(i, row)| {
            let unit = |k: usize| {
                let sum: f64 = (0..d).map(|p| f64::from(row[p]) * f64::from(w1[p * u + k])).sum();
                (sum + f64::from(b1[k])).max(0.0)
            };
            let h: Vec<f64> = (0..u).map(unit).collect();
            let logit =
                |j: usize| (0..u).map(|k| h[k] * f64::from(w2[k * c + j])).sum::<f64>() + f64::from(b2[j]);
            let z: Vec<f64> = (0..c).map(logit).collect();
            let all: f64 = z.iter().map(|z| z.exp()).sum::<f64>().ln();
            let of = |&(class, t): &(u32, f32)| f64::from(t) * (all - z[class as usize]);
            targets.row(i).iter().map(of).sum::<f64>()
        });
        rows.sum::<f64>() / (x.len() / d) as f64
    }

    #[test]
    fn the_gradient_is_that_of_central_differences() {
        let (d, n) = (5, 7);
        let x: Vec<f32> = (0..n * d).map(|at| draw::normal(draw::mix(9, at as u64))).collect();
        let rows = Rows::new(&x, d).unwrap();
        let soft = (0..n as u32).map(|i| vec![(i % 3, 0.75), ((i + 1) % 3, 0.25)]).collect();
        let targets = Targets::of_rows(soft, 3);
        let mut network = Mlp::start(d, 6, 3, 4);
        network.weights[1].iter_mut().enumerate().for_each(|(k, b)| *b = 0.05 * k as f32);
        let gradients = network.weights.each_ref().map(|w| vec![0.0; w.len()]);
        let mut step = Step { x: Vec::new(), h: Vec::new(), z: Vec::new(), dh: Vec::new(), gradients };
        let members: Vec<u32> = (0..n as u32).collect();
        network.gradient(&rows, &targets, &members, &mut step);
        for which in 0..4 {
            for at in 0..network.weights[which].len() {
                let nudged = |by: f32| {
                    let mut other = network.clone();
                    other.weights[which][at] += by;
                    loss(&other, &x, &targets)
                };
                let wanted = (nudged(1e-3) - nudged(-1e-3)) / 2e-3;
                let found = f64::from(step.gradients[which][at]);
                assert!((wanted - found).abs() < 2e-4, "weights {which}, {at}: {found}, not {wanted}");
            }
        }
    }
}
