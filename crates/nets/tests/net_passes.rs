//! What a pass changes and what it leaves alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};
use negscale_nets::{Input, Kind, NetSpec, Network, Output, Pass, Samples};

const IMAGE: Input = Input::Image { channels: 3, height: 32, width: 32 };

fn images(device: &Device) -> Tensor<4> {
    let values: Vec<f32> = (0..4 * 3 * 32 * 32).map(|i| ((i * 7919) % 1009) as f32 / 504.0 - 1.0).collect();
    Tensor::<1>::from_floats(values.as_slice(), device).reshape([4, 3, 32, 32])
}

fn net(name: &str, device: &Device) -> Network {
    Network::build(&NetSpec::new(name, IMAGE, 4).scaled(0.125), device).unwrap()
}

fn buffers(net: &Network) -> Vec<Vec<f32>> {
    let rows = net.read().unwrap().into_iter();
    rows.filter(|(entry, _)| entry.kind == Kind::Buffer).map(|(_, values)| values).collect()
}

fn numbers(output: Output) -> Vec<f32> {
    output.logits.into_data().try_to_vec().unwrap()
}

fn run(net: &Network, pass: Pass) -> Vec<f32> {
    numbers(net.forward(images(&Device::flex()), &pass).unwrap())
}

#[test]
fn images_give_the_same_bits_with_their_channels_first_and_last() {
    let first = images(&Device::flex());
    let pixel_by_pixel = first.clone().permute([0, 2, 3, 1]).into_data();
    let last = Samples::Images(Tensor::from_data(pixel_by_pixel, &Device::flex()));
    for name in ["mlp", "cnn-9", "resnet-20"] {
        let net = net(name, &Device::flex());
        let numbers = |samples: Samples| numbers(net.forward(samples, &Pass::evaluate()).unwrap());
        assert_eq!(numbers(last.clone()), numbers(first.clone().into()), "{name}");
    }
}

#[test]
fn only_a_training_pass_moves_the_running_statistics_and_at_once() {
    let net = net("resnet-20", &Device::flex());
    let start = buffers(&net);
    let still = run(&net, Pass::evaluate());
    let rehearsed = run(&net, Pass::rehearse(0, 0));
    run(&net, Pass::frozen(0, 0));
    assert_eq!(buffers(&net), start);
    assert_eq!(run(&net, Pass::evaluate()), still);
    assert_eq!(run(&net, Pass::train(0, 0)), rehearsed, "both use the batch's statistics");
    let moved = buffers(&net);
    assert!(moved.iter().zip(&start).all(|(new, old)| new != old), "every norm has seen the batch");
    assert_ne!(run(&net, Pass::evaluate()), still);
    run(&net, Pass::train(0, 1));
    assert_ne!(buffers(&net), moved);
}

#[test]
fn clones_and_snapshots_do_not_follow_the_original() {
    let device = Device::flex().autodiff();
    let net = net("preact-resnet-18", &device);
    let (copy, snapshot) = (net.clone(), net.valid());
    let start = buffers(&net);
    net.forward(images(&device), &Pass::train(0, 0)).unwrap();
    assert_ne!(buffers(&net), start);
    assert_eq!(buffers(&copy), start);
    assert_eq!(buffers(&snapshot), start);
    // The snapshot computes on the plain device what the network does on the recording one.
    let there = numbers(copy.forward(images(&device), &Pass::evaluate()).unwrap());
    assert_eq!(run(&snapshot, Pass::evaluate()), there);
}

#[test]
fn dropout_is_a_function_of_seed_and_step_and_off_in_evaluation() {
    for name in ["cnn-9", "vgg-19-bn"] {
        let net = net(name, &Device::flex());
        let base = run(&net, Pass::rehearse(1, 5));
        assert_eq!(base, run(&net, Pass::rehearse(1, 5)), "{name}");
        assert_ne!(base, run(&net, Pass::rehearse(1, 6)), "{name}");
        assert_ne!(base, run(&net, Pass::rehearse(2, 5)), "{name}");
        assert_eq!(run(&net, Pass::evaluate()), run(&net, Pass { seed: 9, ..Pass::evaluate() }), "{name}");
        let plain = NetSpec { dropout: Some(0.0), ..net.spec().clone() };
        let plain = Network::build(&plain, &Device::flex()).unwrap();
        assert_eq!(run(&plain, Pass::rehearse(1, 5)), run(&plain, Pass::rehearse(2, 6)), "{name}");
        assert_eq!(run(&plain, Pass::evaluate()), run(&net, Pass::evaluate()), "{name}");
    }
}

