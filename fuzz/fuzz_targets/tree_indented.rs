#![no_main]
//! Class trees as indented text, with classes by their leaves and by name.
use libfuzzer_sys::fuzz_target;
use negscale::Taxonomy;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for names in [&[][..], &["cat", "dog"]] {
        if let Ok(tree) = Taxonomy::from_indented("fuzz", text, names) {
            assert!(tree.classes() <= tree.nodes());
        }
    }
});
