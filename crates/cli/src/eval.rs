//! `negscale eval`: evaluates a trained model on labelled data.

use crate::source::{Own, Place, Split, check_readable, choose, open_data};
use anyhow::{Context, Result};
use burn::tensor::Device;
use negscale_atomic_file::write_atomic;
use negscale_nets::model::{Evaluation, Model};
use negscale_run::csv_rows::write_row;
use std::path::PathBuf;

/// Up to this many classes the whole confusion matrix is printed; with more, this many mistakes are listed.
const PRINTED: usize = 20;

/// Evaluate a trained model: accuracy, recall and precision of each class, and the confusion matrix.
///
/// Classes are matched by name, so their order may differ; labels that are plain numbers count the model's classes from 0.
/// Where true labels are known (--truth-column), they are used.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folder of a run, or its model.safetensors.
    model: PathBuf,
    /// A known dataset, or a path to your own data, with labels.
    #[arg(long)]
    data: String,
    /// Split of the data [default: test, or everything if there is no test split].
    #[arg(long)]
    split: Option<Split>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    own: Own,
    /// CSV file to write the confusion matrix to: one row per label, one column per prediction.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { model, data, split, place, own, csv, json } = arguments;
    let model = Model::load(model, &Device::flex())?;
    let dataset = choose(open_data(&data, &place, &own)?, split)?;
    check_readable(&dataset, &own)?;
    let evaluation = model.evaluate(&dataset, 0)?;
    if let Some(path) = &csv {
        write_atomic(path, |file| write_matrix(file, &evaluation, model.classes()))
            .with_context(|| path.display().to_string())?;
    }
    if json {
        say!("{}", as_json(dataset.name(), &evaluation, model.classes()));
        return Ok(());
    }
    print(dataset.name(), &evaluation, model.classes())?;
    if let Some(path) = &csv {
        say!("\nwritten: {}", path.display());
    }
    Ok(())
}

fn write_matrix(
    file: impl std::io::Write,
    evaluation: &Evaluation,
    classes: &[String],
) -> std::io::Result<()> {
    let mut table = csv::Writer::from_writer(file);
    write_row(&mut table, std::iter::once("label").chain(classes.iter().map(String::as_str)))?;
    for (label, name) in classes.iter().enumerate() {
        let counts = (0..classes.len()).map(|guess| evaluation.count(label, guess).to_string());
        write_row(&mut table, std::iter::once(name.clone()).chain(counts))?;
    }
    table.flush()
}

fn as_json(data: &str, evaluation: &Evaluation, names: &[String]) -> serde_json::Value {
    let classes: Vec<serde_json::Value> = names
        .iter()
        .enumerate()
        .map(|(class, name)| {
            serde_json::json!({
                "name": name, "items": evaluation.support(class),
                "recall": evaluation.recall(class), "precision": evaluation.precision(class),
            })
        })
        .collect();
    let confusion: Vec<&[u64]> = evaluation.confusion().chunks(names.len().max(1)).collect();
    serde_json::json!({
        "data": data, "items": evaluation.samples(), "top_1": evaluation.top_1(), "top_5": evaluation.top_5(),
        "mean_recall": evaluation.mean_recall(), "classes": classes, "confusion": confusion,
    })
}

fn print(data: &str, evaluation: &Evaluation, names: &[String]) -> Result<()> {
    let percent = |share: Option<f64>| share.map_or("-".into(), |share| format!("{:.2} %", 100.0 * share));
    say!("{data}: {} items, {} classes", evaluation.samples(), names.len());
    say!("top-1        {:>9}", percent(Some(evaluation.top_1())));
    if let Some(share) = evaluation.top_5() {
        say!("top-5        {:>9}", percent(Some(share)));
    }
    say!("mean recall  {:>9}\n", percent(Some(evaluation.mean_recall())));
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(5);
    say!("{:<width$}  {:>9}  {:>9}  {:>9}", "class", "items", "recall", "precision");
    for (class, name) in names.iter().enumerate() {
        let (recall, precision) = (percent(evaluation.recall(class)), percent(evaluation.precision(class)));
        say!("{name:<width$}  {:>9}  {recall:>9}  {precision:>9}", evaluation.support(class));
    }
    if names.len() <= PRINTED {
        let cell = evaluation.confusion().iter().max().map_or(1, |most| most.to_string().len()).max(2) + 1;
        say_part!("\nConfusion: rows are labels, columns predictions, in the same order.\n{:width$}", "");
        for class in 0..names.len() {
            say_part!(" {class:>cell$}");
        }
        say!("");
        for (label, name) in names.iter().enumerate() {
            say_part!("{name:<width$}");
            for guess in 0..names.len() {
                say_part!(" {:>cell$}", evaluation.count(label, guess));
            }
            say!("");
        }
        return Ok(());
    }
    say!("\nMost frequent mistakes (--csv writes all):");
    for (label, guess, count) in evaluation.mistakes().into_iter().take(PRINTED) {
        say!("{count:>9}  {:<width$} predicted as {}", names[label], names[guess]);
    }
    Ok(())
}
