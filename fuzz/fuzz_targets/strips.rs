#![no_main]
//! Packed CIFAR-100: the first byte is a number of pictures, two bytes of labels for each follow, then WebP strips.
use libfuzzer_sys::fuzz_target;
use negscale_data::known::cifar::{Labels, cifar100_packed_from_bytes};

fuzz_target!(|data: &[u8]| {
    let Some((count, files)) = data.split_first() else { return };
    let (labels, strips) = files.split_at((2 * usize::from(*count)).min(files.len()));
    if let Ok(set) = cifar100_packed_from_bytes(strips, labels, Labels::Fine) {
        assert_eq!(set.len(), usize::from(*count));
    }
});
