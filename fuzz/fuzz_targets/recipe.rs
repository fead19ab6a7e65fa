#![no_main]
//! Recipes: settings of one run, of its data, and of a matrix.
use libfuzzer_sys::fuzz_target;
use negscale_methods::host::ItemKind;
use negscale_run::recipe::{Layers, expand};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(layers) = Layers::new().with_text("fuzz", text) {
        let _ = layers.data();
        for (kind, side) in [(ItemKind::Features, None), (ItemKind::Images, Some(32))] {
            if let Ok(recipe) = layers.resolve(kind, side) {
                // What is written can be read.
                let again = Layers::new().with_text("again", &recipe.to_toml());
                assert!(again.is_ok(), "{}", again.err().map_or(String::new(), |error| error.to_string()));
            }
        }
    }
    let _ = expand(Layers::new(), "fuzz", text);
});
