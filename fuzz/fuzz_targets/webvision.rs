#![no_main]
//! WebVision's lists of files, and ILSVRC12's list of identifiers.
use libfuzzer_sys::fuzz_target;
use negscale_data::known::webvision::{file_list, synset_list};
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let lists = [file_list(Path::new("fuzz"), data), synset_list(Path::new("fuzz"), data)];
    for (files, labels) in lists.into_iter().flatten() {
        assert_eq!(files.len(), labels.len());
    }
});
