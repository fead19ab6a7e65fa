#![no_main]
//! Records of Animal-10N.
use libfuzzer_sys::fuzz_target;
use negscale_data::known::animal::from_bytes;

fuzz_target!(|data: &[u8]| {
    if let Ok(set) = from_bytes(data.to_vec()) {
        assert!(set.given().iter().all(|&label| label < 10));
    }
});
