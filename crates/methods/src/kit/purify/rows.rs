//! Softmax row by row with its way back, and Adam, on slices.

use negscale_nets::optim::Adam;

/// Softmax of a row, in place.
pub(super) fn softmax(row: &mut [f64]) {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    row.iter_mut().for_each(|x| *x = (*x - largest).exp());
    let sum: f64 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= sum);
}

/// Softmax of every row.
pub(super) fn softmax_rows(scores: &[f64], classes: usize) -> Vec<f64> {
    let mut p = scores.to_vec();
    p.chunks_mut(classes).for_each(softmax);
    p
}

/// The gradient before a softmax from that after it: $p \circ (g - \langle p, g \rangle)$ for every row, in place of $g$.
pub(super) fn through_softmax(p: &[f64], g: &mut [f64], classes: usize) {
    for (p, g) in p.chunks(classes).zip(g.chunks_mut(classes)) {
        let mean: f64 = p.iter().zip(&*g).map(|(p, g)| p * g).sum();
        g.iter_mut().zip(p).for_each(|(g, p)| *g = p * (*g - mean));
    }
}

/// $\mathrm{KL}(u \,\|\, \bar p)$, $\bar p$ the mean of the rows, and its gradient for every $p_{ic}$, which is the same in all rows.
pub(super) fn prior(p: &[f64], classes: usize) -> (f64, Vec<f64>) {
    let rows = (p.len() / classes).max(1) as f64;
    let mut mean = vec![0.0; classes];
    for row in p.chunks(classes) {
        mean.iter_mut().zip(row).for_each(|(mean, p)| *mean += p / rows);
    }
    let u = 1.0 / classes as f64;
    let value = mean.iter().map(|mean| u * (u / mean.max(f64::MIN_POSITIVE)).ln()).sum();
    (value, mean.iter().map(|mean| -u / (mean.max(f64::MIN_POSITIVE) * rows)).collect())
}

/// Values with what Adam keeps for them; decay is added to the gradient, as PyTorch does.
#[derive(Debug, Clone)]
pub(super) struct Moved {
    pub values: Vec<f32>,
    first: Vec<f32>,
    second: Vec<f32>,
    steps: i32,
}

impl Moved {
    pub fn new(values: Vec<f32>) -> Self {
        let zeros = vec![0.0; values.len()];
        Self { values, first: zeros.clone(), second: zeros, steps: 0 }
    }

    /// One step; `gradient` of a value by its place, 0 where there is none. All values move on, also those without gradient.
    pub fn step(&mut self, rule: &Adam, gradient: impl Fn(usize) -> f32) {
        self.steps += 1;
        let (beta1, beta2) = (rule.beta1 as f32, rule.beta2 as f32);
        let rate = (rule.lr / (1.0 - rule.beta1.powi(self.steps))) as f32;
        let root = (1.0 - rule.beta2.powi(self.steps)).sqrt() as f32;
        let (decay, epsilon) = (rule.weight_decay as f32, rule.epsilon as f32);
        for at in 0..self.values.len() {
            let g = gradient(at) + decay * self.values[at];
            self.first[at] = beta1 * self.first[at] + (1.0 - beta1) * g;
            self.second[at] = beta2 * self.second[at] + (1.0 - beta2) * g * g;
            self.values[at] -= rate * self.first[at] / (self.second[at].sqrt() / root + epsilon);
        }
    }
}
