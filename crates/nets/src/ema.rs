//! The running mean of a network's weights, which often predicts better than the network itself.
//!
//! With decay $d$, after every step of the optimiser, for every parameter $\theta$ of the network and $\bar\theta$ of the mean:
//!
//! $$ \bar\theta \leftarrow \bar\theta + (1 - d)(\theta - \bar\theta) = d \bar\theta + (1 - d) \theta, \qquad \bar\theta_0 = \theta_0 $$
//!
//! Buffers (running statistics of batch norm; whatever needs no gradient in the trained network) are averaged in the same way or copied.
//! The state is the averaged module itself: save it like any network, and continue with [`Ema::resume`].

use crate::optim::{Error, Result, join, require};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;
use negscale_kernels::update::blend;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What becomes of running statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Buffers {
    /// They are averaged as parameters are.
    #[default]
    Average,
    /// The mean takes those of the network as they are.
    Copy,
}

/// Settings of a running mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmaSettings {
    /// $d$, the share that is kept at every step, in [0, 1).
    pub decay: f64,
    /// What becomes of running statistics.
    pub buffers: Buffers,
}

impl Default for EmaSettings {
    fn default() -> Self {
        Self { decay: 0.999, buffers: Buffers::Average }
    }
}

impl EmaSettings {
    /// The settings themselves, if in range.
    pub fn checked(self) -> Result<Self> {
        require("decay", self.decay, |d| (0.0..1.0).contains(&d), "must be in [0, 1)")?;
        Ok(self)
    }
}

/// A network whose weights follow those of another.
#[derive(Debug, Clone)]
pub struct Ema<M> {
    module: M,
    settings: EmaSettings,
}

impl<M: Module> Ema<M> {
    /// A mean that starts from the network's current weights.
    pub fn new(network: &M, settings: EmaSettings) -> Result<Self> {
        Self::resume(network.valid(), settings)
    }

    /// A mean that continues from saved weights.
    pub fn resume(module: M, settings: EmaSettings) -> Result<Self> {
        // `valid` gives running statistics a place of their own; a plain clone would share them with the network.
        Ok(Self { module: module.valid(), settings: settings.checked()? })
    }

    /// The averaged network, for evaluation.
    pub fn module(&self) -> &M {
        &self.module
    }

    /// Takes one step towards the network, which must be the one in training: it says what is a buffer.
    /// After an error the mean is as before.
    pub fn update(&mut self, network: &M) -> Result<()> {
        // Running statistics may wait to be written down; `valid` does that, but forgets what is trained.
        let quiet = network.valid();
        let (trained, values, own) = (collect(network), collect(&quiet), collect(&self.module));
        if trained.len() != own.len() || values.len() != own.len() {
            let problem = format!("the network has {} parameters, the mean {}", values.len(), own.len());
            return Err(Error::Mismatch { name: "*".into(), problem });
        }
        for (own, value) in own.iter().zip(&values) {
            if own.path != value.path || own.shape != value.shape {
                let problem = format!(
                    "has shape {:?}; the network has `{}` of shape {:?} here",
                    own.shape, value.path, value.shape
                );
                return Err(Error::Mismatch { name: own.path.clone(), problem });
            }
        }
        // A second hold on the mean's values would keep them from being overwritten in place.
        drop(own);
        let pairs = trained.into_iter().zip(values);
        let entries = pairs.map(|(trained, value)| (value.value, trained.is_trained)).collect();
        let mut follow = Follow { entries, settings: &self.settings };
        let module = std::mem::replace(&mut self.module, quiet);
        self.module = module.map(&mut follow);
        Ok(())
    }
}

/// A float parameter or buffer of a module.
struct ParameterEntry {
    path: String,
    shape: Vec<usize>,
    is_trained: bool,
    value: Tensor<1>,
}

/// All float parameters and buffers in the order of visiting.
fn collect<M: Module>(module: &M) -> Vec<ParameterEntry> {
    let mut walk = Collect { path: Vec::new(), entries: Vec::new() };
    module.visit(&mut walk);
    walk.entries
}

struct Collect {
    path: Vec<String>,
    entries: Vec<ParameterEntry>,
}

impl ModuleVisitor for Collect {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.base().inner();
        let count = value.shape().num_elements();
        self.entries.push(ParameterEntry {
            path: join(&self.path),
            shape: value.dims().to_vec(),
            is_trained: param.is_require_grad(),
            value: value.reshape([count]),
        });
    }
}

/// Moves every value of the mean towards that of the network.
struct Follow<'a> {
    entries: VecDeque<(Tensor<1>, bool)>,
    settings: &'a EmaSettings,
}

impl ModuleMapper for Follow<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some((goal, is_trained)) = self.entries.pop_front() else { return param };
        let (id, value, mapper) = param.consume();
        let goal = goal.reshape(value.dims());
        let copies = !is_trained && self.settings.buffers == Buffers::Copy;
        let value = if copies { goal } else { blend(value, goal, 1.0 - self.settings.decay) };
        Param::from_mapped_value(id, value, mapper)
    }
}
