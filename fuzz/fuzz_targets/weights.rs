#![no_main]
//! Weights of an encoder as PyTorch saves them: opened and read, as far as they go.
use libfuzzer_sys::fuzz_target;
use negscale_encoders::EfficientNetLite0;

fuzz_target!(|data: &[u8]| {
    let path = std::env::temp_dir().join(format!("negscale-fuzz-{}.pth", std::process::id()));
    if std::fs::write(&path, data).is_ok() {
        let _ = EfficientNetLite0::open(&path);
        let _ = std::fs::remove_file(&path);
    }
});
