//! Encodes the lines of a file, and says how long it takes: `sentences FOLDER FILE [f32|bf16] [BATCH] [SECONDS]`.
//!
//! Prints one object: sentences a second, and milliseconds of CPU time for a sentence (of all threads together, on Linux), over passes through the
//! file in batches for so many seconds at least, after one pass that does not count.
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
    let (began, worked, mut passes) = (Instant::now(), cpu_seconds(), 0);
    while began.elapsed().as_secs_f64() < seconds {
        pass();
        passes += 1;
    }
    let count = (passes * texts.len()) as f64;
    let (rate, cpu) = (count / began.elapsed().as_secs_f64(), (cpu_seconds() - worked) / count * 1000.0);
    println!("{{\"sentences_per_s\": {rate:.1}, \"cpu_ms\": {cpu:.3}, \"load_s\": {load:.2}}}");
}

/// What this process has used: user and system time from the fields 14 and 15 of Linux's table, in hundredths of a second.
fn cpu_seconds() -> f64 {
    let table = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = table.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}
