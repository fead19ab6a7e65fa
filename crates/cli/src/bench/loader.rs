//! `negscale bench loader`: how many images a second come out of the loader, for the weak and the strong view.

use crate::source::Place;
use anyhow::{Result, bail};
use negscale_data::loader::{Loader, LoaderSettings, Order};
use negscale_data::own::OwnOptions;
use negscale_data::views::{ImageSettings, Normalise};
use negscale_data::{Items, View, open};
use std::time::Instant;

/// Images per second of the loader: decode, augment, normalise, batch.
///
/// The first epoch fills the cache and is not counted. Prints the median over as many epochs as fit into the time, at least
/// three. `benches/torch/loader.py` does the same work with torchvision and compares.
#[derive(clap::Args)]
pub struct Arguments {
    /// A known dataset of images.
    #[arg(long, default_value = "fashion-mnist-subset")]
    data: String,
    #[command(flatten)]
    place: Place,
    /// Views to measure.
    #[arg(long, value_delimiter = ',', default_values = ["weak", "strong"])]
    views: Vec<View>,
    /// Use only this many images, the first ones.
    #[arg(long)]
    pictures: Option<usize>,
    /// Background threads; 0: as many as cores.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Seconds to spend on a view.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// One JSON object per line: view, images_per_second, pictures, threads, epochs.
    #[arg(long)]
    json: bool,
}

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { data, place, views, pictures, threads, seconds, json } = arguments;
    let mut train = open(&data, &place.to_read()?, &OwnOptions::default())?.train;
    if let Some(pictures) = pictures {
        train = train.subset(&(0..pictures.min(train.len())).collect::<Vec<_>>())?;
    }
    let Items::Images(store) = train.items() else { bail!("`{data}` holds feature vectors, not images") };
    if store.is_empty() {
        bail!("`{data}` holds no images");
    }
    let shape = store.load(0)?.shape;
    let images = ImageSettings::new(shape, Normalise::measure(store.as_ref(), shape.channels)?);
    for view in views {
        let settings = LoaderSettings { views: vec![view], threads, ..LoaderSettings::default() };
        let loader = Loader::of_images(&train, &images, settings)?;
        let (mut speeds, start) = (Vec::new(), Instant::now());
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
        let (median, epochs) = (speeds[speeds.len() / 2].round(), speeds.len());
        if json {
            let line = serde_json::json!({
                "view": view.to_string(), "images_per_second": median, "data": data, "pictures": train.len(),
                "threads": threads, "epochs": epochs,
            });
            say!("{line}");
        } else {
            say!(
                "{:<12} {median:>10.0} images/s of `{data}`, {epochs} epochs of {}",
                view.to_string(),
                train.len()
            );
        }
    }
    Ok(())
}
