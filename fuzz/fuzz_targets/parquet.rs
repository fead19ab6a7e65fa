#![no_main]
//! Parquet: every label and every picture of a file.
use libfuzzer_sys::fuzz_target;
use negscale_data::own::{OwnOptions, parquet::check_bytes};
use std::path::Path;

// The crate that unpacks may panic on malformed pages, and ours catches that; libFuzzer's own hook would end the run first.
fuzz_target!(
    init: std::panic::set_hook(Box::new(|_| {})),
    |data: &[u8]| {
        let _ = check_bytes(Path::new("fuzz"), data.to_vec(), &OwnOptions::default());
    }
);
