//! Consensus of several annotators in a table, against true labels where they are known.
//!
//! `cargo run --release -p negscale-audit --example annotators -- LABELS.csv TRUE_COLUMN COLUMN COLUMN...`: whole numbers from 0 on, empty
//! where an annotator gave none; `-` for TRUE_COLUMN if nobody knows. For CIFAR-10N:
//! `cifar10n_labels.csv clean_label random_label1 random_label2 random_label3`.

use negscale_audit::annotators::{Consensus, Labels};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, truth, columns @ ..] = &arguments[..] else {
        return Err("give a table, the column of true labels or -, and columns of annotators".into());
    };
    let mut table = csv::Reader::from_path(file)?;
    let header = table.headers()?.clone();
    let find = |name: &String| {
        header.iter().position(|field| field == name).ok_or(format!("no column `{name}` in {file}"))
    };
    let places = columns.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let truth = if truth == "-" { None } else { Some(find(truth)?) };
    let (mut rows, mut known) = (Vec::new(), Vec::new());
    for record in table.records() {
        let record = record?;
        let label = |at: &usize| match &record[*at] {
            "" => Ok(None),
            word => word.parse::<u32>().map(Some),
        };
        for place in &places {
            rows.push(label(place)?);
        }
        known.extend(truth.map(|at| label(&at)).transpose()?);
    }
    let classes = rows.iter().chain(&known).flatten().max().map_or(1, |most| *most as usize + 1);
    let labels = Labels::from_rows(&rows, places.len(), classes)?;
    let consensus = Consensus::fit(&labels, None)?;
    println!(
        "alpha {:.4}, strength {:?}, {} rounds",
        consensus.alpha.unwrap_or(f64::NAN),
        consensus.strength,
        consensus.rounds
    );
    for (at, (name, annotator)) in columns.iter().zip(&consensus.annotators).enumerate() {
        let [rate, error, kappa] = [annotator.wrong_rate(), annotator.standard_error, annotator.kappa]
            .map(|number| number.unwrap_or(f64::NAN));
        print!(
            "{name}: {} labels, {:.2} % wrong (error {:.2}), kappa {kappa:.3}",
            annotator.labels,
            100.0 * rate,
            100.0 * error
        );
        let own: Vec<bool> = rows
            .iter()
            .skip(at)
            .step_by(places.len())
            .zip(&known)
            .filter(|(label, _)| label.is_some())
            .map(|(a, b)| a == b)
            .collect();
        println!(
            "{}",
            if own.is_empty() {
                String::new()
            } else {
                format!(
                    "; in truth {:.2} %",
                    100.0 * share(own.iter().map(|right| f64::from(u8::from(!right))))
                )
            }
        );
    }
    println!(
        "mean certainty {:.4}",
        share(consensus.samples.iter().map(|sample| f64::from(sample.certainty)))
    );
    if !known.is_empty() {
        let right = consensus
            .samples
            .iter()
            .zip(&known)
            .map(|(sample, y)| f64::from(u8::from(Some(sample.class) == *y)));
        println!("consensus right {:.4}", share(right));
        println!(
            "majority right {:.4}, ties at random",
            share((0..labels.samples()).map(|sample| majority(&labels, sample, known[sample])))
        );
    }
    Ok(())
}

fn share(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0.0), |(sum, count), number| (sum + number, count + 1.0));
    sum / count
}

/// The probability that the majority's class, at random among the most frequent, is the true one.
fn majority(labels: &Labels, sample: usize, truth: Option<u32>) -> f64 {
    let mut votes = vec![0; labels.classes()];
    labels.of_sample(sample).for_each(|(_, class)| votes[class as usize] += 1);
    let most = votes.iter().copied().max().unwrap_or(0);
    let is_one = truth.is_some_and(|class| votes[class as usize] == most);
    f64::from(u8::from(is_one)) / votes.iter().filter(|votes| **votes == most).count() as f64
}
