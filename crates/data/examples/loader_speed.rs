//! Pictures per second that the loader makes on two threads, for the weak and the strong view.
//!
//! ```text
//! cargo run --release -p negscale-data --example loader_speed -- [--json] [--views weak,strong] [--pictures N] [--threads N] [--seconds S]
//! ```
//! Pictures are random, 32 x 32 in colour; one epoch is not counted, as it fills the cache. Printed is the median of the epochs
//! that fit into S seconds (at least 3). `benches/torch/loader.py` does the same with torchvision and compares.

use negscale_data::draw::{Draw, Purpose};
use negscale_data::loader::{Loader, LoaderSettings, Order};
use negscale_data::views::{ImageSettings, Normalise};
use negscale_data::{Dataset, Image, ImageStore, Items, Result, Shape, View};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

const SHAPE: Shape = Shape { width: 32, height: 32, channels: 3 };

/// Pictures in memory.
struct Memory(Vec<u8>);

impl ImageStore for Memory {
    fn len(&self) -> usize {
        self.0.len() / SHAPE.len()
    }
    fn load(&self, index: usize) -> Result<Image> {
        Ok(Image { shape: SHAPE, pixels: self.bytes(index)?.into_owned() })
    }
    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(&self.0[index * SHAPE.len()..(index + 1) * SHAPE.len()]))
    }
}

/// The word after a flag.
fn word(flag: &str) -> Option<String> {
    std::env::args().skip_while(|word| word != flag).nth(1)
}

/// The number after a flag, or a default.
fn number(flag: &str, default: f64) -> f64 {
    word(flag).and_then(|word| word.parse().ok()).unwrap_or(default)
}

fn main() -> Result<()> {
    let count = number("--pictures", 50_000.0) as usize;
    let threads = number("--threads", 2.0) as usize;
    let seconds = number("--seconds", 4.0);
    let json = std::env::args().any(|word| word == "--json");

    let mut draw = Draw::new(1, Purpose::Noise, 0, 0);
    let pixels = (0..count * SHAPE.len() / 8).flat_map(|_| draw.bits().to_le_bytes()).collect();
    let store = Items::Images(Arc::new(Memory(pixels)));
    let dataset = Dataset::new("random", vec!["none".into()], store, vec![0; count], None)?;
    let images = ImageSettings::new(SHAPE, Normalise::cifar10());
    let views = word("--views").unwrap_or_else(|| "weak,strong".into());
    for view in views.split(',') {
        let view: View = view.parse()?;
        let settings = LoaderSettings { views: vec![view], threads, ..Default::default() };
        let loader = Loader::of_images(&dataset, &images, settings)?;
        let mut speeds = Vec::new();
        let start = Instant::now();
        for epoch in 0.. {
            let (begin, mut seen) = (Instant::now(), 0);
            for batch in loader.epoch(epoch, &Order::Shuffled { passes: 1 })? {
                seen += batch?.len();
            }
            if epoch > 0 {
                speeds.push(seen as f64 / begin.elapsed().as_secs_f64());
            }
            if speeds.len() >= 3 && start.elapsed().as_secs_f64() > seconds {
                break;
            }
        }
        speeds.sort_by(f64::total_cmp);
        let median = speeds[speeds.len() / 2];
        if json {
            println!(
                "{}",
                serde_json::json!({ "view": view.to_string(), "images_per_second": median.round(), "pictures": count,
                    "threads": threads, "epochs": speeds.len() })
            );
        } else {
            println!(
                "{view:<12} {median:>10.0} pictures/s on {threads} threads, {} epochs of {count}",
                speeds.len()
            );
        }
    }
    Ok(())
}
