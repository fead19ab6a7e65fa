#![no_main]
//! IDX, plain and gzipped: two bytes tell how long the file of pictures is, the file of labels follows.
use libfuzzer_sys::fuzz_target;
use negscale_data::known::idx::{MNIST, from_bytes};

fuzz_target!(|data: &[u8]| {
    let Some(([low, high], files)) = data.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes([*low, *high]));
    let (images, labels) = files.split_at(length.min(files.len()));
    if let Ok(set) = from_bytes("fuzz", images.to_vec(), labels.to_vec(), &MNIST) {
        assert!(set.given().iter().all(|&label| label < 10));
    }
});
