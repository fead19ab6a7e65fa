//! Fixed class vectors: logits, what is trained, files, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic)]

use burn::module::Module;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Tensor, TensorData};
use negscale::Taxonomy;
use negscale_nets::optim::{Optimiser, Sgd};
use negscale_nets::{Input, LastLayer, Loading, NetSpec, Network, Pass, names, values};

const CLASSES: usize = 10;

fn spec(name: &str) -> NetSpec {
    let input = match name {
        "mlp" | "mlp-bottleneck" => Input::Features(6),
        "inception-resnet-v2" => Input::Image { channels: 3, height: 75, width: 75 },
        _ => Input::Image { channels: 3, height: 32, width: 32 },
    };
    NetSpec { classifier: LastLayer::Tree, ..NetSpec::new(name, input, CLASSES).scaled(0.25) }
}

fn build(spec: &NetSpec, device: &Device) -> Network {
    let vectors = Taxonomy::builtin("cifar10").unwrap().class_vectors();
    Network::build(spec, device).unwrap().with_class_vectors(&vectors.rows, vectors.dim).unwrap()
}

fn entry(net: &Network, path: &str) -> Vec<f32> {
    net.read().unwrap().into_iter().find(|(entry, _)| entry.path == path).unwrap().1
}

fn rows(count: usize, device: &Device) -> Tensor<2> {
    let numbers: Vec<f32> = (0..count * 6).map(|i| ((i * 7 % 11) as f32 - 5.0) / 3.0).collect();
    Tensor::from_data(TensorData::new(numbers, [count, 6]), device)
}

#[test]
fn logits_are_scaled_cosines_to_vectors_whose_cosines_are_the_tree_s() {
    let vectors = Taxonomy::builtin("cifar10").unwrap().class_vectors();
    for name in names() {
        let net = build(&spec(name), &Device::flex());
        let d = net.feature_size();
        let path = match name {
            "resnet-20" | "preact-resnet-10" | "preact-resnet-18" => "linear",
            "vgg-19-bn" => "classifier.6",
            "inception-resnet-v2" => "classif",
            "cnn-9" => "l_c1",
            "cnn-7" => "linear1",
            _ => "fc",
        };
        assert!(net.entries().iter().all(|entry| entry.path != format!("{path}.bias")), "{name}");
        let weight = entry(&net, &format!("{path}.weight"));
        for a in 0..CLASSES {
            for b in 0..CLASSES {
                let found: f64 =
                    (0..d).map(|j| f64::from(weight[a * d + j]) * f64::from(weight[b * d + j])).sum();
                let dim = vectors.dim;
                let wanted: f64 =
                    (0..dim).map(|j| vectors.rows[a * dim + j] * vectors.rows[b * dim + j]).sum();
                assert!((found - wanted).abs() < 1e-5, "{name} {a} {b}: {found} {wanted}");
            }
        }
        let features: Vec<f32> = (0..2 * d).map(|i| ((i * 13 % 29) as f32 - 14.0) / 7.0).collect();
        let given = Tensor::<2>::from_data(TensorData::new(features.clone(), [2, d]), &Device::flex());
        let found = values(net.classify(given, &Pass::evaluate())).unwrap();
        for (i, row) in features.chunks(d).enumerate() {
            let length = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
            for c in 0..CLASSES {
                let dot: f64 = (0..d).map(|j| f64::from(row[j]) * f64::from(weight[c * d + j])).sum();
                let wanted = 10.0 * dot / length;
                assert!((f64::from(found[i * CLASSES + c]) - wanted).abs() < 1e-4, "{name} {i} {c}");
            }
        }
    }
}

#[test]
fn two_seeds_draw_two_rotations_and_one_seed_always_the_same() {
    let weight = |seed| entry(&build(&spec("mlp").seeded(seed), &Device::flex()), "fc.weight");
    assert_eq!(weight(1), weight(1));
    assert_ne!(weight(1), weight(2));
}

