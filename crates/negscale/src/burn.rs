//! Adapter for burn 0.22 (feature `burn`): a tensor of features in, a loss tensor out.
//!
//! The loss carries the true value, and its gradient is exact although burn records almost nothing: with
//! $g = \partial\,\text{value}/\partial f$ computed by this crate and held constant, $\langle g, f\rangle$ has exactly the gradient
//! $g$, and the constant $\text{value} - \langle g, f\rangle$ corrects its value.
//!
//! ```no_run
//! # use burn::tensor::Tensor;
//! # fn step(features: Tensor<2>, logits: Tensor<2>, host_loss: Tensor<1>, labels: &[usize]) -> negscale::Result<()> {
//! use negscale::{NegScale, Settings, Tap, Taxonomy, burn::{Adapter, confidence}};
//!
//! let mut negscale = Adapter::new(NegScale::new(&Taxonomy::builtin("cifar10")?, Settings::default())?); // once
//! let extra = negscale.loss(features, &Tap::new(labels, &confidence(logits)?))?; // per batch
//! let loss = host_loss + extra.loss; // then loss.backward() as ever
//! # Ok(()) }
//! ```

use crate::{Centre, ClassMeans, Error, NegScale, Real, Result, Tap, Terms, Workspace};
use burn::tensor::{DType, Element, Tensor, TensorData};

/// A loss to add to the host's.
#[derive(Debug, Clone)]
pub struct Loss {
    /// The loss as a tensor of one element, with its exact gradient.
    pub loss: Tensor<1>,
    /// Its value.
    pub value: f64,
    /// What the value is made of.
    pub terms: Terms,
}

/// The plug-in with the buffers of one training run.
#[derive(Debug)]
pub struct Adapter {
    plugin: NegScale,
    single: Workspace<f32>,
    double: Workspace<f64>,
}

impl Adapter {
    /// Wraps a plug-in.
    pub fn new(plugin: NegScale) -> Self {
        Self { plugin, single: Workspace::new(), double: Workspace::new() }
    }

    /// The plug-in inside.
    pub fn plugin(&self) -> &NegScale {
        &self.plugin
    }

    /// Buffers for `f32` features (and narrower ones, which are widened); they hold the running class means.
    pub fn workspace(&mut self) -> &mut Workspace<f32> {
        &mut self.single
    }

    /// The running class means of `f32` features, to be saved with a checkpoint.
    pub fn class_means(&self) -> &ClassMeans {
        self.single.class_means()
    }

    /// The loss of a batch from its raw features, B x d. Values are computed on the CPU in `f64` if the features are
    /// `f64`, else in `f32`.
    pub fn loss(&mut self, features: Tensor<2>, tap: &Tap<f32>) -> Result<Loss> {
        let Self { plugin, single, double } = self;
        if features.dtype() == DType::F64 {
            let confidence: Vec<f64> = tap.confidence.iter().map(|&c| c.into()).collect();
            let tap = Tap {
                labels: tap.labels,
                confidence: &confidence,
                refurbished: tap.refurbished,
                warming_up: tap.warming_up,
                batch: tap.batch,
            };
            attach(plugin, features, &tap, double)
        } else {
            attach(plugin, features, tap, single)
        }
    }

    /// The same loss with the Gram matrix made on the features' device, so that B x B numbers travel instead of
    /// B x d: for graphics cards and wide features.
    pub fn loss_by_gram(&mut self, features: Tensor<2>, tap: &Tap<f32>) -> Result<Loss> {
        if self.plugin.settings().centre != Centre::None {
            let requirement =
                "the Gram matrix is made on the device, which keeps no class means; call `loss`";
            return Err(Error::Setting { name: "centre", value: "class-balanced".into(), requirement });
        }
        let [b, dim] = features.dims();
        let rectify = self.plugin.settings().rectify;
        let features = if rectify { burn::tensor::activation::relu(features) } else { features };
        // A zero vector has no direction: it stays zero and gets no gradient.
        let square = features.clone().powf_scalar(2.0).sum_dim(1);
        let zero = square.clone().equal_elem(0.0);
        let shorten = square.mask_fill(zero.clone(), 1.0).sqrt().recip().mask_fill(zero, 0.0);
        let unit = features * shorten;
        let gram = unit.clone().matmul(unit.transpose());
        let host: Vec<f32> = read(gram.clone())?;
        let result = self.plugin.phi(&host, dim, tap, &mut self.single)?;
        Ok(surrogate(gram, result.gradient, [b, b], result.value, result.terms))
    }
}

/// Softmax probability of the predicted class of every sample, from logits B x C.
pub fn confidence(logits: Tensor<2>) -> Result<Vec<f32>> {
    let classes = logits.dims()[1];
    let logits: Vec<f32> = read(logits)?;
    let of_row = |row: &[f32]| {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        1.0 / row.iter().map(|logit| (logit - largest).exp()).sum::<f32>()
    };
    Ok(logits.chunks(classes.max(1)).map(of_row).collect())
}

fn read<E: Element>(tensor: Tensor<2>) -> Result<Vec<E>> {
    let device = |error: &dyn std::fmt::Display| Error::Device { reason: error.to_string() };
    tensor.detach().try_into_vec_as::<E>().map_err(|e| device(&e))
}

fn attach<T: Real + Element>(
    plugin: &NegScale,
    features: Tensor<2>,
    tap: &Tap<T>,
    workspace: &mut Workspace<T>,
) -> Result<Loss> {
    let [b, dim] = features.dims();
    let host: Vec<T> = read(features.clone())?;
    let result = plugin.from_features(&host, dim, tap, workspace)?;
    Ok(surrogate(features, result.gradient, [b, dim], result.value, result.terms))
}

/// A scalar with the given value whose gradient with respect to `at` is `slope`.
fn surrogate<T: Real + Element>(
    at: Tensor<2>,
    slope: &[T],
    shape: [usize; 2],
    value: f64,
    terms: Terms,
) -> Loss {
    let options = (&at.device(), at.dtype());
    let slope = Tensor::<2>::from_data(TensorData::new(slope.to_vec(), shape), options);
    let product = (at * slope).sum();
    let correction = product.clone().detach().neg().add_scalar(value);
    Loss { loss: product + correction, value, terms }
}
