#![no_main]
//! `.npz`, every array of it, with a small limit on what may be unpacked.
use libfuzzer_sys::fuzz_target;
use negscale_data::own::npz::Npz;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Ok(mut file) = Npz::from_bytes(Path::new("fuzz"), data.to_vec(), Some(1 << 20)) else { return };
    for name in file.names().to_vec() {
        let _ = file.array(&name);
    }
});
