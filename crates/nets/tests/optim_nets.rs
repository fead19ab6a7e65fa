//! Optimisers and running means of weights on networks built by name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::tensor::{Device, Int, Tensor, TensorData, activation::log_softmax};
use negscale_kernels::update::buffers;
use negscale_nets::ema::{Buffers, Ema, EmaSettings};
use negscale_nets::optim::{Optimiser, Sgd};
use negscale_nets::{Input, NetSpec, Network, ParameterKind, Pass};

#[test]
fn a_network_is_trained_in_place_and_learns_its_batch() {
    let device = Device::flex().autodiff();
    let spec = NetSpec::new("cnn-small", Input::Image { channels: 1, height: 8, width: 8 }, 2);
    let mut net = Network::build(&spec, &device).unwrap();
    let mut optimiser = Optimiser::new(Sgd { lr: 0.05, ..Sgd::default() }).unwrap();
    // Two kinds of pictures: a bright upper or lower half.
    let pixel = |i: usize| f32::from(u8::from((i % 64 < 32) == (i / 64).is_multiple_of(2)));
    let images = TensorData::new((0..8 * 64).map(pixel).collect::<Vec<f32>>(), [8, 1, 8, 8]);
    let images = Tensor::<4>::from_data(images, &device);
    let labels = TensorData::new((0..8).map(|i| i % 2).collect::<Vec<i64>>(), [8, 1]);
    let labels = Tensor::<2, Int>::from_data(labels, &device);
    let mut losses = Vec::new();
    for step in 0..6 {
        let logits = net.forward(images.clone(), &Pass::train(0, step)).unwrap().logits;
        let loss = -log_softmax(logits, 1).gather(1, labels.clone()).mean();
        losses.push(loss.clone().into_scalar::<f32>());
        let mut gradients = loss.backward();
        let before = buffers();
        net = optimiser.step(net, &mut gradients);
        let after = buffers();
        // Four convolutions, four norms and the classifier: 14 parameters, each with a velocity.
        assert_eq!((after.reused - before.reused, after.copied - before.copied), (28, 0), "step {step}");
    }
    assert!(losses[5] < losses[0] / 2.0, "{losses:?}");
    let names = optimiser.state().unwrap().arrays.into_keys().collect::<Vec<_>>();
    assert!(names.contains(&"velocity/conv1.weight".to_owned()), "{names:?}");
}

#[test]
fn a_running_mean_follows_weights_and_statistics_of_a_network() {
    let device = Device::flex().autodiff();
    let spec = NetSpec::new("cnn-small", Input::Image { channels: 1, height: 8, width: 8 }, 2);
    let images = TensorData::new((0..4 * 64).map(|i| (i % 7) as f32).collect::<Vec<f32>>(), [4, 1, 8, 8]);
    let images = Tensor::<4>::from_data(images, &device);
    for buffers in [Buffers::Average, Buffers::Copy] {
        let first = Network::build(&spec, &device).unwrap();
        let before = first.read().unwrap();
        let mut mean = Ema::new(&first, EmaSettings { decay: 0.75, buffers }).unwrap();
        // Other weights, and other running statistics by a pass in training mode.
        let moved = first.replace(|entry| Some(vec![2.0; entry.shape.iter().product()])).unwrap();
        moved.forward(images.clone(), &Pass::train(0, 0)).unwrap();
        mean.update(&moved).unwrap();
        let after = moved.read().unwrap();
        for (((entry, old), (_, new)), (_, mean)) in
            before.iter().zip(&after).zip(&mean.module().read().unwrap())
        {
            let copied = entry.kind == ParameterKind::Buffer && buffers == Buffers::Copy;
            for ((old, new), mean) in old.iter().zip(new).zip(mean) {
                let wanted = if copied { *new } else { old + 0.25 * (new - old) };
                assert!(
                    (mean - wanted).abs() <= 1e-6 * wanted.abs().max(1.0),
                    "{}: {mean} {wanted}",
                    entry.path
                );
            }
        }
        let moves = |(entry, values): &(_, Vec<f32>)| {
            let entry: &negscale_nets::ParameterEntry = entry;
            entry.path == "bn1.running_mean" && values.iter().any(|v| *v != 2.0)
        };
        assert!(after.iter().any(moves), "the pass should have moved the statistics");
    }
}
