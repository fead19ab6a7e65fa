//! From a loader's batches to a host's.

use crate::host;
use burn::tensor::Device;
use negscale_data::loader::Part;
use negscale_nets::to_samples;

/// A part of a batch on a device.
pub(super) fn to_part(part: &Part, shape: &[usize], device: &Device) -> host::SubBatch {
    let views = part.views.iter().map(|values| to_samples(values, part.len(), shape, device));
    host::SubBatch { samples: part.samples.clone(), given: part.given.clone(), views: views.collect() }
}
