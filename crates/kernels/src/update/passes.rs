//! The loops: one pass over memory each, written so that the compiler makes vectors of them.

use super::{Adam, Decay, Sgd};
use negscale_cpu::for_this_cpu;
use rayon::prelude::*;

/// Tensors smaller than this are not worth waking a thread for.
const LARGE: usize = 1 << 16;
/// Elements that one thread takes at a time: four such buffers fit into an ordinary second-level cache.
const CHUNK: usize = 1 << 14;

impl Adam {
    /// $\eta / (1 - \beta_1^t)$ and $\sqrt{1 - \beta_2^t}$.
    pub(super) fn corrections(&self) -> [f64; 2] {
        let t = self.step as f64;
        [self.lr / (1.0 - self.beta1.powf(t)), (1.0 - self.beta2.powf(t)).sqrt()]
    }
}

pub fn plain(param: &mut [f32], grad: &[f32], lr: f32, weight_decay: f32) {
    if param.len() < LARGE {
        return plain_chunk(param, grad, lr, weight_decay);
    }
    let chunks = param.par_chunks_mut(CHUNK).zip(grad.par_chunks(CHUNK));
    chunks.for_each(|(param, grad)| plain_chunk(param, grad, lr, weight_decay));
}

for_this_cpu! {
    fn plain_chunk(param: &mut [f32], grad: &[f32], lr: f32, weight_decay: f32) {
        for (p, &g) in param.iter_mut().zip(grad) {
            *p -= lr * (g + weight_decay * *p);
        }
    }
}

pub fn sgd(param: &mut [f32], grad: &[f32], velocity: &mut [f32], rule: Sgd) {
    let along = if rule.nesterov { nesterov_chunk } else { momentum_chunk };
    let numbers = [rule.lr, rule.momentum, rule.weight_decay].map(|number| number as f32);
    if param.len() < LARGE {
        return along(param, grad, velocity, numbers);
    }
    let buffers = (param.par_chunks_mut(CHUNK), grad.par_chunks(CHUNK), velocity.par_chunks_mut(CHUNK));
    buffers.into_par_iter().for_each(|(param, grad, velocity)| along(param, grad, velocity, numbers));
}

for_this_cpu! {
    fn momentum_chunk(param: &mut [f32], grad: &[f32], velocity: &mut [f32], numbers: [f32; 3]) {
        let [lr, momentum, weight_decay] = numbers;
        for ((p, &g), v) in param.iter_mut().zip(grad).zip(velocity) {
            *v = momentum * *v + (g + weight_decay * *p);
            *p -= lr * *v;
        }
    }
}

for_this_cpu! {
    fn nesterov_chunk(param: &mut [f32], grad: &[f32], velocity: &mut [f32], numbers: [f32; 3]) {
        let [lr, momentum, weight_decay] = numbers;
        for ((p, &g), v) in param.iter_mut().zip(grad).zip(velocity) {
            let g = g + weight_decay * *p;
            *v = momentum * *v + g;
            *p -= lr * (g + momentum * *v);
        }
    }
}

/// The constants of a step of Adam, rounded to f32.
#[derive(Clone, Copy)]
struct Numbers {
    to_first: f32,
    keep_second: f32,
    to_second: f32,
    size: f32,
    root: f32,
    epsilon: f32,
    shrink: f32,
    weight_decay: f32,
}

pub fn adam(param: &mut [f32], grad: &[f32], first: &mut [f32], second: &mut [f32], rule: Adam) {
    let [size, root] = rule.corrections();
    let (shrink, weight_decay) = match rule.decay {
        Decay::Gradient => (1.0, rule.weight_decay),
        Decay::Parameter => (1.0 - rule.lr * rule.weight_decay, 0.0),
    };
    let numbers = Numbers {
        to_first: (1.0 - rule.beta1) as f32,
        keep_second: rule.beta2 as f32,
        to_second: (1.0 - rule.beta2) as f32,
        size: size as f32,
        root: root as f32,
        epsilon: rule.epsilon as f32,
        shrink: shrink as f32,
        weight_decay: weight_decay as f32,
    };
    if param.len() < LARGE {
        return adam_chunk(param, grad, first, second, numbers);
    }
    let buffers = (
        param.par_chunks_mut(CHUNK),
        grad.par_chunks(CHUNK),
        first.par_chunks_mut(CHUNK),
        second.par_chunks_mut(CHUNK),
    );
    let work = |(param, grad, first, second): (&mut [f32], &[f32], &mut [f32], &mut [f32])| {
        adam_chunk(param, grad, first, second, numbers);
    };
    buffers.into_par_iter().for_each(work);
}

for_this_cpu! {
    fn adam_chunk(param: &mut [f32], grad: &[f32], first: &mut [f32], second: &mut [f32], numbers: Numbers) {
        let Numbers { to_first, keep_second, to_second, size, root, epsilon, shrink, weight_decay } = numbers;
        for (((p, &g), m), s) in param.iter_mut().zip(grad).zip(first).zip(second) {
            let kept = *p * shrink;
            let g = g + weight_decay * kept;
            *m += to_first * (g - *m);
            *s = keep_second * *s + to_second * (g * g);
            *p = kept - size * (*m / (s.sqrt() / root + epsilon));
        }
    }
}

pub fn blend(a: &mut [f32], b: &[f32], t: f32) {
    if a.len() < LARGE {
        return blend_chunk(a, b, t);
    }
    a.par_chunks_mut(CHUNK).zip(b.par_chunks(CHUNK)).for_each(|(a, b)| blend_chunk(a, b, t));
}

for_this_cpu! {
    fn blend_chunk(a: &mut [f32], b: &[f32], t: f32) {
        for (a, &b) in a.iter_mut().zip(b) {
            *a += t * (b - *a);
        }
    }
}
