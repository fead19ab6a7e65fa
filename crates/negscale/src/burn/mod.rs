//! Adapter for burn 0.22 (feature `burn`): a tensor of features in, a loss tensor out.
//!
//! ```no_run
//! # use burn::tensor::{Int, Tensor};
//! # fn step(features: Tensor<2>, logits: Tensor<2>, targets: Tensor<1, Int>, host_loss: Tensor<1>) -> negscale::Result<()> {
//! use negscale::burn::{Adapter, confidence, labels};
//! use negscale::{BatchLabels, NegScale, Settings, Taxonomy};
//!
//! let mut negscale = Adapter::new(NegScale::new(&Taxonomy::builtin("cifar10")?, Settings::default())?); // once
//! let (labels, confidence) = (labels(targets)?, confidence(logits)?); // per batch
//! let extra = negscale.loss(features, &BatchLabels::new(&labels, &confidence))?;
//! let loss = host_loss + extra.loss; // then loss.backward() as ever
//! # Ok(()) }
//! ```
//!
//! The loss carries the true value and the exact gradient, although burn records one operation only: value and gradient are
//! computed by this crate, on the CPU, and the gradient is handed to burn's backward pass as it is.
//!
//! # Speed
//! With feature `flex` tensors of burn's CPU backend (`f32` and `f64`) are read where they are, and burn takes the gradient
//! over: no number is copied. Tensors of other backends and types are copied to the CPU and back, and $\langle g, f\rangle$ with a
//! constant $g$ stands for the loss in burn's graph, since its gradient is $g$. For graphics cards see
//! [`Adapter::loss_from_cosines`], which moves fewer numbers.

#[cfg(feature = "flex")]
mod flex;
mod transfer;

use crate::{BatchLabels, Centre, Error, GradientLengths, Memory, NegScale, Result, Terms, Workspace};
use burn::tensor::{DType, Int, Tensor, activation};
use transfer::{Number, read, scalar_with_gradient};

/// A loss to add to the host's.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Loss {
    /// The loss as a tensor of one element, with its exact gradient.
    pub loss: Tensor<1>,
    /// Its value.
    pub value: f64,
    /// What the value is made of.
    pub terms: Terms,
}

/// The plug-in with the buffers of one network in training. Several networks need an adapter each: running class means of two
/// networks have nothing in common.
#[derive(Debug)]
pub struct Adapter {
    plugin: NegScale,
    single: Workspace<f32>,
    double: Workspace<f64>,
    /// Which of the two the latest batch used: it holds the class means.
    is_double: bool,
}

impl Adapter {
    /// Wraps a plug-in.
    pub fn new(plugin: NegScale) -> Self {
        Self { plugin, single: Workspace::new(), double: Workspace::new(), is_double: false }
    }

    /// The plug-in inside.
    pub fn plugin(&self) -> &NegScale {
        &self.plugin
    }

    /// What is known of earlier batches, to be saved with a checkpoint.
    pub fn memory(&self) -> &Memory {
        if self.is_double { self.double.memory() } else { self.single.memory() }
    }

    /// The same, to be changed: to take up a checkpoint, to hear of the host's gradient, to remember class means.
    pub fn memory_mut(&mut self) -> &mut Memory {
        if self.is_double { self.double.memory_mut() } else { self.single.memory_mut() }
    }

    /// The loss of a batch from its raw features, B x d: centring (if set) and normalisation are inside. Computed in `f64` if
    /// the features are `f64`, else in `f32`.
    pub fn loss(&mut self, features: Tensor<2>, batch: &BatchLabels<f32>) -> Result<Loss> {
        let is_double = features.dtype() == DType::F64;
        if is_double != self.is_double {
            let memory = std::mem::take(self.memory_mut());
            self.is_double = is_double;
            *self.memory_mut() = memory;
        }
        if !is_double {
            return attach(&self.plugin, features, batch, &mut self.single);
        }
        let widen = |values: &[f32]| values.iter().map(|&value| value.into()).collect::<Vec<f64>>();
        let BatchLabels { labels, refurbished, warming_up, step, .. } = *batch;
        let (confidence, clean) = (widen(batch.confidence), batch.clean.map(widen));
        let (frozen, confidence) = (batch.frozen.map(widen), &confidence);
        let (clean, frozen) = (clean.as_deref(), frozen.as_deref());
        let batch = BatchLabels { labels, confidence, refurbished, warming_up, step, clean, frozen };
        attach(&self.plugin, features, &batch, &mut self.double)
    }

