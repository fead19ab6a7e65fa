//! `negscale embed`: items to rows of numbers by an encoder.

use crate::source::{Own, Place, Split, open_items};
use crate::train::Signals;
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use negscale_data::Items;
use negscale_run::embed::{self, ENCODERS, Kind, Source};
use std::path::{Path, PathBuf};

/// Turn pictures into embeddings: rows of numbers for which near means alike, by an encoder.
///
/// DATA is an image, a folder with images at any depth, Parquet with images, or a known dataset. Rows are in the order of the data and do
/// not depend on --together or on the number of threads. Stopped or killed, the same command goes on where it was. The weights of the
/// encoder are fetched by `negscale data get NAME`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A path to your own data, or a known dataset.
    data: String,
    /// File to write to, .npy or .safetensors.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Encoder [default: efficientnet-lite0].
    #[arg(long, value_name = "NAME")]
    encoder: Option<String>,
    /// Column of a table that holds texts, which are then encoded.
    #[arg(long, value_name = "NAME")]
    text_column: Option<String>,
    /// Split of the data, if it has splits [default for known datasets: test].
    #[arg(long)]
    split: Option<Split>,
    /// Items that are read and encoded at a time [default: eight for each thread].
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    together: usize,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    own: Own,
    /// Print nothing but errors.
    #[arg(long)]
    quiet: bool,
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { data, out, encoder, text_column, split, together, place, own, quiet } = arguments;
    let kind = if text_column.is_some() { Kind::Texts } else { Kind::Pictures };
    let known = match &encoder {
        Some(name) => embed::known(name)?,
        None => {
            let default = ENCODERS.iter().find(|known| known.kind == kind);
            default.context("--text-column: there is no encoder of texts yet")?
        }
    };
    embed::Format::of(&out)?;
    let encoder = known.load(&place.to_read()?)?;
    let texts = match kind {
        Kind::Texts => embed::texts(Path::new(&data), text_column.as_deref())?,
        Kind::Pictures => Vec::new(),
    };
    let dataset = match kind {
        Kind::Pictures => Some(open_items(&data, split, &place, &own)?),
        Kind::Texts => None,
    };
    let source = match dataset.as_ref().map(negscale_data::Dataset::items) {
        Some(Items::Images(store)) => Source::Pictures(store.as_ref()),
        Some(Items::Features(_)) => {
            bail!("{data} holds rows of numbers already; embeddings are made of pictures")
        }
        None => Source::Texts(&texts),
    };
    let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(source.len() as u64) };
    let style = "embedding {bar:30.cyan/blue} {pos}/{len} {per_sec} {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
    let signals = Signals::listen()?;
    let mut progress = |done: usize| bar.set_position(done as u64);
    let done = embed::embed(&source, &encoder, &out, together, &mut progress, signals.stop());
    bar.finish_and_clear();
    let done = done?;
    if !quiet {
        if done.resumed > 0 {
            eprintln!("note: {} rows were there from before", done.resumed);
        }
        say!("written: {} ({} rows of {} numbers)", out.display(), done.rows, done.width);
    }
    Ok(())
}
