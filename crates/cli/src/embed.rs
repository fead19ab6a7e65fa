//! `negscale embed`: items to rows of numbers by an encoder.

use crate::source::{Own, Place, Split, open_items};
use crate::train::Signals;
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use negscale_data::Items;
use negscale_run::embed::{self, ENCODERS, Kind, Loaded, OnnxSettings, Source};
use std::path::{Path, PathBuf};

/// Turn pictures or texts into embeddings: rows of numbers for which near means alike, by an encoder.
///
/// DATA is an image, a folder with images at any depth, Parquet with images, or a known dataset; or texts: a table (.csv, .tsv) with
/// --text-column, or a .txt with one on each line. Rows are in the order of the data and do
/// not depend on --together or on the number of threads. Stopped or killed, the same command goes on where it was. The weights of the
/// encoder are fetched by `negscale data get NAME`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A path to your own data, or a known dataset.
    data: String,
    /// File to write to, .npy or .safetensors.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Encoder [default: efficientnet-lite0 for pictures, minilm for texts].
    #[arg(long, value_name = "NAME")]
    encoder: Option<String>,
    #[command(flatten)]
    own_encoder: OwnEncoder,
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

/// A network of your own.
#[derive(clap::Args)]
struct OwnEncoder {
    /// A network of your own as encoder, as torch.onnx.export writes it: for pictures one input 1 x 3 x rows x columns, for texts input_ids
    /// with tokenizer.json beside the file. Take only files that you trust: a network can ask for any memory and time.
    #[arg(long, value_name = "FILE", conflicts_with = "encoder")]
    onnx: Option<PathBuf>,
    /// Output of the network [default: the last that is a row for each item, or can be averaged to one].
    #[arg(long, value_name = "NAME", requires = "onnx")]
    onnx_output: Option<String>,
    /// Rows and columns of the pictures that the network takes, where the file leaves them open [default: 224,224].
    #[arg(long, value_name = "N,N", requires = "onnx", value_delimiter = ',')]
    onnx_size: Vec<usize>,
    /// Taken away from red, green and blue between 0 and 1 [default: the mean of ImageNet, 0.485,0.456,0.406].
    #[arg(long, value_name = "R,G,B", requires = "onnx", value_delimiter = ',')]
    onnx_mean: Vec<f32>,
    /// What is left is divided by this [default: that of ImageNet, 0.229,0.224,0.225].
    #[arg(long, value_name = "R,G,B", requires = "onnx", value_delimiter = ',')]
    onnx_std: Vec<f32>,
}

impl OwnEncoder {
    /// The network, if one was named.
    fn load(self, kind: Kind) -> Result<Option<Loaded>> {
        let Some(file) = self.onnx else { return Ok(None) };
        let mut settings = OnnxSettings { output: self.onnx_output, ..OnnxSettings::default() };
        settings.size = match self.onnx_size[..] {
            [] => None,
            [rows, columns] if rows > 0 && columns > 0 => Some([rows, columns]),
            _ => {
                bail!("--onnx-size: two whole numbers above 0 are wanted, rows and columns, such as 224,224")
            }
        };
        let colours = |flag: &str, values: &[f32], least: f32, default: [f32; 3]| match *values {
            [] => Ok(default),
            [red, green, blue] if values.iter().all(|value| value.is_finite() && *value >= least) => {
                Ok([red, green, blue])
            }
            _ => bail!(
                "{flag}: three numbers of at least {least} are wanted, for red, green and blue, such as 0.5,0.5,0.5"
            ),
        };
        settings.mean = colours("--onnx-mean", &self.onnx_mean, 0.0, settings.mean)?;
        settings.deviation = colours("--onnx-std", &self.onnx_std, 1e-6, settings.deviation)?;
        Ok(Some(Loaded::onnx(&file, kind, &settings)?))
    }
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { data, out, encoder, own_encoder, split, together, place, own, quiet } = arguments;
    let is_lines = Path::new(&data).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("txt"));
    let text_column = own.text_column.clone();
    let kind = if text_column.is_some() || is_lines { Kind::Texts } else { Kind::Pictures };
    embed::Format::of(&out)?;
    let encoder = match own_encoder.load(kind)? {
        Some(own) => own,
        None => {
            let default =
                || ENCODERS.iter().find(|known| known.kind == kind).context("no encoder of this kind");
            let known = encoder.map_or_else(default, |name| Ok(embed::known(&name)?))?;
            if known.kind != kind {
                bail!(
                    "--encoder {}: it reads {}, and {data} holds {}",
                    known.name,
                    known.kind.word(),
                    kind.word()
                );
            }
            known.load(&place.to_read()?)?
        }
    };
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
        if encoder.truncated() > 0 {
            eprintln!(
                "note: {} texts are longer than the encoder reads; their ends were left out",
                encoder.truncated()
            );
        }
        say!("written: {} ({} rows of {} numbers)", out.display(), done.rows, done.width);
    }
    Ok(())
}
