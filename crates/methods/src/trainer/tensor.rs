//! From a loader's batches to a host's.

use crate::host;
use burn::tensor::Device;
use negscale_data::loader::BatchPart;
use negscale_nets::to_samples;

/// A part of a batch on a device.
pub(super) fn to_part(part: BatchPart, shape: &[usize], device: &Device) -> host::SubBatch {
    let BatchPart { samples, given, views } = part;
    let views = views.into_iter().map(|values| to_samples(values, samples.len(), shape, device)).collect();
    host::SubBatch { samples, given, views }
}
