#![no_main]
//! `metadata.jsonl`.
use libfuzzer_sys::fuzz_target;
use negscale_data::own::metadata::{Names, from_jsonl};
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    if let Ok(rows) = from_jsonl(Path::new("fuzz"), data, Names::default()) {
        assert_eq!(rows.files.len(), rows.given.len());
    }
});
