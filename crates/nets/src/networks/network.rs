//! One type for all networks.

use super::heads::{concepts, head_size, prediction, run_head};
use super::initial::Site;
use super::layers::{Dense, Slot, nameless_module};
use super::pass::{Mode, Pass};
use super::run::{Run, Tensors};
use super::samples::Samples;
use super::shapes::Shapes;
use super::spec::{Input, LastLayer, NetSpec};
use super::tree_classifier;
use super::{cnn_7, cnn_9, cnn_small, inception, mlp, preact, resnet, resnet_20, vgg};
use crate::{Error, Result};
use burn::module::Param;
use burn::tensor::{Device, Tensor};
use negscale_kernels::{Meter, Precision, listen};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const NO_ROWS: &str = "it works on images; for feature vectors use `mlp`";

/// What a network makes of a batch.
#[derive(Debug, Clone)]
pub struct Output {
    /// Features, `[batch, size]`: what the classifier sees (before dropout).
    pub features: Tensor<2>,
    /// Logits, `[batch, classes]`.
    pub logits: Tensor<2>,
}

#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // one per network
pub(super) enum Body {
    Mlp(mlp::Mlp),
    CnnSmall(cnn_small::CnnSmall),
    ResNet20(resnet_20::ResNet20),
    PreAct(preact::PreActResNet),
    ResNet(resnet::ResNet),
    Vgg(vgg::Vgg),
    Inception(inception::InceptionResNetV2),
    Cnn9(cnn_9::Cnn9),
    Cnn7(cnn_7::Cnn7),
}

nameless_module!(Body { Mlp, CnnSmall, ResNet20, PreAct, ResNet, Vgg, Inception, Cnn9, Cnn7 });

impl Body {
    fn new(spec: &NetSpec, site: &Site) -> Result<Self> {
        Ok(match spec.name.as_str() {
            "cnn-small" => Self::CnnSmall(cnn_small::CnnSmall::new(spec, site)?),
            "resnet-20" => Self::ResNet20(resnet_20::ResNet20::new(spec, site)?),
            "preact-resnet-10" => Self::PreAct(preact::PreActResNet::new(spec, site, 1, 2)?),
            "preact-resnet-18" => Self::PreAct(preact::PreActResNet::new(spec, site, 2, 1)?),
            "resnet-18" => Self::ResNet(resnet::ResNet::new(spec, site, [2, 2, 2, 2], false)?),
            "resnet-34" => Self::ResNet(resnet::ResNet::new(spec, site, [3, 4, 6, 3], false)?),
            "resnet-18-imagenet" => Self::ResNet(resnet::ResNet::new(spec, site, [2, 2, 2, 2], true)?),
            "resnet-34-imagenet" => Self::ResNet(resnet::ResNet::new(spec, site, [3, 4, 6, 3], true)?),
            "vgg-19-bn" => Self::Vgg(vgg::Vgg::new(spec, site)?),
            "inception-resnet-v2" => Self::Inception(inception::InceptionResNetV2::new(spec, site)?),
            "cnn-9" => Self::Cnn9(cnn_9::Cnn9::new(spec, site)?),
            "cnn-7" => Self::Cnn7(cnn_7::Cnn7::new(spec, site)?),
            "mlp" => Self::Mlp(mlp::Mlp::new(spec, site, &[512], true)),
            "mlp-bottleneck" => Self::Mlp(mlp::Mlp::new(spec, site, &[256, 128], false)),
            other => return Err(Error::UnknownNet { name: other.into(), nearest: Vec::new() }),
        })
    }

    fn features<R: Run>(&self, run: &mut R, x: R::Image) -> R::Row {
        match self {
            Self::Mlp(net) => {
                let x = run.flatten(x);
                net.features(run, x)
            }
            Self::CnnSmall(net) => net.features(run, x),
            Self::ResNet20(net) => net.features(run, x),
            Self::PreAct(net) => net.features(run, x),
            Self::ResNet(net) => net.features(run, x),
            Self::Vgg(net) => net.features(run, x),
            Self::Inception(net) => net.features(run, x),
            Self::Cnn9(net) => net.features(run, x),
            Self::Cnn7(net) => net.features(run, x),
        }
    }

    fn classify<R: Run>(&self, run: &mut R, features: R::Row) -> R::Row {
        let features = run.keep_first(features, 1);
        match self {
            Self::Mlp(net) => net.classify(run, features),
            Self::CnnSmall(net) => net.classify(run, features),
            Self::ResNet20(net) => net.classify(run, features),
            Self::PreAct(net) => net.classify(run, features),
            Self::ResNet(net) => net.classify(run, features),
            Self::Vgg(net) => net.classify(run, features),
            Self::Inception(net) => net.classify(run, features),
            Self::Cnn9(net) => net.classify(run, features),
            Self::Cnn7(net) => net.classify(run, features),
        }
    }

