#![no_main]
//! Encoded pictures.
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    if let Ok(image) = negscale_data::decode::decode(Path::new("fuzz"), data) {
        assert_eq!(image.pixels.len(), image.shape.len());
    }
});
