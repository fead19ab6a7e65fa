#![no_main]
//! `metadata.csv`.
use libfuzzer_sys::fuzz_target;
use negscale_data::own::metadata::{Names, from_csv};
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    if let Ok(rows) = from_csv(Path::new("fuzz"), data, Names::default()) {
        assert_eq!(rows.files.len(), rows.given.len());
    }
});
