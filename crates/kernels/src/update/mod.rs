//! Parameter updates of optimisers, each in one pass over memory.
//!
//! Burn's tensor operations would read and write every buffer once per term of a formula; here a step of SGD with momentum
//! and weight decay reads parameter, gradient and velocity once and writes parameter and velocity once.
//!
//! **In place.** A buffer that nobody else holds is overwritten; one that is shared is copied first, so that a clone of a
//! network keeps its values. [`buffers`] counts both, because a forgotten clone costs a copy per step and shows nowhere else.
//!
//! **Bits.** Every element is computed alone, in f32, without fused operations: results depend neither on the number of
//! threads nor on the CPU. Constants such as $1 - \beta_1$ are made in f64 and rounded once.
//!
//! Other float types and graphics cards take the same formulas written with burn's operations (`stock`).
//!
//! All functions take and return tensors without autodiff; an autodiff tensor is taken out of its graph.

mod passes;
mod stock;

use crate::rows::slice;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{DType, Tensor, TensorData};
use std::cell::Cell;

/// One step of stochastic gradient descent, with $g$ the gradient, $\theta$ the parameter and $v$ the velocity:
///
/// $$ g \leftarrow g + \lambda \theta, \quad v \leftarrow \mu v + g, \quad
///    \theta \leftarrow \theta - \eta \cdot (g + \mu v \text{ if Nesterov, else } v) $$
///
/// A velocity of zeros makes the first velocity the gradient itself, as in PyTorch (dampening is 0).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sgd {
    /// $\eta$, the learning rate.
    pub lr: f64,
    /// $\mu$.
    pub momentum: f64,
    /// Look ahead along the velocity.
    pub nesterov: bool,
    /// $\lambda$.
    pub weight_decay: f64,
}

/// Where Adam's weight decay enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decay {
    /// Into the gradient: $g \leftarrow g + \lambda \theta$ (Adam).
    Gradient,
    /// Into the parameter, before the step: $\theta \leftarrow (1 - \eta \lambda) \theta$ (AdamW).
    Parameter,
}

/// Step number $t$ (from 1) of Adam, with moments $m$ and $s$ that start at zero:
///
/// $$ m \leftarrow m + (1 - \beta_1)(g - m), \quad s \leftarrow \beta_2 s + (1 - \beta_2) g^2, \quad
///    \theta \leftarrow \theta - \frac{\eta}{1 - \beta_1^t} \cdot \frac{m}{\sqrt{s} / \sqrt{1 - \beta_2^t} + \epsilon} $$
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
    /// $\eta$, the learning rate.
    pub lr: f64,
    /// $\beta_1$.
    pub beta1: f64,
    /// $\beta_2$.
    pub beta2: f64,
    /// $\epsilon$, outside the square root.
    pub epsilon: f64,
    /// $\lambda$.
    pub weight_decay: f64,
    /// Where $\lambda$ enters.
    pub decay: Decay,
    /// $t$, counted from 1.
    pub step: u64,
}

/// The updates, as operations of a backend. The bodies given here are burn's own operations.
#[backend_extension(Flex, Cube: cfg(feature = "gpu"))]
pub trait UpdateOps: Backend {
    /// SGD without momentum: the new parameter.
    fn update_plain(
        param: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        lr: f64,
        weight_decay: f64,
    ) -> FloatTensor<Self> {
        stock::plain::<Self>(param, grad, lr, weight_decay)
    }

    /// SGD with momentum: the new parameter and velocity.
    fn update_sgd(
        param: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        velocity: FloatTensor<Self>,
        rule: Sgd,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        stock::sgd::<Self>(param, grad, velocity, rule)
    }

    /// Adam and AdamW: the new parameter and moments.
    fn update_adam(
        param: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        rule: Adam,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        stock::adam::<Self>(param, grad, first, second, rule)
    }

    /// `a + t (b - a)`.
    fn update_blend(a: FloatTensor<Self>, b: FloatTensor<Self>, t: f64) -> FloatTensor<Self> {
        stock::blend::<Self>(a, b, t)
    }
}

#[cfg(feature = "gpu")]
impl UpdateOps for burn::backend::Cube {}

impl UpdateOps for Flex {
    fn update_plain(mut param: FlexTensor, grad: FlexTensor, lr: f64, weight_decay: f64) -> FlexTensor {
        if !all_f32(&[&param, &grad]) {
            return stock::plain::<Self>(param, grad, lr, weight_decay);
        }
        let grad = grad.to_contiguous();
        passes::plain(writable(&mut param), slice(&grad), lr as f32, weight_decay as f32);
        param
    }

    fn update_sgd(
        mut param: FlexTensor,
        grad: FlexTensor,
        mut velocity: FlexTensor,
        rule: Sgd,
    ) -> (FlexTensor, FlexTensor) {
        if !all_f32(&[&param, &grad, &velocity]) {
            return stock::sgd::<Self>(param, grad, velocity, rule);
        }
        let grad = grad.to_contiguous();
        passes::sgd(writable(&mut param), slice(&grad), writable(&mut velocity), rule);
        (param, velocity)
    }

