//! Runs a network for pictures on a made-up picture, and says how long it takes: `onnx FILE [SECONDS] [BATCH]`.
//!
//! Prints one object: milliseconds by the clock and of CPU time (of all threads together, on Linux) for a picture.
#![allow(clippy::unwrap_used)]

use negscale_encoders::{Encoder, OnnxPictures, OnnxSettings, Picture};
use std::time::Instant;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let seconds: f64 = words.get(1).map_or(2.0, |word| word.parse().unwrap());
    let batch: usize = words.get(2).map_or(8, |word| word.parse().unwrap());
    let encoder = OnnxPictures::open(words[0].as_ref(), &OnnxSettings::default()).unwrap();
    let pixels: Vec<u8> = (0..224 * 224 * 3).map(|n| (n * 31 % 251) as u8).collect();
    let pictures = vec![Picture { pixels: &pixels, width: 224, height: 224 }; batch];
    let mut rows = vec![0.0; batch * encoder.width()];
    encoder.encode(&pictures, &mut rows).unwrap();
    let (began, worked, mut count) = (Instant::now(), cpu_seconds(), 0.0);
    while began.elapsed().as_secs_f64() < seconds {
        encoder.encode(&pictures, &mut rows).unwrap();
        count += batch as f64;
    }
    let (clock, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds() - worked);
    println!("{{\"ms\": {:.2}, \"cpu_ms\": {:.2}}}", clock / count * 1000.0, cpu / count * 1000.0);
}

/// What this process has used: user and system time from the fields 14 and 15 of Linux's table, in hundredths of a second.
fn cpu_seconds() -> f64 {
    let table = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = table.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}
