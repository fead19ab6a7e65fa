#![no_main]
//! `.npy`, as features and as labels.
use libfuzzer_sys::fuzz_target;
use negscale_data::FeatureStore;
use negscale_data::npy;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Ok(array) = npy::from_bytes(Path::new("fuzz"), data.to_vec()) else { return };
    let _ = array.clone().into_labels();
    if let Ok(features) = array.into_features() {
        let mut row = vec![0.0; features.dim()];
        for index in [0, features.len() - 1] {
            let _ = features.read(index, &mut row);
        }
    }
});
