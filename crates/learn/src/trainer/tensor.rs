//! From a loader's numbers to tensors, which take them over without a copy.

use crate::hosts;
use crate::nets::Samples;
use burn::tensor::{Device, Tensor, TensorData};
use negscale_data::loader::BatchPart;

/// The numbers of a view as a tensor; `shape` is that of an item.
pub(crate) fn to_samples(values: Vec<f32>, count: usize, shape: &[usize], device: &Device) -> Samples {
    match *shape {
        [height, width, channels] => {
            let data = TensorData::new(values, [count, height, width, channels]);
            Samples::Images(Tensor::from_data(data, device))
        }
        _ => {
            let data = TensorData::new(values, [count, shape.iter().product()]);
            Samples::Rows(Tensor::from_data(data, device))
        }
    }
}

/// A part of a batch on a device.
pub(super) fn to_part(part: BatchPart, shape: &[usize], device: &Device) -> hosts::Part {
    let BatchPart { samples, given, views } = part;
    let views = views.into_iter().map(|values| to_samples(values, samples.len(), shape, device)).collect();
    hosts::Part { samples, given, views }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_takes_over_the_numbers_of_a_view_where_they_are() {
        for device in [Device::flex(), Device::flex().autodiff()] {
            for shape in [&[4, 5, 3][..], &[60]] {
                let values: Vec<f32> = (0..120).map(|i| i as f32).collect();
                let place = values.as_ptr();
                let data = match to_samples(values, 2, shape, &device) {
                    Samples::Images(images) => images.into_data(),
                    Samples::Rows(rows) => rows.into_data(),
                };
                assert_eq!(data.shape()[1..], *shape);
                assert_eq!(data.as_slice::<f32>().unwrap().as_ptr(), place, "{shape:?} on {device:?}");
            }
        }
    }
}
