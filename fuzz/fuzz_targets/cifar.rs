#![no_main]
//! Records of CIFAR-10 and CIFAR-100; the first byte chooses.
use libfuzzer_sys::fuzz_target;
use negscale_data::known::cifar::{Labels, cifar10_from_bytes, cifar100_from_bytes};

fuzz_target!(|data: &[u8]| {
    let Some((choice, records)) = data.split_first() else { return };
    let records = records.to_vec();
    let _ = match choice % 3 {
        0 => cifar10_from_bytes(records),
        1 => cifar100_from_bytes(records, Labels::Fine),
        _ => cifar100_from_bytes(records, Labels::Coarse),
    };
});
