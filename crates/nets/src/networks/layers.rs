//! The layers: parameters under PyTorch's names, and what is needed to run them.
//!
//! burn's `RunningState` is not used for running statistics: its value is one update late, is an average over threads, and
//! is shared by clones, so that a copy of a network kept for comparison would change with the original. [`Buffer`] changes
//! at once and belongs to one network.

use super::initial::{Site, Spread};
use burn::module::{
    Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param,
    ParamId,
};
use burn::tensor::{Device, Tensor};
use negscale_kernels::Window;
use std::sync::{Mutex, PoisonError};

/// Share of the newest batch in the running statistics.
const MOMENTUM: f64 = 0.1;

/// Convolution: weight `[out, in, rows, columns]`, bias `[out]`.
#[derive(Module, Debug)]
pub struct Conv {
    pub(super) weight: Param<Tensor<4>>,
    pub(super) bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    pub(super) window: Window,
}

impl Conv {
    /// Without bias.
    pub(super) fn new(site: &Site, [inputs, outputs]: [usize; 2], window: Window) -> Self {
        let [rows, columns] = window.kernel;
        let spread = site.rule.conv(inputs * rows * columns, outputs * rows * columns);
        Self {
            weight: site.parameter("weight", [outputs, inputs, rows, columns], spread),
            bias: None,
            window,
        }
    }

    /// With bias.
    pub(super) fn biased(site: &Site, channels: [usize; 2], window: Window) -> Self {
        let fan_in = channels[0] * window.kernel[0] * window.kernel[1];
        let bias = site.parameter("bias", [channels[1]], site.rule.bias(fan_in));
        Self { bias: Some(bias), ..Self::new(site, channels, window) }
    }
}

/// Dense layer: weight `[out, in]`, bias `[out]`.
#[derive(Module, Debug)]
pub struct Dense {
    pub(super) weight: Param<Tensor<2>>,
    pub(super) bias: Option<Param<Tensor<1>>>,
}

impl Dense {
    pub(super) fn new(site: &Site, [inputs, outputs]: [usize; 2], bias: bool) -> Self {
        Self {
            weight: site.parameter("weight", [outputs, inputs], site.rule.dense(inputs)),
            bias: bias.then(|| site.parameter("bias", [outputs], site.rule.bias(inputs))),
        }
    }
}

/// Batch norm.
#[derive(Module, Debug)]
pub struct Norm {
    pub(super) weight: Param<Tensor<1>>,
    pub(super) bias: Param<Tensor<1>>,
    pub(super) running_mean: Buffer,
    pub(super) running_var: Buffer,
    pub(super) epsilon: f64,
}

impl Norm {
    pub(super) fn new(site: &Site, channels: usize) -> Self {
        Self {
            weight: site.parameter("weight", [channels], Spread::Constant(1.0)),
            bias: site.parameter("bias", [channels], Spread::Constant(0.0)),
            running_mean: Buffer::new(Tensor::zeros([channels], &site.device)),
            running_var: Buffer::new(Tensor::ones([channels], &site.device)),
            epsilon: 1e-5,
        }
    }

    /// Takes the statistics of a batch of `count` values per channel into the running ones. As PyTorch does, the running
    /// variance divides by `count - 1` although the batch itself is normalised by the variance divided by `count`.
    pub(super) fn record(&self, mean: Tensor<1>, variance: Tensor<1>, count: usize) {
        let unbiased = count as f64 / count.saturating_sub(1).max(1) as f64;
        self.running_mean.update(|old| old * (1.0 - MOMENTUM) + mean * MOMENTUM);
        self.running_var.update(|old| old * (1.0 - MOMENTUM) + variance * (MOMENTUM * unbiased));
    }
}

/// Values that are saved with a network but not trained. A clone has its own.
#[derive(Debug)]
pub struct Buffer {
    id: ParamId,
    value: Mutex<Tensor<1>>,
}

impl Buffer {
    fn new(value: Tensor<1>) -> Self {
        Self { id: ParamId::new(), value: Mutex::new(value) }
    }

