//! `negscale bench encoder`: how many pictures a second an encoder turns into rows.

use crate::source::Place;
use anyhow::Result;
use negscale_encoders::{EfficientNetLite0, Encoder, Picture};
use negscale_run::embed;
use std::time::Instant;

/// Pictures per second of an encoder, from bytes in memory to rows of numbers.
///
/// The first round is not counted. `benches/torch/pictures.py` does the same work with PyTorch and compares.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Pictures of a round, 32 x 32 in colour.
    #[arg(long, default_value_t = 1000)]
    pictures: usize,
    /// Rounds; the median is printed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// One JSON object: images_per_second, pictures, threads.
    #[arg(long)]
    json: bool,
}

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { place, pictures, rounds, json } = arguments;
    let known = embed::known(negscale_encoders::EFFICIENTNET_LITE0)?;
    let folders = place.to_read()?;
    let Some(folder) = known.find(&folders) else {
        known.load(&folders)?;
        return Ok(());
    };
    let encoder = EfficientNetLite0::open(&folder.join(known.files[0]))?;
    let bytes: Vec<u8> =
        (0..pictures * 3072).map(|at| (at * 31 + at / 96 * 7 + at / 3072 * 13) as u8).collect();
    let items: Vec<Picture> =
        bytes.chunks_exact(3072).map(|pixels| Picture { pixels, width: 32, height: 32 }).collect();
    let mut rows = vec![0.0; pictures * encoder.width()];
    let mut speeds = Vec::new();
    for _ in 0..=rounds.max(1) {
        let begun = Instant::now();
        encoder.encode(&items, &mut rows)?;
        speeds.push(pictures as f64 / begun.elapsed().as_secs_f64());
    }
    let mut speeds = speeds.split_off(1);
    speeds.sort_by(f64::total_cmp);
    let (median, threads) = (speeds[speeds.len() / 2].round(), rayon::current_num_threads());
    if json {
        say!(
            "{}",
            serde_json::json!({ "images_per_second": median, "pictures": pictures, "threads": threads })
        );
    } else {
        say!("{median:.0} pictures/s by {}, {threads} threads, {}", encoder.name(), negscale_cpu::name());
    }
    Ok(())
}
