//! The networks against PyTorch: `golden/nets.py` made the reference values. Weights are a formula of (key, index), the same
//! here and there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use negscale_nets::{
    Input, Loading, NetSpec, Network, ParameterEntry, ParameterKind, Pass, Projection, Samples,
};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Golden {
    forward: Vec<Forward>,
    steps: Vec<Step>,
    heads: Vec<Head>,
    stored: Stored,
}

#[derive(Deserialize)]
struct Forward {
    net: String,
    shape: Vec<usize>,
    classes: usize,
    width: f64,
    parameters: usize,
    multiply_adds: u64,
    features: Vec<f64>,
    features_norm: f64,
    logits: Vec<f64>,
}

#[derive(Deserialize)]
struct Step {
    net: String,
    shape: Vec<usize>,
    width: f64,
    loss: f64,
    logits: Vec<f64>,
    gradients: BTreeMap<String, f64>,
    buffers: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct Head {
    kind: Projection,
    parameters: usize,
    evaluate: [Vec<f64>; 2],
    train: [Vec<f64>; 2],
}

#[derive(Deserialize)]
struct Stored {
    features: Vec<f64>,
    logits: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/nets.json")).unwrap()
}

/// Numbers in [-1, 1): FNV-1a of the key, then splitmix64 of the index.
fn unit(key: &str, count: usize) -> impl Iterator<Item = f64> {
    let key =
        key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    (1..=count as u64).map(move |i| {
        let mut z = key.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f64 / f64::powi(2.0, 23) - 1.0
    })
}

fn formula(entry: &ParameterEntry) -> Option<Vec<f32>> {
    let count = entry.shape.iter().product();
    let scale = (6.0 / (count / entry.shape[0]) as f64).sqrt();
    let value = |u: f64| match entry.kind {
        ParameterKind::Weight => u * scale,
        ParameterKind::Buffer if entry.path.ends_with("running_mean") => 0.2 * u,
        ParameterKind::Buffer => 1.0 + 0.5 * u,
        ParameterKind::Norm if entry.path.ends_with("weight") => 1.0 + 0.2 * u,
        ParameterKind::Norm | ParameterKind::Bias => 0.1 * u,
    };
    Some(unit(&entry.path, count).map(|u| value(u) as f32).collect())
}

fn input(shape: &[usize]) -> Input {
    match *shape {
        [_, channels, height, width] => Input::Image { channels, height, width },
        [_, size] => Input::Features(size),
        _ => panic!("shape {shape:?}"),
    }
}

fn samples(shape: &[usize], device: &Device) -> Samples {
    let data =
        TensorData::new(unit("input", shape.iter().product()).map(|u| u as f32).collect(), shape.to_vec());
    match shape.len() {
        4 => Tensor::<4>::from_data(data, device).into(),
        _ => Tensor::<2>::from_data(data, device).into(),
    }
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().try_to_vec::<f32>().unwrap().into_iter().map(f64::from).collect()
}

/// Largest difference, relative to the largest value wanted.
fn gap(found: &[f64], wanted: &[f64]) -> f64 {
    assert_eq!(found.len(), wanted.len());
    let largest = wanted.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    found.iter().zip(wanted).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs())) / largest
}

fn agrees_with_pytorch(wanted: &Forward) {
    let name = &wanted.net;
    let spec = NetSpec::new(name, input(&wanted.shape), wanted.classes).scaled(wanted.width);
    let device = Device::flex();
    let net = Network::build(&spec, &device).unwrap();
    assert_eq!(Module::num_params(&net), wanted.parameters, "{name}");
    assert_eq!(net.multiply_adds().unwrap(), wanted.multiply_adds, "{name}");
    let net = net.replace(formula).unwrap();
    let out = net.forward(samples(&wanted.shape, &device), &Pass::evaluate()).unwrap();
    let size = net.feature_size();
    assert_eq!(out.features.dims(), [wanted.shape[0], size]);
    let features = values(out.features);
    let norm = features.iter().map(|v| v * v).sum::<f64>().sqrt();
    let first: Vec<f64> = features.chunks(size).flat_map(|row| row[..16].to_vec()).collect();
    let gaps = [
        gap(&values(out.logits), &wanted.logits),
        gap(&first, &wanted.features),
        norm / wanted.features_norm - 1.0,
    ];
    println!("{name} {:?}: {gaps:?}", wanted.shape);
    assert!(gaps.iter().all(|gap| gap.abs() < 1e-4), "{name} {:?}: {gaps:?}", wanted.shape);
}

fn large(net: &str) -> bool {
    ["vgg-19-bn", "inception-resnet-v2"].contains(&net)
}

#[test]
fn parameters_features_and_logits_are_those_of_pytorch() {
    let golden = golden();
    assert_eq!(golden.forward.len(), 15);
    golden.forward.iter().filter(|forward| !large(&forward.net)).for_each(agrees_with_pytorch);
}

#[test]
fn the_largest_networks_agree_with_torchvision_and_timm() {
    golden().forward.iter().filter(|forward| large(&forward.net)).for_each(agrees_with_pytorch);
}

