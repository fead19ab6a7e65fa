//! Encodes the lines of a file, and says how long it takes: `sentences FOLDER FILE [f32|bf16] [BATCH] [SECONDS]`.
//!
//! Prints one object: sentences a second, over passes through the file in batches for so many seconds at least after one pass that does not count.
#![allow(clippy::unwrap_used)]

use negscale_encoders::{Encoder, Precision, TextEncoder};
use std::time::Instant;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default: &'static str| words.get(at).map_or(default, String::as_str);
    let precision = if word(2, "f32") == "bf16" { Precision::Bf16 } else { Precision::F32 };
    let batch: usize = word(3, "128").parse().unwrap();
    let seconds: f64 = word(4, "2").parse().unwrap();
    let began = Instant::now();
    let encoder = TextEncoder::open(word(0, "minilm").as_ref(), precision).unwrap();
    let load = began.elapsed().as_secs_f64();
    let file = std::fs::read_to_string(word(1, "")).unwrap();
    let texts: Vec<&str> = file.lines().collect();
    let width = Encoder::<&str>::width(&encoder);
    let mut rows = vec![0.0; texts.len() * width];
    let mut pass = || {
        for (texts, rows) in texts.chunks(batch).zip(rows.chunks_mut(batch * width)) {
            encoder.encode(texts, rows).unwrap();
        }
    };
    pass();
    let (began, mut passes) = (Instant::now(), 0);
    while began.elapsed().as_secs_f64() < seconds {
        pass();
        passes += 1;
    }
    let rate = (passes * texts.len()) as f64 / began.elapsed().as_secs_f64();
    println!("{{\"sentences_per_s\": {rate:.1}, \"load_s\": {load:.2}, \"first\": {:?}}}", &rows[..4]);
}