    /// The value now.
    pub fn value(&self) -> Tensor<1> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn update(&self, change: impl FnOnce(Tensor<1>) -> Tensor<1>) {
        let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        *value = change(value.clone()).detach();
    }

    fn map_value(self, change: impl FnOnce(Tensor<1>) -> Tensor<1>) -> Self {
        Self { id: self.id, value: Mutex::new(change(self.value())) }
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        Self { id: self.id, value: Mutex::new(self.value()) }
    }
}

impl Module for Buffer {
    fn collect_devices(&self, mut devices: Devices) -> Devices {
        let device = self.value().device();
        if !devices.contains(&device) {
            devices.push(device);
        }
        devices
    }

    fn fork(self, device: &Device) -> Self {
        self.to_device(device)
    }

    fn to_device(self, device: &Device) -> Self {
        self.map_value(|value| value.to_device(device))
    }

    fn train(self) -> Self {
        self.map_value(Tensor::from_inner)
    }

    fn valid(&self) -> Self {
        self.clone().map_value(Tensor::without_autodiff)
    }

    fn materialize(self) -> Self {
        self
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        visitor.visit_float(&Param::initialized(self.id, self.value()));
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        let id = self.id;
        self.map_value(|value| {
            mapper.map_float(Param::initialized(id, value)).into_value().set_require_grad(false)
        })
    }
}

impl ModuleDisplayDefault for Buffer {
    fn content(&self, content: Content) -> Option<Content> {
        content.add_formatted(&format!("Buffer {:?}", self.value().dims())).optional()
    }
}

impl ModuleDisplay for Buffer {}

/// `Module` for an enum whose variants stand in the path of their parameters without a name of their own, so that paths
/// are PyTorch's keys. (burn's derive adds the variant's name.)
macro_rules! nameless_module {
    ($name:ident { $($variant:ident),+ $(,)? }) => {
        impl burn::module::Module for $name {
            fn collect_devices(&self, devices: burn::module::Devices) -> burn::module::Devices {
                match self { $(Self::$variant(inner) => inner.collect_devices(devices),)+ }
            }
            fn fork(self, device: &burn::tensor::Device) -> Self {
                match self { $(Self::$variant(inner) => Self::$variant(inner.fork(device)),)+ }
            }
            fn to_device(self, device: &burn::tensor::Device) -> Self {
                match self { $(Self::$variant(inner) => Self::$variant(inner.to_device(device)),)+ }
            }
            fn train(self) -> Self {
                match self { $(Self::$variant(inner) => Self::$variant(inner.train()),)+ }
            }
            fn valid(&self) -> Self {
                match self { $(Self::$variant(inner) => Self::$variant(inner.valid()),)+ }
            }
            fn materialize(self) -> Self {
                match self { $(Self::$variant(inner) => Self::$variant(inner.materialize()),)+ }
            }
            fn visit<V: burn::module::ModuleVisitor>(&self, visitor: &mut V) {
                match self { $(Self::$variant(inner) => inner.visit(visitor),)+ }
            }
            fn map<M: burn::module::ModuleMapper>(self, mapper: &mut M) -> Self {
                match self { $(Self::$variant(inner) => Self::$variant(inner.map(mapper)),)+ }
            }
        }

        impl burn::module::ModuleDisplayDefault for $name {
            fn content(&self, content: burn::module::Content) -> Option<burn::module::Content> {
                match self { $(Self::$variant(inner) => inner.content(content),)+ }
            }
        }

        impl burn::module::ModuleDisplay for $name {}
    };
}
pub(super) use nameless_module;

/// One place of a PyTorch `Sequential`. Places without parameters are gaps, so that indices agree.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // a network has some dozens at most
pub enum Slot {
    /// Convolution.
    Conv(Conv),
    /// Batch norm.
    Norm(Norm),
    /// Dense layer.
    Dense(Dense),
    /// No parameters: activation, pool or dropout, as the network says.
    Gap(usize),
}

nameless_module!(Slot { Conv, Norm, Dense, Gap });
