//! Devices to compute on: what they are called, and whether they compute what the CPU does.
//!
//! A name is a kind, and for one of several cards its number: `cpu`, `cuda`, `cuda:1`, `vulkan:0`. `vulkan:cpu` is the Vulkan that runs
//! on the CPU, where it is installed; so a GPU's code can be run without a GPU.

use crate::{Error, Result};
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use negscale_nets::optim::{Optimiser, Sgd};
use negscale_nets::{Input, NetSpec, Network, Pass};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, PoisonError};

/// Kinds of devices.
const KINDS: [&str; 6] = ["cpu", "cuda", "rocm", "metal", "vulkan", "wgpu"];
/// How far the weights of a small network may be from those of the CPU after some steps, relative to their length.
const TOLERANCE: f64 = 1e-3;
/// Steps that are compared.
const STEPS: usize = 2;

/// Kinds of devices this program was built for.
pub fn devices() -> Vec<&'static str> {
    let is_built = [
        true,
        cfg!(feature = "cuda"),
        cfg!(feature = "rocm"),
        cfg!(feature = "metal"),
        cfg!(feature = "vulkan"),
        cfg!(feature = "wgpu-untuned"),
    ];
    KINDS.into_iter().zip(is_built).filter(|(_, is_built)| *is_built).map(|(kind, _)| kind).collect()
}

/// The kind of the device of a name, which decides the last bits of what it computes.
pub fn device_kind(name: &str) -> &str {
    name.split(':').next().unwrap_or_default()
}

/// The device of a name; nothing is started yet.
pub fn open_device(name: &str) -> Result<Device> {
    let (kind, which) = match name.split_once(':') {
        Some((kind, which)) => (kind, Some(which)),
        None => (name, None),
    };
    if !KINDS.contains(&kind) {
        return Err(Error::unknown("device", kind, KINDS));
    }
    let refuse = |problem: String| Err(Error::Device { name: name.into(), problem });
    if !devices().contains(&kind) {
        return refuse(format!(
            "this program was built without it; build with `--features {kind}`, or use cpu"
        ));
    }
    let takes_cpu = ["vulkan", "wgpu"].contains(&kind);
    let number: Option<usize> = which.and_then(|which| which.parse().ok());
    let is_cpu = which == Some("cpu");
    if which.is_some() && (kind == "cpu" || !(number.is_some() || is_cpu && takes_cpu)) {
        let such = if kind == "cpu" { "cpu".into() } else { format!("{kind} or {kind}:0") };
        return refuse(format!("there is no such one; write {such}"));
    }
    Ok(open(kind, number, is_cpu))
}

/// A device of a kind that was built in.
#[allow(unused_variables, reason = "the CPU alone needs neither")]
fn open(kind: &str, number: Option<usize>, is_cpu: bool) -> Device {
    #[cfg(any(feature = "metal", feature = "vulkan", feature = "wgpu-untuned"))]
    let which = {
        use burn::tensor::DeviceKind;
        match number {
            _ if is_cpu => DeviceKind::Cpu,
            Some(number) => DeviceKind::DiscreteGpu(number),
            None => DeviceKind::DefaultDevice,
        }
    };
    match kind {
        #[cfg(feature = "cuda")]
        "cuda" => Device::cuda(number.unwrap_or(0)),
        #[cfg(feature = "rocm")]
        "rocm" => Device::rocm(number.unwrap_or(0)),
        #[cfg(feature = "metal")]
        "metal" => Device::metal(which),
        #[cfg(feature = "vulkan")]
        "vulkan" => Device::vulkan(which),
        #[cfg(feature = "wgpu-untuned")]
        "wgpu" => Device::wgpu(which),
        _ => Device::flex(),
    }
}

/// Starts a device, and compares some steps of a small network with the CPU's: how far the weights are apart, relative to their
/// length. Done once in a process for each device; the CPU needs none.
///
/// # Errors
/// If there is no such device, it does not work, or what it computes is not what the CPU computes.
pub fn check_device(name: &str) -> Result<f64> {
    static KNOWN: Mutex<BTreeMap<String, f64>> = Mutex::new(BTreeMap::new());
    let device = open_device(name)?;
    if device == Device::flex() {
        return Ok(0.0);
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(far) = known.get(name) {
        return Ok(*far);
    }
    let refuse = |problem: String| Err(Error::Device { name: name.into(), problem });
    // Without a card, burn panics; what it says is told below.
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let ran = catch_unwind(AssertUnwindSafe(|| steps(&device)));
    set_hook(hook);
    let ours = match ran {
        Ok(weights) => weights?,
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it says nothing");
            return refuse(format!("it cannot be used: {said}; see `negscale doctor`, or use cpu"));
        }
    };
    let wanted = steps(&Device::flex())?;
    let length = wanted.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let apart = ours.iter().zip(&wanted).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
    let far = apart / length;
    // Also where something is no number.
    if far.is_nan() || far > TOLERANCE {
        return refuse(format!(
            "after {STEPS} steps of a small network its weights are {far:.1e} from those of the CPU, relative to their length; at most \
             {TOLERANCE:.0e} is rounding. Its driver may be at fault; update it, or use cpu"
        ));
    }
    known.insert(name.into(), far);
    Ok(far)
}

