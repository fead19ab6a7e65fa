#![no_main]
//! `audit.csv`, as a review reads it.
#[path = "support/place.rs"]
mod place;

use libfuzzer_sys::fuzz_target;
use negscale_review::samples::Samples;

fuzz_target!(|data: &[u8]| {
    let path = place::put(&place::folder("audit-list"), "audit.csv", data);
    let classes = ["cat", "dog", "=cmd"].map(String::from);
    if let Ok(samples) = Samples::read(&path, &classes, 0.25) {
        assert!(samples.list.iter().all(|sample| sample.given < 3 && sample.suggested < 3));
    }
});
