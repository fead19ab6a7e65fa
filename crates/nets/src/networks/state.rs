//! All parameters and buffers of a network as flat rows of numbers, in one fixed order: for files, checkpoints and averages
//! over networks.

use super::network::Network;
use crate::{Error, Result};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

/// What a row of numbers is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParameterKind {
    /// Weight of a convolution or dense layer.
    Weight,
    /// Bias of a convolution or dense layer.
    Bias,
    /// Scale or shift of a norm.
    Norm,
    /// Running statistic: saved, not trained.
    Buffer,
}

/// One parameter or buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterEntry {
    /// PyTorch's key.
    pub path: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// What it is for.
    pub kind: ParameterKind,
}

/// Names passed on the way, each with the type it is a field of.
#[derive(Default)]
struct Trail(Vec<(String, bool)>);

impl Trail {
    fn enter(&mut self, name: &str, container: &str) {
        self.0.push((name.into(), container == "Struct:Norm"));
    }

    fn entry<const D: usize>(&self, param: &Param<Tensor<D>>) -> ParameterEntry {
        let path = self.0.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
        let kind = match self.0.last() {
            Some((name, true)) if name.starts_with("running_") => ParameterKind::Buffer,
            Some((_, true)) => ParameterKind::Norm,
            Some((name, _)) if name == "bias" => ParameterKind::Bias,
            _ => ParameterKind::Weight,
        };
        ParameterEntry { path, shape: param.lazy_shape().to_vec(), kind }
    }
}

struct Reader<F> {
    trail: Trail,
    each: F,
}

trait Each {
    fn see<const D: usize>(&mut self, entry: ParameterEntry, param: &Param<Tensor<D>>);
}

impl<F: Each> ModuleVisitor for Reader<F> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.trail.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.trail.0.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let entry = self.trail.entry(param);
        self.each.see(entry, param);
    }
}

struct Listed(Vec<ParameterEntry>);

impl Each for Listed {
    fn see<const D: usize>(&mut self, entry: ParameterEntry, _: &Param<Tensor<D>>) {
        self.0.push(entry);
    }
}

struct Read(Result<Vec<(ParameterEntry, Vec<f32>)>>);

impl Each for Read {
    fn see<const D: usize>(&mut self, entry: ParameterEntry, param: &Param<Tensor<D>>) {
        let values = param.val().to_data().try_to_vec::<f32>();
        if let Ok(rows) = &mut self.0 {
            match values {
                Ok(values) => rows.push((entry, values)),
                Err(error) => {
                    self.0 = Err(Error::Values { path: entry.path, reason: format!("{error:?}") });
                }
            }
        }
    }
}

struct Writer<F> {
    trail: Trail,
    fresh: F,
    problems: Vec<String>,
}

impl<F: FnMut(&ParameterEntry) -> Option<Vec<f32>>> ModuleMapper for Writer<F> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.trail.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.trail.0.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let entry = self.trail.entry(&param);
        let Some(values) = (self.fresh)(&entry) else { return param };
        if values.len() != entry.shape.iter().product::<usize>() {
            self.problems.push(format!(
                "`{}`: {} values for shape {:?}",
                entry.path,
                values.len(),
                entry.shape
            ));
            return param;
        }
        // A parameter whose first values were never drawn is replaced without drawing them.
        let device = param.lazy_device();
        let frozen = param.is_initialized() && device.is_autodiff() && !param.is_require_grad();
        let mut fresh = Param::from_data(TensorData::new(values, entry.shape), &device);
        fresh.id = param.id;
        if frozen { fresh.set_require_grad(false) } else { fresh }
    }
}

impl Network {
    /// All parameters and buffers, in the order in which [`read`](Self::read) and [`replace`](Self::replace) meet them.
    pub fn entries(&self) -> Vec<ParameterEntry> {
        let mut reader = Reader { trail: Trail::default(), each: Listed(Vec::new()) };
        self.visit(&mut reader);
        reader.each.0
    }

    /// All parameters and buffers with their values.
    pub fn read(&self) -> Result<Vec<(ParameterEntry, Vec<f32>)>> {
        let mut reader = Reader { trail: Trail::default(), each: Read(Ok(Vec::new())) };
        self.visit(&mut reader);
        reader.each.0
    }

    /// The network with other values: `fresh` gives those of an entry, or `None` to leave it. Nothing is replaced if any
    /// row has the wrong length.
    pub fn replace(self, fresh: impl FnMut(&ParameterEntry) -> Option<Vec<f32>>) -> Result<Self> {
        let net = self.spec().name.clone();
        let mut writer = Writer { trail: Trail::default(), fresh, problems: Vec::new() };
        let changed = self.map(&mut writer);
        if writer.problems.is_empty() {
            return Ok(changed);
        }
        Err(Error::Weights { net, origin: "the replacement".into(), problems: writer.problems })
    }
}