/// What a device calls itself, such as the name of its card, and how many cards of its kind there are, as far as burn says; nothing
/// for the CPU. Starts the device: only for one that has passed its [check](check_device).
pub fn describe_device(name: &str) -> Result<Option<(String, usize)>> {
    let device = open_device(name)?;
    Ok(if device == Device::flex() { None } else { describe(&device, device_kind(name)) })
}

#[cfg(not(feature = "gpu"))]
fn describe(_: &Device, _: &str) -> Option<(String, usize)> {
    None
}

#[cfg(feature = "gpu")]
fn describe(device: &Device, kind: &str) -> Option<(String, usize)> {
    use burn::tensor::DeviceType;
    let kinds = match kind {
        #[cfg(feature = "cuda")]
        "cuda" => DeviceType::Cuda,
        #[cfg(feature = "rocm")]
        "rocm" => DeviceType::Rocm,
        #[cfg(feature = "metal")]
        "metal" => DeviceType::Metal,
        #[cfg(feature = "vulkan")]
        "vulkan" => DeviceType::Vulkan,
        #[cfg(feature = "wgpu-untuned")]
        "wgpu" => DeviceType::Wgpu,
        _ => return None,
    };
    let found = Device::enumerate(kinds).into_vec();
    let cards = (0..found.len()).take_while(|&number| found.contains(&open(kind, Some(number), false)));
    Some((device.identity()?.name, cards.count()))
}

/// All numbers of a small network of convolutions, norms and a classifier after some steps on made-up pictures.
fn steps(device: &Device) -> Result<Vec<f32>> {
    const SIDE: usize = 8;
    const COUNT: usize = 12;
    let device = device.clone().autodiff();
    let input = Input::Image { channels: 3, height: SIDE, width: SIDE };
    let mut net = Network::build(&NetSpec::new("cnn-small", input, 3), &device)?;
    let mut optimiser = Optimiser::new(Sgd { lr: 0.05, ..Sgd::default() })?;
    let pixels = COUNT * 3 * SIDE * SIDE;
    let values: Vec<f32> = (0..pixels).map(|i| ((i * 7919) % 1009) as f32 / 504.0 - 1.0).collect();
    let pictures = Tensor::<4>::from_data(TensorData::new(values, [COUNT, 3, SIDE, SIDE]), &device);
    let labels: Vec<i64> = (0..COUNT as i64).map(|i| i % 3).collect();
    let labels = Tensor::<2, Int>::from_data(TensorData::new(labels, [COUNT, 1]), &device);
    for step in 0..STEPS {
        let logits = net.forward(pictures.clone(), &Pass::train(0, step as u64))?.logits;
        let loss = -log_softmax(logits, 1).gather(1, labels.clone()).mean();
        net = optimiser.step(net, &mut loss.backward());
    }
    Ok(net.read()?.into_iter().flat_map(|(_, values)| values).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_nothing_are_refused_with_what_would_do() {
        let said = |name: &str| open_device(name).unwrap_err().to_string();
        assert!(said("cudaa").contains("nearest: cuda"), "{}", said("cudaa"));
        assert!(said("cpu:1").contains("write cpu"), "{}", said("cpu:1"));
        if !devices().contains(&"cuda") {
            assert!(said("cuda:1").contains("--features cuda"));
        }
        assert_eq!((device_kind("cuda:1"), device_kind("cpu")), ("cuda", "cpu"));
        assert_eq!(check_device("cpu").unwrap(), 0.0);
    }

    #[test]
    fn the_steps_that_are_compared_move_every_weight() {
        let after = steps(&Device::flex()).unwrap();
        let input = Input::Image { channels: 3, height: 8, width: 8 };
        let net = Network::build(&NetSpec::new("cnn-small", input, 3), &Device::flex()).unwrap();
        let before: Vec<f32> = net.read().unwrap().into_iter().flat_map(|(_, values)| values).collect();
        let moved = after.iter().zip(&before).filter(|(a, b)| a != b).count();
        assert!(moved as f64 > 0.99 * before.len() as f64, "{moved} of {}", before.len());
    }
}
