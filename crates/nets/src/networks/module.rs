//! A network as a module of burn.

use super::network::Network;
use super::state::{ParameterEntry, ParameterKind};
use super::tree_classifier::LOG_SCALE;
use burn::module::{
    Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
};
use burn::tensor::Device;

/// By hand, so that the body's parameters have PyTorch's names and not a prefix of ours.
impl Module for Network {
    fn collect_devices(&self, devices: Devices) -> Devices {
        let devices = self.body.collect_devices(devices);
        let devices = self.prediction.collect_devices(self.projection.collect_devices(devices));
        self.log_scale.collect_devices(self.concepts.collect_devices(devices))
    }

    fn fork(self, device: &Device) -> Self {
        Self {
            body: self.body.fork(device),
            projection: self.projection.fork(device),
            prediction: self.prediction.fork(device),
            concepts: self.concepts.fork(device),
            log_scale: self.log_scale.fork(device),
            ..self
        }
    }

    fn to_device(self, device: &Device) -> Self {
        Self {
            body: self.body.to_device(device),
            projection: self.projection.to_device(device),
            prediction: self.prediction.to_device(device),
            concepts: self.concepts.to_device(device),
            log_scale: self.log_scale.to_device(device),
            ..self
        }
    }

    fn train(self) -> Self {
        Self {
            body: self.body.train(),
            projection: self.projection.train(),
            prediction: self.prediction.train(),
            concepts: self.concepts.train(),
            log_scale: self.log_scale.train(),
            ..self
        }
    }

    fn valid(&self) -> Self {
        Self {
            body: self.body.valid(),
            projection: self.projection.valid(),
            prediction: self.prediction.valid(),
            concepts: self.concepts.valid(),
            log_scale: self.log_scale.valid(),
            spec: self.spec.clone(),
            features: self.features,
            precision: self.precision,
            multiply_adds: self.multiply_adds,
            work: self.work.clone(),
            meter: self.meter.clone(),
        }
    }

    fn materialize(self) -> Self {
        Self {
            body: self.body.materialize(),
            projection: self.projection.materialize(),
            prediction: self.prediction.materialize(),
            concepts: self.concepts.materialize(),
            log_scale: self.log_scale.materialize(),
            ..self
        }
    }

    /// Trained parameters, as PyTorch counts them: running statistics are left out, and so are fixed class vectors.
    fn num_params(&self) -> usize {
        let fixed = self.log_scale.as_ref().map(|_| format!("{}.", self.last_path()));
        let is_fixed =
            |entry: &ParameterEntry| fixed.as_ref().is_some_and(|path| entry.path.starts_with(path));
        let trained = self
            .entries()
            .into_iter()
            .filter(|entry| entry.kind != ParameterKind::Buffer && !is_fixed(entry));
        trained.map(|entry| entry.shape.iter().product::<usize>()).sum()
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.body.visit(visitor);
        for (name, head) in [("projection", &self.projection), ("prediction", &self.prediction)] {
            visitor.enter_module(name, "Struct:Network");
            head.visit(visitor);
            visitor.exit_module(name, "Struct:Network");
        }
        visitor.enter_module("concepts", "Struct:Network");
        self.concepts.visit(visitor);
        visitor.exit_module("concepts", "Struct:Network");
        visitor.enter_module(LOG_SCALE, "Struct:Network");
        self.log_scale.visit(visitor);
        visitor.exit_module(LOG_SCALE, "Struct:Network");
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        let body = self.body.map(mapper);
        let [projection, prediction] = [("projection", self.projection), ("prediction", self.prediction)]
            .map(|(name, head)| {
                mapper.enter_module(name, "Struct:Network");
                let head = Module::map(head, mapper);
                mapper.exit_module(name, "Struct:Network");
                head
            });
        mapper.enter_module("concepts", "Struct:Network");
        let concepts = Module::map(self.concepts, mapper);
        mapper.exit_module("concepts", "Struct:Network");
        mapper.enter_module(LOG_SCALE, "Struct:Network");
        let log_scale = Module::map(self.log_scale, mapper);
        mapper.exit_module(LOG_SCALE, "Struct:Network");
        Self { body, projection, prediction, concepts, log_scale, ..self }
    }
}

impl ModuleDisplayDefault for Network {
    fn content(&self, content: Content) -> Option<Content> {
        self.body.content(content)
    }
}

impl ModuleDisplay for Network {}