#[test]
fn dropout_keeps_the_mean_and_drops_the_asked_share() {
    // A classifier of ones on features of ones counts what was kept.
    let spec = NetSpec {
        dropout: Some(0.25),
        classifier_bias: false,
        ..NetSpec::new("vgg-19-bn", IMAGE, 1).scaled(0.25)
    };
    let net = Network::build(&spec, &Device::flex()).unwrap();
    let net = net.replace(|entry| (entry.path == "classifier.6.weight").then(|| vec![1.0; 1024])).unwrap();
    let features = Tensor::ones([64, 1024], &Device::flex());
    let kept: Vec<f32> = net.classify(features, &Pass::train(3, 0)).into_data().try_to_vec().unwrap();
    let mean = kept.iter().sum::<f32>() / (64.0 * 1024.0);
    assert!((mean - 1.0).abs() < 0.01, "{mean}");
    assert!(kept.iter().any(|&sum| sum != kept[0]), "each sample has a mask of its own");
}

#[test]
fn nested_dropout_lets_only_the_first_channels_through() {
    let net = net("resnet-18", &Device::flex());
    let out = net.forward(images(&Device::flex()), &Pass::evaluate().keeping(None, Some(5))).unwrap();
    let whole = net.forward(images(&Device::flex()), &Pass::evaluate()).unwrap();
    assert_eq!(out.features.to_data(), whole.features.to_data(), "features come unmasked");
    let [b, size] = whole.features.dims();
    let zeros = Tensor::zeros([b, size - 5], &Device::flex());
    let masked = Tensor::cat(vec![whole.features.narrow(1, 0, 5), zeros], 1);
    let wanted: Vec<f32> = net.classify(masked, &Pass::evaluate()).into_data().try_to_vec().unwrap();
    assert_eq!(numbers(out), wanted);
    let vgg = self::net("vgg-19-bn", &Device::flex());
    assert_ne!(run(&vgg, Pass::evaluate().keeping(Some(5), None)), run(&vgg, Pass::evaluate()));
}

/// Paths whose parameters have a gradient.
struct Reached<'a>(&'a Gradients, Vec<bool>);

impl ModuleVisitor for Reached<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.1.push(param.val().grad(self.0).is_some());
    }
}

#[test]
fn frozen_norms_get_no_gradient_and_buffers_never_do() {
    let device = Device::flex().autodiff();
    for (pass, norms) in [(Pass::train(0, 0), true), (Pass::frozen(0, 0), false), (Pass::evaluate(), true)] {
        let net = net("resnet-18", &device);
        let noise = images(&device).flatten::<1>(0, 3).narrow(0, 0, 16).reshape([4, 4]);
        let gradients = (net.forward(images(&device), &pass).unwrap().logits * noise).sum().backward();
        let mut reached = Reached(&gradients, Vec::new());
        net.visit(&mut reached);
        for (entry, reached) in net.entries().iter().zip(reached.1) {
            let wanted = match entry.kind {
                Kind::Weight | Kind::Bias => true,
                Kind::Norm => norms,
                Kind::Buffer => false,
            };
            assert_eq!(reached, wanted, "{:?} {}", pass.mode, entry.path);
        }
    }
}

#[test]
fn replaced_and_loaded_weights_can_be_trained_further() {
    let device = Device::flex().autodiff();
    let net =
        net("cnn-small", &device).replace(|entry| Some(vec![0.5; entry.shape.iter().product()])).unwrap();
    assert!(net.read().unwrap().iter().all(|(_, values)| values.iter().all(|&v| v == 0.5)));
    let gradients = net.forward(images(&device), &Pass::train(0, 0)).unwrap().logits.sum().backward();
    let mut reached = Reached(&gradients, Vec::new());
    net.visit(&mut reached);
    let trained = net.entries().iter().filter(|entry| entry.kind != Kind::Buffer).count();
    assert_eq!(reached.1.iter().filter(|reached| **reached).count(), trained);
    let wrong = net.replace(|entry| (entry.path == "fc.bias").then(|| vec![0.0; 3])).unwrap_err().to_string();
    assert!(wrong.contains("`fc.bias`: 3 values for shape [4]"), "{wrong}");
}
