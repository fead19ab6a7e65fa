//! `negscale data`: lists, fetches and inspects datasets.

use crate::source::{Own, Place, describe_shared, open_data};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use negscale_data::fetch::{self, Progress};
use negscale_data::inspect::{Options, Shared, inspect, shared};
use negscale_data::{Dataset, catalogue, known, noise};
use std::time::Duration;

/// List, fetch and inspect datasets.
#[derive(clap::Subcommand)]
pub enum Data {
    /// List known datasets and whether they are on this machine.
    List {
        #[command(flatten)]
        place: Place,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Fetch a known dataset and verify its checksum; an interrupted download resumes.
    Get {
        /// Its name, as shown by `data list`.
        name: String,
        #[command(flatten)]
        place: Place,
        /// No progress bar.
        #[arg(long, short)]
        quiet: bool,
    },
    /// Show sizes, classes, shapes, duplicates, unreadable items and, where true labels are known, the label noise.
    Inspect {
        /// A known name, or a path: folder of images, folder with metadata, Parquet, .npy, .npz, .safetensors, .csv.
        data: String,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        own: Box<Own>,
        /// Add label noise to the training split first, such as cifarn:worse.
        #[arg(long, value_name = "NOISE")]
        noise: Option<noise::NoiseSpec>,
        /// Seed of the noise.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Inspect labels only, without reading the items.
        #[arg(long)]
        labels_only: bool,
        /// Print JSON, one object per split.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the verb.
pub fn run(what: Data) -> Result<()> {
    match what {
        Data::List { place, json } => {
            let listing = catalogue::list(&place.to_read()?);
            if json { say!("{}", serde_json::to_string(&listing)?) } else { say_part!("{listing}") }
        }
        Data::Get { name, place, quiet } => {
            let folders = place.folders();
            let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
            bar.enable_steady_tick(Duration::from_millis(120));
            let folder = fetch::get(&name, folders.cache()?, &mut |progress| draw(&bar, progress));
            bar.finish_and_clear();
            say!("{name}: {}", folder?.display());
        }
        Data::Inspect { data, place, own, noise, seed, labels_only, json } => {
            let mut splits = open_data(&data, &place, &own)?;
            if let Some(spec) = noise {
                let drawn = noise::apply(&spec, &splits.train, seed, &place.noise_context())?;
                splits.train = splits.train.with_noise(drawn.labels)?;
            }
            let options = Options { items: !labels_only, ..Options::default() };
            let parts = [
                ("train", Some(&splits.train)),
                ("test", splits.test.as_ref()),
                ("second test", splits.second_test.as_ref()),
            ];
            for (part, dataset) in parts.into_iter().filter_map(|(part, dataset)| Some((part, dataset?))) {
                let report = inspect(dataset, &options);
                if json {
                    say!("{}", serde_json::json!({"part": part, "report": report}));
                } else {
                    say!("== {part}\n{report}");
                }
            }
            for (part, other) in [("test", &splits.test), ("second test", &splits.second_test)] {
                let Some(other) = other.as_ref().filter(|_| !labels_only) else { continue };
                let found = shared(&splits.train, other, options.examples);
                if json {
                    say!("{}", serde_json::json!({"part": format!("train and {part}"), "shared": found}));
                } else {
                    tell_shared(part, &splits.train, other, &found)?;
                }
            }
            if !json && known::is_known(&data) && splits.train.truth().is_none() {
                say!("Labels are as given; `--noise` adds noise to them.");
            }
        }
    }
    Ok(())
}

/// Items that are both in the training split and in another.
fn tell_shared(part: &str, train: &Dataset, other: &Dataset, found: &Shared) -> Result<()> {
    if found.items == 0 {
        say!("== train and {part}\nduplicates    none");
        return Ok(());
    }
    say!("== train and {part}\nduplicates    {}", describe_shared(found, other.len(), part));
    for &(place, at) in &found.first {
        let name = |dataset: &Dataset, item: usize| {
            let class = &dataset.classes()[dataset.given()[item] as usize];
            class.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect::<String>()
        };
        say!("  train {place} ({}), {part} {at} ({})", name(train, place), name(other, at));
    }
    Ok(())
}

fn draw(bar: &ProgressBar, progress: Progress) {
    let style = match progress.total {
        Some(total) => {
            bar.set_length(total);
            "{spinner} {msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}"
        }
        None => "{spinner} {msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar.set_message(progress.step.to_owned());
    bar.set_position(progress.done);
}