#[test]
fn only_the_scale_and_the_layers_before_are_trained_and_the_gradient_of_the_scale_is_right() {
    let device = Device::flex().autodiff();
    let net = build(&spec("mlp-bottleneck"), &device);
    let loss = |net: &Network| {
        let logits = net.forward(rows(5, &device), &Pass::train(0, 0)).unwrap().logits;
        let labels: Vec<f32> =
            (0..5 * CLASSES).map(|i| f32::from(u8::from(i % CLASSES == (i / CLASSES) * 2))).collect();
        let labels = Tensor::<2>::from_data(TensorData::new(labels, [5, CLASSES]), &device);
        (log_softmax(logits, 1) * labels).sum_dim(1).mean().neg()
    };
    let value = |scale: f32| {
        let moved = net.clone().replace(|entry| (entry.path == "log_scale").then(|| vec![scale])).unwrap();
        f64::from(values(loss(&moved)).unwrap()[0])
    };
    let [before] = entry(&net, "log_scale")[..] else { panic!("one number") };
    let step = 1e-2;
    let slope = (value(before + step) - value(before - step)) / (2.0 * f64::from(step));
    let lr = 0.5;
    let sgd = Sgd { lr, momentum: 0.0, weight_decay: 0.0, ..Sgd::default() };
    let mut gradients = loss(&net).backward();
    let trained = Optimiser::new(sgd).unwrap().step(net.clone(), &mut gradients);
    let [after] = entry(&trained, "log_scale")[..] else { panic!("one number") };
    let found = f64::from(before - after) / lr;
    assert!((found - slope).abs() < 2e-3 * slope.abs().max(0.1), "{found} {slope}");
    assert_eq!(entry(&trained, "fc.weight"), entry(&net, "fc.weight"));
    assert_ne!(entry(&trained, "hidden.1.weight"), entry(&net, "hidden.1.weight"));
    let all: usize = net.entries().iter().map(|entry| entry.shape.iter().product::<usize>()).sum();
    assert_eq!(Module::num_params(&net), all - CLASSES * net.feature_size(), "vectors are not trained");
}

#[test]
fn a_saved_network_needs_no_tree_to_come_back() {
    let net = build(&spec("mlp").seeded(3), &Device::flex());
    let bytes = net.to_safetensors().unwrap();
    let read: NetSpec = serde_json::from_str(&serde_json::to_string(net.spec()).unwrap()).unwrap();
    assert_eq!(&read, net.spec());
    let back = Network::build(&read.seeded(9), &Device::flex()).unwrap();
    let back = back.from_safetensors(&bytes, "memory", Loading::default()).unwrap();
    let logits = |net: &Network| {
        values(net.forward(rows(4, &Device::flex()), &Pass::evaluate()).unwrap().logits).unwrap()
    };
    assert_eq!(logits(&back), logits(&net));
    assert_eq!(net.classifier_path(), "log_scale");
}

#[test]
fn what_does_not_fit_is_refused_with_what_to_do() {
    let vectors = Taxonomy::builtin("cifar10").unwrap().class_vectors();
    let narrow =
        Network::build(&NetSpec { hidden: vec![4], width: 1.0, ..spec("mlp") }, &Device::flex()).unwrap();
    let message = narrow.with_class_vectors(&vectors.rows, vectors.dim).unwrap_err().to_string();
    let wanted = format!("need {} dimensions, with 4 features", vectors.dim);
    assert!(message.contains(&wanted) && message.contains("classifier = \"linear\""), "{message}");
    let other = Taxonomy::builtin("cifar100").unwrap().class_vectors();
    let net = Network::build(&spec("mlp"), &Device::flex()).unwrap();
    let message = net.with_class_vectors(&other.rows, other.dim).unwrap_err().to_string();
    assert!(message.contains("classes of the data"), "{message}");
    let message = build(&spec("mlp"), &Device::flex()).classifier().unwrap_err().to_string();
    assert!(message.contains("classifier = \"linear\""), "{message}");
}
