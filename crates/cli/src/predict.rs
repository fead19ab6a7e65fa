//! `negscale predict`: classes predicted by a trained model. No labels are needed.

use crate::source::{Own, Place, Split, check_readable, open_items};
use anyhow::{Context, Result, bail};
use burn::tensor::Device;
use negscale_atomic_file::write_atomic;
use negscale_data::Dataset;
use negscale_nets::model::Model;
use negscale_run::csv_rows::write_row;
use std::io::Write;
use std::path::PathBuf;

/// Predict classes, as CSV: index, path if there is one, class, probability, and further classes with --top.
///
/// DATA is an image, a folder with images at any depth, Parquet with images, an array (.npy, .npz, .safetensors, .csv), or a
/// known dataset. Labels are not needed; a column `label` in a table is ignored.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folder of a run, or its model.safetensors.
    model: PathBuf,
    /// A path to your own data, or a known dataset.
    #[arg(long)]
    data: String,
    /// Split of the data, if it has splits [default for known datasets: test].
    #[arg(long)]
    split: Option<Split>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    own: Own,
    /// File to write to instead of printing.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// How many of the most probable classes to print for each item.
    #[arg(long, value_name = "K", default_value_t = 1)]
    top: usize,
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { model, data, split, place, own, out, top } = arguments;
    let model = Model::load(model, &Device::flex())?;
    if top == 0 || top > model.classes().len() {
        bail!("--top {top}: must be from 1 to {}, the number of the model's classes", model.classes().len());
    }
    let dataset = open_items(&data, split, &place, &own)?;
    check_readable(&dataset, &own)?;
    let Some(path) = out else {
        return write(std::io::stdout().lock(), &model, &dataset, top);
    };
    // The writer of whole files knows errors of the system only; others are kept here on the way.
    let mut failed = None;
    let written = write_atomic(&path, |file| {
        write(file, &model, &dataset, top).map_err(|error| {
            failed = Some(error);
            std::io::Error::other("stopped")
        })
    });
    match failed {
        Some(error) => Err(error),
        None => {
            written.with_context(|| path.display().to_string())?;
            say!("written: {} ({} items)", path.display(), dataset.len());
            Ok(())
        }
    }
}

fn write(out: impl Write, model: &Model, dataset: &Dataset, top: usize) -> Result<()> {
    // Begun first: where data and model do not fit, nothing is printed.
    let predictions = model.predictions(dataset, 0)?;
    let mut table = csv::Writer::from_writer(out);
    let origin = |item: usize| dataset.items().origin(item);
    let placed = !dataset.is_empty() && origin(0).is_some();
    let mut header: Vec<String> = vec!["index".into()];
    header.extend(placed.then(|| "path".into()));
    for rank in 1..=top {
        let number = if rank == 1 { String::new() } else { format!("_{rank}") };
        header.extend([format!("class{number}"), format!("probability{number}")]);
    }
    write_row(&mut table, &header)?;
    let classes = model.classes();
    for rows in predictions {
        let rows = rows?;
        for (item, row) in (rows.first..).zip(rows.probabilities.chunks(classes.len().max(1))) {
            let mut order: Vec<usize> = (0..row.len()).collect();
            // The sort is stable: of equal ones the first comes first, as in `eval`.
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
            let mut record = vec![item.to_string()];
            record.extend(placed.then(|| origin(item).unwrap_or_default()));
            for &class in order.iter().take(top) {
                record.extend([classes[class].clone(), format!("{:.6}", row[class])]);
            }
            write_row(&mut table, &record)?;
        }
        table.flush()?;
    }
    Ok(())
}
