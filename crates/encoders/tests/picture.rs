//! EfficientNet-Lite0 from files of weights.
#![allow(clippy::unwrap_used)]

use negscale_data::real_data::real;
use negscale_encoders::{EfficientNetLite0, Encoder, Picture};
use std::path::Path;

const GOLDEN: &[u8] = include_bytes!("golden/efficientnet_lite0.f32");
const LEGACY: &[u8] = include_bytes!("golden/legacy.pth");
const HOSTILE: &[u8] = include_bytes!("golden/hostile.pth");

/// The pictures of `benches/torch/pictures.py`.
fn made_up(count: usize, height: usize, width: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (n, y) in (0..count).flat_map(|n| (0..height).map(move |y| (n, y))) {
        for (x, c) in (0..width).flat_map(|x| (0..3).map(move |c| (x, c))) {
            let waves = n * 37 + x * (3 + c) + y * (5 - c) + x * y * (n + 1) / 16;
            bytes.push((waves + 90 * ((x / 8 + y / 8 + c) % 2)) as u8);
        }
    }
    bytes
}

fn distance(ours: &[f32], theirs: &[f32]) -> f64 {
    let square = |value: f64| value * value;
    let gap: f64 = ours.iter().zip(theirs).map(|(a, b)| square(f64::from(a - b))).sum();
    (gap / theirs.iter().map(|b| square(f64::from(*b))).sum::<f64>()).sqrt()
}

#[test]
fn features_are_those_of_pytorch() {
    let Some(weights) = real("efficientnet-lite0/efficientnet-lite0-57934424.pth") else { return };
    let encoder = EfficientNetLite0::open(&weights).unwrap();
    let golden: Vec<f32> = GOLDEN.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    let sizes = [(32, 32), (28, 28), (128, 128), (150, 211)];
    for ((height, width), wanted) in sizes.into_iter().zip(golden.chunks(2 * 1280)) {
        let bytes = made_up(2, height, width);
        let items: Vec<Picture> =
            bytes.chunks(height * width * 3).map(|pixels| Picture { pixels, width, height }).collect();
        let mut rows = vec![0.0; 2 * 1280];
        encoder.encode(&items, &mut rows).unwrap();
        for (ours, theirs) in rows.chunks(1280).zip(wanted.chunks(1280)) {
            let gap = distance(ours, theirs);
            // f32 comes to 3e-6; the promise is 1e-3.
            assert!(gap < 1e-4, "{height} x {width}: relative difference {gap}");
        }
    }
}

fn opened(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.pth");
    std::fs::write(&path, bytes).unwrap();
    let told = EfficientNetLite0::open(&path).err().unwrap().to_string();
    assert!(told.contains("weights.pth"), "{told}");
    told
}

#[test]
fn weights_of_something_else_say_which_tensor_is_missing() {
    // Read as far as it goes: the stem is there.
    assert!(opened(LEGACY).contains("no tensor `_blocks.0._depthwise_conv.weight`"), "{}", opened(LEGACY));
    assert!(
        EfficientNetLite0::open(Path::new("no/such.pth")).err().unwrap().to_string().contains("no/such.pth")
    );
}

#[test]
fn a_file_that_would_run_a_command_runs_none() {
    let mark = Path::new("/tmp/negscale-hostile");
    let _ = std::fs::remove_file(mark);
    opened(HOSTILE);
    assert!(!mark.exists());
}

#[test]
fn damaged_weights_are_errors_wherever_they_are_cut_or_changed() {
    for end in (0..LEGACY.len()).step_by(37).chain(LEGACY.len() - 9..LEGACY.len()) {
        opened(&LEGACY[..end]);
    }
    // Sizes and places that are far too large: every number of the pickles by turns.
    for at in 0..800.min(LEGACY.len()) {
        let mut bytes = LEGACY.to_vec();
        bytes[at] = 0xFF;
        opened(&bytes);
    }
    opened(&[b"\x80\x02".as_slice(), &b"(".repeat(1 << 20), b"."].concat());
    opened(&[b"\x80\x02]".as_slice(), &b"\x85".repeat(1 << 20), b"."].concat());
}