    fn update_adam(
        mut param: FlexTensor,
        grad: FlexTensor,
        mut first: FlexTensor,
        mut second: FlexTensor,
        rule: Adam,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        if !all_f32(&[&param, &grad, &first, &second]) {
            return stock::adam::<Self>(param, grad, first, second, rule);
        }
        let grad = grad.to_contiguous();
        let (p, m, s) = (writable(&mut param), writable(&mut first), writable(&mut second));
        passes::adam(p, slice(&grad), m, s, rule);
        (param, first, second)
    }

    fn update_blend(mut a: FlexTensor, b: FlexTensor, t: f64) -> FlexTensor {
        if !all_f32(&[&a, &b]) {
            return stock::blend::<Self>(a, b, t);
        }
        let b = b.to_contiguous();
        passes::blend(writable(&mut a), slice(&b), t as f32);
        a
    }
}

/// How many buffers the updates of one thread wrote in place, and how many they had to copy first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Buffers {
    /// Overwritten, because nobody else held them.
    pub reused: u64,
    /// Copied, because they were shared or not in order in memory.
    pub copied: u64,
}

thread_local! {
    static BUFFERS: Cell<Buffers> = const { Cell::new(Buffers { reused: 0, copied: 0 }) };
}

/// Counts of the calling thread since it began, for tests and profiles.
pub fn buffers() -> Buffers {
    BUFFERS.get()
}

fn all_f32(tensors: &[&FlexTensor]) -> bool {
    tensors.iter().all(|tensor| tensor.dtype() == DType::F32)
}

/// The values of a tensor, to be overwritten; it gets a buffer of its own if others hold the present one.
fn writable(tensor: &mut FlexTensor) -> &mut [f32] {
    let mut counts = BUFFERS.get();
    let in_order = tensor.layout().contiguous_offsets();
    let range = if let (Some((start, end)), true) = (in_order, tensor.is_unique()) {
        counts.reused += 1;
        start..end
    } else {
        counts.copied += 1;
        let values = slice(&tensor.to_contiguous()).to_vec();
        let all = 0..values.len();
        *tensor = FlexTensor::from_data(TensorData::new(values, tensor.shape()));
        all
    };
    BUFFERS.set(counts);
    // The buffer is unique by now, so this copies nothing.
    &mut tensor.storage_mut::<f32>()[range]
}

/// One step of SGD; without a velocity, one without momentum (`rule.momentum` is then not looked at).
///
/// # Panics
/// If the shapes differ.
pub fn sgd<const D: usize>(
    param: Tensor<D>,
    grad: Tensor<D>,
    velocity: Option<Tensor<D>>,
    rule: Sgd,
) -> (Tensor<D>, Option<Tensor<D>>) {
    assert_eq!(param.dims(), grad.dims(), "parameter and gradient have different shapes");
    let (param, grad) = (param.inner(), grad.inner());
    let Some(velocity) = velocity else {
        let (param, grad) = (param.into_dispatch(), grad.into_dispatch());
        let param = <Dispatch as UpdateOps>::update_plain(param, grad, rule.lr, rule.weight_decay);
        return (Tensor::from_dispatch(param), None);
    };
    assert_eq!(param.dims(), velocity.dims(), "parameter and velocity have different shapes");
    let (param, velocity) = <Dispatch as UpdateOps>::update_sgd(
        param.into_dispatch(),
        grad.into_dispatch(),
        velocity.inner().into_dispatch(),
        rule,
    );
    (Tensor::from_dispatch(param), Some(Tensor::from_dispatch(velocity)))
}

/// One step of Adam or AdamW: the new parameter and moments.
///
/// # Panics
/// If the shapes differ.
pub fn adam<const D: usize>(
    param: Tensor<D>,
    grad: Tensor<D>,
    [first, second]: [Tensor<D>; 2],
    rule: Adam,
) -> (Tensor<D>, [Tensor<D>; 2]) {
    assert_eq!(param.dims(), grad.dims(), "parameter and gradient have different shapes");
    assert_eq!(param.dims(), first.dims(), "parameter and first moment have different shapes");
    assert_eq!(param.dims(), second.dims(), "parameter and second moment have different shapes");
    let (param, first, second) = <Dispatch as UpdateOps>::update_adam(
        param.inner().into_dispatch(),
        grad.inner().into_dispatch(),
        first.inner().into_dispatch(),
        second.inner().into_dispatch(),
        rule,
    );
    (Tensor::from_dispatch(param), [Tensor::from_dispatch(first), Tensor::from_dispatch(second)])
}

/// `a + t (b - a)`: `a` at `t = 0`; one step of a running mean with decay `1 - t`.
///
/// # Panics
/// If the shapes differ.
pub fn blend<const D: usize>(a: Tensor<D>, b: Tensor<D>, t: f64) -> Tensor<D> {
    assert_eq!(a.dims(), b.dims(), "the tensors to blend have different shapes");
    let (a, b) = (a.inner().into_dispatch(), b.inner().into_dispatch());
    Tensor::from_dispatch(<Dispatch as UpdateOps>::update_blend(a, b, t))
}
