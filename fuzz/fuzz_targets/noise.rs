#![no_main]
//! Noise files and plain lists of labels, for three items of two classes.
use libfuzzer_sys::fuzz_target;
use negscale_data::noise::label_list::read_text;
use negscale_data::{Dataset, FeatureStore, Items, Noise, Result};
use std::path::Path;
use std::sync::Arc;

struct Three;

impl FeatureStore for Three {
    fn len(&self) -> usize {
        3
    }
    fn dim(&self) -> usize {
        1
    }
    fn read(&self, _: usize, out: &mut [f32]) -> Result<()> {
        out.fill(0.0);
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let classes = ["cat", "dog"].map(String::from).to_vec();
    let items = Items::Features(Arc::new(Three));
    let Ok(dataset) = Dataset::new("fuzz", classes, items, vec![0, 1, 1], None) else { return };
    let _ = Noise::from_bytes(Path::new("fuzz"), data, &dataset);
    if let Ok(labels) = read_text(Path::new("fuzz"), data, &dataset) {
        assert!(labels.len() == 3 && labels.iter().all(|&label| label < 2));
    }
});
