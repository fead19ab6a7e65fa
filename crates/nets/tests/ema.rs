//! The running mean of weights: formula, buffers, memory, and independence of the network it follows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::module::{Module, Param, RunningState};
use burn::tensor::{Device, Tensor, TensorData};
use negscale_kernels::update::buffers;
use negscale_nets::ema::{Buffers, Ema, EmaSettings};

#[derive(Module, Debug)]
struct Net {
    w: Param<Tensor<2>>,
    mean: RunningState<Tensor<1>>,
}

fn net(w: f32, mean: f32) -> Net {
    let device = Device::flex().autodiff();
    let w = Tensor::from_data(TensorData::new(vec![w, -w], [1, 2]), &device);
    let mean = Tensor::from_data(TensorData::new(vec![mean], [1]), &device);
    Net { w: Param::from_tensor(w), mean: RunningState::new(mean) }
}

fn values(net: &Net) -> [f32; 3] {
    let mut all: Vec<f32> = net.w.val().into_data().try_into_vec().unwrap();
    all.extend(net.mean.value_sync().into_data().try_into_vec::<f32>().unwrap());
    all.try_into().unwrap()
}

fn settings(buffers: Buffers) -> EmaSettings {
    EmaSettings { decay: 0.75, buffers }
}

#[test]
fn parameters_are_averaged_and_buffers_as_set() {
    for (choice, mean) in [(Buffers::Average, [2.0, 2.75]), (Buffers::Copy, [5.0, 5.0])] {
        let mut ema = Ema::new(&net(0.0, 1.0), settings(choice)).unwrap();
        assert_eq!(values(ema.module()), [0.0, 0.0, 1.0]);
        let target = net(4.0, 5.0);
        ema.update(&target).unwrap();
        assert_eq!(values(ema.module()), [1.0, -1.0, mean[0]]);
        ema.update(&target).unwrap();
        assert_eq!(values(ema.module()), [1.75, -1.75, mean[1]]);
        assert_eq!(values(&target), [4.0, -4.0, 5.0], "the network is not touched");
    }
}

#[test]
fn a_mean_does_not_write_into_the_network_it_was_made_from() {
    let source = net(0.0, 1.0);
    let mut ema = Ema::new(&source, settings(Buffers::Average)).unwrap();
    ema.update(&net(4.0, 5.0)).unwrap();
    assert_eq!(values(&source), [0.0, 0.0, 1.0]);
    assert_eq!(values(ema.module()), [1.0, -1.0, 2.0]);
}

#[test]
fn statistics_that_wait_to_be_written_down_are_seen() {
    let network = net(0.0, 1.0);
    let mut ema = Ema::new(&network, settings(Buffers::Copy)).unwrap();
    network.mean.update(Tensor::from_data(TensorData::new(vec![9f32], [1]), &Device::flex().autodiff()));
    ema.update(&network).unwrap();
    assert_eq!(values(ema.module())[2], 9.0);
}

#[test]
fn the_mean_is_updated_in_place_after_the_first_time() {
    let target = net(4.0, 5.0);
    let mut ema = Ema::new(&target, settings(Buffers::Copy)).unwrap();
    ema.update(&target).unwrap();
    let before = buffers();
    ema.update(&target).unwrap();
    let after = buffers();
    assert_eq!((after.reused - before.reused, after.copied - before.copied), (1, 0));
}

#[test]
fn a_mean_goes_on_from_its_module_bit_for_bit() {
    let mut ema = Ema::new(&net(0.1, 1.0), settings(Buffers::Average)).unwrap();
    ema.update(&net(0.7, 2.0)).unwrap();
    let mut again = Ema::resume(ema.module().clone(), settings(Buffers::Average)).unwrap();
    for ema in [&mut ema, &mut again] {
        ema.update(&net(0.3, 3.0)).unwrap();
    }
    assert_eq!(values(ema.module()), values(again.module()));
}

#[test]
fn another_network_and_a_decay_out_of_range_are_refused() {
    let mut ema = Ema::new(&net(1.0, 1.0), settings(Buffers::Average)).unwrap();
    let mut wide = net(1.0, 1.0);
    wide.w = Param::from_tensor(Tensor::zeros([2, 2], &Device::flex().autodiff()));
    let message = ema.update(&wide).unwrap_err().to_string();
    assert!(message.contains("`w`") && message.contains("[2, 2]"), "{message}");
    assert_eq!(values(ema.module()), [1.0, -1.0, 1.0]);
    for decay in [1.0, -0.1, f64::NAN] {
        assert!(Ema::new(&wide, EmaSettings { decay, ..EmaSettings::default() }).is_err());
    }
}