    /// The last layer.
    pub(super) fn last(&self) -> &Dense {
        match self {
            Self::Mlp(net) => &net.fc,
            Self::CnnSmall(net) => &net.fc,
            Self::ResNet20(net) => &net.linear,
            Self::PreAct(net) => &net.linear,
            Self::ResNet(net) => &net.fc,
            Self::Vgg(net) => net.last(),
            Self::Inception(net) => &net.classif,
            Self::Cnn9(net) => &net.l_c1,
            Self::Cnn7(net) => &net.linear1,
        }
    }

    /// Sizes on the way through: features and logits, or why the input does not fit.
    fn trace(&self, spec: &NetSpec, input: Input) -> Result<(usize, Shapes)> {
        let mut shapes = Shapes::default();
        let features = match (self, input) {
            (_, Input::Image { channels, height, width }) => {
                self.features(&mut shapes, [height, width, channels])
            }
            (Self::Mlp(net), Input::Features(size)) => net.features(&mut shapes, size),
            (_, Input::Features(_)) => {
                return Err(spec.misfit(NO_ROWS.into()));
            }
        };
        self.classify(&mut shapes, features);
        match shapes.misfit {
            Some(reason) => Err(Error::Input { net: spec.name.clone(), input: input.to_string(), reason }),
            None => Ok((features, shapes)),
        }
    }
}

/// A network with its heads.
#[derive(Debug, Clone)]
pub struct Network {
    pub(super) body: Body,
    pub(super) projection: Option<Vec<Slot>>,
    pub(super) prediction: Option<Vec<Slot>>,
    pub(super) concepts: Option<Dense>,
    /// Of a tree classifier: the logarithm of what cosines are multiplied with.
    pub(super) log_scale: Option<Param<Tensor<1>>>,
    pub(super) spec: NetSpec,
    pub(super) features: usize,
    pub(super) precision: Precision,
    /// Of one sample, heads left out.
    pub(super) multiply_adds: u64,
    /// Multiply-adds of passes of evaluation, and of the way there in passes of training.
    pub(super) work: Arc<[AtomicU64; 2]>,
    /// Measures the gradient that the classifier hands to the features, where somebody wants to know.
    pub(super) meter: Option<Meter>,
}

impl Network {
    /// Builds the network on a device. Weights are drawn when they are first used.
    pub fn build(spec: &NetSpec, device: &Device) -> Result<Self> {
        let site = Site::new(spec.seed, spec.checked()?.rule, device);
        let spec = &spec.clone().with_fitting_bias();
        let body = Body::new(spec, &site)?;
        let (features, Shapes { multiply_adds, .. }) = body.trace(spec, spec.input)?;
        let heads = spec.heads;
        Ok(Self {
            body,
            projection: heads.projection.map(|kind| kind.build(&site, features)),
            prediction: heads
                .projection
                .filter(|_| heads.prediction)
                .map(|kind| prediction(&site, kind.size(features))),
            concepts: heads.projection.and_then(|kind| concepts(&site, kind, spec.classes)),
            log_scale: (spec.classifier == LastLayer::Tree).then(|| tree_classifier::log_scale(&site)),
            spec: spec.clone(),
            features,
            precision: Precision::F32,
            multiply_adds,
            work: Arc::default(),
            meter: None,
        })
    }

    /// The same network with products taken in this precision. Parameters, statistics and everything else stay `f32`.
    pub fn with_precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// The same network, whose passes with gradients measure what the classifier hands back to the features.
    pub fn with_meter(self) -> Self {
        Self { meter: Some(Meter::default()), ..self }
    }

    /// Length of the gradient of the features by way of the classifier, of all backward passes since the last call; nothing if
    /// there were none, or without [`with_meter`](Self::with_meter).
    pub fn take_gradient_length(&self) -> Option<f64> {
        self.meter.as_ref()?.take()
    }

    /// How products are taken.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// How often this network and its copies have been run over a sample: in evaluation, and in training, where the way back comes on
    /// top. Heads count by their multiply-adds. For benchmarks.
    pub fn passes(&self) -> [f64; 2] {
        [0, 1].map(|kind| self.work[kind].load(Relaxed) as f64 / self.multiply_adds.max(1) as f64)
    }

    /// Corrects [`passes`](Self::passes) for so many samples of passes of training without the way back.
    pub fn without_way_back(&self, samples: usize) {
        let work = samples as u64 * self.multiply_adds;
        self.work[1].fetch_sub(work, Relaxed);
        self.work[0].fetch_add(work, Relaxed);
    }

    fn count(&self, pass: &Pass, samples: usize, multiply_adds: u64) {
        let kind = usize::from(pass.mode != Mode::Evaluate);
        self.work[kind].fetch_add(samples as u64 * multiply_adds, Relaxed);
    }