/// Gradient norms by path.
struct GradientNorms<'a> {
    gradients: &'a Gradients,
    path: Vec<String>,
    norms: BTreeMap<String, f64>,
}

impl ModuleVisitor for GradientNorms<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.into());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = param.val().grad(self.gradients) {
            let norm = values(gradient).iter().map(|v| v * v).sum::<f64>().sqrt();
            self.norms.insert(self.path.join("."), norm);
        }
    }
}

fn gradient_norms(net: &Network, logits: Tensor<2>) -> (f64, BTreeMap<String, f64>) {
    let [batch, classes] = logits.dims();
    let wanted =
        (0..batch * classes).map(|i| if i / classes % classes == i % classes { 1.0_f32 } else { 0.0 });
    let wanted = TensorData::new(wanted.collect::<Vec<_>>(), [batch, classes]);
    let wanted = Tensor::<2>::from_data(wanted, &logits.device());
    let loss = (burn::tensor::activation::log_softmax(logits, 1) * wanted).sum() / -(batch as f64);
    let value = values(loss.clone())[0];
    let gradients = loss.backward();
    let mut norms = GradientNorms { gradients: &gradients, path: Vec::new(), norms: BTreeMap::new() };
    net.visit(&mut norms);
    (value, norms.norms)
}

fn trained(step: &Step) -> (Network, Tensor<2>) {
    let device = Device::flex().autodiff();
    let spec = NetSpec::new(&step.net, input(&step.shape), 10).scaled(step.width);
    let net = Network::build(&spec, &device).unwrap().replace(formula).unwrap();
    let logits = net.forward(samples(&step.shape, &device), &Pass::train(0, 0)).unwrap().logits;
    (net, logits)
}

#[test]
fn a_training_step_has_the_loss_gradients_and_running_statistics_of_pytorch() {
    for step in golden().steps {
        let (net, logits) = trained(&step);
        let worst = gap(&values(logits.clone()), &step.logits);
        assert!(worst < 1e-4, "{}: logits {worst}", step.net);
        let (loss, norms) = gradient_norms(&net, logits);
        assert!((loss / step.loss - 1.0).abs() < 1e-4, "{}: {loss} for {}", step.net, step.loss);
        assert_eq!(
            norms.keys().collect::<Vec<_>>(),
            step.gradients.keys().collect::<Vec<_>>(),
            "{}",
            step.net
        );
        for (key, wanted) in &step.gradients {
            assert!(
                (norms[key] / wanted - 1.0).abs() < 1e-3,
                "{} {key}: {} for {wanted}",
                step.net,
                norms[key]
            );
        }
        let buffers: Vec<_> = net
            .read()
            .unwrap()
            .into_iter()
            .filter(|(entry, _)| entry.kind == ParameterKind::Buffer)
            .collect();
        assert_eq!(buffers.len(), step.buffers.len());
        for (entry, values) in buffers {
            let norm = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
            let wanted = step.buffers[&entry.path];
            assert!((norm / wanted - 1.0).abs() < 1e-4, "{} {}: {norm} for {wanted}", step.net, entry.path);
        }
    }
}

#[test]
fn a_file_written_by_pytorch_gives_pytorch_s_logits() {
    let spec = NetSpec::new("resnet-20", Input::Image { channels: 3, height: 16, width: 16 }, 5).scaled(0.25);
    let bytes = include_bytes!("golden/tiny.safetensors");
    let net = Network::build(&spec, &Device::flex()).unwrap();
    let net = net.from_safetensors(bytes, "tiny", Loading::default()).unwrap();
    let out = net.forward(samples(&[2, 3, 16, 16], &Device::flex()), &Pass::evaluate()).unwrap();
    let stored = golden().stored;
    let gaps = [gap(&values(out.features), &stored.features), gap(&values(out.logits), &stored.logits)];
    assert!(gaps.iter().all(|gap| *gap < 1e-4), "{gaps:?}");
}

#[test]
fn heads_are_those_of_pytorch() {
    let device = Device::flex();
    let bare =
        Module::num_params(&Network::build(&NetSpec::new("mlp", Input::Features(8), 2), &device).unwrap());
    let Samples::Rows(features) = samples(&[4, 512], &device) else { panic!("rows") };
    let first = |x: Tensor<2>| values(x.narrow(1, 0, 8));
    for head in golden().heads {
        let spec = NetSpec::new("mlp", Input::Features(8), 2).with_heads(Some(head.kind), true);
        let net = Network::build(&spec, &device).unwrap().replace(formula).unwrap();
        assert_eq!(Module::num_params(&net) - bare, head.parameters, "{:?}", head.kind);
        for (pass, wanted) in [(Pass::evaluate(), head.evaluate), (Pass::train(0, 0), head.train)] {
            let projected = net.project(features.clone(), &pass).unwrap();
            let predicted = net.predict(projected.clone(), &pass).unwrap();
            let gaps = [gap(&first(projected), &wanted[0]), gap(&first(predicted), &wanted[1])];
            assert!(gaps.iter().all(|gap| *gap < 1e-4), "{:?} {:?}: {gaps:?}", head.kind, pass.mode);
        }
    }
}
