//! Optimisers over the parameters of any module: SGD, Adam and AdamW with PyTorch's arithmetic.
//!
//! ```text
//! let mut gradients = loss.backward();
//! net = optimiser.step(net, &mut gradients);
//! ```
//!
//! **What is updated.** Every float parameter that requires a gradient and has one in `gradients`; its gradient is taken out.
//! All others keep their value, their velocity and their step count, as parameters whose `grad` is `None` do in PyTorch.
//! So frozen parameters (`no_grad`) stay as they are, a second optimiser can be given a part of the network
//! (`net.head = second.step(net.head, &mut gradients)`), and [`Optimiser::only`] restricts one to some paths.
//!
//! **State** (velocity; moments and step count) belongs to a parameter's path in the module, such as `blocks.0.conv.weight`, not to
//! burn's parameter id, which differs in every process. [`Optimiser::state`] and [`Optimiser::restore`] carry it over:
//! training resumed from them continues bit for bit.
//!
//! **Cost.** One pass over memory per parameter, in place if nobody else holds its values. A clone of the network that is alive during the
//! step costs one copy of every parameter; so does a tensor still in the graph of the loss.

mod error;
mod settings;
mod state;

pub(crate) use error::require;
pub use error::{Error, Result};
pub use settings::{Adam, OptimiserSettings, Pace, Sgd};
pub use state::OptimiserState;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Gradients, Tensor};
use negscale_kernels::update;
use std::collections::BTreeMap;

/// An optimiser with its state, for one module. Two networks need two.
#[derive(Debug, Clone)]
pub struct Optimiser {
    rule: OptimiserSettings,
    pace: Pace,
    only: Option<Vec<String>>,
    slots: BTreeMap<String, Slot>,
}

/// What is kept for a parameter: the velocity, or first and second moment, each laid out flat; and the steps it took.
#[derive(Debug, Clone, Default)]
struct Slot {
    moments: Vec<Tensor<1>>,
    steps: u64,
}

impl Optimiser {
    /// An optimiser that has not taken a step. Settings out of range are an error.
    pub fn new(rule: impl Into<OptimiserSettings>) -> Result<Self> {
        let rule = rule.into().checked()?;
        let pace = Pace { lr: rule.lr(), momentum: None };
        Ok(Self { rule, pace, only: None, slots: BTreeMap::new() })
    }

    /// Restricts the optimiser to parameters at or below these paths, such as `head` or `blocks.0`.
    pub fn only<S: Into<String>>(mut self, paths: impl IntoIterator<Item = S>) -> Self {
        self.only = Some(paths.into_iter().map(Into::into).collect());
        self
    }

    /// The settings it was made with.
    pub fn rule(&self) -> &OptimiserSettings {
        &self.rule
    }

    /// Whether it has taken a step.
    pub fn has_moved(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Learning rate and momentum of the next step.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Sets learning rate and momentum (beta1 of Adam) of the next steps; without a momentum, that of the settings holds.
    pub fn set_pace(&mut self, pace: Pace) -> Result<()> {
        require("lr", pace.lr, |lr| lr >= 0.0, "a learning rate is a finite number, 0 or larger")?;
        if let Some(momentum) = pace.momentum {
            require("momentum", momentum, |m| (0.0..1.0).contains(&m), "must be in [0, 1)")?;
        }
        self.pace = pace;
        Ok(())
    }

    /// Updates the module's parameters and takes their gradients out of `gradients`.
    ///
    /// # Panics
    /// If a parameter has another shape than at an earlier step: this is another network, which needs an optimiser of its own.
    pub fn step<M: Module>(&mut self, module: M, gradients: &mut Gradients) -> M {
        module.map(&mut Walk { optimiser: self, gradients, path: Vec::new() })
    }

    fn is_chosen(&self, path: &str) -> bool {
        let lies_below = |above: &String| {
            path.strip_prefix(above.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.only.as_ref().is_none_or(|paths| paths.iter().any(lies_below))
    }

    /// The new value of one parameter; neither tensor is part of a graph.
    fn update<const D: usize>(&mut self, path: String, param: Tensor<D>, grad: Tensor<D>) -> Tensor<D> {
        let (lr, momentum) = (self.pace.lr, self.pace.momentum.unwrap_or(self.rule.momentum()));
        let weight_decay = self.rule.weight_decay(D);
        let shape = param.dims();
        let count = param.shape().num_elements();
        let slot = self.slots.entry(path).or_default();
        slot.steps += 1;
        let steps = slot.steps;
        // Without a velocity so far, zeros: the first velocity is then the gradient.
        let mut moment = || {
            let Some(flat) = slot.moments.pop() else { return grad.zeros_like() };
            assert_eq!(flat.dims(), [count], "a parameter changed its shape; make a new optimiser");
            flat.reshape(shape)
        };
        match &self.rule {
            OptimiserSettings::Sgd(sgd) => {
                let rule = update::Sgd { lr, momentum, nesterov: sgd.nesterov, weight_decay };
                let velocity = (momentum != 0.0).then(&mut moment);
                let (param, velocity) = update::sgd(param, grad, velocity, rule);
                slot.moments.extend(velocity.map(|velocity| velocity.reshape([count])));
                param
            }
            OptimiserSettings::Adam(adam) | OptimiserSettings::AdamW(adam) => {
                let decay = match &self.rule {
                    OptimiserSettings::AdamW(_) => update::Decay::Parameter,
                    _ => update::Decay::Gradient,
                };
                let Adam { beta2, epsilon, .. } = *adam;
                let rule =
                    update::Adam { lr, beta1: momentum, beta2, epsilon, weight_decay, decay, step: steps };
                // Taken from the end of the list.
                let (second, first) = (moment(), moment());
                let (param, moments) = update::adam(param, grad, [first, second], rule);
                slot.moments.extend(moments.map(|moment| moment.reshape([count])));
                param
            }
        }
    }
}

/// Joins the names on the way to a parameter.
pub(crate) fn join(path: &[String]) -> String {
    path.join(".")
}

/// Walks through a module and updates its parameters.
struct Walk<'a> {
    optimiser: &'a mut Optimiser,
    gradients: &'a mut Gradients,
    path: Vec<String>,
}

impl ModuleMapper for Walk<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let path = join(&self.path);
        if !self.optimiser.is_chosen(&path) {
            return param;
        }
        // None also for buffers and frozen parameters.
        let Some(grad) = param.base().grad_remove(self.gradients) else { return param };
        let (id, value, mapper) = param.consume();
        let strategy = value.gradient_checkpointing_strategy();
        // `inner` drops the handle into the graph, so that the values have one holder.
        let updated = Tensor::from_inner(self.optimiser.update(path, value.inner(), grad));
        let updated = match strategy {
            Some(strategy) => updated.with_gradient_checkpointing_strategy(strategy),
            None => updated,
        };
        Param::from_mapped_value(id, updated.require_grad(), mapper)
    }
}