    fn run<'a>(&self, pass: &'a Pass) -> Tensors<'a> {
        Tensors { pass, precision: self.precision }
    }

    /// What the network was built from.
    pub fn spec(&self) -> &NetSpec {
        &self.spec
    }

    /// Size of the features.
    pub fn feature_size(&self) -> usize {
        self.features
    }

    /// Whether samples of a batch change each other's features in training, as they do under batch norm.
    pub fn mixes_samples(&self) -> bool {
        !matches!(self.body, Body::Mlp(_))
    }

    /// Whether the classifier begins with a ReLU: features are then what comes before it.
    pub fn rectifies(&self) -> bool {
        self.log_scale.is_none() && matches!(&self.body, Body::Mlp(net) if net.rectifies())
    }

    /// Features and logits of a batch. Images may be of another size than the network was built for, if they fit.
    pub fn forward(&self, samples: impl Into<Samples>, pass: &Pass) -> Result<Output> {
        let samples = samples.into();
        let input = match &samples {
            Samples::Images(images) => {
                let [_, height, width, channels] = images.dims();
                Input::Image { channels, height, width }
            }
            Samples::Rows(rows) => Input::Features(rows.dims()[1]),
        };
        if input != self.spec.input {
            self.body.trace(&self.spec, input)?;
        }
        self.count(pass, samples.len(), self.multiply_adds);
        let run = &mut self.run(pass);
        let features = match (samples, &self.body) {
            (Samples::Images(images), body) => body.features(run, images),
            (Samples::Rows(rows), Body::Mlp(net)) => net.features(run, rows),
            (Samples::Rows(_), _) => return Err(self.spec.misfit(NO_ROWS.into())),
        };
        let seen = match &self.meter {
            Some(meter) => listen(features.clone(), meter),
            None => features.clone(),
        };
        Ok(Output { logits: self.logits(run, seen), features })
    }

    /// Logits of features: the classifier alone.
    pub fn classify(&self, features: Tensor<2>, pass: &Pass) -> Tensor<2> {
        self.logits(&mut self.run(pass), features)
    }

    fn logits(&self, run: &mut Tensors, features: Tensor<2>) -> Tensor<2> {
        match &self.log_scale {
            Some(log_scale) => tree_classifier::classify(run, features, self.body.last(), log_scale.val()),
            None => self.body.classify(run, features),
        }
    }

    /// Path of the classifier's parameters, the last layer alone: what an optimiser can be restricted to.
    pub fn classifier_path(&self) -> &'static str {
        if self.log_scale.is_some() {
            return tree_classifier::LOG_SCALE;
        }
        self.last_path()
    }

    /// Path of the last layer.
    pub(super) fn last_path(&self) -> &'static str {
        match self.body {
            Body::Mlp(_) | Body::CnnSmall(_) | Body::ResNet(_) => "fc",
            Body::ResNet20(_) | Body::PreAct(_) => "linear",
            Body::Vgg(_) => "classifier.6",
            Body::Inception(_) => "classif",
            Body::Cnn9(_) => "l_c1",
            Body::Cnn7(_) => "linear1",
        }
    }

    /// The projection of features.
    pub fn project(&self, features: Tensor<2>, pass: &Pass) -> Result<Tensor<2>> {
        self.head(self.projection.as_deref(), "projection", features, pass)
    }

    /// The prediction from projected features.
    pub fn predict(&self, projected: Tensor<2>, pass: &Pass) -> Result<Tensor<2>> {
        self.head(self.prediction.as_deref(), "prediction", projected, pass)
    }

    /// The concept vectors, `[concepts, size of the projection]`.
    pub fn concepts(&self) -> Result<Tensor<2>> {
        let missing = || Error::NoHead { net: self.spec.name.clone(), head: "concepts" };
        self.concepts.as_ref().map(|layer| layer.weight.val()).ok_or_else(missing)
    }

    fn head(
        &self,
        slots: Option<&[Slot]>,
        head: &'static str,
        x: Tensor<2>,
        pass: &Pass,
    ) -> Result<Tensor<2>> {
        match slots {
            Some(slots) => {
                self.count(pass, x.dims()[0], head_size(slots));
                Ok(run_head(slots, &mut self.run(pass), x))
            }
            None => Err(Error::NoHead { net: self.spec.name.clone(), head }),
        }
    }

    /// Multiply-adds of one sample, heads left out.
    pub fn multiply_adds(&self) -> Result<u64> {
        Ok(self.multiply_adds)
    }
}

/// Multiply-adds that one sample costs (convolutions and dense layers; heads left out). Nothing is computed.
pub fn multiply_adds(spec: &NetSpec) -> Result<u64> {
    Network::build(spec, &Device::flex())?.multiply_adds()
}
