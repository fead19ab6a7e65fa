//! The networks: built by name, run on images or embeddings, with PyTorch's names for every parameter.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use negscale_nets::{Input, NetSpec, Network, Pass};
//!
//! let spec = NetSpec::new("cnn-small", Input::Image { channels: 1, height: 28, width: 28 }, 10);
//! let net = Network::build(&spec, &Device::flex())?;
//! let images = Tensor::<4>::zeros([2, 1, 28, 28], &Device::flex());
//! let out = net.forward(images, &Pass::evaluate())?;
//! assert_eq!(out.features.dims(), [2, 64]);
//! assert_eq!(out.logits.dims(), [2, 10]);
//! # Ok::<(), negscale_nets::Error>(())
//! ```
//!
//! Every file of a network says where it comes from, its layout, features, parameters and multiply-adds. To train, build on
//! `Device::flex().autodiff()`; for evaluation without a record of the computation take `net.valid()`, a snapshot. A clone
//! of a network is independent: neither weights nor running statistics are shared with the original.

mod classifier;
mod cnn_7;
mod cnn_9;
mod cnn_small;
mod heads;
mod inception;
mod initial;
mod layers;
mod mlp;
mod module;
mod network;
mod pass;
mod preact;
mod precision;
mod resnet;
mod resnet_20;
mod run;
mod samples;
mod shapes;
mod spec;
mod state;
mod tree_classifier;
mod vgg;
mod weights;

pub use classifier::Classifier;
pub use heads::Projection;
pub use initial::InitScheme;
pub use network::{Network, Output, multiply_adds};
pub use pass::{Mode, Pass};
pub use precision::{PRECISIONS, precision_name, precision_named};
pub use samples::Samples;
pub use spec::{CARDS, FEW_CLASSES, Heads, Input, LastLayer, NetCard, NetSpec, card, names};
pub use state::{ParameterEntry, ParameterKind};
pub use weights::Loading;
