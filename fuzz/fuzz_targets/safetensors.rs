#![no_main]
//! `.safetensors`, every tensor of it.
use libfuzzer_sys::fuzz_target;
use negscale_data::FeatureStore;
use negscale_data::own::tensors::Tensors;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Ok(file) = Tensors::from_bytes(Path::new("fuzz"), data.to_vec()) else { return };
    for name in file.names() {
        let Ok(array) = file.array(name) else { continue };
        let _ = array.clone().into_labels();
        if let Ok(features) = array.into_features() {
            let _ = features.read(0, &mut vec![0.0; features.dim()]);
        }
    }
});