    /// How long the gradients of the single terms are for a batch; see [`NegScale::gradient_lengths`]. Computed in `f32`.
    pub fn gradient_lengths(
        &self,
        features: &Tensor<2>,
        batch: &BatchLabels<f32>,
    ) -> Result<GradientLengths> {
        self.plugin.gradient_lengths(&read::<f32>(features)?, features.dims()[1], batch)
    }

    /// The same loss with the cosines of all pairs (the Gram matrix of the normalised features) made on the features' device,
    /// so that B x B numbers travel instead of B x d: for graphics cards and wide features. Computed in `f32`.
    pub fn loss_from_cosines(&mut self, features: Tensor<2>, batch: &BatchLabels<f32>) -> Result<Loss> {
        let settings = self.plugin.settings();
        if settings.centre != Centre::None {
            let requirement = "the cosines are made on the device, which keeps no class means; call `loss`";
            return Err(Error::Setting { name: "centre", value: "class-balanced".into(), requirement });
        }
        let dim = features.dims()[1];
        let features = if settings.rectify { activation::relu(features) } else { features };
        // A zero vector has no direction: it stays zero and gets no gradient.
        let square = features.clone().powf_scalar(2.0).sum_dim(1);
        let zero = square.clone().equal_elem(0.0);
        let shorten = square.mask_fill(zero.clone(), 1.0).sqrt().recip().mask_fill(zero, 0.0);
        let unit = features * shorten;
        let cosines = unit.clone().matmul(unit.transpose());
        let numbers = read::<f32>(&cosines)?;
        let result = self.plugin.loss_and_gradient_from_cosines(&numbers, dim, batch, &mut self.single)?;
        let loss = scalar_with_gradient(cosines, result.value, result.gradient.to_vec());
        Ok(Loss { loss, value: result.value, terms: result.terms })
    }
}

/// Exclusion with its weight from the logits of a batch, B x C; see [`NegScale::exclusion`]. Computed in `f32`.
pub fn exclusion(
    plugin: &NegScale,
    logits: Tensor<2>,
    batch: &BatchLabels<f32>,
    errors: &[f32],
) -> Result<(Tensor<1>, f64)> {
    let (value, gradient) = plugin.exclusion(&read::<f32>(&logits)?, batch, errors)?;
    Ok((scalar_with_gradient(logits, value, gradient), value))
}

fn attach<T: Number>(
    plugin: &NegScale,
    features: Tensor<2>,
    batch: &BatchLabels<T>,
    workspace: &mut Workspace<T>,
) -> Result<Loss> {
    let dim = features.dims()[1];
    let numbers = read::<T>(&features)?;
    let result = plugin.loss_and_gradient(&numbers, dim, batch, workspace)?;
    let (value, terms) = (result.value, result.terms);
    Ok(Loss { loss: scalar_with_gradient(features, value, workspace.take_gradient()), value, terms })
}

/// Softmax probability of the predicted class of every sample, from logits B x C.
pub fn confidence(logits: Tensor<2>) -> Result<Vec<f32>> {
    let classes = logits.dims()[1];
    let logits = read::<f32>(&logits)?;
    let of_row = |row: &[f32]| {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        1.0 / row.iter().map(|logit| (logit - largest).exp()).sum::<f32>()
    };
    Ok(logits.chunks(classes.max(1)).map(of_row).collect())
}

/// Class indices of every sample, from targets as burn's cross-entropy takes them.
pub fn labels(targets: Tensor<1, Int>) -> Result<Vec<usize>> {
    let targets =
        targets.try_into_vec_as::<i64>().map_err(|error| Error::Device { reason: error.to_string() })?;
    let index = |(sample, label)| usize::try_from(label).map_err(|_| Error::NegativeLabel { sample, label });
    targets.into_iter().enumerate().map(index).collect()
}
