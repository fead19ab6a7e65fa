#![no_main]
//! Class trees as tables.
use libfuzzer_sys::fuzz_target;
use negscale::Taxonomy;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(tree) = Taxonomy::from_tsv("fuzz", text) {
        assert!(tree.classes() <= tree.nodes());
    }
});
