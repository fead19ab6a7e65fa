//! `negscale noise`: draws label noise once and saves it, to use the same file for all methods.

use crate::source::{Own, Place, open_data};
use anyhow::Result;
use negscale_data::noise::{NoiseSpec, apply};
use std::path::PathBuf;

/// Add label noise to a dataset and save it as a file.
///
/// NOISE is sym:0.5 (new label uniform over all classes), sym-excl:R, sym-exact:R, asym:R, asym-map:R, asym-block:R,
/// asym-super:R, pairflip:R, ins:R, cifarn:worse|aggre|random1..3|fine, or file:PATH.
#[derive(clap::Args)]
pub struct Arguments {
    /// A known dataset, or a path to your own data.
    #[arg(long)]
    data: String,
    /// The noise model, as described above.
    #[arg(long)]
    noise: NoiseSpec,
    /// Random seed of the noise; not the seed of training.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// File to write.
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    own: Own,
    /// Print one JSON object instead of text: nominal, achieved, convention, hash.
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { data, noise, seed, out, place, own, json } = arguments;
    let splits = open_data(&data, &place, &own)?;
    let drawn = apply(&noise, &splits.train, seed, &place.noise_context())?;
    drawn.save(&out, &splits.train)?;
    if json {
        let summary = serde_json::json!({
            "noise": drawn.spec.to_string(), "seed": drawn.seed, "nominal": drawn.nominal, "achieved": drawn.achieved,
            "convention": drawn.convention, "hash": drawn.hash, "out": out,
        });
        say!("{summary}");
        return Ok(());
    }
    say!("{drawn}");
    say!("true class            wrong   most frequent wrong class takes");
    for (class, (row, dominant)) in drawn.transition.shares().iter().zip(&drawn.dominant).enumerate() {
        let name = &splits.train.classes()[class];
        say!("{name:<20} {:>5.1} %   {:>5.1} %", 100.0 * (1.0 - row[class]), 100.0 * dominant);
    }
    say!("hash {}\nwritten: {}", drawn.hash, out.display());
    Ok(())
}
