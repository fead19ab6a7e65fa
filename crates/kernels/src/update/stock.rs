//! The updates as burn's own operations: for graphics cards, for float types other than f32, and as the tests' reference.

use super::{Adam, Decay, Sgd};
use burn::backend::Backend;
use burn::backend::tensor::FloatTensor;

/// `x + factor * y`.
fn add_scaled<B: Backend>(x: FloatTensor<B>, y: FloatTensor<B>, factor: f64) -> FloatTensor<B> {
    B::float_add(x, B::float_mul_scalar(y, factor.into()))
}

/// The gradient with weight decay.
fn decayed<B: Backend>(grad: FloatTensor<B>, param: &FloatTensor<B>, weight_decay: f64) -> FloatTensor<B> {
    if weight_decay == 0.0 { grad } else { add_scaled::<B>(grad, param.clone(), weight_decay) }
}

pub fn plain<B: Backend>(
    param: FloatTensor<B>,
    grad: FloatTensor<B>,
    lr: f64,
    weight_decay: f64,
) -> FloatTensor<B> {
    let grad = decayed::<B>(grad, &param, weight_decay);
    add_scaled::<B>(param, grad, -lr)
}

pub fn sgd<B: Backend>(
    param: FloatTensor<B>,
    grad: FloatTensor<B>,
    velocity: FloatTensor<B>,
    rule: Sgd,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let grad = decayed::<B>(grad, &param, rule.weight_decay);
    let velocity = add_scaled::<B>(grad.clone(), velocity, rule.momentum);
    let along =
        if rule.nesterov { add_scaled::<B>(grad, velocity.clone(), rule.momentum) } else { velocity.clone() };
    (add_scaled::<B>(param, along, -rule.lr), velocity)
}

pub fn adam<B: Backend>(
    param: FloatTensor<B>,
    grad: FloatTensor<B>,
    first: FloatTensor<B>,
    second: FloatTensor<B>,
    rule: Adam,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let (param, grad) = match rule.decay {
        Decay::Gradient => {
            let grad = decayed::<B>(grad, &param, rule.weight_decay);
            (param, grad)
        }
        Decay::Parameter => (B::float_mul_scalar(param, (1.0 - rule.lr * rule.weight_decay).into()), grad),
    };
    let first = blend::<B>(first, grad.clone(), 1.0 - rule.beta1);
    let square = B::float_mul(grad.clone(), grad);
    let second = add_scaled::<B>(B::float_mul_scalar(second, rule.beta2.into()), square, 1.0 - rule.beta2);
    let [size, root] = rule.corrections();
    let below = B::float_mul_scalar(B::float_sqrt(second.clone()), (1.0 / root).into());
    let below = B::float_add_scalar(below, rule.epsilon.into());
    let step = B::float_div(first.clone(), below);
    (add_scaled::<B>(param, step, -size), first, second)
}

pub fn blend<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>, t: f64) -> FloatTensor<B> {
    let way = B::float_sub(b, a.clone());
    add_scaled::<B>(a, way, t)
}
