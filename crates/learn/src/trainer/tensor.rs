//! From a loader's numbers to tensors.

use crate::hosts;
use crate::nets::Samples;
use burn::tensor::{Device, Tensor, TensorData};
use negscale_data::loader::Part;

/// The numbers of a view as a tensor; `shape` is that of an item.
pub(super) fn to_samples(values: &[f32], count: usize, shape: &[usize], device: &Device) -> Samples {
    match *shape {
        [channels, height, width] => {
            let data = TensorData::new(values.to_vec(), [count, channels, height, width]);
            Tensor::<4>::from_data(data, device).into()
        }
        _ => {
            let size = shape.iter().product();
            Tensor::<2>::from_data(TensorData::new(values.to_vec(), [count, size]), device).into()
        }
    }
}

/// A part of a batch on a device.
pub(super) fn to_part(part: &Part, shape: &[usize], device: &Device) -> hosts::Part {
    let views = part.views.iter().map(|values| to_samples(values, part.len(), shape, device));
    hosts::Part { samples: part.samples.clone(), given: part.given.clone(), views: views.collect() }
}
